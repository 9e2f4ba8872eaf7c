#!/bin/sh
# What can be said of the compiled CUDA kernels without a device: registers, spills, and how wide the
# loads and stores are. Counted by tools/sass_census.py of the shared data, else by cuobjdump; not where
# neither is.
# shellcheck disable=SC2154  # tmp comes from tap.sh
. "$top_srcdir/tests/tap.sh"
nvcc=${NVCC:-$(command -v nvcc)}
test -n "$nvcc" || { echo "1..0 # SKIP no nvcc here"; exit 0; }
cd "$top_srcdir" || exit 1

# census: "KERNEL INSTRUCTION=COUNT ..." for each kernel
census() {
    if test -f "$UNSHARD_SHARED/tools/sass_census.py"; then
        python3 "$UNSHARD_SHARED/tools/sass_census.py" "$tmp/pack.cubin" | cut -d' ' -f2-
    elif command -v cuobjdump >/dev/null; then
        cuobjdump -sass "$tmp/pack.cubin" | awk '
            /Function :/ { kernel = $3 }
            match($0, /(LDG|STG|LDL|STL)\.[A-Z0-9.]*/) {
                op = substr($0, RSTART, RLENGTH); width = "32"
                if (match(op, /\.(128|64|U16|U8)/)) width = substr(op, RSTART + 1, RLENGTH - 1)
                count[kernel " " substr(op, 1, 3) "." width]++
            }
            END { for (i in count) { split(i, of, " "); line[of[1]] = line[of[1]] " " of[2] "=" count[i] }
                  for (k in line) print k line[k] }'
    fi
}
# number KERNEL INSTRUCTION: how many of it
number() {
    sed -n "s/.*$1.* $2=\([0-9]*\).*/\1/p" "$tmp/census" | grep . || echo 0
}
# registers KERNEL: of a thread, as ptxas says
registers() {
    awk -v kernel="$1" '/Compiling entry/ { at = index($0, kernel) } at && /Used/ {
        match($0, /Used [0-9]+/); print substr($0, RSTART + 5, RLENGTH - 5) }' "$tmp/ptxas"
}

"$nvcc" -std=c++17 -O2 -fmad=false -arch=sm_90 -Werror all-warnings -I. -Xptxas -v -cubin -o "$tmp/pack.cubin" \
    gpu/cuda_pack.cu >"$tmp/ptxas" 2>&1
ok "the kernels compile for sm_90 without a warning" test -s "$tmp/pack.cubin"
ok "nothing is spilled" sh -c "! grep -E '[1-9][0-9]* bytes (stack frame|spill)' '$tmp/ptxas'"
census >"$tmp/census"
sed 's/^/# /' "$tmp/census"
for kernel in pack_kernel post_kernel; do
    used=$(registers $kernel)
    ok "$kernel: $used registers, at most 64" test "$used" -le 64
    test -s "$tmp/census" || { skip "neither sass_census.py nor cuobjdump is here"; continue; }
    for width in U8 U16 32 64 128; do
        test "$(number $kernel "LDL.$width")$(number $kernel "STL.$width")" = 00 || local_memory=yes
    done
    ok "$kernel: no local memory" test -z "$local_memory"
    ok "$kernel: loads of 128 bits" test "$(number $kernel LDG.128)" -ge 10
    ok "$kernel: stores of 128 bits" test "$(number $kernel STG.128)" -ge 10
done
done_testing
