#!/bin/sh
# What plan answers beside the best plan: --find, what would fit where nothing does, the runner-up,
# searches over options that shape a step, and another judge. Answers are held against plain plans.
# shellcheck disable=SC2154,SC2317  # tmp comes from tap.sh; the checks are called by ok
. "$top_srcdir/tests/tap.sh"

# plan ARGUMENTS: leaves $tmp/out, $tmp/err and $code
plan() {
    code=0
    "$UNSHARD" plan "$@" --no-db --jobs 1 >"$tmp/out" 2>"$tmp/err" || code=$?
}
is() { test "$1" = "$2" || { echo "# got '$1', want '$2'"; return 1; }; }
said() { grep -qF -- "$1" "$tmp/err" || { sed 's/^/# /' "$tmp/err"; return 1; }; }
has() { grep -q -- "$1" "$tmp/out" || { sed 's/^/# /' "$tmp/out"; return 1; }; }
each_once() { # of the values that were asked about, which are some
    awk '$2 == "yes" || $2 == "no" { n++; more += seen[$1]++ } END { exit more > 0 || n == 0 }' "$tmp/out"
}
found() { sed -n 's/^found: --[a-z]* //p' "$tmp/out"; }
model="llama3-8b --layers 2 --units torchtitan --search reshard"

# fits OPTION VALUE ARGUMENTS: whether a plan of its own finds something that fits
fits() {
    option=$1 value=$2
    shift 2
    # shellcheck disable=SC2086
    "$UNSHARD" plan $model "--$option" "$value" "$@" --no-db >/dev/null 2>&1
}
not() { ! "$@"; }

