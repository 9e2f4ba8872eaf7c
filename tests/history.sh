#!/bin/sh
# The run history: what is stored, where, and that an answer never waits for it.
# shellcheck disable=SC2154,SC2317,SC2086  # tmp is of tap.sh; ok calls checks; $tiny is words
. "$top_srcdir/tests/tap.sh"
. "$top_srcdir/tests/command_rig.sh"

# --- every run is stored
ok "sim says as which run it is stored, and where" sh -c \
    'test "$("$UNSHARD" sim '"$tiny"' | tail -n 1)" = "run 1 stored in $UNSHARD_DB"'
run sim $tiny --units 'block*2' --json
ok "JSON has the run's number" is "$(field run_id)" 2
ok "and so does the history" is "$(sql 'select count(*) from v_run')" 2
ok "with what was typed, as a shell takes it" is \
    "$(sql 'select command from v_run where run = 2')" "unshard sim $tiny --units 'block*2' --json"
ok "and with the numbers that were printed" is \
    "$(sql 'select step_ns, peak_reserved_bytes, program_hash, fits from v_run where run = 2')" \
    "$(field mid),$(field peak_reserved_bytes),$(field program_hash),1"
run sim $tiny
ok "the same run again is another one" is "$(sql 'select max(run) from v_run')" 3
documents() { sql 'select kind, count(*) from document group by kind' | tr '\n' ' '; }
ok "of the same model, cluster and plan" is "$(documents)" "cluster,1 model,1 plan,2 "
ok "and the same program at the same addresses" is "$(sql 'select count(distinct program_hash),
    count(distinct placement_hash) from v_run where run <> 2')" 1,1

run sim $tiny --what-if no-comm,infinite-host --json
ok "a bracket is printed" is "$(grep -c gain_ns "$tmp/out")" 2
ok "and leaves no trace in the run" is "$(sql 'select count(*), count(distinct step_ns),
    count(distinct options) from v_run where run in (3, 4)')" 2,1,1

# --- a cluster that differs in a digit is another one
cat >"$tmp/near.json" <<END
{"schema": "unshard.cluster/1", "base": "h100-sxm", "name": "h100-sxm", "description": "near",
 "memory": {"efficiency": {"low": 0.8, "mid": 0.7999999991, "high": 0.7, "source": "made up"}}}
END
sed 's/0.7999999991/0.7999999992/' "$tmp/near.json" >"$tmp/nearer.json"
for cluster in near nearer near; do
    run sim "$tmp/tiny.json" --cluster "$tmp/$cluster.json"
done
ok "clusters that differ in the tenth digit are two" is \
    "$(sql "select count(*) from document where kind = 'cluster' and name = 'h100-sxm'")" 2

# --- rows of a comparison
run plan $tiny --units block,whole --json
ok "plan stores each of its rows" is "$(grep -c '"run_id":.*[0-9]' "$tmp/out")" 2
ok "which share a group that no other run has" is "$(sql \
    "select kind, count(*), count(distinct plan_group) from v_run group by kind order by kind" \
    | tr '\n' ' ')" "plan,2,1 sim,7,0 "
ok "and have options of their own" is "$(sql \
    "select json_extract(options, '\$.units') from v_run where kind = 'plan' order by run" \
    | tr '\n' ' ')" "block whole "
run plan $tiny --units block,whole
ok "plan says which runs they are" is "$(tail -n 1 "$tmp/out")" \
    "runs 10 to 11 stored in $UNSHARD_DB"

# --- history list
column() { sed 1d "$tmp/out" | awk -v n="$1" '{ print $n }' | tr '\n' ' '; }
ok "history list" exits 0 history list
ok "lists the newest run first" is "$(column 1)" "11 10 9 8 7 6 5 4 3 2 1 "
ok "with day and time" grep -q '^11  20[0-9-]\{8\} [0-9:]\{8\}  plan  ' "$tmp/out"
run history list --limit 2
ok "--limit lists less" is "$(column 1)" "11 10 "
run history list --limit 1 --json
ok "JSON names its schema" is "$(field schema)" unshard.history_list/1
ok "and has ns and bytes" is "$(field step_ns),$(field reserved_bytes),$(field fits)" "$(sql \
    "select step_ns, max(peak_reserved_bytes, first_peak_reserved_bytes, init_peak_bytes),
     iif(fits, 'true', 'false') from v_run where run = 11")"
ok "as a time since 1970" is "$(sql "select strftime('%Y-%m-%d %H:%M:%S', $(field created_ns) \
    / 1000000000, 'unixepoch')")" "$(field created)"
ok "a step that does not fit is listed as such" sh -c \
    '"$UNSHARD" sim llama3-405b --layers 40 2>/dev/null | grep -q "run 12 stored" &&
     "$UNSHARD" history list --limit 1 | grep -q " no$"'

# --- runs that really ran, made by hand
made=$tmp/made.db
ok "a history is made" "$top_builddir/tests/history_make" "$made"
run history list --db "$made"
ok "a list tells real runs and those that failed" is \
    "$(sed 1d "$tmp/out" | awk '{ print $1, $4, $5 }' | tr '\n' ' ')" "3 real failed 2 real tiny 1 sim tiny "
