#!/bin/sh
# `unshard run --device cuda` as a person types it, by the program that has a fake CUDA in it
# (tests/fake_main.c): call by call, and replayed as graphs.
# shellcheck disable=SC2154,SC2317,SC2034  # tmp is of tap.sh; ok calls checks; UNSHARD is the rig's
. "$top_srcdir/tests/tap.sh"
. "$top_srcdir/tests/command_rig.sh"
UNSHARD=$top_builddir/tests/unshard_fake
test -x "$UNSHARD" || { echo "1..0 # SKIP not built with CUDA (--with-cuda)"; exit 0; }

numbers() { sed -n "s/^[[:blank:]]*\"$1\":[[:blank:]]*\[\(.*\)\].*/\1/p" "$tmp/out"; }
last='(select max(run) from v_run)'

run run llama-tiny --json --no-db
host=$(numbers loss)
ok "two ranks run on the device" exits 0 run llama-tiny --json --no-db --device cuda
ok "with the host's losses" is "$(numbers loss)" "$host"
ok "and times of tasks" test "$(field measured_compute_ns)" -gt 0

# --- replayed
ok "and replayed" exits 0 run llama-tiny --json --device cuda --graph
ok "with the same losses" is "$(numbers loss)" "$host"
ok "steps have times" test "$(numbers steps_ns | tr -d ' ' | cut -d, -f 8)" -gt 0
ok "tasks have none" is "$(field measured_compute_ns)" null
ok "it is stored with its steps" is "$(sql "select count(*) from v_step where run = $last and
    step_ns > 0")" 7
ok "and without tasks" is "$(sql "select count(*) from v_task where run = $last")" 0
ok "the page" exits 0 run llama-tiny --no-db --device cuda --graph
ok "says so" grep -q 'no task of a replayed step has a time' "$tmp/out"

# --- one rank for all
ok "one rank of eight" exits 0 run llama-tiny --json --device cuda --emulate-ranks 8
ok "is stored as emulated" is "$(sql "select kind, real.emulated from v_run run join v_real real
    using (run) where run = $last")" emulated,8
ok "replayed, too" exits 0 run llama-tiny --json --device cuda --emulate-ranks 8 --graph
ok "at the pace of a host" exits 0 run llama-tiny --no-db --device cuda --host-pace cluster --steps 4

# --- what cannot be replayed
ok "the host waits in the step" complains 2 "host_wait behind 'all_reduce'" \
    run llama-tiny --no-db --device cuda --graph --log-loss yes
ok "too little warm-up" complains 2 "give --warmup 4 or more" \
    run llama-tiny --no-db --device cuda --graph --warmup 3
ok "too few steps" complains 2 "and more --steps" \
    run llama-tiny --no-db --device cuda --graph --steps 4
ok "a pace of what is replayed" complains 2 "leave out --graph" \
    run llama-tiny --no-db --device cuda --graph --host-pace cluster
ok "who looks into steps" complains 2 "leave out --debug die" \
    run llama-tiny --no-db --device cuda --graph --debug die=1
done_testing