# --- --find
for case in "batch 1" "seq 128"; do
    option=${case% *} step=${case#* }
    # shellcheck disable=SC2086
    plan $model --find "$option" --memory 30GiB
    answer=$(found)
    ok "--find $option: exit code 0" is "$code" 0
    ok "there is an answer" test "${answer:-0}" -ge "$step"
    ok "which fits" fits "$option" "$answer" --memory 30GiB
    ok "and the next one does not" not fits "$option" $((answer + step)) --memory 30GiB
    ok "its plan is shown" has "^options: .*--gpus 8"
    ok "the next one was searched in full" has "searched in full"
done
# shellcheck disable=SC2086
plan $model --seq 2048 --find gpus --memory 20GiB
answer=$(found)
ok "--find gpus: the answer fits" fits gpus "$answer" --seq 2048 --memory 20GiB
ok "and one less does not" not fits gpus $((answer - 1)) --seq 2048 --memory 20GiB
# shellcheck disable=SC2086
plan llama3-8b --layers 2 --seq 2048 --find gpus --memory 20GiB --units block
ok "units that are named are not searched" has '^found: --gpus '
# shellcheck disable=SC2086
plan $model --seq 2048 --find hsdp
ok "--find hsdp: from some number of GPUs on replicas are faster" has '^found: --gpus [0-9]'
ok "and the plans there have them" has '--replicas [2-9]'
# shellcheck disable=SC2086
plan $model --find batch --memory 3GiB
ok "no batch fits: exit code 1" is "$code" 1
ok "with the reason" said "not even one sequence fits into 3.0 GiB; at --batch 1 the smallest plan"
ok "and none as the answer" has '^found: none'
# shellcheck disable=SC2086
plan $model --find batch --batch 2
ok "what is looked for is not given: exit code 2" is "$code" 2
ok "and which it is is said" said "--find batch looks for --batch"
plan gpt2 --layers 2 --find seq
ok "what cannot be built is no answer" is "$(found)" 1024
ok "and the reason is shown, cut where it is seen" has 'refused: seq 1152 is longer .*\.\.\.$'

ok "once" each_once
# shellcheck disable=SC2086
while read -r question arguments; do
    plan $arguments --find "$question"
    ok "--find $question lists each value once" each_once
done <<END
batch $model --memory 30GiB
seq $model --memory 30GiB
gpus $model --seq 2048 --memory 20GiB
hsdp $model --seq 2048
batch gpt2 --layers 2 --units block --memory 2GiB
END

# --- what would fit
# shellcheck disable=SC2086
plan $model --memory 18GiB --batch 2 --seq 4096
ok "nothing fits: exit code 1" is "$code" 1
ok "what would fit is told" has '^fits with: --'
sed -n 's/^\(fits with:\|       or:\) \(--.*[^ ]\)  .* a step .*/\2/p' "$tmp/out" |
    sed 's/  .*//' >"$tmp/relaxations"
while read -r changes; do
    # shellcheck disable=SC2086
    plan $model --memory 18GiB --seq 4096 --batch 2 $changes
    ok "with $changes it fits" is "$code" 0
done <"$tmp/relaxations"
ok "these were some" test "$(wc -l <"$tmp/relaxations")" -ge 2
plan llama3-8b --layers 8 --search reshard --gpus 8 --memory 9GiB --seq 2048 --batch 2
ok "where none is enough alone they are tried under full checkpointing" \
    has '^fits with: --ac full --gpus [1-9]'

# --- the runner-up
# shellcheck disable=SC2086
plan llama3-8b --layers 2 --units block,whole
ok "the runner-up is told with what it trades" \
    has '^runner-up: 2, --units [a-z]*: [0-9.]* % slower, .* \(more\|less\)$'
# shellcheck disable=SC2086
plan llama3-8b --layers 2 --units block
ok "what stands alone has none" not grep -q '^runner-up' "$tmp/out"

# --- more that a search varies
# shellcheck disable=SC2086
plan llama3-8b --layers 2 --units block --seq 2048 --search reshard,batch --batch 2 --accum 2
shares() { sed -n 's/.*--batch \([0-9]*\) --accum \([0-9]*\) .*/\1x\2/p' "$tmp/out" | sort -u | tr '\n' ' '; }
ok "microbatches share what a GPU has in a step" is "$(shares)" "1x4 2x2 4x1 "
# shellcheck disable=SC2086
plan llama3-8b --layers 2 --gpus 32 --seq 2048 --search grouping,replicas
ok "replicas are of whole nodes" has '--replicas 4'
ok "and no others" not grep -q -- '--replicas 8' "$tmp/out"
# shellcheck disable=SC2086
plan llama3-8b --layers 2 --gpus 16 --seq 2048 --units block --search int-reshard
ok "groups of an integer reshard share a node" has ' block *8 '
ok "or a part of it" has ' block *2 '
# shellcheck disable=SC2086
plan llama3-8b --layers 2 --search batch --batch 1,2
ok "shares of several batches are exit code 2" is "$code" 2
ok "with what is wrong" said "--search batch needs one value of --batch, not '1,2'"

# Steps of other numbers of tokens are compared by the time of a token.
# shellcheck disable=SC2086
plan llama3-8b --layers 2 --seq 2048 --units block --batch 1,2,4
falls() {
    awk '/^[ >] *[0-9]+[* ].* block / { for (i = 1; i <= NF; i++) if ($i == "block") print $(i + 5) }' \
        "$tmp/out" >"$tmp/tokens"
    test "$(wc -l <"$tmp/tokens")" = 3 && sort -rnc "$tmp/tokens"
}
ok "more tokens a second come first" falls
ordered() { tr -s ' \n' ' ' <"$tmp/out" | grep -q 'ordered by the time of a token'; }
ok "and it is said" ordered

# --- another judge
plan llama2-7b --layers 8 --gpus 32 --seq 2048 --ac full --search grouping,reshard --judge milp-like
ok "what another judge takes is told" has '^milp-like takes: '
ok "no bound is claimed for it" has 'the judge was no simulation'

if command -v python3 >/dev/null; then
    # json WHAT EXPRESSION ARGUMENTS: a condition on the answer, called it
    json() {
        what=$1 expression=$2
        shift 2
        "$UNSHARD" plan "$@" --no-db --json 2>/dev/null | python3 -c '
import json, sys
it = json.load(sys.stdin)
sys.exit(not eval(sys.argv[1]))' "$expression"
        ok "JSON: $what" test $? = 0
    }
    # shellcheck disable=SC2086
    json "the question, its answer and its probes" '(it["find"]["question"] == "batch" and
        it["find"]["answer"] == max(probe["value"] for probe in it["find"]["probes"] if probe["yes"])
        and all(probe["total_bytes"] > 0 for probe in it["find"]["probes"]))' \
        $model --find batch --memory 30GiB
    # shellcheck disable=SC2086
    json "no answer is null" 'it["find"]["answer"] is None' $model --find batch --memory 3GiB
    # shellcheck disable=SC2086
    json "what would fit" '(all(one["total_bytes"] <= 18 << 30 and one["tokens_per_s_per_gpu"] > 0
        for one in it["relaxations"]) and len(it["relaxations"]) > 1)' \
        $model --memory 18GiB --batch 2 --seq 4096
    # shellcheck disable=SC2086
    json "best and runner-up" 'it["runner_up"] != it["best"] and it["judge"] == "events"' $model
else
    skip "no python3 to read JSON with"
fi
done_testing
