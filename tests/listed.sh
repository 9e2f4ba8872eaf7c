#!/bin/sh
# Each file that is kept is one that the tarball has: it stands in a list of the build, by its path.
# shellcheck disable=SC2154  # tmp comes from tap.sh
. "$top_srcdir/tests/tap.sh"
cd "$top_srcdir" || exit 1
if ! git ls-files --error-unmatch configure.ac >"$tmp/out" 2>&1; then
    skip "no checkout here"
    done_testing
fi
cat Makefile.am ./*/local.mk >"$tmp/lists"
git ls-files src sim gpu traces db tests doc | grep -v 'local\.mk$' | while read -r file; do
    grep -qF "$file" "$tmp/lists" || echo "# $file"
done >"$tmp/missing"
cat "$tmp/missing"
ok "there are lists" grep -q EXTRA_DIST "$tmp/lists"
ok "and no file that is kept stands in none of them" test ! -s "$tmp/missing"
done_testing
