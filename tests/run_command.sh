#!/bin/sh
# The command "unshard run": what it prints and stores, how it compares with the simulation of the same
# program, checkpoints read under another arrangement and world size, and what it refuses.
# shellcheck disable=SC2154,SC2317,SC2086,SC2016  # tmp is of tap.sh; ok calls checks; $sim is words
. "$top_srcdir/tests/tap.sh"
. "$top_srcdir/tests/command_rig.sh"

# --- one that goes well
before=$(date +%s)
ok "a small model runs" exits 0 run kda-tiny --ranks 2
ok "in seconds" test $(($(date +%s) - before)) -le 20
ok "nothing goes to stderr" test ! -s "$tmp/err"
ok "the page has losses" grep -q '^loss$' "$tmp/out"
ok "and a step beside its prediction" grep -q '^  step .* ms .* %$' "$tmp/out"
ok "and memory, which the system has as well" grep -q 'the program agrees at all points' "$tmp/out"
ok "no line is over a page" sh -c '! grep -q ".\{101\}" "$1"' - "$tmp/out"
ok "it is stored as a real run" is "$(sql "select run.kind, real.device, real.transport, real.ranks,
    real.steps, real.warmup, real.seed, real.failed from v_run run join v_real real using (run)")" \
    real,host,shm,2,8,3,1,0
ok "each rank did all" is "$(sql "select count(*) from v_rank where step = 8 and error is null and
    last_C = 'optimizer'")" 2
ok "tasks have times in the order of a step" is \
    "$(sql "select min(start_ns >= launch_ns and end_ns >= start_ns), count(*) > 40 from v_task")" 1,1
ok "memory was looked at five times on each rank" is \
    "$(sql "select count(*), min(reserved_bytes = mapped_bytes) from v_check")" 10,1

# --- its trace
ok "a trace of it is made" exits 0 trace export last -o "$tmp/run.trace.json"
ok "and is a good one" exits 0 trace check "$tmp/run.trace.json"

# --- beside its simulation
sim="sim kda-tiny --gpus 2 --nodes 1 --ops native --behavior unshard"
ok "its simulation" exits 0 $sim
ok "is compared with it" exits 0 compare 2 1
ok "as the same program" grep -q '^the same program, [0-9a-f]\{16\}$' "$tmp/out"
ok "at the same addresses" grep -q '^the same placement, ' "$tmp/out"
run compare 2 1 --json
ok "with equal bytes" is "$(sed -n '/"peak_reserved_bytes"/,/]/p' "$tmp/out" | grep -o '[0-9]\{2,\}' |
    sort -u | wc -l)" 1
ok "and the error of each time" grep -q '"error"' "$tmp/out"

# --- JSON
ok "JSON" exits 0 run kda-tiny --ranks 2 --steps 5 --warmup 1 --json --no-db
ok "has its schema" is "$(field schema)" unshard.run/1
for expected in device=host transport=shm ranks=2 steps=5 warmup=1 seed=1 error=null \
    memory_agrees=true; do
    ok "and ${expected%=*}" is "$(field "${expected%=*}" | tr -d ' ')" "${expected#*=}"
done
numbers() { # NAME: of an array that stands on one line
    sed -n "s/^[[:blank:]]*\"$1\":[[:blank:]]*\[\(.*\)\].*/\1/p" "$tmp/out" | tr -d ,
}
ok "a loss for each step" is "$(numbers loss | wc -w)" 5
ok "which falls" sh -c 'awk "BEGIN { exit !($1 > $2 && $2 > 5 && $1 < 6) }"' - \
    "$(numbers loss | cut -d' ' -f 1)" "$(numbers loss | cut -d' ' -f 5)"
measured() { sed -n '/"measured_step_ns"/,/}/p' "$tmp/out" | sed -n "s/.*\"$1\":[[:blank:]]*\([0-9]*\).*/\1/p"; }
ok "steps from the fastest to the slowest" test "$(measured min)" -le "$(measured median)" -a \
    "$(measured median)" -le "$(measured max)" -a "$(measured min)" -gt 0
ok "and the prediction" test "$(sed -n '/"step_ns"/,/}/p' "$tmp/out" |
    sed -n 's/.*"mid":[[:blank:]]*\([0-9]*\).*/\1/p')" -gt 0
# dtypes NAME: of a parameter
dtypes() {
    sed -n "/\"name\":[[:blank:]]*\"$1\"/,/}/p" "$tmp/out" |
        sed -n 's/^[[:blank:]]*"\([sgcr][a-z]*\)":[[:blank:]]*"\([a-z0-9]*\)".*/\1=\2/p' | paste -sd' '
}
kda=model.layers.0.self_attn
ok "a matrix is stored in FP32, used in BF16, reduced in FP32" is \
    "$(dtypes "$kda.q_proj.weight")" "storage=fp32 compute=bf16 gradient=bf16 reduce=fp32"
ok "and A_log is FP32 throughout" is \
    "$(dtypes "$kda.fp32.A_log")" "storage=fp32 compute=fp32 gradient=fp32 reduce=fp32"
ok "nothing of it was stored" is "$(sql 'select count(*) from v_run')" 2

