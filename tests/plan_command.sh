#!/bin/sh
# unshard plan: lists, refused plans, exit codes, JSON, and one whole page on the toy cluster.
# What ranks, ties and the picture are is held by plan_rank.c and plan_picture.c.
# shellcheck disable=SC2154,SC2317  # tmp comes from tap.sh; the checks are called by ok
. "$top_srcdir/tests/tap.sh"
unset NO_COLOR

# plan ARGUMENTS: leaves $tmp/out, $tmp/err and $code
plan() {
    code=0
    "$UNSHARD" plan "$@" --no-db >"$tmp/out" 2>"$tmp/err" || code=$?
}
is() { test "$1" = "$2" || { echo "# got '$1', want '$2'"; return 1; }; }
same() { diff "$1" "$2" | sed 's/^/# /' | grep . && return 1; return 0; }
said() { grep -qF -- "$1" "$tmp/err" || { sed 's/^/# /' "$tmp/err"; return 1; }; }

# complains WORDS ARGUMENTS: one line on stderr with the words, nothing on stdout, exit code 2
complains() {
    words=$1
    shift
    plan "$@"
    is "$code $(wc -l <"$tmp/err") $(wc -c <"$tmp/out")" "2 1 0" && said "$words"
}

# rows: "MARKS AND RANK|PLAN" for each line of the table; the plan ends before its number of units
rows() {
    awk '/^ *units .* n / { from = index($0, "units"); to = from + match(substr($0, from), / n /) }
        from && /^[> ] *[0-9-]+[*= !]* / {
            plan = substr($0, from, to - from + 1)
            sub(/ *[0-9]*$/, "", plan); gsub(/  +/, " ", plan)
            print substr($0, 1, from - 2) "|" plan
        }' "$tmp/out"
}

# --- lists that make no sense: what to do about it
while IFS='|' read -r what words arguments; do
    # shellcheck disable=SC2086
    ok "$what" complains "$words" llama3-8b $arguments
done <<'END'
an unknown word in a list gets the nearest one|did you mean 'all-but-last'?|--reshard auto,all-but-lst
and all words|auto, yes, no|--reshard auto,maybe
a count that is none|--prefetch: 'x' is not a whole number|--prefetch 0,x
a value that stands twice|--prefetch: '1' stands twice in the list|--prefetch 1,0,1
an empty value|--ac: an empty value in the list 'none,'|--ac none,
an empty list|--allocator: an empty value in the list ''|--allocator=
an empty scheme|--units: an empty value in the list 'block,'|--units block,
an empty plan|--units: an empty value in the list 'block;'|--units block;
a scheme that stands twice|--units: 'block' stands twice|--units block,whole,block
a word beside schemes that is near to one|'blok' stands beside schemes and is none; did you mean 'block'?|--units block,blok
patterns beside schemes|separate plans by ';'|--units block,lm_head
a pattern that matches nothing|no module matches 'model.layer.*'|--units block;model.layer.*
no blocks in a unit|no unit can have 0 blocks|--units block*0
too many plans|more than 1024 plans|--prefetch 0,1,2,3,4,5,6,7 --prefetch-backward 0,1,2,3,4,5,6,7 --reshard auto,no,yes --units block,whole,piece,half,torchtitan,block*2
END
"$UNSHARD" sim llama3-8b --prefetch 0,1 >"$tmp/out" 2>"$tmp/err"
ok "sim takes no list" said "'0,1' is not a whole number"
plan llama3-8b --units '@nowhere.json;block'
ok "a file of units that is not there is exit code 4" is "$code" 4
ok "with its name" said "'nowhere.json'"

# --- which plans there are
names() { rows | sed 's/.*|//' | sort | tr '\n' ','; }
plan llama3-8b --layers 2 --cluster toy --units 'block, whole'
ok "commas separate schemes" is "$(names)" "block,whole,"
plan llama3-8b --layers 2 --cluster toy --units 'model.layers.*,lm_head'
ok "but patterns are one plan" is "$(names)" "model.layers.*,lm_head,"
plan llama3-8b --layers 2 --cluster toy --units 'model.layers.*,lm_head;block,whole;lm_head'
ok "semicolons separate plans" is "$(names)" "block,lm_head,model.layers.*,lm_head,whole,"
plan llama3-8b --layers 2 --cluster toy --units block,whole --reshard auto,no --prefetch 0,1
ok "lists are combined" is "$(names)" "block auto 0,block auto 1,block no 0,block no 1,\
whole auto 0,whole auto 1,whole no 0,whole no 1,"
ok "what differs has a column" grep -q '^ *units  *shard *fetch  *n ' "$tmp/out"
plan llama3-8b --layers 2 --cluster toy --units block,whole --reshard no --prefetch 2
ok "what does not differ has none" is "$(names)" "block,whole,"
plan llama3-8b --layers 2 --cluster toy --units block --reshard auto,all-but-last --ac none,full \
    --allocator caching,expandable --prefetch 0,1
