#!/bin/sh
# Two runs side by side: a simulated and a real one, two simulated ones, and what is no run.
# shellcheck disable=SC2154,SC2317,SC2086  # tmp is of tap.sh; ok calls checks; $tiny is words
. "$top_srcdir/tests/tap.sh"
. "$top_srcdir/tests/command_rig.sh"

# --- simulated against real: runs made by hand
made=$tmp/made.db
ok "a history is made" "$top_builddir/tests/history_make" "$made"
ok "a run against itself measured" exits 0 compare 1 2 --db "$made"
ok "prints what the golden file has" same "$tmp/out" "$top_srcdir/tests/golden/compare-real.txt"
run compare 1 2 --json --db "$made"
ok "and JSON as its golden file" same "$tmp/out" "$top_srcdir/tests/golden/compare-real.json"
ok "which names its schema" is "$(field schema)" unshard.compare/1
ok "last is a run too" exits 0 compare 2 last --db "$made"
ok "one that failed, which is said" grep -q 'it failed: rank 1' "$tmp/out"
ok "as are tasks that there are none of" grep -q 'one by one: run 3 has none$' "$tmp/out"
ok "nothing goes to stderr" test ! -s "$tmp/err"

# --- simulated runs
run sim $tiny
run sim $tiny
run sim $tiny --units whole --seq 64
ok "the same step twice" exits 0 compare 1 2
ok "is the same program" grep -q '^the same program, [0-9a-f]\{16\}$' "$tmp/out"
ok "at the same addresses" grep -q '^the same placement, ' "$tmp/out"
ok "with the same options" grep -q '^the same options$' "$tmp/out"
ok "and takes the same time" grep -q '^all [0-9]* tasks take the same time$' "$tmp/out"
run compare 2 last
ok "another step is another program" grep -q '^different programs, [0-9a-f]* and [0-9a-f]*$' "$tmp/out"
ok "of the same model" grep -q '^the same model, ' "$tmp/out"
ok "its options are beside one another" is \
    "$(awk '/^option that differs/ { inside = 1; next } /^$/ { inside = 0 }
        inside { print $1, $2, $3 }' "$tmp/out" | tr '\n' ' ')" "seq 128 64 units torchtitan whole "
ok "and no task is one of the other" grep -q 'one by one: their programs differ$' "$tmp/out"
ok "no line is over a page" sh -c 'awk "length > 100" "$1" | grep -q . && exit 1; exit 0' - "$tmp/out"
run compare 2 3 --json
ok "numbers are those of the runs" is "$(sed -n '/"peak_reserved_bytes"/,/]/p' "$tmp/out" |
    tr -dc '0-9,' | sed 's/,$//')" "$(sql 'select peak_reserved_bytes from v_run where run > 1
    order by run' | paste -sd,)"

# --- which is faster for sure: constants that both share cancel
cat >"$tmp/own.json" <<END
{"schema": "unshard.cluster/1", "name": "own", "description": "as h100-sxm", "base": "h100-sxm"}
END
paired=$tmp/paired.db
for units in block torchtitan whole; do
    run sim llama3-8b --units $units --cluster "$tmp/own.json" --db "$paired"
done
run compare 1 2 --db "$paired"
ok "two that are less than 1 % apart: neither" grep -q '^neither run is faster for sure: ' "$tmp/out"
run compare 2 3 --db "$paired"
ok "all in one unit exposes everything: the first" grep -q '^the first run is faster for sure: ' "$tmp/out"
run compare 3 2 --db "$paired"
ok "and the other way round the second" grep -q '^the second run is faster for sure: ' "$tmp/out"
run compare 2 3 --json --db "$paired"
ok "JSON has the difference" is "$(field step_difference_ns)" \
    "$("$UNSHARD" query 'select a.step_ns - b.step_ns from v_run a join v_run b
        where a.run = 2 and b.run = 3' --csv --db "$paired" | tr -d '\r' | tail -n 1)"
ok "and what is uncertain of it" awk -v u="$(field uncertainty_ns)" -v d="$(field step_difference_ns)" \
    'BEGIN { exit !(u > 0 && u < -d) }'
run compare 2 2 --db "$paired"
ok "of one program nothing is said" is "$(grep -c 'for sure' "$tmp/out")" 0
sed -i 's/"base"/"compute": {"contention": {"value": 2, "source": "here"}}, "base"/' "$tmp/own.json"
run compare 2 3 --db "$paired"
ok "nor of a cluster that has changed since" grep -q 'not known: run 2 takes another time today$' "$tmp/out"

# --- what cannot be compared
ok "no run" complains 2 "no run" compare
ok "one run" complains 2 "no second run" compare 1
ok "three" complains 2 "extra argument '3'" compare 1 2 3
ok "a run that there is not" complains 2 "there is no run 9" compare 1 9
ok "what is no run" complains 2 "'x' is no run" compare x 1
ok "no history" complains 6 "no run was stored yet" compare 1 2 --db "$tmp/none.db"
ok "an option of other commands" complains 2 "takes no --gpus" compare 1 2 --gpus 8
ok "nothing was stored" is "$(sql 'select count(*) from v_run')" 3
done_testing
