#!/bin/sh
# FSDP1 on the command line: what is said of memory that depends on times, limits that are too low,
# both systems side by side, and options that only one of them has.
# shellcheck disable=SC2154,SC2317,SC2086  # tmp is of tap.sh; ok calls checks; $small is words
. "$top_srcdir/tests/tap.sh"
. "$top_srcdir/tests/command_rig.sh"

small="llama2-7b --layers 4 --seq 2048 --units block --no-db"
shown() { grep -qF -- "$1" "$tmp/out"; }
reads() { tr -s '\n ' '  ' <"$tmp/out" | grep -qF -- "$1"; } # wherever its lines are broken

ok "a step is simulated" exits 0 sim $small --system fsdp1
ok "and its memory is said to be as simulated" shown \
    "memory as simulated: record_stream ties it to time"
ok "without a warning that addresses do not repeat" test ! -s "$tmp/err"
ok "in JSON" exits 0 sim $small --system fsdp1 --json
ok "too" is "$(field memory_as_simulated)" true
more=$(field peak_active_bytes) time=$(field mid)
cp "$tmp/out" "$tmp/one"
ok "once more" exits 0 sim $small --system fsdp1 --json
ok "it is the same" same "$tmp/out" "$tmp/one"
ok "streams may wait in place of the allocator" exits 0 sim $small --system fsdp1 \
    --record-stream no --json
ok "then there are addresses" is "$(field memory_as_simulated)" false
ok "and less is pending" test "$(field peak_active_bytes)" -lt "$more"

ok "gradients that are not sharded" exits 0 sim $small --system fsdp1 --fsdp1-strategy no-shard --json
whole=$(field mid)
ok "are not padded" exits 0 sim $small --system fsdp1 --fsdp1-strategy no-shard --pad-grads yes --json
ok "and cost no copy" is "$(field mid)" "$whole"

ok "what is compiled" exits 0 sim $small --system fsdp1 --ops torch-compile --json
compiled=$(field program_hash)
ok "which the options say" grep -q '"use_orig_params":	"yes"' "$tmp/out"
ok "keeps original parameters" exits 0 sim $small --system fsdp1 --ops torch-compile \
    --use-orig-params yes --json
ok "without being asked" is "$(field program_hash)" "$compiled"
ok "and must" complains 2 "torch-compile takes fsdp1 with use-orig-params yes alone" \
    sim $small --system fsdp1 --ops torch-compile --use-orig-params no
ok "under FSDP2 there are no others" complains 2 "its parameters always are the original ones" \
    sim $small --use-orig-params yes
ok "adapters freeze parts of flat parameters, which is refused" complains 2 \
    "adapters freeze parts of a flat parameter" sim $small --system fsdp1 --lora r=8

ok "a step that does not fit says so" exits 1 sim $small --system fsdp1 --memory 5GiB
ok "and where" says "out of memory in step 2"
ok "one may fit by retries" exits 0 sim $small --system fsdp1 --memory 6GiB --json
ok "of which it tells" test "$(field retries)" -gt 0
ok "and reserves no more than there is" test "$(field peak_reserved_bytes)" -le 6442450944
ok "but is slower" test "$(field mid)" -gt "$time"
ok "by what they take, or more" test "$(field retry_ns)" -gt 0 \
    -a "$(field retry_ns)" -le $(($(field mid) - time))

more=$(field mid)

ok "one that has more has no retries" exits 0 sim $small --system fsdp1 --memory 9.5GiB --json
ok "where memory is as simulated" is "$(field retries)" 0
ok "but where it has what real runs need beside" test "$(field withheld_retries)" -gt 0
ok "which is a sixteenth of it at most" test "$(field withheld_bytes)" -gt 600000000 \
    -a "$(field withheld_bytes)" -le 637534208
ok "a run that is stored" exits 0 sim ${small% --no-db} --system fsdp1 --memory 9.5GiB --json
ok "has it in SQL, with what retries take" is "$(sql 'select withheld_bytes, retry_ns from v_run
    order by run desc limit 1')" "$(field withheld_bytes),$(field retry_ns)"
ok "and makes it slower too" test "$(field mid)" -gt "$time" -a "$(field mid)" -lt "$more"
ok "in words" exits 0 sim $small --system fsdp1 --memory 9.5GiB
ok "as well" reads "real runs need more memory: with 608.0 MiB less there are"
ok "with what they take" reads "the allocator gives memory back and asks again"
ok "in a plan as well" exits 0 plan $small --system fsdp2,fsdp1 --memory 9.5GiB
ok "by its rank" reads "Times with the retries that"
ok "what one cost gains leaves retries alone" exits 0 sim $small --system fsdp1 --memory 9.5GiB \
    --what-if no-comm --json
gain=$(field gain_ns)
ok "and is less than a step without any" test "$gain" -gt 0 -a "$gain" -lt "$time"
before=
for mib in 6144 6656 7168 7680 8192 9216 9984 10240 12288; do
    ok "a step in $mib MiB" exits 0 sim $small --system fsdp1 --memory ${mib}MiB --json
    less=$(field withheld_bytes) mid=$(field mid)
    ok "has at most what it can do without less" test "$less" -le $((mib * 65536))
    ok "and is no slower than with less memory" test "$mid" -le "${before:-$mid}"
    ok "between its ends" test "$(field low)" -le "$mid" -a "$mid" -le "$(field high)"
    before=$mid
done
ok "a step whose high end does not get through" exits 0 sim llama3-8b --layers 6 --units block \
    --no-db --system fsdp1 --ac op --memory 24600MiB --json
ok "has retries" test "$(field retries)" -gt 0
ok "at that end too" test "$(field high)" -gt $((12 * $(field mid) / 10))
ok "far from the limit nothing is" exits 0 sim $small --system fsdp1 --memory 20GiB --json
ok "short of anything" is "$(field withheld_retries)" 0
ok "and it is as fast as ever" is "$(field mid)" "$time"

ok "both systems are plans" exits 0 plan $small --system fsdp2,fsdp1
ok "side by side" shown "system"
ok "a plan that a system has not is refused in the table" exits 0 plan $small \
    --system fsdp2,fsdp1 --reshard no
ok "with the reason" shown "refused: reshard is nothing that fsdp1 has"
ok "its causes are explained" exits 0 explain llama2-7b --layers 4 --seq 2048 --units block \
    --system fsdp1

ok "fsdp2 has no strategy" complains 2 "fsdp1-strategy is nothing that fsdp2 has" sim $small \
    --fsdp1-strategy grad-op
ok "fsdp1 wraps no lists" complains 2 "is a list of 2 modules, and FSDP1 wraps one" sim llama2-7b \
    --no-db --system fsdp1 --units torchtitan
ok "its units are blocks, where none are given" exits 0 sim llama2-7b --no-db --system fsdp1
ok "which is said" reads "--system fsdp1 --units block "
ok "microbatches need shards" complains 2 "use accum 1 or shard over more" sim $small \
    --system fsdp1 --accum 2 --fsdp1-strategy no-shard
ok "of which one GPU has no part" complains 2 "where one GPU has all shards" sim $small \
    --system fsdp1 --accum 2 --gpus 1
ok "hybrid needs replicas" complains 2 "give replicas" sim $small --system fsdp1 \
    --fsdp1-strategy hybrid
done_testing
