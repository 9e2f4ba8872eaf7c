#!/bin/sh
# `unshard calibrate --from nccl-tests`: outputs become the collectives of a cluster, and nothing else
# of it changes.
# shellcheck disable=SC2154,SC2317  # tmp comes from tap.sh; the checks are called by ok
. "$top_srcdir/tests/tap.sh"
. "$top_srcdir/tests/command_rig.sh"
cd "$tmp" || exit 1

# output COLLECTIVE REDOP RANKS NODES START_US GB_PER_S: ten sizes of a straight line, each time as long
# out of place; in place it takes 10 % longer
output() {
    echo "# $4 nodes $3 ranks $1"
    echo "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong"
    awk -v redop="$2" -v ranks="$3" -v start="$5" -v rate="$6" -v twice="$1" 'BEGIN {
        factor = (twice == "all_reduce" ? 2 : 1) * (ranks - 1) / ranks
        for (i = 0; i < 10; i++) {
            bytes = 65536 * 4 ^ i
            us = start + bytes * (ranks - 1) / ranks / rate / 1000
            printf "%.0f %.0f float %s -1", bytes, bytes / 4, redop
            for (half = 0; half < 2; half++) {
                algbw = bytes / us / 1000
                printf " %.6f %.6f %.6f 0", us, algbw, algbw * factor
                us *= 1.1
            }
            print ""
        }
    }'
}
calibrate() { run calibrate --from nccl-tests "$@"; }

output all_gather none 8 1 30 300 >ag8.txt
output reduce_scatter sum 8 1 40 200 >rs8.txt
ok "two outputs make a file" exits 0 calibrate --from nccl-tests ag8.txt rs8.txt -o mine.json
ok "which says what is in it" is "$(cat out)" \
    "mine.json: all_gather of 8 ranks, reduce_scatter of 8 ranks; the rest is of h100-sxm"
ok "it is a cluster" exits 0 cluster show mine.json
sed -n '/all_gather  *8/,/all_gather\.txt/p' out >shown
# 33 us and 300 / 1.1 GB/s: in place
ok "an all-gather is taken in place" grep -q '^  all_gather  *8  *33  *0  *272.7' out
ok "a reduce-scatter out of place" grep -q '^  reduce_scatter  *8  *40  *0  *200' out
ok "with the sizes that were measured, and one between each two" \
    grep -q '19 points, 64.0 KiB to 16.0 GiB' out
ok "and the name of the file, without its folder" grep -q 'nccl-tests, ag8.txt: 10 sizes' out
ok "which says what is inferred" sh -c "tr -s '\n ' ' ' <out |
    grep -q 'ag8.txt: 10 sizes; 9 more inferred by the steps of h100-sxm; one that'"
"$UNSHARD" calibrate --from nccl-tests "$tmp/ag8.txt" >printed
ok "without -o the file is printed, and a folder is no part of a source" \
    grep -q '"source":[[:blank:]]*"nccl-tests, ag8.txt: ' printed

# rest CLUSTER: all numbers but collectives
rest() { "$UNSHARD" cluster show "$1" --json | sed '/"cluster":/d; /"description":/d; /"collectives"/,$d'; }
for preset in h100-sxm h200-sxm b200-sxm a100-sxm-40g; do
    calibrate --cluster $preset ag8.txt -o $preset.json
    rest $preset >want
    rest $preset.json >got
    ok "$preset: nothing but collectives changes" same got want
done

# The simulator prices what was measured: all_gather of 1 GiB takes 33 + 1024^3 * 7 / 8 / 272.7 GB/s
ok "a step is simulated on it" exits 0 sim llama3-8b --cluster mine.json --no-db --json
ok "links of twice the bandwidth still help" sh -c "'$UNSHARD' explain llama3-8b --cluster mine.json |
    grep -q 'slow links  *[0-9.]* ms .*links of twice the bandwidth'"

