#!/bin/sh
# Ranks that a script starts one by one, as torchrun and srun do, meet at a file: what they compute is
# what forked ranks compute, and what goes wrong is said in a line and ends all of them.
# shellcheck disable=SC2154,SC2317  # tmp and code are of the rigs; ok calls checks
. "$top_srcdir/tests/tap.sh"
. "$top_srcdir/tests/command_rig.sh"
unset RANK WORLD_SIZE LOCAL_RANK

# start RANK RANKS ARGUMENT...: a rank in the background, as torchrun starts it
start() {
    rank=$1 ranks=$2
    shift 2
    RANK=$rank WORLD_SIZE=$ranks LOCAL_RANK=$rank \
        "$UNSHARD" run --rendezvous "$tmp/meet" "$@" >"$tmp/out$rank" 2>"$tmp/err$rank" &
    pids="$pids $!"
}
# ended: the exit codes of all, in their order
ended() {
    codes=
    for pid in $pids; do
        one=0
        wait "$pid" || one=$?
        codes="$codes$one "
    done
    pids=
}
pids=
# started RANKS ARGUMENT...: all of them, to their end
started() {
    all=$1 at=0
    shift
    while test $at -lt "$all"; do
        start $at "$all" "$@"
        at=$((at + 1))
    done
    ended
}
# Each of these ranks says this, in its one line.
say() { # WORDS RANK...
    words=$1
    shift
    for at in "$@"; do
        test "$(wc -l <"$tmp/err$at")" = 1 && grep -q -- "$words" "$tmp/err$at" && continue
        sed "s/^/# rank $at: /" "$tmp/err$at"
        return 1
    done
}
numbers() { grep -E '"(loss|not_finite|hash|program_hash)"' "$1"; }

for model in llama-tiny kda-tiny; do
    started 3 $model --json --no-db
    ok "$model on three ranks that were started one by one" is "$codes" "0 0 0 "
    ok "the first one prints, over tcp" grep -q '"transport".*"tcp"' "$tmp/out0"
    ok "and it alone" test ! -s "$tmp/out1" -a ! -s "$tmp/out2"
    numbers "$tmp/out0" >"$tmp/launched"
    "$UNSHARD" run $model --json --no-db --ranks 3 >"$tmp/out"
    numbers "$tmp/out" >"$tmp/forked"
    ok "its losses are those of forked ranks, digit for digit" same "$tmp/launched" "$tmp/forked"
done
ok "no file is left" test ! -e "$tmp/meet" -a ! -e "$tmp/meet.part"

started 2 llama-tiny --steps 2 --warmup 1 --save "$tmp/saved"
ok "such a run is stored once" is "$(sql 'select count(*) from v_real')" 1
"$UNSHARD" run llama-tiny --no-db --steps 2 --warmup 1 --save "$tmp/forked_saved" >"$tmp/out"
ok "and leaves the same files" diff -r "$tmp/saved" "$tmp/forked_saved"

for rank in 0 1; do
    SLURM_PROCID=$rank SLURM_NTASKS=2 SLURM_LOCALID=$rank "$UNSHARD" run llama-tiny --no-db \
        --rendezvous "$tmp/meet" >"$tmp/out$rank" 2>"$tmp/err$rank" &
    pids="$pids $!"
done
ended
ok "SLURM says which rank each is, too" is "$codes" "0 0 "

# --- what is refused
export RANK WORLD_SIZE
RANK=1 WORLD_SIZE=2
ok "one of several without a place to meet" complains 3 "--rendezvous FILE" run llama-tiny
ok "tcp without one" complains 2 "--rendezvous FILE" run llama-tiny --transport tcp
ok "a place to meet for forked ranks" complains 2 "leave out --transport" \
    run llama-tiny --transport shm --rendezvous "$tmp/meet"
ok "--ranks that is not WORLD_SIZE" complains 2 "--ranks 3, but 2 processes were started" \
    run llama-tiny --ranks 3 --rendezvous "$tmp/meet"
RANK=2
ok "a rank past the last" complains 2 "RANK is '2' and WORLD_SIZE '2'" \
    run llama-tiny --rendezvous "$tmp/meet"
RANK=x
ok "one that is no number" complains 2 "RANK is 'x'" run llama-tiny --rendezvous "$tmp/meet"
RANK=1
ok "a rank 0 that does not come" complains 5 "rank 0 did not write" \
    run llama-tiny --timeout 1 --no-db --rendezvous "$tmp/meet"
unset RANK WORLD_SIZE
ok "no launcher" complains 2 "set RANK and WORLD_SIZE" run llama-tiny --rendezvous "$tmp/meet"

# --- what fails
start 0 2 llama-tiny --no-db
start 1 3 llama-tiny --no-db
ended
ok "ranks of another WORLD_SIZE end" is "$codes" "5 5 "
ok "and both say so" say "rank 1 was started as one of 3, rank 0 as one of 2" 0 1
start 0 2 llama-tiny --no-db
start 1 2 gpt-tiny --no-db
ended
ok "ranks with other models refuse to start" test "$codes" != "0 0 "
ok "by number" say "rank 1 has another program than rank 0" 0
started 3 llama-tiny --timeout 20 --debug die=1
ok "a rank that is killed ends the run" is "$codes" "5 137 5 "
ok "which the others say" say "rank 1 is gone" 0 2
ok "and one stores" is "$(sql "select failed, error like '%rank 1 is gone' from v_real
    order by run desc limit 1")" 1,1
started 2 llama-tiny --no-db --timeout 20 --debug die=0
ok "also where it is the first" say "rank 0 is gone" 1
start 0 2 llama-tiny --no-db --timeout 5 --debug hang=1
first=$!
start 1 2 llama-tiny --no-db --timeout 5 --debug hang=1
wait "$first" # not for the one that hangs: a launcher ends it
ok "a rank that hangs is named" say "rank 1 is late: waited 5 s" 0
kill -9 $!
done_testing
