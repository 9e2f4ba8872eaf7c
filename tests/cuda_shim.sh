#!/bin/sh
# The CUDA kernels of packing as a C++ compiler sees them, under the address and undefined-behaviour
# sanitizers: tests/cuda_shim.c says what they have to do. Needs a C++ compiler, but no CUDA.
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
cd "$top_srcdir" || exit 1

cxx="${CXX:-g++} -O1 -g -ffp-contract=off -Wall -Wextra -Werror -I. -DPACK_INLINE=HOST_DEVICE
    -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer"
c_files="tests/cuda_shim.c tests/pack_rig.c tests/pack_watch.c tests/slow_cast.c tests/tap.c
    gpu/pack_table.c gpu/host_pack.c src/arena.c src/dtype.c src/err.c"

# Both at once: each takes some seconds.
compile_kernels() {
    $cxx -std=gnu++17 -include tests/cuda_shim.cuh -x c++ -c gpu/cuda_pack.cu -o "$tmp/kernels.o"
}
compile_rest() {
    for file in $c_files; do
        $cxx -std=gnu11 -x c -c "$file" -o "$tmp/$(basename "$file").o" || return 1
    done
}

echo 'int main() {}' >"$tmp/probe.cc"
$cxx -o "$tmp/probe" "$tmp/probe.cc" 2>/dev/null ||
    { echo "1..0 # SKIP no C++ compiler with sanitizers"; exit 0; }
compile_kernels &
compile_rest && wait $! && $cxx "$tmp"/*.o -lm -o "$tmp/trial" ||
    { echo "Bail out! cannot compile"; exit 1; }
"$tmp/trial"
