#!/bin/sh
# `unshard check` as a person meets it: verdicts, reasons, exit codes. What the rules are is tested by
# the plans that they refuse (tests/eligible.c).
# shellcheck disable=SC2154  # tmp comes from tap.sh
. "$top_srcdir/tests/tap.sh"
. "$top_srcdir/tests/command_rig.sh"

check() { run check "$@"; }
# verdict BEHAVIOR: its row
verdict() { sed -n "s/^$1  *//p" "$tmp/out" | tr -s ' '; }

check llama3-8b
ok "a model of one dtype: exit code 0" is "$code" 0
ok "native and by-dtype under each behavior" is "$(verdict torch-2.11)" "yes yes no"
ok "where gradients are cast before packing, that too" is "$(verdict torch-pr196626)" "yes yes yes"

check llama3-8b --keep-fp32 '*norm*'
ok "norms in FP32, which 2.11 cannot have beside BF16: exit code 1" is "$code" 1
ok "but in units of their own" is "$(verdict torch-2.11)" "no yes no"
ok "it is said how many parameters" grep -q '^llama3-8b: 65 of 291 parameters compute in another' \
    "$tmp/out"
ok "and why not, with two that contradict each other" grep -q "'model.norm.weight' is fp32" "$tmp/out"
ok "each shape of unit once" is "$(grep -c "mixes compute dtypes" "$tmp/out")" 2
check llama3-8b --keep-fp32 '*norm*' --behavior torch-2.15
ok "2.15 can: exit code 0" is "$code" 0

check llama3-8b --keep-fp32 '*norm*' --storage-dtype bf16 --behavior torch-2.15
ok "FP32 of what is stored in BF16 is no override of 2.15: exit code 1" is "$code" 1
ok "that is said" grep -q "is stored in bf16 and computes in fp32" "$tmp/out"

check llama3-8b --keep-fp32 '*norm*' --json
ok "JSON names its schema" grep -q '"schema":	"unshard.check/1"' "$tmp/out"
ok "and has a verdict for each pair" is "$(grep -c '"can":' "$tmp/out")" 15

check llama3-8b --keep-fp32 '*nrom*'
ok "a pattern that matches nothing is a typing error: exit code 2" is "$code" 2
ok "and is named" grep -q "keep-fp32: no parameter matches '\*nrom\*'" "$tmp/err"

check kda-1.75b --behavior torch-2.15
ok "FP32 in modules of their own: native, or by dtype" is "$code $(verdict torch-2.15)" "0 yes yes no"
check kda-flat --behavior torch-2.15
ok "beside BF16 in one module: native only" is "$code $(verdict torch-2.15)" "0 yes no no"
ok "and the siblings are named" grep -q "'layers.0.self_attn.A_log' (fp32) from" "$tmp/out"

# --- plan, side by side
run plan kda-1.75b --units torchtitan --behavior torch-2.11,torch-pr196626 \
    --arrange native,by-dtype,precast --no-db --json
ok "plan compares arrangements and behaviors: exit code 0" is "$code" 0
# rows: of each "BEHAVIOR ARRANGE", and "refused" where it is
rows() {
    sed -n 's/^			"\(behavior\|arrange\|refused\)":[[:blank:]]*"\([^"]*\).*/\1 \2/p' "$tmp/out" | awk '
        $1 == "behavior" { row = $2 }
        $1 == "arrange" { print row, $2 }
        $1 == "refused" { print "refused" }'
}
ok "each row says which it is, four can be built" is "$(rows | grep -vc refused)" 6
ok "a pair that does not exist stands there, refused" is "$(rows | grep -c refused)" 2
ok "with its reason" grep -q '"refused":	"arrangement precast does not exist: torch-2.11' "$tmp/out"
ok "a row has its copies" is "$(grep -c '"packing_ns":' "$tmp/out")" 4
ok "and where their prices come from" is "$(grep -c '"prices_measured_on":	"H100"' "$tmp/out")" 4
run plan kda-1.75b --units torchtitan --behavior torch-pr196626,unshard --no-db
ok "a table of copies" grep -q '^copies of a step, ms' "$tmp/out"
ok "our kernels' prices are a prediction" grep -q 'unshard  *native .* predicted$' "$tmp/out"
run plan llama3-8b --layers 1 --units block --no-db
ok "no such table where there is nothing to compare" is "$(grep -c '^copies of' "$tmp/out")" 0
done_testing
