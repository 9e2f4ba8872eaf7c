#!/bin/sh
# `unshard calibrate --from trace`: rates of profiles into a cluster file. What is put into a profile
# comes out: of a step that was simulated, of ranks that wait for one another, of products.
# shellcheck disable=SC2154,SC2317  # tmp is of tap.sh; ok calls checks
. "$top_srcdir/tests/tap.sh"
. "$top_srcdir/tests/command_rig.sh"
file=$tmp/made.json

calibrates() { # TRACE...: into $file
    rm -f "$file"
    exits 0 calibrate --from trace "$@" -o "$file"
}
sets() { grep -qF -- "$file: $1 set from" "$tmp/out" || { sed 's/^/# /' "$tmp/out"; return 1; }; }
# rate SECTION.KEY [low|mid|high], row KIND RANKS KEY: numbers of $file
rate() { awk -v section="\"${1%.*}\":" -v key="\"${1#*.}\":" -v at="\"${2:-mid}\":" '
    $1 == section { inside = 1 }
    inside && $1 == key { found = 1 }
    found && $1 == at { sub(",", "", $2); print $2; exit }' "$file"; }
row() { awk -v kind="\"$1\"," -v ranks="$2," -v key="\"$3\":" '
    $1 == "\"kind\":" { right = $2 == kind }
    right && $1 == "\"ranks\":" { right = $2 == ranks }
    right && $1 == key { sub(",", "", $2); print $2; exit }' "$file"; }
source_has() { grep '"source":' "$file" | grep -qF -- "$1"; }

# --- a step that was simulated: its rates come back
run sim llama3-8b
run trace export last -o "$tmp/step.json.gz"
ok "a simulated step's trace" calibrates "$tmp/step.json.gz"
ok "tells launches, all-gathers and two kinds of collectives" sets "host.launch_us,\
 host.all_gather_us, all_gather over 8 ranks, reduce_scatter over 8 ranks"
ok "as fast as they were simulated" is \
    "$(row all_gather 8 gb_per_s) $(row reduce_scatter 8 gb_per_s)" "364.0 350.0"
ok "with the start that was there" is "$(row all_gather 8 start_us)" 10.60
ok "and what the host has to do" is "$(rate host.all_gather_us)" 400.0
ok "each with the file and the day" source_has "trace step.json.gz of 20"
ok "all else is the preset's" is "$(rate memory.slowdown) $(row all_gather 4 gb_per_s)" "1.200 350"
step_of() { "$UNSHARD" sim llama3-8b --no-db --json --cluster "$1" >"$tmp/out"; field mid; }
ok "a step is priced on it, and takes as long" is "$(step_of "$file")" "$(step_of h100-sxm)"

# --- an H100, as README says of it
h100=$UNSHARD_SHARED/traces/tl_h100_qwen1.5-0.5b.json.gz
if test -r "$h100"; then
    ok "a real profile" calibrates "$h100"
    ok "tells what its shapes do" sets "host.launch_us, gemm.derate, attention.derate"
    ok "products near the preset's" is "$(rate gemm.derate low) $(rate gemm.derate)\
 $(rate gemm.derate high)" "0.9256 0.9118 0.8977"
    ok "launches as well" is "$(rate host.launch_us)" 11.12
    ok "on what" grep -q '"description":.*on NVIDIA H100 80GB HBM3' "$file"
else
    skip "no shared data here (UNSHARD_SHARED)"
fi

# --- what is made by hand: events as arguments
profile() { # FILE EVENT...
    to=$1 comma=
    shift
    {
        echo '{"baseTimeNanoseconds": 1700000000000000000, "metadata": {"env": "s3cret"},'
        echo ' "traceEvents": ['
        for event; do
            echo "$comma$event"
            comma=,
        done
        echo ']}'
    } >"$to"
}
event() { # CATEGORY NAME TS DUR ARGS
    echo "{\"ph\": \"X\", \"cat\": \"$1\", \"name\": \"$2\", \"pid\": 0, \"tid\": 7, \"ts\": $3," \
        "\"dur\": $4, \"args\": {$5}}"
}
gather() { # TS DUR ELEMENTS RANKS LIST
    event kernel ncclDevKernel_AllGather_RING_LL "$1" "$2" "\"Collective name\":\
 \"_allgather_base\", \"In msg nelems\": $(($3 / $4)), \"Out msg nelems\": $3, \"Group size\": $4,\
 \"dtype\": \"BFloat16\", \"Process Group Ranks\": \"[$5]\""
}
all=$(seq -s ', ' 0 7)

# 7e8 bytes sent at 200 GB/s behind 20 us and 5.1 us for each root of a MB, once faster; one rank is
# 5 ms early.
profile "$tmp/early.json" "$(gather 10 8654.933 400000000 8 "$all")" \
    "$(gather 90000 8654.933 400000000 8 "$all")" "$(gather 200000 7654.933 400000000 8 "$all")"
profile "$tmp/late.json" "$(gather 5010 3654.933 400000000 8 "$all")" \
    "$(gather 95000 3654.933 400000000 8 "$all")" "$(gather 205000 3000 400000000 8 "$all")"
ok "a rank that waits" calibrates "$tmp/early.json"
ok "has slow collectives" is "$(row all_gather 8 gb_per_s)" 93.33
ok "which is said" source_has "the least tenth, in which a rank still may wait for others"
ok "beside the last one to come" calibrates "$tmp/early.json" "$tmp/late.json"
ok "it has those of that one" is "$(row all_gather 8 gb_per_s)" 200.0
ok "which is said too" source_has "10, 50 and 90 % of the least times of 2 ranks"
ok "with a spread" is "$(row all_gather 8 faster)" 0.1792
ok "of both files" source_has "traces early.json and 1 more of 2023-11-14"
profile "$tmp/more.json" "$(gather 5010 3654.933 400000000 8 "$all")"
ok "ranks with other numbers of collectives" calibrates "$tmp/early.json" "$tmp/more.json"
ok "cannot be matched" source_has "the least tenth, in which a rank still may wait for others"

# 50 us and 100 GB/s: sizes that are far apart tell both. Of 100,000 elements 150,000 bytes are sent.
profile "$tmp/line.json" "$(gather 10 51.5 100000 4 "0, 1, 2, 3")" \
    "$(gather 900 7550 500000000 4 "0, 1, 2, 3")" "$(gather 9000 1550 100000000 4 "0, 1, 2, 3")"
ok "small and large messages" calibrates "$tmp/line.json"
ok "tell start and rate" is "$(row all_gather 4 start_us) $(row all_gather 4 gb_per_s)" "50.00 100.00"
profile "$tmp/nodes.json" "$(gather 10 51.5 100000 2 "0, 8")"
ok "ranks of two nodes have no row" complains 4 "nothing of a cluster is in trace nodes.json" \
    calibrate --from trace "$tmp/nodes.json"
profile "$tmp/both.json" "$(gather 10 51.5 100000 2 "0, 8")" "$(gather 900 51.5 100000 2 "0, 1")"
ok "beside others they are left out" calibrates "$tmp/both.json"
ok "which is said" says "of collectives between nodes (1) no rate is taken"

# --- products, at half of the speed of the formula
op() { # TS CORRELATION DUR NAME ARGS: an operator, its launch and its kernel
    event cpu_op "$4" "$1" 9 "$5"
    echo ,
    event cuda_runtime cudaLaunchKernel "$1" 5 "\"correlation\": $2"
    echo ,
    event kernel gemm "$(($1 + 9000))" "$3" "\"correlation\": $2"
}
mm() { # TS CORRELATION DUR TYPE M N K
    op "$1" "$2" "$3" aten::mm "\"Input Dims\": [[$5, $7], [$7, $6]], \"Input type\": [\"$4\"]"
}
profile "$tmp/mm.json" "$(mm 10 1 2883.693 c10::BFloat16 8192 8192 8192)" \
    "$(mm 30 2 2883.693 c10::BFloat16 8192 8192 8192)"
ok "products" calibrates "$tmp/mm.json"
ok "alone" sets gemm.derate
ok "have the derate that makes them so slow" is "$(rate gemm.derate value)" 0.5000
ok "and the range of the preset" sh -c "grep -A 40 '\"gemm\":' '$file' | grep -q '\"max\":.*131072'"
silent() { # M N K TYPE
    profile "$tmp/mm1.json" "$(mm 10 1 2883.693 "$4" "$1" "$2" "$3")"
    complains 4 "nothing of a cluster is in" calibrate --from trace "$tmp/mm1.json"
}
ok "of another type they say nothing" silent 8192 8192 8192 float
ok "nor do those that memory binds" silent 512 512 8192 c10::BFloat16
ok "nor small ones" silent 8192 8192 256 c10::BFloat16

heads="[1, 4096, 16, 128]"
sdpa() { # TS CORRELATION DUR PASS BEFORE CAUSAL: as many inputs before them
    op "$1" "$2" "$3" "aten::_flash_attention_$4" "\"Input Dims\": [$heads, $heads, $heads],\
 \"Input type\": [\"c10::Half\", \"c10::Half\"], \"Concrete Inputs\": [$5 \"$6\"]"
}
empty() { printf '"", %.0s' $(seq "$1"); }
profile "$tmp/sdpa.json" "$(sdpa 10 1 227.360 forward "$(empty 8)" True)" \
    "$(sdpa 30 2 668.440 backward "$(empty 11)" True)" \
    "$(sdpa 50 3 1 forward "$(empty 8)" False)"
ok "attention, forward and backward" calibrates "$tmp/sdpa.json"
ok "if it does not look ahead" is "$(rate attention.derate value)" 0.5000
ok "of two calls" source_has "10, 50 and 90 % of 2 calls"

calibrates "$tmp/mm.json"
ok "nothing of the machine comes along" sh -c "! grep -q s3cret '$file' && ! grep -q '$tmp' '$file'"

# --- refusals leave no file
refuses() { # CODE WORDS ARGUMENTS
    rm -f "$file"
    complains "$@" -o "$file" && test ! -e "$file"
}
profile "$tmp/host.json" "$(event cpu_op aten::mm 1 2 "")"
ok "a trace without a GPU" refuses 4 "no kernel of a GPU is in it" calibrate --from trace \
    "$tmp/host.json"
ok "even behind a good one" refuses 4 "host.json" calibrate --from trace "$tmp/mm.json" \
    "$tmp/host.json"
head -c 500 "$tmp/mm.json" >"$tmp/cut.json"
ok "one that is cut off" refuses 4 "cut.json': byte" calibrate --from trace "$tmp/cut.json"
ok "a cluster of prices" refuses 2 "'toy' has prices" calibrate --from trace "$tmp/mm.json" \
    --cluster toy
ok "no trace" refuses 2 "--from trace needs a file" calibrate --from trace
ok "without --output it is printed" exits 0 calibrate --from trace "$tmp/mm.json"
ok "as JSON" is "$(field schema)" "unshard.cluster/1"
done_testing
