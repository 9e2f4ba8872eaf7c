#!/bin/sh
# `unshard validate` as a person meets it: rows, reasons, statistics, exit codes. What the numbers
# come to on public runs is tests/accuracy.c's. The runs here are made up.
# shellcheck disable=SC2154  # tmp comes from tap.sh
. "$top_srcdir/tests/tap.sh"
. "$top_srcdir/tests/command_rig.sh"

header=id,platform,model,gpu,gpus,micro_batch,seq_len,step_s,system,ac,tp,trust,split,optimizer,loss
table() { printf '%s\n' "$header" "$@" >"$tmp/runs.csv"; }
validate() { run validate "$tmp/runs.csv" "$@"; }

# What sim says of a run is what validate says.
table one,p,llama2-7b,h100-sxm,8,1,4096,0.6,fsdp2,full,1,high,test,adamw-foreach,fused
validate --json
ok "a row: exit code 0" is "$code" 0
ok "JSON names its schema" is "$(field schema)" unshard.validate/1
predicted=$(field predicted_s)
command=$(field command)
# shellcheck disable=SC2086
run ${command#unshard } --json --no-db
ok "its command is one of unshard, which predicts the same" is \
    "$(awk -v s="$(field mid)" 'BEGIN { printf "%.4g", s * 1e-9 }')" "$(awk -v s="$predicted" 'BEGIN { printf "%.4g", s }')"
ok "which has what the columns say" sh -c "echo '$command' | grep -q 'seq 4096.*batch 1.*loss fused'"

validate
ok "a single run is told to be inside" grep -q 'within the interval' "$tmp/out"
ok "below eight rows there are no statistics" grep -q '^p .* too few for statistics' "$tmp/out"
table one,p,llama2-7b,h100-sxm,8,1,4096,3,fsdp2,none,1,high,test,,
validate
ok "one that takes six times as long: the network is suspected" grep -q 'suspect the network' "$tmp/out"
table one,p,llama2-7b,h100-sxm,8,1,4096,0.75,fsdp2,none,1,high,test,,
validate
ok "one and a half times: the kernels" grep -q 'suspect the kernels' "$tmp/out"
table one,p,llama2-7b,h100-sxm,8,1,4096,0.1,fsdp2,none,1,high,test,,
validate
ok "a fifth: the row" grep -q 'suspect the row' "$tmp/out"

# What a framework did beside its columns, by source, date and compilation.
torchtitan() { # DATE COMPILE
    table one,p,llama2-7b,h100-sxm,8,1,4096,0.6,fsdp2,full,1,high,test,,
    sed -i "1s/\$/,source,date,compile/; 2s/\$/,pytorch\\/torchtitan,$1,$2/" "$tmp/runs.csv"
    validate --json
    field command | grep -o -e '--norm [a-z]*' | tail -n 1
}
ok "torchtitan's own norm" is "$(torchtitan 2024-03 no)" "--norm composite"
ok "which was compiled with the whole model" is "$(torchtitan 2024-03 yes)" "--norm fused"
ok "until blocks were compiled alone" is "$(torchtitan 2024-12 yes)" "--norm composite"

# Of composer's precisions PURE, which reduces in BF16, was that of its runs with PyTorch 1.13. Of habits
# that differ the later one holds, and stands alone.
composer() { # REDUCE_DTYPE SYSTEM [TORCH [DATE]]
    table one,p,mpt-125m,h100-sxm,8,1,2048,0.6,"$2",full,1,high,test,,
    sed -i "1s/\$/,source,reduce_dtype,torch,date/
        2s/\$/,mosaicml\/llm-foundry,$1,$3,${4:-2024-01}/" "$tmp/runs.csv"
    validate --json
    field command | grep -o -e '--\(early-stop\|pad-grads\|use-orig-params\|fsdp1-backward-prefetch\) [a-z]*' |
        tr '\n' ' '
}
ok "composer's runs with PyTorch 1.13 recompute blocks to their end" is "$(composer bf16 fsdp1)" \
    "--fsdp1-backward-prefetch post --use-orig-params no --early-stop no --pad-grads yes "
later="--fsdp1-backward-prefetch post --use-orig-params yes "
ok "later ones do not, and keep original parameters" is "$(composer fp32 fsdp1)" "$later"
ok "nor one that names a later release" is "$(composer bf16 fsdp1 2.5)" "$later"
ok "nor one of another page" is "$(composer bf16 fsdp1 '' 2025-01)" "$later"
ok "and its habits of FSDP1 are no other system's" is "$(composer bf16 fsdp2)" ""

# What a table takes for an unfused loss of composer's was a fused one with two metrics behind it.
composer_loss() { # LOSS
    table one,p,mpt-125m,h100-sxm,8,1,2048,0.6,fsdp1,full,1,high,test,,"$1"
    sed -i "1s/\$/,source/; 2s/\$/,mosaicml\/llm-foundry/" "$tmp/runs.csv"
    validate --json
    field command | grep -o -e '--\(loss\|train-metrics\) [a-z0-9]*' | tr '\n' ' '
}
ok "an unfused loss is fused, with metrics" is "$(composer_loss eager)" \
    "--loss fused --train-metrics 2 "
ok "a fused one is that" is "$(composer_loss fused)" "--loss fused "

# reasons
table a,p,llama2-7b,h100-sxm,8,1,4096,0.5,fsdp2,full,2,high,test,, \
    b,p,llama2-8b,h100-sxm,8,1,4096,0.5,fsdp2,full,1,high,test,, \
    c,p,llama2-7b,h100-sxm,8,1,4096,0.5,zero3,full,1,high,test,, \
    d,p,llama2-7b,h100-sxm,8,1,4096,0.5,fsdp2,half,1,high,test,, \
    e,p,llama2-7b,h100-sxm,8,1,4096,0.5,fsdp2,full,1,low,test,, \
    "f,p,llama2-7b,h100-sxm,8,1,4096,0.5,fsdp2,full on 3 layers,1,high,calibrate,,"
validate
ok "rows that cannot be expressed are no failure" is "$code" 0
ok "tensor parallelism is named" grep -q '^a .*tensor parallelism over 2 ranks' "$tmp/out"
ok "an unknown model" grep -q "^b .*unknown model 'llama2-8b'" "$tmp/out"
ok "another system" grep -q "^c .*unknown value 'zero3'" "$tmp/out"
ok "a word that is nothing" grep -q "^d .*ac 'half' is nothing that is modelled" "$tmp/out"
ok "a row of low trust is shown and not counted" grep -q '^e .*low trust' "$tmp/out"
ok "checkpointing of some layers is predicted" grep -q '^f .*%\|^f .*[0-9]' "$tmp/out"
ok "all count but that" grep -q '^all  *1 ' "$tmp/out"
validate --split test
ok "only a split" is "$(grep -c '^f ' "$tmp/out")" 0

# statistics: nine rows whose errors are known, since one is the measure of all
table one,p,llama2-7b,h100-sxm,8,1,4096,1,fsdp2,none,1,high,test,,
validate --json
s=$(field predicted_s)
rows() { # FACTORS: of the predicted time
    row=0
    for f in "$@"; do
        row=$((row + 1))
        echo "r$row,p,llama2-7b,h100-sxm,8,1,4096,$(awk -v s="$s" -v f="$f" 'BEGIN { printf "%.9f", s / f }'),fsdp2,none,1,high,test,,"
    done
}
{ echo "$header"; rows 1.01 0.98 1.03 0.96 1.05 0.94 1.07 0.92 1.09 1.10; } >"$tmp/runs.csv"
validate --json
stat() { sed -n "/\"platforms\"/,\$s/^[[:blank:]]*\"$1\":[[:blank:]]*\([^,]*\).*/\1/p" "$tmp/out" | head -n 1; }
ok "n" is "$(stat n)" 10
ok "mean" is "$(stat mean_pct)" 5.50
ok "median" is "$(stat median_pct)" 5.00
ok "p90" is "$(stat p90_pct)" 9.00
ok "worst" is "$(stat max_pct)" 10.00
ok "bias, with its sign" is "$(stat bias_pct)" 1.50
ok "all lie inside" is "$(stat coverage_pct)" 100.00
ok "pairs that are predicted as equal are not in order" is "$(stat rank_pct)" 0.00
validate --tolerance 6
ok "within the tolerance: exit code 0" is "$code" 0
validate --tolerance 5
ok "past it: exit code 1" is "$code" 1
validate --markdown
ok "Markdown has a line a row" is "$(grep -c '^| r[0-9]* |' "$tmp/out")" 10

# a cluster by platform
mkdir "$tmp/calibrated"
cat >"$tmp/calibrated/p.json" <<END
{"schema": "unshard.cluster/1", "name": "p", "description": "half as fast", "base": "h100-sxm",
 "gemm": {"derate": {"value": 0.425, "source": "here"}}}
END
table one,p,llama2-7b,h100-sxm,8,1,4096,1,fsdp2,none,1,high,test,, \
    two,q,llama2-7b,h100-sxm,8,1,4096,1,fsdp2,none,1,high,test,,
validate --calibrated "$tmp/calibrated" --json
ok "the platform's own cluster is taken where there is one" awk -v a="$(field predicted_s)" -v b="$s" \
    'BEGIN { exit !(a > 1.5 * b) }'
ok "of another platform the built-in one" is \
    "$(sed -n 's/.*"predicted_s":[[:blank:]]*\([0-9.]*\).*/\1/p' "$tmp/out" | sed -n 2p)" "$s"
cp "$tmp/calibrated/p.json" "$tmp/calibrated/q.h100-sxm.json"
validate --calibrated "$tmp/calibrated" --json
ok "a file may be of one GPU of a platform" is \
    "$(sed -n 's/.*"predicted_s":[[:blank:]]*\([0-9.]*\).*/\1/p' "$tmp/out" | sort -u | wc -l)" 1

# the release of PyTorch: what issuing costs
sed 's/^id/torch,id/; 2,$s/^/2.4,/' "$tmp/runs.csv" >"$tmp/torch.csv"
run validate "$tmp/torch.csv" --json
ok "a row's torch is a host profile" is "$(field command | grep -c -- '--host torch-2.4 ')" 1
ok "with which it is predicted" test "$(field predicted_s)" != null

# files
echo id,speed >"$tmp/runs.csv"
ok "an unknown column: exit code 4" complains 4 "line 1: unknown column 'speed'" validate "$tmp/runs.csv"
ok "no file: exit code 4" complains 4 "cannot read" validate "$tmp/none.csv"
ok "no word: exit code 2" complains 2 "no file" validate
done_testing
