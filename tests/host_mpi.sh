#!/bin/sh
# Ranks that a launcher starts exchange bytes by MPI; one that is late is named by the others.
. "$top_srcdir/tests/tap.sh"
rank=$top_builddir/tests/host_mpi
if ! test -x "$rank" || ! command -v mpirun >/dev/null; then
    echo "1..0 # SKIP not built with MPI (--with-mpi)"
    exit 0
fi
# says RANKS LINE ARGUMENT...: one of the ranks prints the line
says() {
    ranks=$1 line=$2
    shift 2
    mpirun --allow-run-as-root --oversubscribe -n "$ranks" "$rank" "$@" >"$tmp/said" 2>&1
    grep -qx "$line" "$tmp/said" || { sed 's/^/# /' "$tmp/said"; return 1; }
}

for ranks in 1 2 3; do
    ok "$ranks ranks get each other's bytes in several groups at a time" says $ranks "all bytes right"
done
ok "a rank that is late ends the others within the time, and is named" \
    says 2 "rank 0 is told: rank 1 is late: waited 1 s for it" late
done_testing
