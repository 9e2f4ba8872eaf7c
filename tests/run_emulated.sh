#!/bin/sh
# `run --emulate-ranks`: one rank stands for all of a plan. Its memory is a rank's, its collectives last
# as long as the cluster says, it is emulated wherever it is shown, and nothing of it is an error.
# shellcheck disable=SC2154,SC2317  # tmp is of tap.sh; ok calls checks
. "$top_srcdir/tests/tap.sh"
. "$top_srcdir/tests/command_rig.sh"

ok "one rank of eight runs alone" exits 0 run llama-tiny --emulate-ranks 8
ok "nothing goes to stderr" test ! -s "$tmp/err"
ok "the page says so" grep -q '^run:     1 rank on device host, the others emulated' "$tmp/out"
ok "in its table, too" grep -q '^  *emulated  *predicted$' "$tmp/out"
ok "with no error" sh -c '! grep -E "^  (step|compute|communication|exposed) .*%" "$1"' - "$tmp/out"
ok "and why" grep -q 'no difference is an error' "$tmp/out"
ok "with no losses" sh -c '! grep -q "^loss$" "$1"' - "$tmp/out"
ok "its memory is what the system has" grep -q 'the program agrees at all points' "$tmp/out"

# --- what is stored
ok "it is stored as emulated" is "$(sql "select run.kind, real.emulated, real.ranks, real.transport,
    run.world from v_run run join v_real real using (run)")" emulated,8,1,emulated,8
ok "with steps, but no losses" is "$(sql "select count(*), count(loss) from v_step")" 8,0
ok "a stand-in lasts no less than its price" is "$(sql "select count(*) from v_task
    where collective and duration_ns < 9000")" 0
ok "history names it" exits 0 history list
ok "as what it is" grep -q ' emulated ' "$tmp/out"

# --- its trace
ok "a trace of it is made" exits 0 trace export last -o "$tmp/run.trace.json"
ok "and is a good one" exits 0 trace check "$tmp/run.trace.json"
ok "its kind is emulated" grep -q '"kind":"emulated"' "$tmp/run.trace.json"
ok "so is each collective" test \
    "$(grep -c '"ncclDevKernel[^(]*(emulated)"' "$tmp/run.trace.json")" -gt 5
ok "and none is not" sh -c '! grep -q "ncclDevKernelArgs" "$1"' - "$tmp/run.trace.json"

# --- beside the simulation of the same program
ok "its simulation" exits 0 sim llama-tiny --gpus 8 --ops native --behavior unshard
ok "is compared with it" exits 0 compare 2 1
ok "as the same program" grep -q '^the same program, ' "$tmp/out"
ok "at the same addresses" grep -q '^the same placement, ' "$tmp/out"
ok "named emulated" grep -q '^run 1: emulated of llama-tiny' "$tmp/out"
ok "with no error in percent" sh -c '! grep -qE "[-+][0-9.]+ %" "$1"' - "$tmp/out"
ok "and why" grep -q 'no difference is an error' "$tmp/out"
run compare 2 1 --json
ok "nor in JSON" sh -c '! grep "error_pct" "$1" | grep -v null' - "$tmp/out"

ok "JSON" exits 0 run llama-tiny --emulate-ranks 4 --steps 4 --warmup 1 --json --no-db
ok "says how many are emulated" is "$(field emulated_ranks)" 4
ok "and has no losses" grep -q '"loss":.*\[null, null, null, null\]' "$tmp/out"
ok "several nodes of a cluster" exits 0 run llama-tiny --emulate-ranks 16 --replicas 2 --steps 4 \
    --warmup 1 --json --no-db
ok "stand where the cluster has them" is "$(field nodes)" 2
run run llama-tiny --ranks 2 --steps 4 --warmup 1 --json --no-db
ok "of a run that is real none is" is "$(field emulated_ranks)" 0

# --- what it refuses
ok "to meet others" complains 2 "leave out --ranks" run llama-tiny --emulate-ranks 8 --ranks 2
ok "to save" complains 2 "leave out --save" run llama-tiny --emulate-ranks 8 --save "$tmp/saved"
ok "to slow down" complains 2 "leave out --slow-comm" run llama-tiny --emulate-ranks 8 --slow-comm 1
ok "one rank" complains 2 "--emulate-ranks" run llama-tiny --emulate-ranks 1
done_testing
