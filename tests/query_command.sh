#!/bin/sh
# SQL over the run history: the three shapes of an answer, parameters, every view, and that nothing
# can be changed.
# shellcheck disable=SC2154,SC2317,SC2086  # tmp is of tap.sh; ok calls checks; $tiny is words
. "$top_srcdir/tests/tap.sh"
. "$top_srcdir/tests/command_rig.sh"
carriage=$(printf '\r')
run sim $tiny --layers 1

# prints ARGUMENTS: a query prints what stands in $tmp/want
prints() { exits 0 query "$@" && same "$tmp/out" "$tmp/want"; }

# --- a table for people
values="with t(n, name, x) as (values (1, 'a', null), (-20, 'b c', 1.5), (null, '', 1.25))
select * from t"
cat >"$tmp/want" <<END
   n  name     x
   1  a     NULL
 -20  b c    1.5
NULL        1.25
END
ok "a table leans numbers to the right" prints "$values"
printf 'x  name\n1\n' >"$tmp/want"
ok "and ends no line with a blank" prints "select 1 as x, '' as name"
echo "name" >"$tmp/want"
ok "of no rows it has the names" prints "select name from v_unit where run = 99"
printf 'x\na?[31mb?c\n' >"$tmp/want"
ok "what a terminal obeys is replaced" prints \
    "select 'a' || char(27) || '[31mb' || char(10) || 'c' as x"
long=$(printf '%0150d' 0)
printf 'x\n%s\n' "$long" >"$tmp/want"
ok "nothing is cut in a pipe" prints "select '$long' as x"
# on_terminal: what a terminal of 60 columns shows of two long values
on_terminal() {
    sql="select 'first $long' as x, 'a' as y, 'second $long' as z"
    script -qec "stty cols 60; '$UNSHARD' query \"$sql\"" /dev/null </dev/null |
        tr -d "$carriage" | tail -n 1 >"$tmp/out"
    is "$(wc -L <"$tmp/out")" 60 && grep -q '^first 0*\.\.\.  a  second 0*\.\.\.$' "$tmp/out"
}
if script -qec 'stty cols 60' /dev/null </dev/null >/dev/null 2>&1; then
    ok "on a terminal lines are as long as it is wide" on_terminal
else
    skip "no terminal can be made here"
fi

# --- values for programs
cat >"$tmp/lines" <<'END'
n,"a ""quoted"" name","x,y"
1,"say ""a""",1.5
,"",""
9223372036854775807,"two
lines",00ff
END
sed "/^\"*two/!s/\$/$carriage/" "$tmp/lines" | sed "s/\"two$carriage/\"two/" >"$tmp/want"
ok "--csv is RFC 4180, and tells NULL from an empty text" prints --csv \
    "select 1 as n, 'say \"a\"' as \"a \"\"quoted\"\" name\", 1.5 as \"x,y\"
     union all select null, '', ''
     union all select 9223372036854775807, 'two' || char(10) || 'lines', x'00ff'"
cat >"$tmp/want" <<'END'
[{"n":1,"text":"a \"b\"","real":0.5,"none":null,"bytes":"00ff"},
{"n":-9223372036854775808,"text":"","real":null,"none":null,"bytes":""}]
END
as_json() { # the same on one line
    exits 0 query --json "$1" && tr -d '\n\t' <"$tmp/out" >"$tmp/got" &&
        tr -d '\n' <"$tmp/want" | sed 's/,{/, {/' >"$tmp/line" && same "$tmp/got" "$tmp/line"
}
ok "--json is an array of objects with exact integers" as_json \
    "select 1 as n, 'a \"b\"' as text, 0.5 as real, null as none, x'00ff' as bytes
     union all select -9223372036854775807 - 1, '', 9e999, null, x'' order by n desc"
ok "of no rows it is empty" sh -c 'test "$("$UNSHARD" query --json "select 1 where 0")" = "[]"'
ok "where two columns have one name JSON cannot be" complains 2 "'run'" \
    query --json 'select run, run from v_run'
ok "--csv can" is "$(sql 'select run, run from v_run')" 1,1
ok "--csv and --json exclude each other" complains 2 "give one" query --csv --json 'select 1'

# --- parameters
ok "parameters are bound in their order" is "$(sql 'select ?2, ?1' a b)" b,a
ok "what looks like a number is one" is \
    "$(sql 'select typeof(?), typeof(?), typeof(?), typeof(?)' 7 7.5 7x '')" integer,real,text,text
