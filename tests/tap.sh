# shellcheck shell=sh
# TAP for shell tests: . "$top_srcdir/tests/tap.sh"
#
# skip WHY             a check that cannot be made here
# ok NAME COMMAND...   runs the command; its output is not hidden, so it must be TAP-safe ("# ...")
n=0 bad=0
ok() {
    n=$((n + 1)) what=$1
    shift
    if "$@"; then echo "ok $n - $what"; else
        bad=1
        echo "not ok $n - $what"
    fi
}
skip() {
    n=$((n + 1))
    echo "ok $n # SKIP $1"
}
done_testing() {
    echo "1..$n"
    exit $bad
}
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
UNSHARD_DB=$tmp/runs.db && export UNSHARD_DB # never the history of whoever runs the tests
