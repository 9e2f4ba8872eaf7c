"""Count a profile of PyTorch again, and compare with what `unshard trace show --json` says of it.

    python3 kineto_count.py SHOWN.json TRACE [SHOWN.json TRACE]...

Standard library only; shares nothing with the reader. Times are integer ns, from the digits of the
text. A line for each trace: what was counted, or what differs; exit code 1 where anything does.
"""
import collections
import decimal
import gzip
import json
import os
import sys

GROUPS = {"kernel": "kernels", "Kernel": "kernels", "gpu_memcpy": "copies", "Memcpy": "copies",
          "gpu_memset": "sets", "Memset": "sets"}
KINDS = ("allgather", "reducescatter", "allreduce", "alltoall", "broadcast", "send", "recv")
BYTES = {"Float": 4, "BFloat16": 2, "Half": 2, "Double": 8, "Byte": 1, "Char": 1, "Bool": 1,
         "Int": 4, "Long": 8}


def ns(microseconds):
    whole = decimal.Decimal(microseconds) * 1000
    return int(whole.to_integral_value(decimal.ROUND_HALF_UP))


def union(spans):
    """The time that at least one of the spans covers."""
    total, reached = 0, None
    for begin, end in sorted(spans):
        if reached is None or begin > reached:
            total, reached = total + end - begin, end
        elif end > reached:
            total, reached = total + end - reached, end
    return total


def kind(word):
    plain = word.replace("_", "").lower()
    return next((k for k in KINDS if k in plain), "other")


def message(args):
    """Kind, ranks and bytes, where the arguments give them."""
    if "In msg nelems" not in args:
        return None
    elements = max(args["In msg nelems"], args["Out msg nelems"])
    return kind(args["Collective name"]), args["Group size"], elements * BYTES[args["dtype"]]


def count(events):
    ops = {event["args"].get("External id"): event["args"] for event in events
           if event.get("name") == "record_param_comms" and "args" in event}
    spans, numbers = collections.defaultdict(list), collections.Counter()
    messages = collections.Counter()
    for event in events:
        group = GROUPS.get(event.get("cat"))
        if event.get("ph") != "X" or group is None:
            continue
        args = event.get("args", {})
        stream = args.get("device", event["pid"]), args.get("stream", event["tid"])
        begin, length = ns(event["ts"]), ns(event["dur"])
        spans[stream].append((begin, begin + length))
        numbers[stream + (group,)] += 1
        if group == "kernels" and ("nccl" in event["name"].lower() or "Collective name" in args):
            messages[message(args) or message(ops.get(args.get("External id"), {})) or
                     (kind(event["name"]), 0, 0)] += 1
    streams = {stream: tuple(numbers[stream + (g,)] for g in ("kernels", "copies", "sets")) +
               (union(spans[stream]),) for stream in spans}
    return streams, messages


def shown(page):
    streams = {(s["device"], s["stream"]): (s["kernels"], s["copies"], s["sets"], s["busy_ns"])
               for s in page["streams"]}
    messages = collections.Counter()
    for c in page["collectives"]:
        messages[kind(c["kind"]), c["ranks"], c["bytes"]] += c["count"]
        assert c["bytes_total"] == c["bytes"] * c["count"]
    return streams, messages


def read(path):
    opened = gzip.open if path.endswith(".gz") else open
    with opened(path, "rt", encoding="utf-8") as file:
        return json.load(file, parse_float=decimal.Decimal)


def main(paths):
    wrong = 0
    for page, trace in zip(paths[::2], paths[1::2]):
        counted, said = count(read(trace)["traceEvents"]), shown(read(page))
        name = os.path.basename(trace)
        if counted == said:
            print(f"# {name}: {sum(sum(s[:3]) for s in counted[0].values())} operations, "
                  f"{sum(counted[1].values())} collectives")
            continue
        wrong = 1
        for what, ours, theirs in zip(("streams", "collectives"), counted, said):
            print(f"# {name}: {what} are {dict(ours)}, shown {dict(theirs)}")
    return wrong


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
