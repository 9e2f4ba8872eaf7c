# shellcheck shell=sh
# TAP for shell tests: . "$top_srcdir/tests/tap.sh"
#
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
done_testing() {
    echo "1..$n"
    exit $bad
}
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
