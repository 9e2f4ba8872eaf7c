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
ok "with the sizes that were measured" grep -q '10 points, 64.0 KiB to 16.0 GiB' out
ok "and the name of the file, without its folder" grep -q 'nccl-tests, ag8.txt: 10 sizes' out
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
ok "too few sizes" refused "few.txt: all_gather of 8 ranks has 2 sizes" few.txt
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