# --- checkpoints: six sequences a step, on two ranks or on three
losses() { numbers loss | tr ' ' '\n' | sed -n "$1p" | paste -sd' '; }
whole="--seed 7 --warmup 1 --json --no-db"
run run kda-tiny --ranks 2 --batch 3 --arrange by-dtype --steps 6 $whole
uninterrupted=$(losses 4,6)
ok "a run of six steps" test "$(echo "$uninterrupted" | wc -w)" = 3
ok "a run is saved halfway" exits 0 run kda-tiny --ranks 2 --batch 3 --arrange by-dtype --steps 3 \
    --save "$tmp/saved" $whole
ok "where it was to be" test -d "$tmp/saved" -a ! -e "$tmp/saved.partial"
ok "and goes on from there" exits 0 run kda-tiny --ranks 2 --batch 3 --arrange by-dtype --steps 3 \
    --resume "$tmp/saved" --warmup 1 --json --no-db
ok "as if it had not stopped" is "$(losses 1,3)" "$uninterrupted"
ok "on three ranks with units of several dtypes too" exits 0 run kda-tiny --ranks 3 --batch 2 \
    --arrange native --steps 3 --resume "$tmp/saved" --warmup 1 --json --no-db
ok "with losses that are the same but for rounding" sh -c 'echo "$1 $2" |
    awk "{ for (i = 1; i <= 3; i++) { d = \$i / \$(i + 3) - 1; if (d > 1e-3 || d < -1e-3) exit 1 } }"' \
    - "$(losses 1,3)" "$uninterrupted"
ok "a checkpoint does not replace another" exits 4 run kda-tiny --ranks 2 --steps 2 --warmup 1 \
    --save "$tmp/saved" --no-db
ok "which is said" says "$tmp/saved"
ok "nor is one read that is not there" exits 4 run kda-tiny --resume "$tmp/none" --no-db
ok "which is said" says "$tmp/none"
ok "a seed is the checkpoint's" complains 2 "--seed" run kda-tiny --resume "$tmp/saved" --seed 2

# --- what time stamps cost: every second measured step has none
run run llama-tiny --json --no-db
stamped=$(numbers loss)
ok "no step is bare unless that is asked for" is "$(field measured_bare_step_ns)" null
ok "steps with time stamps and without" exits 0 run llama-tiny --json --no-db --stamps alternate
ok "have the same losses" is "$(numbers loss)" "$stamped"
ok "and a time each" test "$(field measured_bare_step_ns)" -gt 0 -a "$(field measured_compute_ns)" -gt 0
ok "the difference is printed" exits 0 run llama-tiny --no-db --stamps alternate
ok "in percent" grep -q 'without time stamps .*, median of 2: stamps cost [-+][0-9.]* %' "$tmp/out"

# --- another host's pace: four units, which the host of this cluster is at for 2 ms each, twice a step
cat >"$tmp/slow_host.json" <<END
{"schema": "unshard.cluster/1", "base": "h100-sxm", "name": "slow host",
 "description": "an H100 behind a slow host", "host": {"launch_us": {"value": 1, "source": "made up"},
 "all_gather_us": {"value": 2000, "source": "made up"}}}
END
ok "a run that is held to another host's pace" exits 0 run llama-tiny --json --cluster \
    "$tmp/slow_host.json" --host-pace cluster
ok "has the same losses" is "$(numbers loss)" "$stamped"
# of one step: the device ends another sooner after the one before where that was late
ok "and a step that is not faster than that host" test "$(measured max)" -ge 12000000
ok "which is in what is stored" test "$(sql "select count(*) from v_run where options like '%host_pace%cluster%'")" = 1

ok "and of a release of PyTorch" exits 0 run llama-tiny --json --no-db --host-pace torch-2.5
ok "by which it is predicted, too" test "$(sed -n '/"step_ns"/,/}/p' "$tmp/out" |
    sed -n 's/.*"mid":[[:blank:]]*\([0-9]*\).*/\1/p')" -lt 4000000

# --- what it refuses
ok "a pace that is none" complains 2 "has no host 'bicycle'; it has torch-2.4" \
    run kda-tiny --host-pace bicycle
ok "graphs on a device that has none" complains 2 "device host has no graphs" run kda-tiny --graph
ok "a word of --debug that is none" complains 2 "unknown word 'posion'" run kda-tiny --debug posion
ok "and one without its number" complains 2 "'jitter=x'" run kda-tiny --debug jitter=x
ok "more warm-up than steps" complains 2 "--warmup 8 leaves none of --steps 8" run kda-tiny --warmup 8
ok "what is simulated only" complains 2 "fsdp1 is simulated only" run kda-tiny --system fsdp1
ok "bodies of PyTorch" complains 2 "--ops native" run kda-tiny --ops torch-eager
ok "a model without native bodies" complains 2 "mpt" run mpt-7b
# not built in, or what is missing; a machine that has it has better tests
if "$UNSHARD" run kda-tiny --device cuda --no-db > /dev/null 2>&1; then
    skip "there is a CUDA device"
else
    ok "a device that is not here" complains 3 "device" run kda-tiny --device cuda
fi
ok "an option of other commands" complains 2 "takes no --gpus" run kda-tiny --gpus 2
ok "no model" complains 2 "no model" run
ok "none of it was stored" is "$(sql 'select count(*) from v_run')" 3
done_testing
