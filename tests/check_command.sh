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
done_testing
