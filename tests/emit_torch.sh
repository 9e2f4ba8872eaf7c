#!/bin/sh
# plan --emit torch: the code compiles, makes exactly the planned units of a stub of torch, and says
# what it cannot say. The judge is emit_judge.py.
# shellcheck disable=SC2154,SC2317  # tmp comes from tap.sh; the checks are called by ok
. "$top_srcdir/tests/tap.sh"
PYTHONDONTWRITEBYTECODE=1 && export PYTHONDONTWRITEBYTECODE

# plan ARGUMENTS: leaves $tmp/out, $tmp/err and $code
plan() {
    code=0
    "$UNSHARD" plan "$@" --no-db >"$tmp/out" 2>"$tmp/err" || code=$?
}
is() { test "$1" = "$2" || { echo "# got '$1', want '$2'"; return 1; }; }
said() { grep -qF -- "$1" "$tmp/err" || { sed 's/^/# /' "$tmp/err"; return 1; }; }
has() { grep -qF -- "$1" "$tmp/out" || { sed 's/^/# /' "$tmp/out"; return 1; }; }
same() { diff "$1" "$2" | sed 's/^/# /' | grep . && return 1; return 0; }
lines() { is "$(wc -l <"$1" | tr -d ' ')" "$2"; }

plan llama3-8b --units 'block*2' --emit torch
ok "blocks that repeat are a loop" has '    for i in range(0, 32, 2):'
ok "of one line" has '        yield unit(f"model.layers.{i}", f"model.layers.{i + 1}")'
ok "what fully_shard says is not warned of" lines "$tmp/err" 0
cp "$tmp/out" "$tmp/code.py"
plan llama3-8b --units 'block*2' --emit torch -o "$tmp/file.py"
ok "with -o the same is in the file" same "$tmp/code.py" "$tmp/file.py"
ok "and the table is printed" has 'collectives'
plan llama3-8b --units block --emit torch --json
ok "two answers on stdout are exit code 2" is "$code" 2
plan llama3-8b --units block -o "$tmp/other"
ok "and so is a file for nothing" is "$code" 2
plan llama3-8b --units block --emit torch --memory 10GiB
ok "what does not fit is not written: exit code 1" is "$code" 1
ok "and nothing is on stdout" lines "$tmp/out" 0
plan llama3-8b --units block --system fsdp1 --emit torch
ok "FSDP1 has no fully_shard: exit code 2" is "$code" 2
plan llama3-8b --units block --emit torch -o "$tmp/none/file.py"
ok "a folder that is not there: exit code 4" is "$code" 4

plan llama3-8b --units block --emit torch --pack-stream rs --host-sync model.layers.1 --loss fused \
    --behavior unshard --allocator expandable --train-metrics 2
ok "what no call says is a warning each" lines "$tmp/err" 6
for word in 'behavior unshard' '--pack-stream rs' '--host-sync model.layers.1' '--loss fused' \
    '--allocator expandable' '--train-metrics 2'; do
    ok "$word is said on stderr" said "$word"
    ok "$word is a comment in the code" has "# - $word"
done

if ! command -v python3 >/dev/null; then
    skip "no python3 to run the code with"
    done_testing
fi
ok "the code compiles" python3 -c 'import sys; compile(open(sys.argv[1]).read(), "code", "exec")' \
    "$tmp/code.py"
seed=${UNSHARD_SEED:-$(date +%s)}
echo "# seed $seed"
python3 "$top_srcdir/tests/emit_judge.py" "$UNSHARD" "$tmp/runs.db" "$seed" 6 >"$tmp/cases" 2>"$tmp/err"
while read -r outcome name; do
    ok "$name" test "$outcome" = good
done <"$tmp/cases"
ok "all cases were judged" lines "$tmp/cases" 20
sed 's/^/# /' "$tmp/err"
done_testing
