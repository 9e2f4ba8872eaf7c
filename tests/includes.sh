#!/bin/sh
# Who may include whom: the folders' hierarchy, held by reading the #include lines.
. "$top_srcdir/tests/tap.sh"
cd "$top_srcdir" || exit 1

# included FOLDER-PATTERN: "file<TAB>header" for each quoted include of the files
included() {
    # shellcheck disable=SC2086
    grep -n '^#include "' $1 2>/dev/null | sed 's/:[0-9]*:#include "\([^"]*\)".*/ \1/'
}

# only FILES ALLOWED: every include of the files lies in one of the folders
only() {
    bad=$(included "$1" | awk -v allowed="$2" 'BEGIN { n = split(allowed, a, " ") }
        { good = 0; for (i = 1; i <= n; i++) if (index($2, a[i]) == 1) good = 1
          if (!good) print "# " $1 " includes " $2 }')
    test -z "$bad" || { echo "$bad"; return 1; }
}

# nowhere_but HEADER FILES: only these files may include the system header
nowhere_but() {
    bad=$(grep -rl --include='*.[ch]' --include='*.cu' "#include <$1" src sim gpu traces db tests 2>/dev/null |
        grep -vxE "$2")
    test -z "$bad" || { echo "# $bad includes <$1>"; return 1; }
}

files() { find "$@" \( -name '*.[ch]' -o -name '*.cu' \) 2>/dev/null | sort | tr '\n' ' '; }
core=$(find src -name '*.[ch]' ! -path 'src/cli/*' | sort | tr '\n' ' ')

ok "the core includes only the core" only "$core" "src/"
ok "no file of the core includes the command line" sh -c \
    "! grep -l '#include \"src/cli/' $core"
for folder in sim gpu traces db; do
    test -d "$folder" || continue
    ok "$folder includes the core and itself" only "$(files "$folder")" "src/ $folder/"
    ok "$folder does not include the command line" sh -c \
        "! grep -l '#include \"src/cli/' $(files "$folder")"
done
ok "the command line includes what it joins" only "$(files src/cli)" "src/ sim/ gpu/ traces/ db/"
ok "the reference shares no code with what it judges" only "$(files tests/reference)" \
    "tests/reference/"
ok "cJSON is known to src/json*.c and traces alone" nowhere_but cjson \
    'src/json[a-z_]*\.[ch]|traces/[a-z_]*\.[ch]'
ok "SQLite is known to db alone, and to tests" nowhere_but sqlite3 '(db|tests)/[a-z_]*\.[ch]'
ok "MPI is known to its transport alone" nowhere_but mpi.h 'gpu/mpi_transport\.c'
ok "CUDA is known to gpu/cuda_* alone, and to its tests" nowhere_but cuda \
    'gpu/cuda_[a-z_]*\.(c|h|cu)|tests/(cuda|fake)_[a-z_]*\.[ch]'
ok "file names of the program are unique" sh -c \
    'test -z "$(find src sim gpu traces db -name "*.[ch]" -exec basename {} \; 2>/dev/null |
        sort | uniq -d)"'
ok "a file of the core has no CUDA, no MPI, no SQLite" sh -c \
    "! grep -lE '#include <(cuda|nccl|mpi|sqlite3)' $core"
done_testing
