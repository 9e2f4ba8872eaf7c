#!/bin/sh
# What explain says: the planted bottleneck first, and gains that hold when its remedy is applied.
# shellcheck disable=SC2154,SC2317,SC2086  # tmp is of tap.sh; ok calls checks; $options is words
. "$top_srcdir/tests/tap.sh"
. "$top_srcdir/tests/command_rig.sh"

# cluster NAME JSON: a cluster file that differs from h100-sxm in this
cluster() {
    cat >"$tmp/$1.json" <<END
{"schema": "unshard.cluster/1", "base": "h100-sxm", "name": "$1", "description": "planted", $2}
END
}
collective() { # KIND GB/S MICROSECONDS to start
    echo "{\"kind\": \"$1\", \"ranks\": 8, \"start_us\": $3, \"root_us_per_sqrt_mb\": 4,
        \"gb_per_s\": $2, \"source\": \"planted\"}"
}
links() { # GB/S, MICROSECONDS to start an all-gather, and a reduce-scatter
    echo "\"collectives\": [$(collective all_gather "$1" "${2:-10}"),
        $(collective reduce_scatter "$1" "${3:-10}")]"
}
value() { echo "\"$1\": {\"value\": $2, \"source\": \"planted\"}"; }
host() { # MICROSECONDS of a launch, and of a unit's unshard and wait
    echo "\"host\": {$(value launch_us "$1"), $(value all_gather_us "$2")}"
}
cluster slow-links "$(links 20)"
cluster links-twice "$(links 40)"
cluster slow-host "$(host 1000 400)"
cluster host-twice "$(host 500 200)"
cluster slow-unshard "$(host 10 20000)"
free_copies="\"compute\": {$(value contention 0)}" # collectives slow nothing down
cluster slow-reduce "$free_copies, $(links 3000 10 6000)"
cluster late-gathers "$free_copies, $(links 3000 3000 10), $(host 1 1)"
cluster slow-syncs "$(host 40 1000)"
cluster high-floor "\"network\": {$(value floor_us 4000)}"

# Halves of blocks as patterns, which no remedy makes larger.
for layer in 0 1 2 3 4 5 6 7; do
    p=model.layers.$layer
    echo "[\"$p.self_attn\", \"$p.input_layernorm\"], [\"$p.mlp\", \"$p.post_attention_layernorm\"]"
done | paste -sd, | sed 's/^/[/; s/$/]/' >"$tmp/halves.json"
halves="--units @$tmp/halves.json --reshard no"
syncs="--host-sync model.layers.*"

# first FIELD: of the first remedy in the last JSON output
first() {
    sed -n '/"remedies"/,$p' "$tmp/out" |
        sed -n "s/.*\"$1\":[[:blank:]]*\"\{0,1\}\([^\",]*\).*/\1/p" | head -n 1
}
within() { # GAINED SAID: by a tenth
    test "$1" -gt 0 && test $((10 * $1)) -ge $((9 * $2)) &&
        test $((10 * $1)) -le $((11 * $2)) && return 0
    echo "# gained $1, said $2"
    return 1
}

# --- planted: CLUSTER | OPTIONS | bottleneck | what is said to help | CLUSTER and OPTIONS that do it
while IFS='|' read -r name options bottleneck change other instead; do
    run explain llama3-8b --layers 8 $options --cluster "$tmp/$name.json" --json
    before=$(field mid) said=$(first gain_ns)
    ok "$name: names $bottleneck first" is "$(first bottleneck)" "$bottleneck"
    ok "and says what to do" is "$(first change)" "$change"
    run sim llama3-8b --layers 8 $instead --cluster "$tmp/$other.json" --no-db --json
    ok "which gains what it says" within $((before - $(field mid))) "$said"
done <<END
slow-links||slow links|links of twice the bandwidth|links-twice|
slow-host||slow host|a host twice as fast|host-twice|
high-floor|--units attn+mlp --seq 2048|small units|--units block|high-floor|--units block --seq 2048
slow-unshard||parameters gathered twice|--reshard no|slow-unshard|--reshard no
slow-reduce|$halves|one reduction held at a time|--reduce-inputs 2|slow-reduce|$halves --reduce-inputs 2
late-gathers|$syncs|late all-gathers|--prefetch 1|late-gathers|$syncs --prefetch 1
slow-syncs|$syncs --seq 2048|host syncs|no --host-sync|slow-syncs|--seq 2048
END

