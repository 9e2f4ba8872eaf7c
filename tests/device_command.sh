#!/bin/sh
# `unshard device` and the script of the device check, on the host: the plan of the check, its units and
# what it expects are the same as on a GPU, sizes are small, and speeds are told.
# shellcheck disable=SC2154,SC2317  # tmp is of tap.sh; ok calls checks
. "$top_srcdir/tests/tap.sh"
. "$top_srcdir/tests/command_rig.sh"
check=$top_srcdir/tests/device_check.sh

ok "lists its parts" exits 0 device list
ok "a line each: tier, seconds, name" sh -c "! grep -vqE '^(core|full) +[0-9]+  [a-z]+ +.+' '$tmp/out'"
limits() { awk -v tier="$1" -v most="$2" '$1 == "core" || tier == "full" { s += $2 }
    END { exit !(s > 0 && s <= most) }' "$tmp/out"; }
ok "of the core in 3 minutes, PyTorch beside" limits core $((180 - 40))
ok "of all in 10, calibration and tools beside" limits full $((600 - 180 - 30 - 120))
ok "as JSON too" exits 0 device list --json
ok "with a schema" is "$(field schema)" unshard.device_list/1

if command -v ldd >/dev/null; then
    ok "the program starts where there is no CUDA, no NCCL and no cuBLASLt" sh -c \
        "! ldd '$UNSHARD' | grep -E 'libcuda|libnccl|libcublas'"
fi
for command in "run llama-tiny" "device check far" calibrate; do
    # shellcheck disable=SC2086  # words
    run $command --device cuda
    test "$code" != 0 || { skip "there is a GPU here"; continue; }
    ok "$command without a GPU: 3" is "$code" 3
    lacks='driver|CUDA device|NCCL|cuBLASLt|this build has no device cuda'
    ok "and one line that says what is missing" sh -c \
        "test \$(wc -l <'$tmp/err') = 1 && grep -qE '$lacks' '$tmp/err'"
    ok "nothing is stored" test ! -e "$UNSHARD_DB"
done
ok "no such part: 2" complains 2 "no part 'nothing'; see 'unshard device list'" device check nothing
ok "one at a time" complains 2 "extra argument 'step'" device check far step
ok "a part has to be named" complains 2 "no part or file" device check
ok "a file that cannot be written: 4" exits 4 device check far -o "$tmp/missing/far.json"
ok "by name" says "cannot write '$tmp/missing/far.json'"
ok "JSON in place of TAP" exits 0 device check far --json
ok "is what is written to a file" exits 0 device check far -o "$tmp/far.json"
ok "with the same schema" grep -q '"schema":.*"unshard.device_check/1"' "$tmp/far.json"

# The script, as `make host-check` runs it, in a folder that has nothing but what it is given.
mkdir "$tmp/away" && cp "$check" "$UNSHARD" "$tmp/away" && cd "$tmp/away" || exit 1
runs() { sh ./device_check.sh --unshard ./unshard --device host "$@" >"$tmp/out" 2>"$tmp/err"; }
ok "the whole check passes on the host" runs --full --out all
planned() { test "1..$(grep -c -e '^ok' -e '^not ok' "$tmp/out")" = "$(tail -n 1 "$tmp/out")"; }
ok "its plan is what it did" planned
ok "nothing is not ok" sh -c "! grep '^not ok' '$tmp/out'"
ok "the TAP is kept" cmp -s "$tmp/out" all/check.tap
for part in environment casts packing speed step post far; do
    ok "$part left its JSON" grep -q "\"part\":.*\"$part\"" "all/$part.json"
done
ok "rates are a cluster" sh -c "'$UNSHARD' cluster show all/cluster.json >/dev/null"
ok "steps are in a history" is "$("$UNSHARD" query 'select count(*) from v_real' --db all/runs.db --csv |
    tr -d '\r' | sed 1d)" 1
judged() { grep -q '"verdict":.*"told"' "all/speed.json" && ! grep -q '"verdict":.*"failed"' all/speed.json; }
ok "speeds of the host are told" judged
keys='pack-50m_mixed_of_uniform pack-50m_uniform_of_copy pack-50m_mixed_of_copy precast_of_fused published
temporary_bytes'
for key in $keys 'gradients of 10_mixed_of_uniform' 'gradients of 500_mixed_of_uniform' \
    'copy-in of 10_mixed_of_uniform' 'copy-in of 500_mixed_of_uniform'; do
    ok "speed has $key" grep -q "\"key\":.*\"$key\"" all/speed.json
done

ok "what parts left is stored" exits 0 device store all/casts.json all/speed.json
ok "and said" grep -q "^2 parts of a device check stored in $UNSHARD_DB" "$tmp/out"
ok "part by part" is "$(sql "select group_concat(part, ' ') from (select distinct part from v_device
    order by device_check)")" "casts speed"
ok "with what failed" is "$(sql "select count(*) from v_device where verdict = 'failed'")" 0
ok "and what was looked at" is "$(sql "select device, value, unit, bound, goal, verdict from v_device
    where key = 'fp32_to_bf16'")" 'host,0.0,"",at most,0.0,passed'
ok "what is told has no goal" is "$(sql "select bound, goal is null, verdict from v_device
    where key = 'published'")" "none,1,told"
echo '{"schema": "unshard.device_check/2"}' >other.json
ok "of files of which one is another's nothing is stored" complains 4 "other.json" device store \
    all/far.json other.json
sed 's/"passed"/"praised"/' all/far.json >praised.json
ok "a word that is none is named" complains 4 "'verdict' cannot be 'praised'" device store praised.json
ok "nothing came of it" is "$(sql "select count(*) from v_device where part = 'far'")" 0
ok "a file that is not there: 4" complains 4 "none.json" device store none.json
ok "one part of it" runs --part far --out one
ok "is one check" is "$(tail -n 1 "$tmp/out")" 1..1
fails() { want=$1 && shift && sh ./device_check.sh "$@" >"$tmp/out" 2>"$tmp/err"; is $? "$want"; }
ok "an unknown option: 2" fails 2 --fast
ok "no device: 3" fails 3 --unshard ./unshard --device cuda --out none
ok "in one line" is "$(wc -l <"$tmp/err")" 1
# A program that dies in a part, and one that hangs.
cat >broken <<'END'
#!/bin/sh
case "$2 $3" in
"list "*) printf 'core 20 environment x\ncore 1 casts x\ncore 20 packing x\n' ;;
"check casts") exec sleep 20 ;;
"check packing") kill -9 $$ ;;
*) echo "ok - environment, fine" ;;
esac
END
chmod +x broken
ok "a part that dies and one that hangs fail the check" fails 1 --unshard ./broken --device host --out broken-out
ok "the others are kept" grep -q '^ok - environment, fine' broken-out/check.tap
ok "one was ended" grep -q '^not ok - casts ended with 124' broken-out/check.tap
ok "one died" grep -q '^not ok - packing ended with 137' broken-out/check.tap
ok "and the plan counts them" is "$(tail -n 1 "$tmp/out")" 1..3
done_testing
