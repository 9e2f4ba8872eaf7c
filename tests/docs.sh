#!/bin/sh
# What is written about the program against the program: man page, README and completion.
# shellcheck disable=SC2154,SC2317  # tmp comes from tap.sh; the checks are called by ok
. "$top_srcdir/tests/tap.sh"
page=$top_srcdir/src/unshard.1 readme=$top_srcdir/README.md
commands=$("$UNSHARD" help | sed -n '/^commands:/,/^$/s/^  \([a-z]\{1,\}\) .*/\1/p')

same() { diff "$1" "$2" | sed 's/^/# /' | grep . && return 1; return 0; }

# helped: "COMMAND|--option VALUE|default" for every option that a command takes
for command in $commands; do
    "$UNSHARD" help "$command" | awk -v command="$command" '
        function put() { if (name != "") print command "\t" name "\t" initial }
        /^  --/ {
            put()
            name = $1 ($0 ~ /^  --[a-z0-9-]+ [^ ]/ ? " " $2 : ""); initial = ""
        }
        !/^  --/ && name ~ /[|]$/ { name = name $1 }
        /\[.*\]$/ { initial = $0; sub(/.*\[/, "", initial); sub(/\]$/, "", initial) }
        END { put() }'
done >"$tmp/helped"

# --- the man page: every option with its values, and no other
cut -f 2 "$tmp/helped" | tr '[:upper:]' '[:lower:]' | sort -u >"$tmp/want"
sed -n 's/^\.It Fl -/--/p' "$page" | sed 's/ \(Ar\|Cm\) / /; s/ | /|/g' | sort >"$tmp/got"
ok "the man page has the options of all commands, with their values" same "$tmp/got" "$tmp/want"
echo "$commands" | sort >"$tmp/want"
sed -n '/^\.Sh DESCRIPTION/,/^\.Sh/s/^\.It Cm \([a-z]*\).*/\1/p' "$page" | sort -u >"$tmp/got"
ok "and all commands" same "$tmp/got" "$tmp/want"
"$UNSHARD" help | sed -n '/^exit codes/,$s/^  \([0-9]\) .*/\1/p' >"$tmp/want"
sed -n '/^\.Sh EXIT/,/^\.Sh EXAMPLES/s/^\.It //p' "$page" >"$tmp/got"
ok "and the exit codes" same "$tmp/got" "$tmp/want"
if command -v mandoc >/dev/null; then
    mandoc -Tlint -Wwarning "$page" >"$tmp/lint" 2>&1
    ok "mandoc has nothing to say about it" test ! -s "$tmp/lint"
fi

# --- README: the table of options, "| `--option VALUE` | default | commands | meaning |"
awk -F'\t' '{ if (!($2 in of)) { order[++n] = $2; initial[$2] = $3 } of[$2] = of[$2] " " $1 }
    END { for (i = 1; i <= n; i++) print order[i] "\t" initial[order[i]] "\t" of[order[i]] }' \
    "$tmp/helped" | grep -v '^--\(help\|color\)' | sed 's/\t /\t/' | sort >"$tmp/want"
sed -n 's/^| `--/--/p' "$readme" | sed 's/\\|/\a/g; s/` *| */\t/; s/ *| */\t/g; s/\a/|/g' |
    cut -f 1-3 | tr -d '`' | sort >"$tmp/got"
ok "README has the options with their defaults and commands" same "$tmp/got" "$tmp/want"

