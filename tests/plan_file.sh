#!/bin/sh
# plan --emit json and --plan FILE: a plan that was chosen is the same program in every command, what is
# typed holds all the same, and a file that is not for this model is refused.
# shellcheck disable=SC2154,SC2317  # tmp comes from tap.sh; the checks are called by ok
. "$top_srcdir/tests/tap.sh"
file=$tmp/plan.json

# unshard COMMAND ARGUMENTS: leaves $tmp/out, $tmp/err and $code
unshard() {
    code=0
    "$UNSHARD" "$@" >"$tmp/out" 2>"$tmp/err" || code=$?
}
is() { test "$1" = "$2" || { echo "# got '$1', want '$2'"; return 1; }; }
said() { grep -qF -- "$1" "$tmp/err" || { sed 's/^/# /' "$tmp/err"; return 1; }; }
has() { grep -q -- "$1" "$tmp/out" || { sed 's/^/# /' "$tmp/out"; return 1; }; }
lines() { is "$(wc -l <"$1" | tr -d ' ')" "$2"; }
hash_in() { sed -n 's/.*"program_hash":.*"\([0-9a-f]*\)".*/\1/p' "$1"; }
explained() { sed -n 's/^# program //p' "$tmp/out"; }

unshard plan llama3-8b --layers 5 --ac op --lora r=4,alpha=8 --positions seq --no-db --emit json
ok "a model refuses positions that it has none of" is "$code" 2
unshard plan llama3-8b --layers 5 --gpus 16 --replicas 2 --accum 2 --sync last --divide-factor 3 \
    --lora r=4,alpha=8 --reshard yes,no --no-db --json -o "$file" --emit json
want=$(hash_in "$file")
ok "a file goes beside JSON on stdout" has '"schema":.*"unshard.plan/1"'
ok "the best row is the file's" is "$want" "$(hash_in "$tmp/out" | sed 1q)"
unshard sim llama3-8b --plan "$file" --json --no-db
ok "sim: the same program" is "$(hash_in "$tmp/out")" "$want"
unshard explain llama3-8b --plan "$file" --program
ok "explain: the same program" is "$(explained)" "$want"
unshard plan llama3-8b --plan "$file" --units "$(sed -n 's/\\"/"/g; s/.*"units":.*"\(\[.*\]\)",/\1/p' "$file")" \
    --no-db --json
ok "plan: the same program" is "$(hash_in "$tmp/out")" "$want"
unshard check llama3-8b --plan "$file"
ok "check takes it" is "$code" 0

unshard sim llama3-8b --plan "$file" --gpus 8 --replicas 1 --no-db
ok "what is typed holds" has '--gpus 8 '
ok "and the rest is the file's" has '--divide-factor 3'
unshard plan llama3-8b --plan "$file" --no-db --search tail
ok "plan begins its search there" has "plan.json"
ok "and searches" has '^searched tail'

unshard plan llama3-8b --layers 4 --units block --no-reshard model.layers.1 --no-db --emit json -o "$tmp/kept.json"
unshard plan llama3-8b --plan "$tmp/kept.json" --no-db --json
ok "units that are kept in the file do not bind what is found" is "$(grep -c '"refused"' "$tmp/out")" 0
ok "though it was searched" has '"evaluated"'

unshard sim llama3-8b --layers 4 --plan "$file" --no-db
ok "another number of parameters is exit code 4" is "$code" 4
ok "with one line" lines "$tmp/err" 1
ok "that names both" said "is a plan for 'llama3-8b' of "
unshard plan llama2-7b --plan "$file" --no-db
ok "and so is another model" is "$code" 4

# refused NAME TEXT WORDS: a file of this text is exit code 4, and WORDS say why
refused() {
    printf '%s' "$2" >"$tmp/bad.json"
    unshard sim llama3-8b --plan "$tmp/bad.json" --no-db
    ok "$1: exit code 4" is "$code" 4
    ok "$1: one line" lines "$tmp/err" 1
    ok "$1: why" said "$3"
}
refused "no JSON" 'units' 'line 1'
refused "another schema" '{"schema": "unshard.sim/1"}' "schema 'unshard.sim/1', not 'unshard.chosen/1'"
refused "no options" '{"schema": "unshard.chosen/1", "model": "llama3-8b", "parameters": 1}' 'options'
refused "a value that is none" '{"schema": "unshard.chosen/1", "model": "llama3-8b",
    "parameters": 1, "options": {"reshard": "maybe"}}' "unknown value 'maybe'"
refused "a number where a word stands" '{"schema": "unshard.chosen/1", "model": "llama3-8b",
    "parameters": 1, "options": {"reshard": 3}}' 'options.reshard'
unshard sim llama3-8b --plan "$tmp/none.json"
ok "no file is exit code 4" is "$code" 4

unshard plan llama-tiny --ops native --behavior unshard --gpus 2 --no-db --emit json -o "$file"
unshard run llama-tiny --plan "$file" --warmup 1 --steps 2 --no-db --json
ok "run: the same program, its GPUs are ranks" is "$(hash_in "$tmp/out" | sed 1q)" "$(hash_in "$file")"
unshard plan llama-tiny --ops native --behavior unshard --gpus 2 --units block --attention fa3 --no-db \
    --emit json -o "$file"
unshard run llama-tiny --plan "$file" --warmup 1 --steps 2 --no-db
ok "an option that run has not is said" said "'run' takes no --attention, which the plan has as 'fa3'"
done_testing