run history list --limit 1 --json --db "$made"
ok "in JSON with device and error" is "$(field kind),$(field device),$(field error)" \
    "real,host,rank 1 was ended by signal 9"
run history list --json --db "$made"
ok "which a simulated one has not" is "$(grep -c '"device":.*null' "$tmp/out")" 1
ok "a real run is a trace too" exits 0 trace export 2 -o "$tmp/real.json" --db "$made"
ok "a sound one" exits 0 trace check "$tmp/real.json"
ok "which says on what it ran" grep -q '"device":"host","transport":"shm"' "$tmp/real.json"
ok "of one that failed there is an empty one" exits 0 trace export 3 -o "$tmp/none.json" --db "$made"
ok "its views are asked as all are" is \
    "$("$UNSHARD" query 'select count(*) from v_rank where error is not null' --csv --db "$made" |
        tr -d '\r' | tail -n 1)" 2

# --- where it is
unset XDG_DATA_HOME
kept=$UNSHARD_DB
run sim $tiny --no-db --json
ok "--no-db stores nothing" is "$(field run_id),$(sql 'select max(run) from v_run')" null,12
run sim $tiny --no-db
ok "and says nothing of it" sh -c "! grep -q stored '$tmp/out'"
run sim $tiny --db "$tmp/a folder/more/runs.db"
ok "--db is another file, in folders that are made" is "$(tail -n 1 "$tmp/out")" \
    "run 1 stored in $tmp/a folder/more/runs.db"
ok "for reading too" is "$("$UNSHARD" history list --db "$tmp/a folder/more/runs.db" | wc -l)" 2
ok "UNSHARD_DB is left alone then" is "$(sql 'select max(run) from v_run')" 12
unset UNSHARD_DB
HOME=$tmp/home && export HOME
run sim $tiny
ok "without either it is below the home folder" test -f "$tmp/home/.local/share/unshard/runs.db"
ok "which is not told" is "$(tail -n 1 "$tmp/out")" "run 1 stored in ~/.local/share/unshard/runs.db"
run sim $tiny --db "$tmp/homeless.db"
ok "a folder that only begins like it is none" is "$(tail -n 1 "$tmp/out")" \
    "run 1 stored in $tmp/homeless.db"
XDG_DATA_HOME=$tmp/xdg && export XDG_DATA_HOME
run sim $tiny
ok "or in XDG_DATA_HOME" test -f "$tmp/xdg/unshard/runs.db"
unset XDG_DATA_HOME HOME
ok "without a home the answer is there, the run is not" exits 6 sim $tiny
ok "and what to do" says "give --db FILE or --no-db"
ok "but a list is nowhere" complains 2 "give --db FILE" history list
UNSHARD_DB=$kept && export UNSHARD_DB

# --- what cannot be
ok "--db and --no-db" complains 2 "exclude each other" sim $tiny --db "$tmp/x.db" --no-db
ok "a file without a name" complains 2 "is empty" history list --db ""
ok "no history yet" complains 6 "no run was stored yet" history list --db "$tmp/none.db"
ok "which is not made by looking" test ! -e "$tmp/none.db"
ok "a run that fails before" complains 2 "unknown model" sim llama9-8b --db "$tmp/none.db"
ok "makes no history either" test ! -e "$tmp/none.db"
ok "no runs at all" complains 2 "too small" history list --limit 0
ok "a word that history does not know" complains 2 "did you mean 'list'?" history lst

# answered CODE ARGUMENTS: a whole answer, and in one line why the run was not stored
answered() {
    exits "$@" && says "the run was not stored" && grep -q '^program .*, verified$' "$tmp/out" &&
        ! grep -q ' stored in ' "$tmp/out"
}
echo "a text of somebody" >"$tmp/text.db"
cp "$tmp/text.db" "$tmp/before"
ok "a file that is no database" answered 6 sim $tiny --db "$tmp/text.db"
ok "is left as it is" same "$tmp/text.db" "$tmp/before"
ok "and is no list" complains 6 "not a database" history list --db "$tmp/text.db"
ok "nor to be asked" complains 6 "not a database" query 'select 1' --db "$tmp/text.db"
ok "a folder" answered 6 sim $tiny --db "$tmp"
ok "a folder that cannot be" answered 6 sim $tiny --db "$tmp/text.db/runs.db"
run sim $tiny --json --db "$tmp/text.db"
ok "JSON of a run that is not stored has null" sh -c "grep -q '\"run_id\":.*null' '$tmp/out'"
ok "a no remains a no" exits 1 sim $tiny --memory 1MiB --db "$tmp/text.db"
ok "plan answers all the same" exits 6 plan $tiny --units block,whole --db "$tmp/text.db"
ok "and says it once" says "the run was not stored"
ok "a run keeps system, machine and compiler" is \
    "$("$UNSHARD" query "select json_type(environment, '$.system'), json_type(environment, '$.compiler')
        from v_run limit 1" --csv | tail -n 1 | tr -d '\r')" "text,text"
done_testing
