#!/bin/sh
# The packing kernel as a library for Python (tests/pack_library.c), built for this CPU over tests/cuda_shim.cuh:
# what tests/device_torch.py calls on a GPU packs the bytes that it should. Beside PyTorch it runs on a GPU alone.
# shellcheck disable=SC2154,SC2317  # tmp comes from tap.sh
. "$top_srcdir/tests/tap.sh"
cd "$top_srcdir" || exit 1
command -v python3 >/dev/null || { echo "1..0 # SKIP no python3 here"; exit 0; }
cxx=${CXX:-g++} cc=${CC:-gcc}
echo 'int main() {}' >"$tmp/probe.cc"
$cxx -o "$tmp/probe" "$tmp/probe.cc" 2>/dev/null || { echo "1..0 # SKIP no C++ compiler"; exit 0; }

cat >"$tmp/shim.c" <<'END'
#include <stdbool.h>
#include <stdint.h>
void shim_look(const void *at, uint32_t bytes, bool writes) { (void)at, (void)bytes, (void)writes; }
void shim_launch(uint32_t blocks, uint32_t threads) { (void)blocks, (void)threads; }
bool shim_fails(void) { return false; }
uint32_t shim_processors(void) { return 2; }
END
builds() {
    $cxx -std=gnu++17 -O1 -fPIC -ffp-contract=off -I. -include tests/cuda_shim.cuh -x c++ -c gpu/cuda_pack.cu \
        -o "$tmp/kernels.o" || return 1
    for file in tests/pack_library.c src/cli/device_unit.c gpu/pack_table.c src/arena.c src/dtype.c src/err.c \
        "$tmp/shim.c"; do
        $cc -std=gnu11 -O1 -fPIC -I. -c "$file" -o "$tmp/$(basename "$file").o" || return 1
    done
    $cxx -shared -o "$tmp/pack_library.so" "$tmp"/*.o
}
ok "the library is built" builds
python3 tests/device_torch.py "$tmp/pack_library.so" --host >"$tmp/out" 2>&1
ok "and packs what this file's own Python packs" test $? = 0
sed 's/^/# /' "$tmp/out"
ok "units of one type and of two" test "$(grep -c '^ok' "$tmp/out")" = 2
if ! python3 -c 'import torch' 2>/dev/null; then
    python3 tests/device_torch.py "$tmp/pack_library.so" >"$tmp/out" 2>&1
    ok "without PyTorch it says so and does not fail" grep -q '^# torch is not here' "$tmp/out"
fi
done_testing
