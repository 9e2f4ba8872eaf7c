#!/bin/sh
# Traces in the hands of another language: Python parses them, and counts the step again.
. "$top_srcdir/tests/tap.sh"
if ! command -v python3 >/dev/null; then
    echo "1..0 # SKIP no python3"
    exit 0
fi
make=$top_builddir/tests/trace_make
recount() { python3 "$top_srcdir/tests/trace_recount.py" "$@"; }
parses() { python3 -c 'import json, sys; json.load(open(sys.argv[1], encoding="utf-8"))' "$1"; }
differs() { ! recount "$1" >"$tmp/said" && grep -q "$2" "$tmp/said"; }

written=0
for seed in 1 2 3 4 5 6 7 8 9 10; do
    "$make" $seed "$tmp/$seed.json" && written=$((written + 1))
done
"$make" 11 "$tmp/11.json.gz" && written=$((written + 1))
ok "traces of eleven random runs are written" test $written -eq 11
ok "Python's json parses one with odd names" parses "$tmp/1.json"
ok "the step counted from the files is the step that was measured" \
    recount "$tmp"/*.json "$tmp/11.json.gz"
ok "the example trace as well" recount "$top_srcdir/traces/toy.json"

sed 's/"ts":0.150,"dur":0.190/"ts":0.150,"dur":0.189/' "$top_srcdir/traces/toy.json" >"$tmp/short.json"
ok "a kernel 1 ns shorter is noticed" differs "$tmp/short.json" compute_ns
sed 's/"bytes":9007199254740993/"bytes":9007199254740992/' "$top_srcdir/traces/toy.json" \
    >"$tmp/less.json"
ok "a peak 1 byte lower is noticed" differs "$tmp/less.json" peak_allocated_bytes
done_testing
