#!/bin/sh
# `unshard calibrate --from runs` on runs that are made up from predictions: what is fitted, on which
# rows, into which files. How good it is on public runs is tests/accuracy.c's.
# shellcheck disable=SC2154,SC2317,SC2016  # tmp comes from tap.sh; the checks are called by ok
. "$top_srcdir/tests/tap.sh"
. "$top_srcdir/tests/command_rig.sh"

header=id,platform,model,gpu,gpus,micro_batch,seq_len,grad_accum,step_s,system,ac,trust,split,date
table() { { echo "$header"; cat; } >"$tmp/runs.csv"; }
calibrate() { run calibrate --from runs "$tmp/runs.csv" -o "$tmp/out.d" "$@"; }
moved() { grep -c '^  [a-z]*\.[a-z0-9_]*  *[0-9]' "$tmp/out"; }
fitted() { sed -n "s/^  $1  *[0-9.]*  *\([0-9.]*\)\$/\1/p" "$tmp/out"; }
between() { awk -v x="$1" -v a="$2" -v b="$3" 'BEGIN { exit !(x >= a && x <= b) }'; }

# Times of a cluster whose rates are others than the preset's.
cat >"$tmp/truth.json" <<END
{"schema": "unshard.cluster/1", "name": "truth", "description": "slower", "base": "h100-sxm",
 "gemm": {"derate": {"value": 0.7, "source": "here"}},
 "memory": {"slowdown": {"value": 1.5, "source": "here"}}}
END
step() { # MODEL GPUS BATCH SEQ AC: seconds
    run sim "$1" --gpus "$2" --nodes "$((($2 + 7) / 8))" --batch "$3" --seq "$4" --ac "$5" \
        --cluster "$tmp/truth.json" --no-db --json
    awk -v ns="$(field mid)" 'BEGIN { printf "%.6f", ns * 1e-9 }'
}
row() { # ID MODEL GPUS BATCH SEQ AC SPLIT [TRUST]
    echo "$1,p,$2,h100-sxm,$3,$4,$5,1,$(step "$2" "$3" "$4" "$5" "$6"),fsdp2,$6,${8:-high},$7,2025-0$4"
}

# one run: how fast products are, and nothing else
row one llama2-7b 8 2 2048 full calibrate | table
calibrate
ok "a run: exit code 0" is "$code" 0
ok "one constant moves" is "$(moved)" 1
ok "that of products, down" between "$(fitted gemm.derate)" 0.5 0.75
ok "the file is that of the platform" test -r "$tmp/out.d/p.json"
ok "its number says what it is fitted to" grep -q \
    'fitted to 1 runs of p of 2025-02 in runs.csv, nine in ten of which lie within .*; preset 0.85' \
    "$tmp/out.d/p.json"
ok "and has a spread" sh -c "grep -A 4 '\"derate\"' '$tmp/out.d/p.json' | grep -q '\"low\"'"
run validate "$tmp/runs.csv" --calibrated "$tmp/out.d"
ok "validate takes it, and is nearer than 2 %" awk '$1 == "one" { good = $6 < 2 && $6 > -2 }
    END { exit !good }' "$tmp/out"

# several: both constants are found; rows of the test split, of low trust and without a prediction are
# left out, and lie far off so that it would show
several() {
    row a llama2-7b 8 2 2048 full calibrate
    row b llama2-7b 8 1 4096 full calibrate
    row c llama2-7b 8 1 2048 none calibrate
    row d llama2-13b 8 1 2048 full calibrate
    row e llama2-13b 16 2 2048 full calibrate
    row f llama3-8b 8 1 4096 full ''
}
several >"$tmp/several"
table <"$tmp/several"
calibrate
first=$(cat "$tmp/out")
ok "products are found" between "$(fitted gemm.derate)" 0.68 0.72
ok "memory gets slower" between "$(fitted memory.slowdown)" 1.24 1.6
ok "rows lie within half a percent" awk '/^  errors of the fit/ { good = $6 < 0.5 } END { exit !good }' \
    "$tmp/out"
