#!/bin/sh
# Runs that do not end well: a rank dies, hangs, or the user has had enough. Each ends soon, says so in
# a line, leaves no process and no half checkpoint, and is stored with how far each rank came.
# shellcheck disable=SC2154,SC2317  # tmp is of tap.sh; ok calls checks
. "$top_srcdir/tests/tap.sh"
. "$top_srcdir/tests/command_rig.sh"

last='(select max(run) from v_run)'

# seconds_of COMMAND...: how long it took is in $seconds
seconds_of() {
    before=$(date +%s)
    "$@"
    result=$?
    seconds=$(($(date +%s) - before))
    return $result
}

# Where ranks came to: all three, in a step from 2 on, with tasks of streams.
stored_with_ranks() { # RANKS
    is "$(sql "select count(*) from v_rank where run = $last and step >= 2 and last_C is not null")" "$1"
}

# fails RANK WORD WORDS...: --debug WORD=RANK ends the run soon, and the message has one of the words
fails() {
    rank=$1 word=$2 words=$3
    seconds_of exits 5 run kda-tiny --ranks 3 --timeout 5 --debug "$word=$rank" || return 1
    says "rank $rank" && says "$words" || return 1
    test "$seconds" -lt 30 || { echo "# it took $seconds s"; return 1; }
}

for rank in 0 2; do
    ok "rank $rank dies" fails $rank die "was ended by signal 9"
    ok "which is stored as a failure" is "$(sql "select failed, error like 'rank $rank was ended%'
        from v_real where run = $last")" 1,1
    ok "with what each rank did last" stored_with_ranks 3
    ok "rank $rank hangs" fails $rank hang "for 5 s"
    ok "which is stored too" is "$(sql "select failed, error like '%rank $rank%'
        from v_real where run = $last")" 1,1
    ok "with what each rank did last" stored_with_ranks 3
done
ok "one that is alone hangs" seconds_of exits 5 run gpt-tiny --ranks 1 --timeout 3 --debug hang=0
ok "which ends too" test "$seconds" -lt 30
ok "and is said" says "no rank did anything"
ok "its losses are those of the steps that it did" is \
    "$(sql "select group_concat(loss is not null, '') from v_step where run = $last")" 11000000

# --- a signal
# stops SIGNAL: a long run that saves, stopped when it is at it
stops() {
    # a shell's background ignores SIGINT, and so would the run
    env --default-signal=INT "$UNSHARD" run kda-tiny --ranks 2 --steps 20000 --save "$tmp/saved" \
        >"$tmp/out" 2>"$tmp/err" &
    run=$!
    while ! test -d "$tmp/saved.partial" && kill -0 $run; do sleep 0.1; done # it has begun
    sleep 0.5
    children=$(cat "/proc/$run/task/$run/children")
    kill "-$1" $run
    code=0
    wait $run || code=$?
}
# All are gone within two seconds, or at least dead and not yet waited for by who has to.
no_process() { # PID...
    for pid in "$@"; do
        tries=0
        while grep -q '^State:[[:blank:]]*[^XZ[:blank:]]' "/proc/$pid/status" 2>/dev/null; do
            test $((tries += 1)) -le 20 || { echo "# $pid is still there"; return 1; }
            sleep 0.1
        done
    done
}
for signal in INT TERM; do
    stops $signal
    ok "SIG$signal ends a run as a failure" is "$code" 5
    ok "which is said" says "stopped by signal"
    # shellcheck disable=SC2086
    ok "it had ranks" test "$(echo $children | wc -w)" = 2
    # shellcheck disable=SC2086
    ok "none of which is left" no_process $children
    ok "nor a checkpoint" test ! -e "$tmp/saved.partial" -a ! -e "$tmp/saved"
    ok "and it is stored" is "$(sql "select error like 'stopped by%' from v_real where run = $last")" 1
done
stops KILL
# shellcheck disable=SC2086
ok "without its parent no rank goes on" no_process $children

# --- memory that the program does not account for
ok "an error in the account of memory" exits 5 run gpt-tiny --ranks 2 --steps 4 --debug alloc-bias=4096
ok "is said" grep -q 'reserved bytes are not what the system has mapped$' "$tmp/err"
ok "with both numbers, for each rank and look" test \
    "$(grep -c 'bytes are reserved by the program.s account, the system has mapped' "$tmp/err")" = 10
ok "and stored" is "$(sql "select count(*), min(reserved_bytes - mapped_bytes) from v_check
    where run = $last")" 10,4096
done_testing
