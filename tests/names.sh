#!/bin/sh
# Nothing in the code knows a platform or a row of the table of public runs: what is predicted for
# one follows from its columns.
# shellcheck disable=SC2154  # tmp comes from tap.sh
. "$top_srcdir/tests/tap.sh"
table=$UNSHARD_SHARED/data/measured.csv
if ! test -r "$table"; then
    skip "no shared data here (UNSHARD_SHARED)"
    done_testing
fi
cd "$top_srcdir" || exit 1
sed 1d "$table" | cut -d , -f 1,2 | tr , '\n' | sort -u >"$tmp/names"
nowhere() {
    found=$(grep -rnF -f "$tmp/names" src sim gpu traces db)
    test -z "$found" || { echo "$found" | sed 's/^/# /'; return 1; }
}
ok "there are names to look for" test -s "$tmp/names"
ok "none of them is in the code" nowhere
done_testing