ok "plans that are too long for a column stand above their numbers" grep -q -- \
    '--units block --reshard all-but-last --prefetch 1 --ac full --allocator expandable$' \
    "$tmp/out"

# --- a whole page
page="llama3-8b --layers 4 --cluster toy --ac none,full --units block,attn+mlp,whole,torchtitan"
# shellcheck disable=SC2086
plan $page --memory 24GiB
ok "some fit: exit code 0" is "$code" 0
sed '/^$/d' "$tmp/out" >"$tmp/got"
sed 's/[[:blank:]]*#.*//; /^$/d' "$top_srcdir/tests/golden/plan-toy.txt" >"$tmp/want"
ok "the page is as in golden file plan-toy.txt" same "$tmp/got" "$tmp/want"
cp "$tmp/out" "$tmp/first"
# shellcheck disable=SC2086
plan $page --memory 24GiB
ok "two runs give equal bytes" same "$tmp/out" "$tmp/first"

# --- refused plans
ok "what cannot be built stands in the table" is "$(rows | grep -c '^ *- *|attn+mlp full$')" 1
ok "with the reason" grep -q "refused: units .* cut layer 0, which" "$tmp/out"
plan llama3-8b --ac full --units attn+mlp
ok "where all are refused it is an error" is "$code $(wc -c <"$tmp/out")" "2 0"
ok "with the reason of the first" said "cut layer 0"
ok "what all plans have wrong is said once" complains "nodes" llama3-8b --nodes 3

# --- nothing fits
plan llama3-8b --memory 20GiB
ok "nothing fits into an explicit --memory: exit code 1" is "$code" 1
some='[0-9.]* [KMGT]iB'
ok "one line tells what breaks the smallest plan, and when" grep -qx "unshard plan: \
nothing fits into 20.0 GiB; the smallest, .*, needs $some without retries of the allocator, most of it \
activation, $some at the peak in loss of step 3; would fit with --.*" "$tmp/err"
ok "the page is there, and takes none" grep -q '^best: none; nothing fits' "$tmp/out"
plan llama3-405b --layers 20 --units block,torchtitan
ok "of plans that are named the exit code without --memory is 0" is "$code" 0
ok "and the line is a warning" said "nothing fits into 79.1 GiB; the smallest"
plan llama3-405b --layers 20
ok "of a search it is 1" is "$code" 1
ok "and the line the reason" said "nothing fits into 72.8 GiB; the smallest"

# --- pages are text
narrow() {
    plan "$@"
    awk 'length > 100 || / $/ { print "# " $0; bad = 1 } END { exit bad || NR == 0 }' "$tmp/out"
}
ok "a page is no wider than 100 columns" narrow llama3-8b
ok "nor with many options" narrow llama3-8b --ac full,none --reshard auto,all-but-last \
    --prefetch 0,1
ok "nor with many units" narrow llama3-8b --units \
    'block;model.embed_tokens,model.layers.*,model.norm,lm_head'