# What took longer than a larger message is no point. slow N TIMES: the Nth size takes so many times as
# long, in both halves
slow() {
    awk -v n="$1" -v times="$2" '$1 + 0 > 0 && ++seen == n {
        $6 *= times; $10 *= times
        for (i = 7; i < 13; i += i == 8 ? 3 : 1) $i /= times
    } { print }'
}
slow 3 20 <ag8.txt >hiccup.txt
calibrate hiccup.txt -o hiccup.json
ok "a hiccup is told" is "$(cat out)" \
    "hiccup.json: all_gather of 8 ranks (without 1.0 MiB: a larger one took less); the rest is of h100-sxm"
run cluster show hiccup.json
ok "in the source, too" sh -c "tr -s '\n ' ' ' <out |
    grep -q '10 sizes, without 1.0 MiB, as a larger one took less; 10 more inferred'"
# at BYTES: its time in the last cluster that was shown as JSON
at() { sed -n "/\"bytes\":[[:blank:]]*$1,/{n;s/.*\"us\":[[:blank:]]*//p;}" out; }
# near GOT WANT PER_MILLE
near() { awk -v got="$1" -v want="$2" -v part="$3" 'BEGIN { d = got - want
    exit !(got != "" && d * d <= (want * part / 1000) ^ 2) }' || { echo "# got '$1', want '$2'"; return 1; }; }
calibrate ag8.txt -o sound.json
run cluster show sound.json --json
sound=$(at 268435456)
run cluster show hiccup.json --json
ok "and the sizes beside it are what they are" is "$(at 268435456)" "$sound"

# Steps: times of h100-sxm's own shape and 0.1 us a MiB, of which two are left out
steps() { # NAME WITHOUT: rows of an all-gather
    echo "# 1 nodes 8 ranks all_gather"
    echo "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong"
    "$UNSHARD" cluster show h100-sxm --json | awk -v without=" $1 " '
        /"kind"/ { kind = $2 }
        /"ranks"/ { ranks = $2 + 0 }
        /"shape"/ { is_shape = 1 }
        /"source"/ { is_shape = 0 }
        /"bytes"/ { bytes = $2 + 0 }
        /"us"/ && is_shape && kind ~ /all_gather/ && ranks == 8 && !index(without, " " bytes " ") {
            us = $2 + bytes / 10485760
            algbw = bytes / us / 1000
            line = sprintf(" %.6f %.6f %.6f 0", us, algbw, algbw * 7 / 8)
            printf "%.0f %.0f half none -1%s%s\n", bytes, bytes / 16, line, line
        }'
}
steps >full.txt
steps "8388608 16777216" >gap.txt
# priced PRESET FILE: ns of communication of a step; gpt2 gathers 13.5 MiB, scatters 27 MiB
priced() {
    calibrate --cluster "$1" "$2" -o priced.json
    run sim gpt2 --cluster priced.json --no-db --json
    field comm_ns
}
calibrate gap.txt -o gap.json
run cluster show gap.json --json
ok "a size that is missing is filled in by the steps of the preset" near "$(at 8388608)" 44.7 2
ok "and another beside it" near "$(at 16777216)" 68.7 2
ok "with it a step is priced as with all sizes" near "$(priced h100-sxm gap.txt)" \
    "$(priced h100-sxm full.txt)" 1
ok "on a preset that has no steps it is not" sh -c "! awk -v a=$(priced h200-sxm gap.txt) \
    -v b=$(priced h200-sxm full.txt) 'BEGIN { exit !((a / b - 1) ^ 2 < 0.02 ^ 2) }'"
run cluster show priced.json
ok "and says nothing of any" sh -c "! grep -q inferred out"
calibrate full.txt -o full.json
calibrate --cluster full.json gap.txt -o again.json
run cluster show again.json --json
ok "what was calibrated before tells its own steps" near "$(at 8388608)" 44.7 1

# Nodes
output all_gather none 16 2 100 150 >ag16.txt
output all_reduce sum 16 2 100 150 >ar16.txt
ok "outputs of two nodes" exits 0 calibrate --from nccl-tests ag16.txt ar16.txt -o two.json
ok "become rows, and all-gathers the network" is "$(cat out)" \
    "two.json: all_gather of 16 ranks on 2 nodes, all_reduce of 16 ranks on 2 nodes, the network between nodes; the rest is of h100-sxm"
