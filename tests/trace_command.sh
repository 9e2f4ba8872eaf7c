#!/bin/sh
# A stored run as a Chrome trace: written, checked, parsed and counted again by another language;
# and traces that some reader would refuse or misread.
# shellcheck disable=SC2154,SC2317,SC2086  # tmp is of tap.sh; ok calls checks; $tiny is words
. "$top_srcdir/tests/tap.sh"
. "$top_srcdir/tests/command_rig.sh"
mkdir "$tmp/out.d"
trace=$tmp/out.d/step.json

# --- export
run sim llama3-8b
run sim $tiny
ok "trace export" exits 0 trace export 1 -o "$trace"
tasks=$(sql 'select tasks from v_run where run = 1')
ok "says what it wrote" is "$(cat "$tmp/out")" \
    "run 1, sim of llama3-8b, written to $trace: $tasks tasks"
ok "which no reader would refuse" exits 0 trace check "$trace"
ok "in one line" is "$(wc -l <"$tmp/out") $(grep -c '^no findings: [0-9,]* events' "$tmp/out")" \
    "1 1"
ok "the newest is called last" exits 0 trace export last --output "$tmp/last.json" --json
ok "JSON tells which that is" is "$(field schema) $(field run_id)" "unshard.trace_export/1 2"
ok "a name that ends in .gz is compressed" exits 0 trace export 1 -o "$trace.gz"
gunzip -c "$trace.gz" | sed 's/"traceName":"step.json.gz"/"traceName":"step.json"/' >"$tmp/plain"
ok "to the same trace" same "$tmp/plain" "$trace"
ok "which is checked as well" exits 0 trace check "$trace.gz" --json
ok "with the same counts" is "$(field events),$(field slices)" "$(grep -c '"ph":' "$trace"),$(
    grep -c '"ph":"X"' "$trace")"
ok "stdout has the trace alone" sh -c \
    'test "$("$UNSHARD" trace export 2 -o /dev/stdout | grep -c "\"ph\":")" -gt 100 &&
     "$UNSHARD" trace export 2 -o /dev/stdout | tail -n 1 | grep -qx "[]}]*"'
(cd "$tmp/out.d" && run trace export 1 -o - && cp "$tmp/out" "$tmp/dash")
sed 's/"traceName":"-"/"traceName":"step.json"/' "$tmp/dash" >"$tmp/plain"
ok "- is stdout" same "$tmp/plain" "$trace"
ok "and no file of that name" test ! -e "$tmp/out.d/-"
ok "what stood in a file before it stays" sh -c \
    '{ echo first; "$UNSHARD" trace export 2 -o -; } >"$1" && test "$(head -n 1 "$1")" = first &&
     test "$(tail -n 1 "$1")" = "]}"' - "$tmp/after"
run trace export 1 -o "$tmp/again.json"
sed 's/"traceName":"again.json"/"traceName":"step.json"/' "$tmp/again.json" >"$tmp/plain"
ok "the same run gives the same trace" same "$tmp/plain" "$trace"
run plan $tiny --units block,whole
run trace export last -o "$tmp/plan.json"
ok "rows of a comparison can be exported too" exits 0 trace check "$tmp/plan.json"

run sim $tiny --gpus 4 --replicas 2
ok "a step with replicas too" exits 0 trace export last -o "$tmp/replicas.json"
ok "which has no findings" exits 0 trace check "$tmp/replicas.json"
ok "and groups of two ranks beside that of all" is \
    "$(grep -o '"pg_desc":"[a-z_]*","backend_config":"cuda:nccl","pg_size":[0-9]*' \
        "$tmp/replicas.json" | sed 's/"pg_desc":"\([a-z_]*\)".*:/\1 /' | tr '\n' ' ')" \
    "default_pg 4 mesh_shard 2 mesh_replicate 2 "

# --- in Python: strict JSON, and the stored numbers counted again from the trace alone
cat >"$tmp/busy.py" <<'END'
"""Busy ns of each stream inside the measured step: "stream,ns" a line."""
import decimal, json, re, sys
sys.path.insert(0, sys.argv[2])
from trace_recount import length, ns
trace = json.load(open(sys.argv[1], encoding="utf-8"), parse_float=decimal.Decimal)
begin = trace["metadata"]["window_begin_ns"]
names = {"compute": "C", "copy-in": "AGI", "all-gather": "AG", "reduce-scatter": "RS",
         "all-reduce": "AR"}
tracks, spans = {}, {}
for event in trace["traceEvents"]:
    track = event["pid"], event["tid"]
    if event["name"] == "thread_name" and event["args"]["name"].startswith("stream "):
        tracks[track] = names[event["args"]["name"].split()[-1]]
    elif event.get("cat") == "kernel":
        at = ns(event["ts"]) - begin
        spans.setdefault(track, []).append((max(at, 0), max(at + ns(event["dur"]), 0)))
