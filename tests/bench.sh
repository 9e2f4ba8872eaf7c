#!/bin/sh
# `unshard bench`: what its answers hold, and that it leaves nothing behind. Never how fast it is.
# shellcheck disable=SC2154,SC2317  # tmp comes from tap.sh; the checks are called by ok
. "$top_srcdir/tests/tap.sh"
mkdir "$tmp/temp"
TMPDIR=$tmp/temp
export TMPDIR

measures() { "$UNSHARD" bench "$@" >"$tmp/out" 2>"$tmp/err" && test ! -s "$tmp/err"; }
text_of() { sed -n "s/^[[:blank:]]*\"$1\":[[:blank:]]*\"\(.*\)\",\{0,1\}\$/\1/p" "$tmp/out"; }
is_above_0() {
    sed -n "s/^[[:blank:]]*\"$1\":[[:blank:]]*\([0-9.]*\),\{0,1\}\$/\1/p" "$tmp/out" |
        awk '{ n++; good = $1 > 0 } END { exit n != 1 || !good }'
}
is_share() { # what is hidden may be nothing on a busy machine
    sed -n "s/^[[:blank:]]*\"$1\":[[:blank:]]*\([0-9.]*\),\{0,1\}\$/\1/p" "$tmp/out" |
        awk '{ n++; good = $1 >= 0 && $1 <= 100 } END { exit n != 1 || !good }'
}
empty() { test -z "$(ls "$1")"; }

while read -r bench keys; do
    ok "bench $bench --json" measures "$bench" --json
    ok "names its schema" test "$(text_of schema)" = unshard.bench/1
    ok "and itself" test "$(text_of benchmark)" = "$bench"
    for key in gpus units $keys; do
        ok "$bench: $key is a number above 0" is_above_0 "$key"
    done
    if test "$bench" = host; then
        ok "host: a share of block's gathers is hidden" is_share overlap_block_percent
        ok "host: and of those that look ahead" is_share overlap_ahead_percent
    fi
    ok "$bench leaves no file behind" empty "$TMPDIR"
done <<END
host instructions tasks pack_same_l2_percent pack_narrow_l3_percent pack_widen_ram_percent \
host_instr_us host_instr_wall_us
search plans candidates_per_s candidates_per_cpu_s placed_per_s placed_per_cpu_s jobs_2_percent \
jobs_2_cpu_percent gpus_10k_percent search_100k_ms search_100k_cpu_ms peak_mb
sim instructions placed_steps verify_us engine_us place_us candidate_us
store tasks samples large_tasks run_10k_ms run_10k_cpu_ms task_rows_per_s task_rows_per_cpu_s \
history_list_ms history_list_cpu_ms
trace tasks events bytes events_per_s events_per_cpu_s check_events_per_s check_events_per_cpu_s
END
ok "no benchmark touches the run history" test ! -e "$UNSHARD_DB"

ok "bench store" measures store
narrow() { awk 'length > 100 || / $/ { print "# " $0; bad = 1 } END { exit bad || NR == 0 }' "$1"; }
ok "is no wider than a page" narrow "$tmp/out"
goal() { sed -n "s/^$1 .* \([<>] [0-9,]*\)  .*/\1/p" "$tmp/out"; }
ok "a run has its goal beside it" test "$(goal run_10k_ms)" = "< 50"
ok "rows have theirs" test "$(goal task_rows_per_s)" = "> 1,000,000"
ok "CPU time has none" test -z "$(goal run_10k_cpu_ms)"

ok "bench host" measures host
ok "is no wider than a page" narrow "$tmp/out"
ok "packing has its goal beside it" test "$(goal pack_same_l3_percent)" = "> 70"
ok "an instruction has its" test "$(goal host_instr_us)" = "< 2"
ok "what should be hidden a lower one" test "$(goal overlap_block_percent)" = "> 60"
ok "and what cannot be an upper one" test "$(goal overlap_sync_percent)" = "< 10"

TMPDIR=$tmp/missing
for bench in store trace; do
    code=0
    "$UNSHARD" bench $bench >"$tmp/out" 2>"$tmp/err" || code=$?
    ok "without a folder for it bench $bench ends with 4" test "$code" = 4
    said() { test ! -s "$tmp/out" && test "$(wc -l <"$tmp/err")" = 1; }
    ok "and one line" said
    ok "which says what to do" grep -q "set TMPDIR" "$tmp/err"
done
done_testing
