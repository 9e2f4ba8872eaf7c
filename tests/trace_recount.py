"""Count a step again from its Chrome trace alone, and compare with the metrics that the file gives.

    python3 trace_recount.py FILE...

Standard library only; shares nothing with the writer but the format. Times are integer ns, from the
digits of the text. Exit code 1 and a line for each number that differs.
"""
import decimal
import gzip
import json
import sys


def ns(microseconds):
    whole = microseconds * 1000
    assert whole == int(whole), f"{microseconds} us is no whole number of ns"
    return int(whole)


def union(spans):
    """Disjoint spans in order that cover the same times."""
    merged = []
    for begin, end in sorted(spans):
        if merged and begin <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        elif begin < end:
            merged.append([begin, end])
    return merged


def length(spans):
    return sum(end - begin for begin, end in union(spans))


def common(a, b):
    return length(a) + length(b) - length(a + b)


def recount(trace):
    begin = trace["metadata"]["window_begin_ns"]
    end = begin + trace["metadata"]["step_ns"]
    compute, comm, peak = [], [], 0
    for event in trace["traceEvents"]:
        if event["ph"] == "X" and event["cat"] == "kernel":
            start = ns(event["ts"])
            span = (max(start, begin), min(start + ns(event["dur"]), end))
            if span[0] >= span[1]:
                continue
            if event["tid"] == 7:
                compute.append(span)
            if event["name"].startswith("nccl"):
                comm.append(span)
        elif event["ph"] == "C" and event["name"] == "memory.allocated":
            peak = max(peak, int(event["args"]["bytes"]))
    return {
        "compute_ns": length(compute),
        "comm_ns": length(comm),
        "exposed_comm_ns": length(comm) - common(comm, compute),
        "peak_allocated_bytes": peak,
    }


def main(paths):
    wrong = 0
    for path in paths:
        opened = gzip.open if path.endswith(".gz") else open
        with opened(path, "rt", encoding="utf-8") as file:
            trace = json.load(file, parse_float=decimal.Decimal)
        given = trace["metadata"]
        for name, value in recount(trace).items():
            if given.get(name) != value:
                print(f"# {path}: {name} is {value}, the file says {given.get(name)}")
                wrong = 1
    return wrong


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