# --- the page
run explain $tiny --json
sum() { # FIELD...: of an object in the last output
    sed -n "/\"$1\"/,/}/s/.*\":[[:blank:]]*\([0-9]*\),\{0,1\}\$/\1/p" "$tmp/out" |
        awk '{ n += $1 } END { printf "%.0f\n", n }'
}
ok "JSON names its schema" is "$(field schema)" unshard.explain/1
ok "device and host of the critical path sum to the step" \
    is $(($(sum device_ns) + $(sum host_ns))) "$(field mid)"
ok "causes to the idle time" is "$(sum idle_by_cause_ns)" "$(field idle_ns)"
# One of three steps, in which the allocator retries four times: the one that is explained has two.
retried="llama3-8b --units block*4 --prefetch 1 --cluster a100-sxm-80g"
run explain $retried --json
whole=$(field explained_ns)
ok "a step with retries is longer than the mean" test "$whole" -gt "$(field mid)"
ok "which are on its path" is "$(field retries_ns)" 400000000
ok "and complete its sum" is $(($(sum device_ns) + $(sum host_ns) + $(field retries_ns))) "$whole"
run explain $retried
ok "in words" grep -q '^that is the mean of 3 steps; the last, which follows, takes 2.810 s$' "$tmp/out"
ok "as well" grep -q '^  host: retries  *400.000 ms   14.2 %' "$tmp/out"
run explain $tiny
ok "the text tells the costliest stalls" grep -q '^the costliest stalls$' "$tmp/out"
ok "five of them at most" is "$(grep -c ' held by ' "$tmp/out")" 5
ok "and what they are held by" grep -q 'before optimizer, held by reduce_scatter .* (reduce)' \
    "$tmp/out"
ok "a step that does not fit is explained all the same" exits 0 explain llama3-405b --layers 40
ok "and it is said" says "does not fit"
ok "one GPU waits for nobody" sh -c \
    '"$UNSHARD" explain '"$tmp/tiny.json"' --cluster toy --gpus 1 | grep -q "^  in all  .*stall"'
ok "nothing of it is stored" complains 6 "no run was stored yet" history list

# --- brackets
run explain $tiny --what-if no-copy,no-comm
ok "brackets are told in their own order" is \
    "$(sed -n '/^what if/,/^$/s/^  \([a-z-]*\) .*/\1/p' "$tmp/out" | tr '\n' ' ')" "no-comm no-copy "
ok "an unknown one is refused" complains 2 "did you mean 'no-comm'?" sim $tiny --what-if no-com
ok "so is none" complains 2 "unknown value ''" sim $tiny --what-if no-comm,

# --- a run of the history
run sim $tiny --units block --json
ran=$(field mid)
run plan $tiny --units whole
run explain 1 --json
ok "a run is simulated again" is "$(field id),$(field mid),$(field same_program)" "1,$ran,true"
ok "with its options" is "$(field units)" block
run explain last
ok "the newest run by that word" grep -q '^run 2 of the history' "$tmp/out"
ok "is a row of a plan" grep -q -- '--units whole' "$tmp/out"
rm "$tmp/tiny.json"
ok "the model's file is not needed" exits 0 explain 1
ok "another option is taken" exits 0 explain 1 --units whole
ok "and it is said that this is another program" says "run 1 was of program"
ok "which JSON says too" sh -c '"$UNSHARD" explain 1 --units whole --json 2>/dev/null |
    grep -q "\"same_program\":.*false"'
ok "a run's program can be printed" sh -c '"$UNSHARD" explain 1 --program | grep -q "^launch"'
ok "but not as JSON" complains 2 "leave out --program or --json" explain 1 --program --json
ok "a run that there is not" complains 2 "there is no run 7" explain 7
done_testing