ok "nor for a model that fits nowhere" narrow llama3-405b --gpus 512
ok "nor without communication" narrow llama3-8b --gpus 1
plan llama3-8b
plain() { ! LC_ALL=C grep -q '[^ -~]' "$tmp/out" && test ! -s "$tmp/err"; }
ok "into a pipe goes ASCII without control characters" plain
LC_ALL=C.UTF-8 plan llama3-8b
ok "whatever the locale" plain
escape=$(printf '\033')
plan llama3-8b --color always
ok "colour where it is asked for" grep -q "$escape" "$tmp/out"
if script -qec true /dev/null </dev/null >/dev/null 2>&1; then
    terminal() {
        env TERM=xterm LC_ALL="$1" script -qec "'$UNSHARD' plan llama3-8b --no-db" /dev/null \
            </dev/null >"$tmp/out" 2>&1
    }
    terminal C.UTF-8
    ok "a terminal gets colour" grep -q "$escape" "$tmp/out"
    ok "and dots where it shows UTF-8" grep -q '●' "$tmp/out"
    # fits COLUMNS ARGUMENTS: on a terminal that wide; the head, down to a blank line, is a page's
    fits() {
        columns=$1
        shift
        TERM=dumb LC_ALL=C script -qec "stty cols $columns; '$UNSHARD' plan $* --no-db" /dev/null \
            </dev/null | tr -d '\r' >"$tmp/out"
        awk -v most="$columns" '!NF { body = 1 }
            body && length > most { print "# " $0; bad = 1 }
            END { exit bad || !body }' "$tmp/out"
    }
    for columns in 40 59 60 72 80 99 100; do
        ok "on a terminal of $columns columns no line is longer" fits $columns llama3-8b
        ok "nor with many options" fits $columns \
            llama3-8b --ac full,none --reshard auto,all-but-last
    done
    fits 80 llama3-8b
    ok "in 80 columns plans stand above their numbers" grep -q -- '^>[0-9]*[*= ]* .*units [a-z]' "$tmp/out"
    ok "beside a picture" grep -q ' limit [0-9]' "$tmp/out"
    fits 59 llama3-8b
    ok "in less than 60 there is only the list" sh -c "! grep -q ' limit [0-9]' '$tmp/out'"
    fits 150 llama3-8b
    tail -n +3 "$tmp/out" >"$tmp/wide"
    plan llama3-8b --no-db
    tail -n +3 "$tmp/out" >"$tmp/piped"
    ok "a wider one gets what a pipe does" same "$tmp/wide" "$tmp/piped"
    terminal C
    ok "else stars" sh -c "! grep -q '●' '$tmp/out'"
else
    skip "no terminal can be made here"
fi

# --- JSON
if command -v python3 >/dev/null; then
    plan llama3-8b --units block,attn+mlp,torchtitan --ac none,full --reshard auto,no --json
    cp "$tmp/out" "$tmp/plan.json"
    "$UNSHARD" sim llama3-8b --units block --ac full --reshard no --json --no-db >"$tmp/sim.json"
    cat >"$tmp/check.py" <<'END'
import json, sys
plan, sim = (json.load(open(name)) for name in sys.argv[1:3])
rows = plan["rows"]
built = [row for row in rows if "refused" not in row]
checks = {
    "the schema": plan["schema"] == "unshard.plan/1",
    "a row for each combination": len(rows) == 12,
    "rows are in the order of ranks": [r["rank"] for r in rows] == [*range(1, 11), None, None],
    "a refused row has scheme, options and the reason": all(
        r["scheme"] == "attn+mlp" and r["options"]["ac"] == "full" and "cut layer 0" in r["refused"]
        for r in rows[10:]),
    "best is a rank": plan["best"] in range(1, 11),
    "front is the ranks of rows that are on it":
        plan["front"] == [r["rank"] for r in rows if r.get("on_front")],
    "nothing beats the front": all(
        not (o["step_ns"]["mid"] < r["step_ns"]["mid"]
             and o["total_bytes"] < r["total_bytes"] and o["fits"] == r["fits"])
        for r in built if r["on_front"] for o in built),
    "rank 1 is the fastest that fits": rows[0]["step_ns"]["mid"] == min(
        r["step_ns"]["mid"] for r in built if r["fits"]),
    "how far behind the first": all(r["behind_first_ns"]
        == r["step_ns"]["mid"] - rows[0]["step_ns"]["mid"] for r in built),
    "no more uncertain than the step": all(0 <= r["behind_first_uncertainty_ns"]
        <= r["step_ns"]["high"] - r["step_ns"]["low"] for r in built),
    "each row has the options of its own plan": len({
        (r["scheme"], r["options"]["ac"], r["options"]["reshard"]) for r in rows}) == 12,
}
mine = [r for r in built if r["scheme"] == "block" and r["options"]["ac"] == "full"
        and r["options"]["reshard"] == "no"][0]
for key in sim:
    checks["a row has sim's " + key] = key in ("schema", "largest_at_peak") or mine[key] == sim[key]
for number, (name, good) in enumerate(checks.items(), 1):
    print("good" if good else "bad", name)
END
    python3 "$tmp/check.py" "$tmp/plan.json" "$tmp/sim.json" >"$tmp/checks"
    while read -r outcome name; do
        ok "JSON: $name" test "$outcome" = good
    done <"$tmp/checks"
    ok "JSON: all was checked" test "$(wc -l <"$tmp/checks")" -gt 25
    plan llama3-8b --memory 20GiB --json
    ok "JSON: best is null where nothing fits" grep -q '"best":[[:blank:]]*null' "$tmp/out"
    ok "and the exit code is 1" is "$code" 1
else
    skip "no python3 to read JSON with"
fi
done_testing
