#!/usr/bin/env python3
"""Packing of gradients by this program's kernel and by PyTorch, in one process, on one stream.

  device_torch.py LIBRARY [-o FILE]   on a GPU, beside PyTorch; a part of the device check (spec GPU 6)
  device_torch.py LIBRARY --host      the library alone, built for a CPU: its bytes against this file's

PyTorch's `_chunk_cat` takes gradients of one type; those of two are cast first, into memory of their own.
Of `pack-50m` (spec GPU 1.2), 8 ranks. TAP without a plan; exit code 1 where a goal is missed.
"""
import argparse
import ctypes
import json
import sys

RANKS, SHRUNK = 8, 64
WARM_UP, RUNS = 5, 21
GOAL_CHUNK_CAT, GOAL_PRECAST, PUBLISHED_TB_PER_S = 1.8, 3.0, 1.60


class Packing:
    """A unit of the library, and its table."""

    def __init__(self, path, shrink, ranks, is_mixed):
        self.lib = lib = ctypes.CDLL(path)
        for name in ("new", "table"):
            getattr(lib, "pack_library_" + name).restype = ctypes.c_void_p
        for name in ("from_bytes", "to_bytes", "moved_bytes"):
            getattr(lib, "pack_library_" + name).restype = ctypes.c_uint64
        lib.pack_library_error.restype = ctypes.c_char_p
        lib.pack_library_params.restype = ctypes.c_uint32
        self.ranks = ranks
        self.unit = ctypes.c_void_p(
            lib.pack_library_new(ctypes.c_uint64(shrink), ctypes.c_uint32(ranks), ctypes.c_int(is_mixed)))
        self.check()
        self.from_bytes = lib.pack_library_from_bytes(self.unit)
        self.to_bytes = lib.pack_library_to_bytes(self.unit)
        self.moved_bytes = lib.pack_library_moved_bytes(self.unit)
        size = ctypes.c_uint64()
        at = lib.pack_library_table(self.unit, ctypes.byref(size))
        self.table = ctypes.string_at(at, size.value)
        self.params = [self.param(i) for i in range(lib.pack_library_params(self.unit))]

    def check(self):
        error = self.lib.pack_library_error(self.unit)
        if error:
            sys.exit("device_torch.py: " + error.decode())

    def param(self, i):
        """(offset in bytes, rows, columns, whether it is FP32)"""
        values = [ctypes.c_uint64(), ctypes.c_uint64(), ctypes.c_uint64(), ctypes.c_int()]
        self.lib.pack_library_param(self.unit, ctypes.c_uint32(i), *map(ctypes.byref, values))
        return tuple(value.value for value in values)

    def run(self, table, source, to, stream=0):
        self.lib.pack_library_run(self.unit, *map(ctypes.c_void_p, (table, source, to, stream)))
        self.check()


# ---- the library alone


