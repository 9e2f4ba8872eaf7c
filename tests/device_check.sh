#!/bin/sh
# The device check of spec GPU 6: each part of `unshard device list` in a process of its own, with its own
# limit of time; then rates of the device as a cluster file, and what other tools find, where they are.
#
#   device_check.sh [--core | --full] [--device cuda|host] [--unshard PROGRAM] [--library FILE] [--out DIR]
#                   [--part NAME]
#
# Needs the program and this file alone, no build tools and no sources; beside PyTorch also the library and
# device_torch.py. All are looked for where this file lies (make gpu-check-tree). TAP on stdout, parts as they end; in
# DIR (device-check) that, a JSON file a part, the cluster and the run history. Nothing is lost where a
# part, or all of it, is ended early. Exit code 1: something is not as it should be; 3: no such device.
tier=core device=cuda out=device-check only='' here=$(dirname "$0") unshard='' library=''
while test $# -gt 0; do
    case $1 in
    --core | --full) tier=${1#--} ;;
    --device | --unshard | --library | --out | --part)
        test $# -gt 1 || { echo "device_check.sh: $1 needs a value" >&2; exit 2; }
        case $1 in
        --device) device=$2 ;;
        --unshard) unshard=$2 ;;
        --library) library=$2 ;;
        --out) out=$2 ;;
        --part) only=$2 ;;
        esac
        shift
        ;;
    *) echo "device_check.sh: unknown option '$1'" >&2; exit 2 ;;
    esac
    shift
done

unshard=${unshard:-$here/unshard} library=${library:-$here/pack_library.so}

# NCCL and cuBLASLt of Python's packages, where the linker does not find them by itself.
libraries=$(python3 -c 'import nvidia; print(*nvidia.__path__, sep="\n")' 2>/dev/null |
    while read -r folder; do find "$folder" -name 'libnccl.so.*' -o -name 'libcublasLt.so.*'; done |
    sed 's|/[^/]*$||' | sort -u | tr '\n' ':')
LD_LIBRARY_PATH=$libraries${LD_LIBRARY_PATH:-} && export LD_LIBRARY_PATH
mkdir -p "$out" || exit 1
UNSHARD_DB=$out/runs.db && export UNSHARD_DB
: >"$out/check.tap" && : >"$out/check.log"

n=0 bad=0 seconds_left=$(test $tier = core && echo 180 || echo 600)
say() { echo "$*" | tee -a "$out/check.tap"; }
# judge NAME COMMAND...: a line of TAP for whether it ended well
judge() {
    name=$1 && shift
    n=$((n + 1))
    if "$@" >>"$out/check.log" 2>&1; then say "ok - $name"; else bad=1 && say "not ok - $name"; fi
}

# limited SECONDS COMMAND...: at most these, and what is left of all
limited() {
    limit=$1 && shift
    test "$limit" -le $seconds_left || limit=$seconds_left
    before=$(date +%s) result=124
    test "$limit" -le 0 || { timeout "$limit" "$@" && result=0 || result=$?; }
    seconds_left=$((seconds_left - $(date +%s) + before))
    return $result
}

# take NAME SECONDS COMMAND...: a part, whose lines of TAP have no numbers
take() {
    of=$1 && shift
    limited "$@" >"$out/part.tap" 2>>"$out/check.log"
    code=$?
    tee -a "$out/check.tap" <"$out/part.tap"
    n=$((n + $(grep -c -e '^ok' -e '^not ok' "$out/part.tap")))
    case $code in
    0) ;;
    1) bad=1 ;;
    3) tail -n 1 "$out/check.log" >&2 && exit 3 ;;
    *) n=$((n + 1)) bad=1 && say "not ok - $of ended with $code: $(tail -n 1 "$out/check.log")" ;;
    esac
}

# What a GPU runs at, as a comment: ahead of the check and behind it.
clocks() {
    test "$device" = cuda && command -v nvidia-smi >/dev/null || return 0
    say "# $1: $(nvidia-smi --query-gpu=name,driver_version,clocks.sm,clocks.mem,temperature.gpu,power.draw \
        --format=csv,noheader 2>&1 | tr '\n' ';')"
}

clocks before
"$unshard" device list >"$out/parts" || exit 2
while read -r part_tier seconds name _; do
    case $only in
    "$name") ;;
    '') test "$part_tier" = core || test $tier = full || continue ;;
    *) continue ;;
    esac
    take "$name" "$seconds" "$unshard" device check "$name" --device "$device" -o "$out/$name.json"
done <"$out/parts"
if test "$device" = cuda && test -f "$library" && { test -z "$only" || test "$only" = torch; }; then
    take torch 40 python3 "$here/device_torch.py" "$library" -o "$out/torch.json"
fi
rm -f "$out/part.tap" "$out/parts"

if test $tier = full && test -z "$only"; then
    judge "rates of the device, as a cluster file" limited 180 "$unshard" calibrate --device "$device" \
        -o "$out/cluster.json"
    judge "a step that is predicted with it" limited 30 "$unshard" run llama-tiny --ranks 1 \
        --device "$device" --cluster "$out/cluster.json"
    if test "$device" = cuda && command -v compute-sanitizer >/dev/null; then
        for tool in memcheck initcheck; do
            judge "compute-sanitizer $tool on a step" limited 60 compute-sanitizer --tool $tool \
                --error-exitcode 9 "$unshard" run llama-tiny --ranks 1 --steps 2 --warmup 1 \
                --device cuda --no-db
        done
    fi
fi
clocks after
say "1..$n"
exit $bad