for stream, busy in sorted((tracks[track], length(busy)) for track, busy in spans.items()):
    print(f"{stream},{busy}")
END
recount() { PYTHONDONTWRITEBYTECODE=1 python3 "$top_srcdir/tests/trace_recount.py" "$@"; }
busy() { PYTHONDONTWRITEBYTECODE=1 python3 "$tmp/busy.py" "$1" "$top_srcdir/tests"; }
given() { # NAME: a metric as the trace has it
    sed -n "s/.*\"metadata\":{[^}]*\"$1\":\([0-9]*\).*/\1/p" "$trace"
}
if command -v python3 >/dev/null; then
    ok "Python parses it" python3 -c 'import json, sys; json.load(open(sys.argv[1]))' "$trace"
    ok "compute, communication, exposed and peak can be counted from it" recount "$trace" \
        "$trace.gz" "$tmp/last.json" "$tmp/plan.json" "$tmp/replicas.json"
    sql "select stream, sum(max(end_ns, 0) - max(start_ns, 0)) from v_task where run = 1
         group by stream order by stream" >"$tmp/want"
    busy "$trace" >"$tmp/got"
    ok "and how long each stream is busy" same "$tmp/got" "$tmp/want"
    ok "of which there are four" is "$(wc -l <"$tmp/want")" 4
else
    skip "no python3"
fi
for name in step_ns compute_ns comm_ns exposed_comm_ns peak_allocated_bytes peak_reserved_bytes; do
    ok "$name of the trace is the stored one" is "$(given $name)" \
        "$(sql "select $name from v_run where run = 1")"
done

# --- what cannot be exported leaves no file
complains_small() { (ulimit -f 64 && complains "$@"); }
ok "no run" complains 2 "no run or file" trace export
ok "no file" complains 2 "give -o FILE" trace export 1
ok "-o without one" complains 2 "-o needs a value" trace export 1 -o
ok "a run that is none" complains 2 "'first' is no run" trace export first -o "$tmp/x.json"
ok "zero is none" complains 2 "'0' is no run" trace export 0 -o "$tmp/x.json"
ok "a run that is not there" complains 2 "no run 99" trace export 99 -o "$tmp/x.json"
ok "no history" complains 6 "no run was stored yet" trace export 1 -o "$tmp/x.json" \
    --db "$tmp/no.db"
ok "without a trace of it" test ! -e "$tmp/x.json"
ok "a folder that is not there" complains 4 "$tmp/no/x.json" trace export 1 -o "$tmp/no/x.json"
ok "a folder in place of a file" complains 4 "$tmp/out.d" trace export 1 -o "$tmp/out.d"
ok "a file that gets too large" complains_small 4 "File too large" trace export 1 -o "$trace.2"
ok "no half of a file stays behind" is "$(find "$tmp/out.d" -type f | wc -l)" 2
ok "a letter of another command" complains 2 "unknown option '-o'" sim $tiny -o x

# --- findings: exit code 1, each with its rule and the reader that it breaks
# finds RULE READER SED-SCRIPT: in the trace changed so
finds() {
    sed "$3" "$trace" >"$tmp/bad.json"
    cmp -s "$trace" "$tmp/bad.json" && { echo "# nothing was changed"; return 1; }
    exits 1 trace check "$tmp/bad.json" && grep -q "^$1, for .*$2.*: [0-9,]* time" "$tmp/out" &&
        test ! -s "$tmp/err" || { sed 's/^/# /' "$tmp/out"; return 1; }
}
ok "the blank before the rank is missing" finds rank-blank HTA 's/"rank": 0/"rank":0/'
ok "a pid is a string" finds numeric-ids speedscope '/"cat":"kernel"/s/"pid":1,/"pid":"1",/'
ok "a flow has no end" finds flow-paired Perfetto '/"ph":"f".*"id":1,/d'
ok "two slices overlap" finds slices-nest Perfetto \
    '/"name":"ncclDevKernel_AllGather/s/"dur":\([0-9]*\)/"dur":9\1/'
ok "a key stands twice" finds keys-once all 's/"ph":"X",/&"cat":"x",/'
ok "an event is empty" finds event-objects speedscope '0,/^{"ph":"X"/s//{},\n&/'
ok "JSON counts them" sh -c '"$UNSHARD" trace check --json "'"$tmp"'/bad.json" |
    grep -A 5 "\"rule\":" | grep -q "\"count\":"'
ok "the file that is missing" complains 4 "$tmp/no.json" trace check "$tmp/no.json"
echo '{"model_type": "llama"}' >"$tmp/other.json"
ok "a file that is no trace" complains 4 "not a Chrome trace" trace check "$tmp/other.json"
ok "no file at all" complains 2 "no run or file" trace check
ok "check writes nothing" complains 2 "takes no --output" trace check "$trace" -o x
ok "a word that trace does not know" complains 2 "did you mean 'export'?" trace exprt
done_testing
