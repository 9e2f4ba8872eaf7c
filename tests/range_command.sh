#!/bin/sh
# A model that no table was measured for: a narrow one on a very long sequence. Each command tells
# every table that is left, and low and high are farther apart.
# shellcheck disable=SC2154,SC2086  # tmp is of tap.sh; $narrow is words
. "$top_srcdir/tests/tap.sh"
. "$top_srcdir/tests/command_rig.sh"

config() { # HIDDEN HEADS
    cat <<END
{"model_type": "llama", "hidden_size": $1, "intermediate_size": $(($1 * 8 / 3)),
 "num_hidden_layers": 2, "num_attention_heads": $2, "num_key_value_heads": $2, "vocab_size": 32000,
 "max_position_embeddings": 4096}
END
}
config 300 6 >"$tmp/narrow.json"
config 4096 32 >"$tmp/wide.json"
narrow="$tmp/narrow.json --seq 300000 --no-db"
flat() { tr -s ' \n' '  ' <"$tmp/out"; }
tells() { flat | grep -qF -- "$1" || { flat | sed 's/^/# /'; return 1; }; }

# width: high over low of the step
width() {
    awk '/"step_ns"/ { on = 1 } on && /"low"/ { low = $2 + 0 } on && /"high"/ { print $2 / low; exit }' \
        "$tmp/out"
}

run sim $narrow
for table in \
    "hidden 300 (gemm.derate: known for 768 to 8192, wider by 58 %)" \
    "tokens 300000 (gemm.derate: known for 2048 to 131072, wider by 12 %)" \
    "gemm_dim 300 (gemm.efficiency: known for 512 and more, wider by 30 %)" \
    "seq 300000 (attention.s0_tokens: known for 512 to 65536, wider by 23 %)" \
    "head_dim 50 (attention.head64_factor: known for 64 to 128, wider by 13 %)" \
    "attention_rows 6 (attention.efficiency: known for 16 and more, wider by 61 %)"; do
    ok "sim tells: $table" tells "$table"
done
run sim $narrow --json
ok "JSON has each as an object" is "$(grep -c '"quantity"' "$tmp/out")" 6
ok "with its factor" is "$(field widening)" 1.29626
ok "and all in words" grep -q '"prices_leave_table":.*hidden 300.*seq 300000' "$tmp/out"
far=$(width)
run sim "$tmp/wide.json" --seq 4096 --batch 4 --no-db --json
ok "inside there are none" is "$(grep -c '"quantity"' "$tmp/out")" 0
ok "which JSON says too" grep -q '"prices_leave_table":.*null' "$tmp/out"
ok "and low and high are nearer" awk -v far="$far" -v near="$(width)" \
    'BEGIN { exit !(near > 1 && far > 1.3 * near) }'

run plan $narrow --units block,whole
ok "plan tells" tells "hidden 300 (gemm.derate"
ok "each table once" is "$(flat | grep -o 'seq 300000 (' | wc -l)" 1
run plan $narrow --units block,whole --json
ok "and for every plan in JSON" is "$(grep -c '"quantity":.*"hidden"' "$tmp/out")" 2

# Plans may leave different tables: of other groups, other rows.
run plan "$tmp/wide.json" --seq 4096 --batch 4 --no-db --gpus 12 --nodes 2 --reshard yes,3
ok "plan tells those of every plan" tells "all_gather of 3 ranks in a node (that of 4 is taken"

# Of products in FP32 nothing but a data sheet is known.
wide="$tmp/wide.json --seq 4096 --batch 4 --no-db --param-dtype fp32"
run sim $wide
ok "sim tells that products in FP32 were not measured" tells "products in fp32 (gemm.fp32_tflops: data sheet"
run plan $wide --fp32-products high --units block,whole
ok "plan of TF32" tells "products in fp32 (gemm.tf32_tflops: data sheet"
run sim $wide --json
ok "in JSON it has no range" is "$(grep -c '"seen"' "$tmp/out")" 0
slow=$(field mid)
run sim $wide --fp32-products high --json
ok "tensor cores are faster" test "$slow" -gt "$((3 * $(field mid)))"

cat >"$tmp/runs.csv" <<END
id,platform,model,gpu,gpus,micro_batch,seq_len,step_s,trust,split
far,p,$tmp/narrow.json,h100-sxm,8,1,300000,9,high,test
near,p,$tmp/wide.json,h100-sxm,8,4,4096,9,high,test
END
run validate "$tmp/runs.csv"
ok "validate marks the row" grep -q '^far .* outside$' "$tmp/out"
ok "and no other" is "$(grep -c '^near .*outside' "$tmp/out")" 0
ok "and tells the tables" tells "rows that leave the range that was measured: gemm_dim 300"
run validate "$tmp/runs.csv" --json
ok "JSON has them by row" is "$(grep -c '"quantity"' "$tmp/out")" 6
done_testing