def expected(packing, source):
    """FP32 slices of all ranks: rows of each parameter in turn, zeros for those that are not."""
    out = bytearray()
    for rank in range(packing.ranks):
        for offset, rows, columns, is_fp32 in packing.params:
            chunk, each = -(-rows // packing.ranks), 4 if is_fp32 else 2
            for row in range(rank * chunk, (rank + 1) * chunk):
                begin = offset + row * columns * each
                line = source[begin:begin + columns * each] if row < rows else bytes(columns * each)
                out += line if is_fp32 else b"".join(
                    b"\0\0" + line[i:i + 2] for i in range(0, len(line), 2))
            out += bytes(-len(out) % 16)
    return bytes(out)


def check_host(path):
    failed = 0
    for is_mixed in (0, 1):
        packing = Packing(path, SHRUNK, RANKS, is_mixed)
        source = bytes((i * 37 + i // 251) % 256 for i in range(packing.from_bytes))
        buffers = [ctypes.create_string_buffer(data, len(data))
                   for data in (packing.table, source, bytes(packing.to_bytes))]
        packing.run(*map(ctypes.addressof, buffers))
        good = buffers[2].raw == expected(packing, source)
        failed += not good
        print(("ok" if good else "not ok") + " - the library packs a %s unit" % ("uniform", "mixed")[is_mixed])
    return failed


# ---- beside PyTorch


def seconds(torch, call):
    """Median of one call, by the device's events."""
    for _ in range(WARM_UP):
        call()
    times = []
    for _ in range(RUNS):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        call()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 1e-3)
    return sorted(times)[RUNS // 2]


def gradients(torch, packing, flat):
    """Views of the source, a tensor each."""
    out = []
    for offset, rows, columns, is_fp32 in packing.params:
        dtype, each = (torch.float32, 4) if is_fp32 else (torch.bfloat16, 2)
        out.append(flat[offset:offset + rows * columns * each].view(dtype).view(rows, columns))
    return out


class Trial:
    def __init__(self, torch, path, is_mixed):
        self.torch, self.packing = torch, Packing(path, 1, RANKS, is_mixed)
        packing = self.packing
        self.source = torch.empty(packing.from_bytes, dtype=torch.uint8, device="cuda")
        self.grads = gradients(torch, packing, self.source)
        for grad in self.grads:
            grad.normal_()
        self.table = torch.frombuffer(bytearray(packing.table), dtype=torch.uint8).cuda()
        self.to = torch.empty(packing.to_bytes // 4, dtype=torch.float32, device="cuda")

    def ours(self):
        self.packing.run(self.table.data_ptr(), self.source.data_ptr(), self.to.data_ptr(),
                         self.torch.cuda.current_stream().cuda_stream)

    def chunk_cat(self, grads):
        chunks = sum(-(-grad.shape[0] // RANKS) * grad.shape[1] for grad in grads)
        out = self.torch.empty(RANKS, chunks, dtype=self.torch.float32, device="cuda")
        return lambda: self.torch._chunk_cat(grads, dim=0, num_chunks=RANKS, out=out), out


def beside_torch(torch, path):
    """Lines as of src/device_check.h."""
    lines = []

    def line(key, words, value, unit, goal=None, bound="at least"):
        good = goal is None or (value >= goal if bound == "at least" else value <= goal)
        lines.append({"key": key, "words": words, "value": value, "unit": unit,
                      "bound": "none" if goal is None else bound, "limit": goal,
                      "verdict": "told" if goal is None else "passed" if good else "failed"})

    uniform, mixed = Trial(torch, path, 0), Trial(torch, path, 1)
    cat, out = uniform.chunk_cat(uniform.grads)
    cat()
    uniform.ours()
    torch.cuda.synchronize()
    differ = (out.view(-1).view(torch.int32) != uniform.to.view(torch.int32)).sum().item()
    line("uniform_bits", "elements that are not PyTorch's", differ, "", 0, "at most")

    def precast():
        grads = [grad.float() for grad in mixed.grads]
        torch._chunk_cat(grads, dim=0, num_chunks=RANKS, out=mixed_out)

    _, mixed_out = mixed.chunk_cat(mixed.grads)
    times = {"uniform": seconds(torch, uniform.ours), "mixed": seconds(torch, mixed.ours),
             "chunk_cat": seconds(torch, cat), "precast": seconds(torch, precast)}
    for key, moved in (("uniform", uniform), ("mixed", mixed), ("chunk_cat", uniform)):
        line(key, "%s, moved" % key, moved.packing.moved_bytes / times[key] * 1e-9, "GB/s")
    line("published", "published for PyTorch's fused packing, on an H100", 1000 * PUBLISHED_TB_PER_S, "GB/s")
    line("over_chunk_cat", "uniform, against PyTorch's _chunk_cat", times["chunk_cat"] / times["uniform"],
         "times", GOAL_CHUNK_CAT)
    line("over_precast", "mixed, against a cast and _chunk_cat", times["precast"] / times["mixed"], "times",
         GOAL_PRECAST)
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    mixed.ours()
    torch.cuda.synchronize()
    line("temporary_bytes", "bytes that packing takes", torch.cuda.max_memory_allocated() - before, "B", 0,
         "at most")
    return lines


def tell(torch, lines, output):
    check = {"schema": "unshard.device_check/1", "part": "torch", "device": "cuda",
             "name": torch.cuda.get_device_name(), "software": "torch " + torch.__version__,
             "tool_version": "", "lines": lines}
    begins = {"told": "#", "passed": "ok -", "failed": "not ok -"}
    for line in lines:
        goal = "" if line["limit"] is None else ", %s %g %s" % (line["bound"], line["limit"], line["unit"])
        print("%s torch, %s: %.6g %s%s" % (begins[line["verdict"]], line["words"], line["value"],
                                           line["unit"], goal))
    if output:
        with open(output, "w", encoding="utf-8") as file:
            json.dump(check, file, indent=1)
    return sum(line["verdict"] == "failed" for line in lines)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("--host", action="store_true")
    parser.add_argument("-o", dest="output")
    options = parser.parse_args()
    if options.host:
        return min(1, check_host(options.library))
    try:
        import torch
    except ImportError:
        print("# torch is not here: nothing of it to compare with")
        return 0
    return min(1, tell(torch, beside_torch(torch, options.library), options.output))


if __name__ == "__main__":
    sys.exit(main())