ok "but not where that would lose a digit" is "$(sql 'select ?, ?, ?' 0012345678901234 +7 7.50)" \
    0012345678901234,+7,7.50
ok "and quotes are only characters" is "$(sql 'select ? = char(39)' "'")" 1
ok "after -- they may begin with a dash" is "$("$UNSHARD" query --csv -- 'select -?' -5 |
    tr -d '\r' | tail -n 1)" 5
ok "too few" complains 2 "1 parameter" query 'select ?'
ok "too many" complains 2 "values given: 1" query 'select 1' x
ok "far too many" complains 2 "extra argument '33'" query 'select 1' $(seq 33)

# --- the views, on a step whose prices are round numbers
views() {
    while read -r columns; do
        echo "select $columns"
        "$UNSHARD" query "select $columns" </dev/null || return 1
        echo
    done <<END
run, kind, cluster, world, gpus_per_node, parameters, units, tasks, plan_group from v_run
step_low_ns, step_ns, step_high_ns, compute_ns, comm_ns, exposed_comm_ns, contention_ns from v_run
tokens_per_s_per_gpu_milli, mfu_micro, hfu_micro, fits, retries, memory_limit_bytes from v_run
peak_allocated_bytes, peak_active_bytes, peak_reserved_bytes, outside_bytes from v_run
first_peak_allocated_bytes, first_peak_reserved_bytes, init_peak_bytes from v_run
* from v_unit order by unit
* from v_task order by task
* from v_memory order by sample
* from v_memory_peak order by class
* from v_collective order by kind, elements
* from v_exposed order by task
END
}
views >"$tmp/got"
ok "each view answers as before" same "$tmp/got" "$top_srcdir/tests/golden/toy-views.txt"
ok "classes of the peak sum to it" is "$(sql 'select sum(bytes) from v_memory_peak')" \
    "$(sql 'select peak_allocated_bytes from v_run')"
ok "which is the highest of the curve" is "$(sql 'select max(allocated) from v_memory')" \
    "$(sql 'select peak_allocated_bytes from v_run')"
ok "exposed parts sum to the run's" is "$(sql 'select sum(exposed_ns) from v_exposed')" \
    "$(sql 'select exposed_comm_ns from v_run')"
ok "units hold all parameters" is "$(sql 'select sum(elements) from v_unit')" \
    "$(sql 'select parameters from v_run')"
ok "every message is a task" is "$(sql 'select sum(count) from v_collective')" \
    "$(sql 'select count(*) from v_task where collective')"

# --- what is refused: the history stays as it is
sum() { cat "$UNSHARD_DB" | cksum; }
before=$(sum)
ok "no SQL" complains 2 "no SQL" query
ok "an empty one" complains 2 "no statement" query ' ; -- nothing'
ok "an error in it, with its place" complains 2 "character 8: no such column: nme" \
    query 'select nme from v_unit'
ok "two statements" complains 2 "more than one" query 'select 1; select 2'
while read -r statement; do
    ok "$statement" complains 2 "not allowed" query "$statement"
done <<END
delete from run
insert into string (value) values ('x')
drop view v_run
attach 'other.db' as other
pragma user_version = 9
vacuum
END
ok "none of which changed anything" is "$(sum)" "$before"
ok "a statement that takes too long" complains 6 "stopped after 1000 ms" query --timeout 1 \
    'with recursive r(i) as (select 1 union all select i + 1 from r) select count(*) from r'
ok "a function that reaches beyond the database" complains 2 "not allowed" \
    query "select fts3_tokenizer('simple')"
ok "a real has all its digits" is "$(sql 'select 0.1 + 0.2')" 0.30000000000000004
ok "in JSON too, and what is infinite is null" is \
    "$("$UNSHARD" query 'select 0.1 + 0.2 a, 0.5 b, 1e999 c' --json | tr -d '\t\n ')" \
    '[{"a":0.30000000000000004,"b":0.5,"c":null}]'
echo "a text" >"$tmp/text.db"
ok "a file that is no database" complains 6 "not a database" query 'select 1' --db "$tmp/text.db"
ok "a file that is not there" complains 6 "no run was stored yet" query 'select 1' --db "$tmp/no.db"
done_testing
