#!/bin/sh
# `unshard trace show`: real profiles counted again by another language, damaged files, and what of a
# file does not come out.
# shellcheck disable=SC2154,SC2317,SC2086  # tmp is of tap.sh; ok calls checks; $tiny is words
. "$top_srcdir/tests/tap.sh"
. "$top_srcdir/tests/command_rig.sh"

# --- real profiles of five years of PyTorch
traces=$UNSHARD_SHARED/traces
is_other() { # what lies there and is no trace of events
    case $1 in *.csv | *.tsv | *memory_timeline* | *rocprof_*) return 0 ;; esac
    return 1
}
shows() { "$UNSHARD" trace show "$1" --json >"$2"; }
recount() { PYTHONDONTWRITEBYTECODE=1 python3 "$top_srcdir/tests/kineto_count.py" "$@"; }
if ! test -r "$traces/SOURCES.tsv"; then
    skip "no shared data here (UNSHARD_SHARED)"
else
    set --
    for file in "$traces"/*; do
        is_other "$file" && continue
        page=$tmp/$(basename "$file").shown
        ok "$(basename "$file") is read" shows "$file" "$page"
        set -- "$@" "$page" "$file"
    done
    ok "there are thirty or so" test $# -gt 56
    if command -v python3 >/dev/null; then
        ok "kernels, busy time of streams and bytes of collectives are those of another count" \
            recount "$@"
        sed 's/"busy_ns":\([[:blank:]]*\)/&1/' "$1" >"$tmp/wrong.shown"
        differs() { ! recount "$tmp/wrong.shown" "$1" >"$tmp/out" && grep -q shown "$tmp/out"; }
        ok "which notices a wrong one" differs "$2"
    else
        skip "no python3"
    fi
    ok "a memory timeline is no trace" complains 4 "not a trace of events" trace show \
        "$traces/hta_memory_timeline.raw.gz"
    ok "nor is another profiler's file" complains 4 "no array 'traceEvents'" trace show \
        "$traces/tl_rocprof_908_results.json.gz"
    gzip -c "$traces/hta_backward_thread.json" | head -c 700 >"$tmp/cut.json.gz"
    ok "a file that was cut off is not half read" complains 4 "damaged or cut off" trace show \
        "$tmp/cut.json.gz"
fi

# --- damage, one kind each: one line that says where
cases=$UNSHARD_SHARED/cases/json
for name in g2_nan g_inf h_trunc_arr h_trunc_obj i_trailcomma j_ctrl; do
    test -r "$cases/$name.json" || continue
    ok "$name is refused, with its place" complains 4 "$name.json': byte " trace show \
        "$cases/$name.json"
done
ok "a file that is not there" complains 4 "$tmp/no.json" trace show "$tmp/no.json"
: >"$tmp/empty.json"
ok "an empty file" complains 4 "the file is empty" trace show "$tmp/empty.json"
ok "no file at all" complains 2 "no run or file" trace show
ok "show writes nothing" complains 2 "takes no --output" trace show "$tmp/no.json" -o x

# --- what was simulated: a unit's parts are those of its tasks
run sim $tiny
run trace export last -o "$tmp/step.json"
ok "the trace of a step" exits 0 trace show "$tmp/step.json" --json
part() { awk -v part="\"$1\":" '$1 == part { inside = 1 }
    inside && $1 == "\"gpu_ns\":" { sum += $2; inside = 0 } END { print sum }' "$tmp/out"; }
tasks() { sql "select sum(end_ns - start_ns) from v_task where run = 1 and kind in ($1)
    and name not like '% loss'"; } # which is of no unit
ok "forward of all units" is "$(part forward)" "$(tasks "'forward'")"
ok "their backward" is "$(part backward)" "$(tasks "'backward'")"
ok "all-gathers, with what is copied" is "$(part all_gather)" "$(tasks "'copy_in', 'all_gather'")"
ok "what is copied out" is "$(part copy_out)" "$(tasks "'copy_out'")"
ok "reductions, with what is packed" is "$(part reduce)" \
    "$(tasks "'pack', 'reduce_scatter', 'post_reduce'")"
ok "which are there" test "$(part reduce)" -gt 0
ok "a page of it" exits 0 trace show "$tmp/step.json"
ok "with a line for each unit" is "$(grep -c ' model.layers.[01]$' "$tmp/out")" 2

# --- a page of a small one, and nothing of the machine that it was made on
cat >"$tmp/small.json" <<'END'
{"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "A GPU"}],
 "distributedInfo": {"backend": "nccl", "rank": 3, "world_size": 8},
 "host_name": "hidden.example", "username": "hidden", "traceName": "/home/hidden/t.json",
 "metadata": {"env": {"TOKEN": "hidden"}}, "traceEvents": [
{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 1700000000000010, "dur": 6,
 "args": {"device": 0, "stream": 7, "correlation": 1}},
{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 1700000000000012, "dur": 8,
 "args": {"device": 0, "stream": 7, "correlation": 1}},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 9,
 "ts": 1700000000000000, "dur": 4, "args": {"correlation": 1, "path": "hidden"}}]}
END
hides() { run trace show "$tmp/small.json" "$@" && ! grep -q hidden "$tmp/out"; }
ok "a page" hides
ok "whose it is" grep -q "rank 3 of 8, on A GPU, of 2023-11-14" "$tmp/out"
ok "time in which two kernels run counts once" grep -q "stream 7 .* 2 .* 10.000 us *100.0 %" \
    "$tmp/out"
ok "what it cannot tell" grep -q "what a unit costs: there are no ranges of FSDP2" "$tmp/out"
ok "JSON" hides --json
ok "with its schema" is "$(field schema) $(field busy_ns)" "unshard.trace_show/1 10000"
done_testing