ok "no more than six constants move" test "$(moved)" -le 6
cp "$tmp/out.d/p.json" "$tmp/first.json"
{
    cat "$tmp/several"
    echo "t,p,llama2-7b,h100-sxm,8,2,2048,1,9,fsdp2,full,high,test,"
    echo "u,p,llama2-7b,h100-sxm,8,2,2048,1,9,fsdp2,full,low,calibrate,"
    echo "v,p,llama2-7b,h100-sxm,8,2,2048,1,9,zero3,full,high,calibrate,"
    echo "w,a/b,llama2-7b,h100-sxm,8,2,2048,1,9,fsdp2,full,high,calibrate,"
} | table
calibrate
ok "the same file, bit by bit" cmp -s "$tmp/out.d/p.json" "$tmp/first.json"
ok "a row of low trust is told" grep -q '^u is not fitted: low trust$' "$tmp/out"
ok "one that is not predicted" grep -q "^v is not fitted: --system: unknown value 'zero3'" "$tmp/out"
ok "one whose platform names no file" grep -q '^w is not fitted: a platform and a GPU are' "$tmp/out"
ok "a test row is no matter" is "$(grep -c '^t ' "$tmp/out")" 0
ok "and nothing else changes" is "$(grep -v '^[uvw] is not' "$tmp/out")" "$first"

# a run that nothing explains bends nothing
{ cat "$tmp/several"; row g llama2-7b 8 4 2048 full calibrate | awk -F, -v OFS=, '{ $9 *= 1.3 } 1'; } | table
calibrate
ok "a row 30 % off hardly moves products" between "$(fitted gemm.derate)" 0.665 0.70

# a platform with two GPUs, and near the limit
{
    cat "$tmp/several"
    echo "x,p,llama2-7b,a100-sxm-80g,8,2,2048,1,3,fsdp2,full,high,calibrate,"
    echo "y,q,llama3-8b,h100-sxm,8,1,8192,1,1.1,fsdp2,none,high,calibrate,"
} | table
rm -r "$tmp/out.d"
calibrate --json
ok "two GPUs of a platform have a file each" sh -c \
    "test -r '$tmp/out.d/p.h100-sxm.json' && test -r '$tmp/out.d/p.a100-sxm-80g.json' && ! test -e '$tmp/out.d/p.json'"
ok "JSON names its schema" is "$(field schema)" unshard.calibrate/1
ok "and has a fit for each" is "$(grep -c '"errors_fitted"' "$tmp/out")" 3
calibrate
ok "a run near the memory limit is said to weigh less" grep -q \
    '^q, h100-sxm: 1 run, 1 near the memory limit, which weigh a quarter' "$tmp/out"

# A run with retries of the allocator in it, which no constant is to make up for: it took as long as
# the presets say.
retried() { # STEP_S
    { echo "$header,source,reduce_dtype" &&
        echo "r,p,mpt-13b,a100-sxm-40g,8,10,1024,2,$1,fsdp1,full,high,calibrate,2024-01,mosaicml/llm-foundry,bf16"
    } >"$tmp/runs.csv"
}
retried 1
run validate "$tmp/runs.csv" --json
retried "$(field predicted_s)"
run $(field command | sed 's/^unshard //') --no-db --json
ok "a run has retries" test "$(field withheld_retries)" -gt 0
calibrate
ok "which are nothing that a fit makes up for" between "$(fitted gemm.derate)" 0.929 0.931
ok "but in what it predicts" grep -q '^  errors of the fit    mean 0.0 %' "$tmp/out"

ok "clusters are such as steps are priced on" sh -c \
    "'$UNSHARD' cluster show '$tmp/out.d/q.json' >'$tmp/shown'"

# what cannot be
ok "no folder: exit code 2" complains 2 "-o DIR is needed" calibrate --from runs "$tmp/runs.csv"
ok "two tables: exit code 2" complains 2 "reads one table" \
    calibrate --from runs "$tmp/runs.csv" "$tmp/runs.csv" -o "$tmp/out.d"
ok "no table: exit code 2" complains 2 "needs a file: a table of measured runs" calibrate --from runs
ok "a folder that cannot be: exit code 4" complains 4 "cannot make" \
    calibrate --from runs "$tmp/runs.csv" -o "$tmp/none/deeper"
echo "t,p,llama2-7b,h100-sxm,8,2,2048,1,9,fsdp2,full,high,test," | table
ok "test rows alone: exit code 4" complains 4 "no row that can be fitted" \
    calibrate --from runs "$tmp/runs.csv" -o "$tmp/out.d"
echo "t,p,llama2-7b,toy,8,1,128,1,9,fsdp2,full,high,calibrate," | table
ok "a cluster without rates: exit code 4" complains 4 "row 't': cluster 'toy' has prices" \
    calibrate --from runs "$tmp/runs.csv" -o "$tmp/out.d"
echo id,speed >"$tmp/runs.csv"
ok "an unknown column: exit code 4" complains 4 "line 1: unknown column 'speed'" \
    calibrate --from runs "$tmp/runs.csv" -o "$tmp/out.d"
done_testing
