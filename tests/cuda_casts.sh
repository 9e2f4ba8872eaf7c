#!/bin/sh
# Casts against CUDA's own headers, which a host's C++ compiler takes; see tests/cuda_casts.c.
# UNSHARD_STRIDE=1: all patterns of FP32, in about a minute.
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
nvcc=${NVCC:-$(command -v nvcc)}
test -n "$nvcc" || { echo "1..0 # SKIP no nvcc here"; exit 0; }
cd "$top_srcdir" || exit 1

top=$("$nvcc" --dryrun -c -x cu /dev/null 2>&1 | sed -n 's/^#\$ TOP=//p')
cxx="${CXX:-g++} -O2 -ffp-contract=off -Wall -Wextra -I."
$cxx -std=gnu11 -x c -c tests/tap.c -o "$tmp/tap.o" &&
    $cxx -std=gnu++17 '-D_Noreturn=[[noreturn]]' -isystem "$top/include" -x c++ -c tests/cuda_casts.c -o "$tmp/casts.o" &&
    $cxx "$tmp/casts.o" "$tmp/tap.o" -o "$tmp/casts" || { echo "Bail out! cannot compile"; exit 1; }
"$tmp/casts" "${UNSHARD_STRIDE:-4097}"
