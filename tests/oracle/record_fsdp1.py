#!/usr/bin/env python3
"""Record what PyTorch's FullyShardedDataParallel does to a small model, as data for tests/fsdp1_oracle.c.

    record_fsdp1.py [--out FILE]

The hooks run for real, on the CPU and over a group that moves nothing, as rank 0 of 8. What is listed is
the order of the host's acts; README.md has the words. Needs Python 3.11 or later and torch.
"""
import argparse
import datetime
import itertools
import json

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.distributed.fsdp import (BackwardPrefetch, FullyShardedDataParallel, MixedPrecision,
                                    ShardingStrategy)
from torch.distributed.fsdp import _flat_param, _limiter_utils, _runtime_utils
from torch.distributed.fsdp.wrap import ModuleWrapPolicy
from torch.testing._internal.distributed.fake_pg import FakeStore

STRATEGIES = {"full": ShardingStrategy.FULL_SHARD, "grad-op": ShardingStrategy.SHARD_GRAD_OP,
              "no-shard": ShardingStrategy.NO_SHARD}
PREFETCH = {"pre": BackwardPrefetch.BACKWARD_PRE, "post": BackwardPrefetch.BACKWARD_POST,
            "none": None}
RANKS, BLOCKS, STEPS = 8, 3, 6


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(16, 16, bias=False)

    def forward(self, x):
        return x + torch.relu(self.linear(x))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(32, 16)
        self.blocks = nn.ModuleList([Block() for _ in range(BLOCKS)])
        self.head = nn.Linear(16, 32, bias=False)

    def forward(self, x):
        x = self.embedding(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


class FreeEvent:
    """In place of a device's event: says whose free the host waits for.

    One of the step before the last has passed long ago and is not listed.
    """

    def __init__(self, recorder, unit):
        self.recorder, self.unit, self.step = recorder, unit, recorder.step

    def synchronize(self):
        if self.step >= self.recorder.step - 1:
            self.recorder.add("host_wait", self.unit)


class Recorder:
    def __init__(self):
        self.events, self.names, self.step = [], {}, 0
        self.freed = self.used = None  # the unit freed last; what a stream is recorded of, and whose

    def add(self, what, unit):
        self.events.append(f"{what} {unit}")

    def name_of(self, handle):
        return self.names[id(handle)]

    def take(self):
        events, self.events = self.events, []
        return events

    def wrap(self, owner, name, before=None, after=None):
        """Call before(handle) and after(handle, result) around owner.name, whose handle is found."""
        inner = getattr(owner, name)

        def outer(*args, **kwargs):
            handle = next(a for a in args if isinstance(a, _flat_param.FlatParamHandle))
            if before:
                before(handle)
            result = inner(*args, **kwargs)
            if after:
                after(handle, result)
            return result

        setattr(owner, name, outer)

    def use(self, what):
        def before(handle):
            whole = not handle.uses_sharded_strategy
            self.used = ("full" if whole and what == "cast" else what, self.name_of(handle))
        return before

    def free(self, handle, _result):
        self.freed = self.name_of(handle)
        self.add("free", self.freed)

    def install(self):
        handle = _flat_param.FlatParamHandle
        self.wrap(handle, "pre_unshard",
                  after=lambda h, cast: cast and self.add("cast", self.name_of(h)))
        self.wrap(handle, "unshard",
                  before=lambda h: h.needs_unshard() and self.add("gather", self.name_of(h)))
        self.wrap(handle, "_free_low_precision_sharded_param", before=self.use("cast"),
                  after=lambda h, r: h.uses_sharded_strategy or self.free(h, r))
        self.wrap(handle, "_free_unsharded_flat_param", before=self.use("full"), after=self.free)
        for name in ("_reduce_grad", "_reduce_grad_no_shard"):
            self.wrap(_runtime_utils, name, before=self.reduce)
        for module in (_flat_param, _runtime_utils):
            module._no_dispatch_record_stream = self.record_stream
        _limiter_utils._FreeEventQueue.enqueue = self.enqueue()

    def reduce(self, handle):
        self.add("reduce", self.name_of(handle))
        self.used = ("grad", self.name_of(handle))

    def record_stream(self, tensor, _stream):
        """What was freed before has no memory that could be kept."""
        if tensor.untyped_storage().size() > 0:
            self.add(f"record_stream {self.used[0]}", self.used[1])

    def enqueue(self):
        recorder = self

        def enqueue(queue, _event):
            recorder.add("event", recorder.freed)
            queue._queue.append(FreeEvent(recorder, recorder.freed))
        return enqueue


def run(recorder, strategy, prefetch, forward_prefetch):
    model = FullyShardedDataParallel(
        Model(), auto_wrap_policy=ModuleWrapPolicy({Block}), device_id=torch.device("cpu"),
        sharding_strategy=STRATEGIES[strategy], backward_prefetch=PREFETCH[prefetch],
        forward_prefetch=forward_prefetch == "yes", use_orig_params=True,
        mixed_precision=MixedPrecision(param_dtype=torch.bfloat16, reduce_dtype=torch.float32))
    recorder.names = {id(model._handle): "root"}
    for i, block in enumerate(model.module.blocks):
        recorder.names[id(block._handle)] = f"block{i}"
    tokens = torch.randint(0, 32, (2, 4))
    steps = []
    for recorder.step in range(STEPS):
        recorder.take()
        model(tokens).float().sum().backward()
        model.zero_grad()
        steps.append(recorder.take())
    assert steps[-2] == steps[-1], "a steady step repeats"
    return steps


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--out")
    args = parser.parse_args()
    dist.init_process_group("fake", rank=0, world_size=RANKS, store=FakeStore())
    recorder = Recorder()
    recorder.install()
    cases = []
    for strategy, prefetch, forward in itertools.product(STRATEGIES, PREFETCH, ("no", "yes")):
        steps = run(recorder, strategy, prefetch, forward)
        cases.append({"strategy": strategy, "backward_prefetch": prefetch,
                      "forward_prefetch": forward, "first": "; ".join(steps[0]),
                      "steady": "; ".join(steps[-1])})
    source = {"kind": "recorded", "torch": torch.__version__.split("+")[0], "device": "cpu",
              "group": "fake", "ranks": RANKS, "date": datetime.date.today().isoformat(),
              "made_by": "record_fsdp1.py"}
    text = json.dumps({"schema": "unshard.oracle-fsdp1/1", "source": source, "blocks": BLOCKS,
                       "cases": cases}, indent=1)
    if args.out:
        with open(args.out, "w", encoding="utf-8") as file:
            file.write(text + "\n")
    else:
        print(text)


if __name__ == "__main__":
    main()