# --- README: every "$ build/unshard ..." runs, and prints what stands below it. A line "..." stands
# for any lines; numbers are compared as they are printed.
awk -v dir="$tmp" '
    /^```/ { inside = 0 }
    inside { print > file }
    /^\$ build\/unshard/ {
        inside = 1
        file = dir sprintf("/block%03d", ++n) # so that they run in this order
        print substr($0, 17) > (file ".args")
        printf "" > file
    }
' "$readme"
# shows OUTPUT EXCERPT: the excerpt lines are in the output, in this order, and next to one another
# but for the "..." between them
shows() {
    awk -v excerpt="$2" '
        { line[NR] = $0 }
        END {
            at = 1; anywhere = 0
            while ((getline want < excerpt) > 0) {
                if (want == "...") { anywhere = 1; continue }
                while (anywhere && at <= NR && line[at] != want) at++
                if (line[at] != want || at > NR) { print "# README has: " want; exit 1 }
                at++; anywhere = 0
            }
        }' "$1"
}
count=0
for args in "$tmp"/block*.args; do
    test -f "$args" || continue
    count=$((count + 1))
    line=$(cat "$args")
    code=0 want=0
    (cd "$top_srcdir" && eval "\"\$UNSHARD\" $line") >"$tmp/out" 2>"$tmp/err" || code=$?
    if grep -q '^best: none' "${args%.args}"; then want=1; fi
    ok "README: unshard $line runs" test $code = $want
    ok "and prints what README shows" shows "$tmp/out" "${args%.args}"
done
ok "README has commands to run" test "$count" -ge 4

# --- completion
complete() { # EXPECTED WORDS...
    want=$1
    shift
    got=$(bash -c '. "$1"; program=$2; shift 2; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
        _unshard "$program"; echo "${COMPREPLY[@]}"' \
        bash "$top_srcdir/src/unshard.bash" "$UNSHARD" "$@")
    test "$got" = "$want" || { echo "# got '$got', want '$want'"; return 1; }
}
if command -v bash >/dev/null; then
    ok "completes commands" complete "explain" unshard ex
    ok "completes options" complete "--prefetch --prefetch-backward" unshard sim --pre
    for command in $commands; do
        ok "completes every option of $command" complete \
            "$("$UNSHARD" help "$command" | sed -n 's/^  \(--[^ ]*\).*/\1/p' | tr '\n' ' ' | sed 's/ $//')" \
            unshard "$command" --
    done
    ok "completes words of an option" complete "auto all-but-last" unshard sim x --reshard a
    sort -u -t "$(printf '\t')" -k 2,2 "$tmp/helped" | cut -f 1,2 | tr '\t' ' ' |
        grep '[a-z]|' >"$tmp/worded"
    while read -r command option words; do
        ok "completes the words of $option" complete \
            "$(echo "$words" | tr '|' '\n' | grep -v '[A-Z]' | tr '\n' ' ' | sed 's/ $//')" \
            unshard "$command" x "$option" ""
    done <"$tmp/worded"
    ok "of options that have some" test "$(wc -l <"$tmp/worded")" -gt 30
    ok "completes models" complete "llama3-405b" unshard sim llama3-4
    ok "completes clusters" complete "h100-sxm h100-96g-500w h200-sxm" unshard sim llama3-8b --cluster h
    ok "completes after show" complete "toy" unshard cluster show t
    ok "completes what trace can do" complete "export" unshard trace e
    ok "also with a profile" complete "show" unshard trace s
    ok "completes parts of the device check" complete "far" unshard device check f
    ok "completes the newest run" complete "last" unshard trace export l
    ok "also as the second of two" complete "last" unshard compare 1 l
fi
# --- README against doc/accuracy.md, which is made from public runs: a platform's fit, and what is said
# of all runs
accuracy=$top_srcdir/doc/accuracy.md
sed -n '/^llmf-a100, a100-sxm-80g:/,/^```/p' "$readme" | sed '/^```/d; s#fitted/##' >"$tmp/fit"
ok "README shows a fit" test "$(wc -l <"$tmp/fit")" -ge 8
sed -n '/^llmf-a100, a100-sxm-80g:/,/^  llmf-a100/p' "$accuracy" >"$tmp/want"
ok "as doc/accuracy.md has it" same "$tmp/fit" "$tmp/want"
# figures TABLE COLUMN...: of its row "all"
figures() {
    grep '^| all |' "$accuracy" | sed -n "$1p" | tr -d ' ' | cut -d '|' -f "$2" | tr '|' ' '
}
said() { tr '\n' ' ' <"$readme" | grep -q "$1"; }
read -r mean median inside <<END
$(figures 1 4,5,11)
END
ok "the errors of built-in clusters are those of README" said \
    "clusters are $mean % off in the mean, $median % in the median; $inside % lie between low and high"
read -r mean p90 clear inside width <<END
$(figures 2 4,6,9,11,12)
END
ok "and so are those of runs that no fit has seen" said "is then $mean % in the mean and $p90 % for nine\
 in ten, of an interval that is $width % wide and holds $inside % of them; of those that have memory to\
 spare $clear % in the mean"
done_testing
