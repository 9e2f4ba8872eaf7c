# Mutants of a file of C, one a line: line number, column, length, replacement, separated by tabs.
# Left alone: comments, directives, what only a device compiles, assertions, and what tests look with.
function pair(a, b) {
    from[++n] = a
    to[n] = b
}
BEGIN {
    pair(" < ", " <= "); pair(" <= ", " < "); pair(" > ", " >= "); pair(" >= ", " > ")
    pair(" == ", " != "); pair(" != ", " == "); pair(" + ", " - "); pair(" - ", " + ")
    pair(" * ", " + "); pair(" / ", " % "); pair(" % ", " / "); pair(" && ", " || ")
    pair(" || ", " && "); pair(" & ", " | "); pair(" | ", " & "); pair(" += ", " -= ")
    pair(" -= ", " += "); pair("++", "--"); pair(" << ", " >> "); pair(" >> ", " << ")
    pair("(!", "("); pair(" ? ", " == 0 ? ")
}
/^#ifdef __CUDA_ARCH__/ { device = 1 }
/^#(else|endif)/ { device = 0 }
/^ *\/\*/ { comment = 1 }
!comment && !device && !/^#|\\$|assert|PACK_TRACE|PACK_ROLLED|\(void\)|may_alias/ {
    text = $0
    sub(/\/\*.*/, "", text)
    for (i = 1; i <= n; i++)
        for (at = 1; (k = index(substr(text, at), from[i])) > 0; at += k)
            printf "%d\t%d\t%d\t%s\n", NR, at + k - 1, length(from[i]), to[i]
    for (at = 1; match(substr(text, at), /[^A-Za-z_0-9.][0-9]+[^A-Za-z_0-9.x]/); at += RSTART + RLENGTH - 2) {
        number = substr(text, at + RSTART, RLENGTH - 2)
        printf "%d\t%d\t%d\t%d\n", NR, at + RSTART, RLENGTH - 2, number + 1
    }
}
/\*\// { comment = 0 }
