#!/bin/sh
# Steps in which collectives run side by side: whoever counts their communication again, counts such
# times once.
# shellcheck disable=SC2154,SC2317,SC2086  # tmp is of tap.sh; ok calls checks; $options is words
. "$top_srcdir/tests/tap.sh"
. "$top_srcdir/tests/command_rig.sh"
recount() { PYTHONDONTWRITEBYTECODE=1 python3 "$top_srcdir/tests/trace_recount.py" "$@"; }
last='(select max(run) from v_run)'
pairs="select count(*) > 0 from v_task a join v_task b on a.run = b.run and a.task < b.task
    where a.run = $last and a.collective and b.collective and a.start_ns < b.end_ns
        and b.start_ns < a.end_ns"

while read -r options; do
    run sim llama3-8b --layers 4 --seq 1024 $options
    ok "$options: some collectives overlap" is "$(sql "$pairs")" 1
    ok "$options: v_exposed sums to what is exposed" is \
        "$(sql "select sum(exposed_ns), sum(counted_ns) from v_exposed where run = $last")" \
        "$(sql "select exposed_comm_ns, comm_ns from v_run where run = $last")"
    ok "$options: a trace is made of it" exits 0 trace export last -o "$tmp/step.json"
    ok "$options: which no reader would refuse" exits 0 trace check "$tmp/step.json"
    if command -v python3 >/dev/null; then
        ok "$options: and of which the same is counted" recount "$tmp/step.json"
    else
        skip "no python3"
    fi
done <<END
--gpus 8 --separate-reduce-comm yes
--gpus 8 --reshard 4
--gpus 16 --nodes 2 --replicas 2
--gpus 32 --nodes 4 --replicas 2 --reshard 8 --separate-reduce-comm yes
END
done_testing