run cluster show two.json
calibrate --cluster mine.json ag16.txt -o both.json
run cluster show both.json
ok "a file can be added to" sh -c "grep -q 'rs8.txt' out && grep -q 'ag16.txt' out"
ok "and is called so once" sh -c "head -n 1 out | grep -q '^h100-sxm+nccl-tests: '"
run cluster show two.json
ok "which says where it is from" sh -c "grep -A 1 'network.nic_efficiency' out | grep -q 'ag16.txt'"
calibrate ar16.txt -o ar.json
rest h100-sxm >want
rest ar.json >got
ok "an all-reduce tells nothing of it" same got want

# What cannot be
echo hello >prose.txt
head -c 300 ag8.txt >cut.txt
output all_gather none 8 1 30 300 | head -n 4 >few.txt
output all_gather none 16 1 30 300 >wide.txt
awk '$1 + 0 > 0 { us = 1000 - 10 * n++; $6 = $10 = us; $7 = $11 = $1 / us / 1000
    $8 = $12 = $7 * 7 / 8 } { print }' ag8.txt >falling.txt
output all_gather none 9 2 30 300 >uneven.txt
awk '{ if ($1 + 0 > 0) $1 = NR; print }' ag8.txt >tiny.txt
sed '4s/ 0$/ 0 /; 4s/ [0-9.]* [0-9.]* [0-9.]* 0 *$/ N\/A N\/A N\/A N\/A/' ag8.txt >half.txt
rm -f bad.json
refused() { # WORDS FILE...: with exit code 4, in one line that names the first file, and no output
    words=$1
    shift
    complains 4 "$words" calibrate --from nccl-tests -o bad.json "$@" && test ! -e bad.json
}
ok "a missing file" refused "cannot read 'none.txt'" none.txt
ok "a file without a table" refused "prose.txt: no row of all_gather" prose.txt
ok "a file that is cut off" refused "cut.txt: line 5: 3 columns in place of 13" cut.txt
ok "too few sizes" refused "few.txt: all_gather of 8 ranks: sizes of 64 KiB or more: 2, of these 0 took" few.txt
ok "times that fall" refused "falling.txt: all_gather of 8 ranks: sizes of 64 KiB or more: 10, of these 7 took" \
    falling.txt
ok "more ranks than a node has" refused "wide.txt: line 3: 16 ranks in a node" wide.txt
ok "nodes of unequal ranks" refused "uneven.txt: line 3: 9 ranks on 2 nodes" uneven.txt
ok "messages that are all too small" refused "no message of 64 KiB or more" tiny.txt
ok "a half that is not there" refused "half.txt: line 4: no time in place, which all_gather needs" half.txt
ok "one bad file among good ones" refused "prose.txt: no row" ag8.txt prose.txt rs8.txt
ok "no file at all" complains 2 "--from nccl-tests needs a file" calibrate --from nccl-tests
ok "a cluster of prices" complains 2 "'toy' has prices" calibrate --from nccl-tests --cluster toy ag8.txt
ok "a file that nothing reads" complains 2 "is not read" calibrate ag8.txt
ok "nothing is stored" test ! -e "$UNSHARD_DB"

# What README shows of published outputs
raw=$UNSHARD_SHARED/data/nccl_raw
if test -d "$raw"; then
    cp "$raw/ext_h100_8_all_gather_bf16.txt" all_gather.txt
    cp "$raw/ext_h100_8_reduce_scatter_bf16.txt" reduce_scatter.txt
    sed -n '/^\$ unshard calibrate --from nccl-tests/,/^```/p' "$top_srcdir/README.md" |
        grep -v '^\(```\|\.\.\.\)' >block
    sed -n 's/^\$ unshard //p' block | while read -r words; do
        # shellcheck disable=SC2086
        "$UNSHARD" $words
    done >printed
    grep -v '^\$' block | while IFS= read -r line; do
        grep -qxF -- "$line" printed || echo "# not printed: $line"
    done >missing
    ok "README's example is what is printed" test -s printed -a ! -s missing
else
    skip "no published output here"
fi
done_testing
