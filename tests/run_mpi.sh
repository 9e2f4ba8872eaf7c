#!/bin/sh
# `mpirun unshard run`: each process is a rank, and what comes out is what forked ranks make.
# shellcheck disable=SC2154,SC2317  # tmp comes from tap.sh; the checks are called by ok
. "$top_srcdir/tests/tap.sh"

# launched RANKS ARGUMENT...: leaves $tmp/out, $tmp/err and $code
launched() {
    code=0 ranks=$1
    shift
    mpirun --allow-run-as-root --oversubscribe -n "$ranks" "$UNSHARD" run "$@" \
        >"$tmp/out" 2>"$tmp/err" || code=$?
}
says() { grep -q "$1" "$tmp/out" "$tmp/err" || { sed 's/^/# /' "$tmp/out" "$tmp/err"; return 1; }; }

# A build without MPI says so, whoever starts it.
if ! test -x "$top_builddir/tests/host_mpi"; then
    for words in "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2" "PMI_RANK=0 PMI_SIZE=3" \
        "SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=4"; do
        code=0
        # shellcheck disable=SC2086  # two words
        env $words "$UNSHARD" run llama-tiny --no-db >"$tmp/out" 2>"$tmp/err" || code=$?
        ok "started as one of several ($words) without MPI: refused" test $code = 3
        ok "with how many, and what to do" says "${words##*=} processes.*configure --with-mpi"
    done
    OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2
    export OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE
    forks() { "$UNSHARD" run llama-tiny --no-db --steps 2 --warmup 1 --transport shm >"$tmp/out"; }
    ok "ranks are forked all the same where that is asked for" forks
    done_testing
    exit
fi
if ! command -v mpirun >/dev/null; then
    echo "1..0 # SKIP no mpirun"
    exit 0
fi

stored() { "$UNSHARD" query --csv "$1" | tr -d '\r' | tail -n 1; }
numbers() { grep -E '"(loss|not_finite|hash|program_hash)"' "$1"; }
for model in llama-tiny kda-tiny; do
    launched 3 $model --json --no-db
    ok "$model on three launched ranks" test "$code" = 0
    ok "prints once, over mpi" test "$(grep -c '"transport".*"mpi"' "$tmp/out")" = 1
    numbers "$tmp/out" >"$tmp/launched"
    "$UNSHARD" run $model --json --no-db --ranks 3 >"$tmp/out"
    numbers "$tmp/out" >"$tmp/forked"
    ok "and its losses are those of forked ranks, digit for digit" \
        cmp "$tmp/launched" "$tmp/forked"
done

launched 2 llama-tiny --steps 2 --warmup 1 --save "$tmp/saved"
ok "a launched run is stored and saved" test "$code" = 0
ok "by one rank" test "$(stored "select count(*) from v_real")" = 1
"$UNSHARD" run llama-tiny --no-db --steps 2 --warmup 1 --save "$tmp/forked_saved" >"$tmp/out"
ok "and leaves the same files" diff -r "$tmp/saved" "$tmp/forked_saved"

launched 2 llama-tiny --ranks 3 --no-db
ok "--ranks that is not what was started is refused" says "ranks 3, but 2 processes"
mpirun --allow-run-as-root --oversubscribe -n 1 "$UNSHARD" run llama-tiny --no-db : \
    -n 1 "$UNSHARD" run gpt-tiny --no-db >"$tmp/out" 2>"$tmp/err"
ok "ranks with other models refuse to start, by number" says "rank 1 has another program than rank 0"
mpirun --allow-run-as-root --oversubscribe -n 2 "$UNSHARD" run llama-tiny --no-db : \
    -n 1 "$UNSHARD" run llama-tiny --no-db --lr 0.1 >"$tmp/out" 2>"$tmp/err"
ok "and so with other settings" says "rank 2 has .*settings.* than rank 0"
ok "which one rank says" test "$(grep -c "^unshard run:" "$tmp/err")" = 1

began=$(date +%s)
launched 2 llama-tiny --timeout 3 --debug hang=1
took=$(($(date +%s) - began))
ok "a rank that hangs ends the run" test "$code" != 0
ok "within the time" test $took -lt 30
ok "and is named" says "rank 1 is late"
ok "the failure is stored" test \
    "$(stored "select failed from v_real order by run desc limit 1")" = 1
began=$(date +%s)
launched 2 llama-tiny --timeout 60 --no-db --debug die=1
took=$(($(date +%s) - began))
ok "a rank that is killed ends the run" test "$code" != 0
ok "at once" test $took -lt 50
done_testing
