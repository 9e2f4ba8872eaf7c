#!/bin/sh
# `unshard calibrate`: what it writes is a cluster that steps are priced on. Never how fast this is.
# shellcheck disable=SC2154,SC2317  # tmp comes from tap.sh; the checks are called by ok
. "$top_srcdir/tests/tap.sh"
file=$tmp/host.json

writes() { "$UNSHARD" calibrate -o "$1" >"$tmp/out"; }
ok "calibrate writes a file" writes "$file"
ok "and says which" grep -q "^$file: [0-9]* rates and [0-9]* rows of collectives" "$tmp/out"
"$UNSHARD" cluster show "$file" --json >"$tmp/shown"
ok "which is a cluster" grep -q '"cluster":[[:blank:]]*"host"' "$tmp/shown"

# Each number that was measured says so.
numbers='bf16_tflops efficiency s0_tokens tb_per_s slowdown launch_us start_us copy_in_fraction
unshard_kernels_fraction all_gather_us'
for key in $numbers; do
    ok "$key is there, with its source" sh -c "grep -A 6 '\"$key\":' '$file' | grep -q '\"source\":'"
done
above_0() { sed -n 's/.*"gb_per_s":[[:blank:]]*\([0-9.]*\),*$/\1/p' "$file" |
    awk '!($1 > 0) { bad = 1 } END { exit bad || NR < 6 }'; }
ok "collectives have a rate, three kinds of two numbers of ranks at least" above_0
ok "what collectives take from compute is measured" \
    sh -c "grep -A 6 '\"contention\":' '$file' | grep -q 'measured: products beside all-gathers'"
ok "and the range that was measured" grep -q '"gemm_dim"' "$file"

priced() { "$UNSHARD" sim "$1" --gpus 2 --ops native --behavior unshard --cluster "$file" --no-db \
    --json >"$tmp/out"; }
for model in llama-tiny gpt-tiny kda-tiny; do
    ok "$model is priced on it" priced $model
    ok "and takes time" sh -c "grep -A 3 '\"step_ns\"' '$tmp/out' | grep -q '\"mid\":[[:blank:]]*[1-9]'"
done
runs() { "$UNSHARD" run llama-tiny --steps 2 --warmup 1 --cluster "$file" --no-db >"$tmp/out"; }
ok "a real run is predicted with it" runs
ok "by its name" grep -q "predicted for host" "$tmp/out"

ok "without a file it is printed" sh -c "'$UNSHARD' calibrate >'$tmp/printed'"
shows() { "$UNSHARD" cluster show "$tmp/printed" --json >"$tmp/out"; }
cp "$tmp/printed" "$tmp/printed.json"
ok "and is the same kind of file" shows
fails() { code=0; "$UNSHARD" calibrate "$@" >"$tmp/out" 2>"$tmp/err" || code=$?; }
fails --device cuda
ok "a device that is not here: 3" test "$code" = 3
ok "in one line" test "$(wc -l <"$tmp/err")" = 1
fails --cluster nowhere
ok "a cluster to start from that is not there: 2" test "$code" = 2
fails -o "$tmp/missing/host.json"
ok "a file that cannot be written: 4" test "$code" = 4
ok "by name" grep -q "cannot write '$tmp/missing/host.json'" "$tmp/err"
ok "nothing is stored" test ! -e "$UNSHARD_DB"
done_testing
