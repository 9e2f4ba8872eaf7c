#!/bin/sh
# Leaving terms of the cost model out: what a step takes without them, and that a table of runs is
# predicted as sim does. How much each matters is ablation.c's.
# shellcheck disable=SC2154,SC2086  # tmp is of tap.sh; $step is words
. "$top_srcdir/tests/tap.sh"
. "$top_srcdir/tests/command_rig.sh"

step="llama2-7b --layers 4 --gpus 64 --nodes 8 --seq 2048 --ac full --no-db --json"
mid() { sed -n 's/^[[:blank:]]*"mid":[[:blank:]]*\([0-9]*\).*/\1/p' "$tmp/out" | head -n 1; }
run sim $step
all=$(mid) hash=$(field program_hash) first=$(field peak_reserved_bytes)
# step_without TERMS: its mid time; stays in $tmp/out
step_without() { run sim $step --without "$1" && mid; }

for term in elementwise loss comm contention packing ring optimizer gemm-ramp stragglers \
    attention-ramp attention-kernel copies; do
    ok "without $term a step is shorter" test "$(step_without $term)" -lt "$all"
done
ok "with the last product computed again it is longer" test "$(step_without early-stop)" -gt "$all"
ok "the program is the same" is "$(field program_hash)" "$hash"
ok "and its memory" is "$(field peak_reserved_bytes)" "$first"
ok "the options in force have it" is "$(field without)" early-stop
run sim $step --without contention
ok "without contention there is none" is "$(field contention_ns)" 0
ok "the loss is elementwise" test "$(step_without elementwise)" -lt "$(step_without loss)"
ok "packing is a copy" test "$(step_without copies)" -lt "$(step_without packing)"
ok "terms add up" test "$(step_without loss,packing)" -lt "$(step_without loss)"
run sim llama2-7b --layers 4 --ac none --no-db --json
one=$(mid)
run sim llama2-7b --layers 4 --ac none --no-db --json --without early-stop,stragglers,ring
ok "what a step does not have changes nothing" is "$(mid)" "$one"
run sim llama2-7b --layers 4 --ac op --no-db --json
one=$(mid)
run sim llama2-7b --layers 4 --ac op --no-db --json --without early-stop
ok "by operator the last product is kept anyway" is "$(mid)" "$one"
# late OPTIONS: what it adds to a step that its last product is computed again
late() { run sim $step "$@" && one=$(mid) && run sim $step "$@" --without early-stop && echo $(($(mid) - one)); }
ok "products in FP8 are computed to the last in any case" is "$(late --linear-dtype fp8)" 0
ok "but for those of compiled blocks" test "$(late --linear-dtype fp8 --ops torch-compile)" -gt 0
run sim "$tmp/tiny.json" --gpus 2 --no-db --json
late=$(mid)
run sim "$tmp/tiny.json" --gpus 2 --no-db --json --without host
ok "a host that binds does so no more" test "$(mid)" -lt "$late"

# --- explain and the history keep it
ok "a run is stored" exits 0 sim llama2-7b --layers 2 --without contention
ok "and explained without it" exits 0 explain last --json
ok "which is said" is "$(field without)" contention

# --- a table of runs
cat >"$tmp/runs.csv" <<END
id,platform,model,gpu,gpus,micro_batch,seq_len,step_s,trust,split
one,p,llama2-7b,h100-sxm,8,1,4096,0.6,high,test
END
run validate "$tmp/runs.csv" --without contention,host --json
ok "validate says what is left out" grep -q '"without":.*"contention,host"' "$tmp/out"
predicted=$(field predicted_s) command=$(field command)
run ${command#unshard } --json --no-db
ok "and predicts what sim does" is "$(awk -v s="$(mid)" 'BEGIN { printf "%.4g", s * 1e-9 }')" \
    "$(awk -v s="$predicted" 'BEGIN { printf "%.4g", s }')"
run validate "$tmp/runs.csv" --without contention
ok "in text too" grep -q '^without contention$' "$tmp/out"

# --- mistakes
ok "an unknown term" complains 2 "did you mean 'stragglers'" sim llama2-7b --without straglers
ok "a cluster of prices" complains 2 "has prices and no terms" sim $tiny --without comm
done_testing
