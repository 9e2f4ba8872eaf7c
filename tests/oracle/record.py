#!/usr/bin/env python3
"""Record what PyTorch's fully_shard does to small models, as data for the tests in C.

    record.py --group gloo|nccl|fake --ranks N [--device cpu|cuda] [--out FILE]
              [--case PATTERN] [--list]

A case is a model and the options of `unshard sim` that express it. The options are the only
description: this script reads them too, and turns them into calls of fully_shard. The format
that is written, the arithmetic of the modules and the rule for their values are in README.md.

Needs Python 3.11 or later and torch, nothing else. With gloo and nccl one process per rank is
started; with fake one process plays every rank in turn.
"""
import argparse
import datetime
import fnmatch
import json
import math
import os
import pickle
import struct
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from torch.distributed.fsdp._fully_shard import _fsdp_collectives, _fsdp_param_group
from torch.distributed.tensor import DTensor, Shard

SCHEMA = "unshard.oracle/1"
VERSION = torch.__version__.split("+")[0]
IS_215 = tuple(int(part) for part in VERSION.split(".")[:2]) >= (2, 15)
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16,
          "u8": torch.uint8}
DTYPE_NAMES = {dtype: name for name, dtype in DTYPES.items()}
KINDS = ["copy_in", "all_gather", "copy_out", "reshard", "pack", "reduce_scatter", "all_reduce"]
COLLECTIVES = ["all_gather", "reduce_scatter", "all_reduce"]
SGD = {"lr": 0.5}
ADAMW = {"lr": 0.01, "beta1": 0.9, "beta2": 0.95, "eps": 1e-3, "weight_decay": 0.1}
WRAPPED = "_checkpoint_wrapped_module."  # what the checkpoint wrapper puts into names


# ---- values from integers -----------------------------------------------------------------------

MASK = (1 << 64) - 1
SEED_PARAMS, SEED_TOKENS, SEED_LABELS = 1, 2, 3


def draw(seed, index):
    """Output number `index` of the SplitMix64 generator that starts at `seed`."""
    z = (seed + (index + 1) * 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def draw_value(index):
    """A multiple of 1/4096 in [-1/2, 1/2)."""
    return ((draw(SEED_PARAMS, index) >> 52) - 2048) / 4096


def fill_params(model):
    index = 0
    for name, param in model.named_parameters():
        base = 1.0 if is_norm_weight(name) else 0.0
        values = [base + draw_value(index + i) for i in range(param.numel())]
        index += param.numel()
        with torch.no_grad():
            param.copy_(torch.tensor(values, dtype=torch.float32).view(param.shape))


def is_norm_weight(name):
    module, _, leaf = name.rpartition(".")
    module = module.rpartition(".")[2]
    return leaf == "weight" and ("norm" in module or module.startswith("ln_"))


def draw_ids(seed, first, shape, vocab):
    ids = [draw(seed, first + i) % vocab for i in range(math.prod(shape))]
    return torch.tensor(ids, dtype=torch.int64).view(shape)


# ---- modules ------------------------------------------------------------------------------------
# Each computes in FP32 from rounded inputs and rounds its result once, so that the arithmetic
# can be stated in a few lines. README.md states it.

NORM_EPS, L2_EPS, ROPE_BASE = 1e-5, 1e-6, 10000.0


def wide(x):
    return x.float()


def linear(x, weight, bias=None):
    y = torch.matmul(wide(x), wide(weight).t())
    return (y if bias is None else y + wide(bias)).to(x.dtype)


def causal_attention(q, k, v):
    """q, k, v: [batch, heads, seq, head_dim], FP32."""
    seq, size = q.shape[-2:]
    scores = torch.matmul(q, k.transpose(-1, -2)) * (size ** -0.5)
    hidden = torch.ones(seq, seq, dtype=torch.bool, device=q.device).triu(1)
    scores = scores.masked_fill(hidden, float("-inf"))
    return torch.matmul(torch.softmax(scores, dim=-1), v)


def split_heads(x, heads):
    """[batch, seq, heads * size] to FP32 [batch, heads, seq, size]."""
    batch, seq, width = x.shape
    return wide(x).view(batch, seq, heads, width // heads).transpose(1, 2)


def join_heads(x, dtype):
    batch, heads, seq, size = x.shape
    return x.transpose(1, 2).reshape(batch, seq, heads * size).to(dtype)


class Weight(nn.Module):
    """A module that only holds a weight, and perhaps a bias; no default initialisation."""

    def __init__(self, *shape, bias=None):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(*shape))
        if bias:
            self.bias = nn.Parameter(torch.zeros(bias))


class Embedding(Weight):
    def forward(self, ids):
        return F.embedding(ids, wide(self.weight)).to(self.weight.dtype)


class Linear(Weight):
    def forward(self, x):
        return linear(x, self.weight, getattr(self, "bias", None))


class Conv1D(Weight):
    """A linear layer whose weight is [in, out]."""

    def forward(self, x):
        return linear(x, self.weight.t(), self.bias)


class RMSNorm(Weight):
    def forward(self, x):
        y = wide(x)
        y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + NORM_EPS)
        return (y * wide(self.weight)).to(x.dtype)


class LayerNorm(Weight):
    def __init__(self, width):
        super().__init__(width, bias=width)

    def forward(self, x):
        y = wide(x)
        y = y - y.mean(-1, keepdim=True)
        y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + NORM_EPS)
        return (y * wide(self.weight) + wide(self.bias)).to(x.dtype)


class GatedMlp(nn.Module):
    def __init__(self, dims):
        super().__init__()
        self.gate_proj = Linear(dims["intermediate"], dims["hidden"])
        self.up_proj = Linear(dims["intermediate"], dims["hidden"])
        self.down_proj = Linear(dims["hidden"], dims["intermediate"])

    def forward(self, x):
        gate, up = self.gate_proj(x), self.up_proj(x)
        return self.down_proj((F.silu(wide(gate)) * wide(up)).to(x.dtype))


class LlamaAttention(nn.Module):
    def __init__(self, dims):
        super().__init__()
        self.heads, self.kv_heads, self.size = dims["heads"], dims["kv_heads"], dims["head_dim"]
        hidden, query, key = dims["hidden"], self.heads * self.size, self.kv_heads * self.size
        self.q_proj = Linear(query, hidden)
        self.k_proj = Linear(key, hidden)
        self.v_proj = Linear(key, hidden)
        self.o_proj = Linear(hidden, query)

    def rotate(self, x):
        half = self.size // 2
        power = torch.arange(half, dtype=torch.float32, device=x.device) / half
        place = torch.arange(x.shape[-2], dtype=torch.float32, device=x.device)
        angle = torch.outer(place, ROPE_BASE ** -power)
        cos, sin = angle.cos(), angle.sin()
        low, high = x[..., :half], x[..., half:]
        return torch.cat([low * cos - high * sin, high * cos + low * sin], dim=-1)

    def forward(self, x):
        q = self.rotate(split_heads(self.q_proj(x), self.heads))
        k = self.rotate(split_heads(self.k_proj(x), self.kv_heads))
        v = split_heads(self.v_proj(x), self.kv_heads)
        share = self.heads // self.kv_heads
        k, v = k.repeat_interleave(share, 1), v.repeat_interleave(share, 1)
        return self.o_proj(join_heads(causal_attention(q, k, v), x.dtype))


class NormedBlock(nn.Module):
    """x + attention(norm(x)), then x + mlp(norm(x))."""

    def forward(self, x):
        x = x + self.self_attn(self.input_layernorm(x))
        return x + self.mlp(self.post_attention_layernorm(x))


class LlamaBlock(NormedBlock):
    def __init__(self, dims):
        super().__init__()
        self.self_attn = LlamaAttention(dims)
        self.mlp = GatedMlp(dims)
        self.input_layernorm = RMSNorm(dims["hidden"])
        self.post_attention_layernorm = RMSNorm(dims["hidden"])


class DecaySource(nn.Module):
    """The two FP32 parameters of a KDA block, in a module that can be a unit of its own."""

    def __init__(self, heads, size):
        super().__init__()
        self.A_log = nn.Parameter(torch.zeros(1, 1, heads, 1))
        self.dt_bias = nn.Parameter(torch.zeros(heads * size))

    def forward(self, f):
        return log_decay(f, self.A_log, self.dt_bias)


def log_decay(f, a_log, dt_bias):
    """[batch, seq, heads * size] to FP32 [batch, seq, heads, size], at most 0."""
    batch, seq, width = f.shape
    heads = a_log.shape[2]
    step = F.softplus(wide(f) + wide(dt_bias)).view(batch, seq, heads, width // heads)
    return -torch.exp(wide(a_log)) * step


class ShortConv(nn.Module):
    """Causal, one filter of four taps per channel, then SiLU."""

    TAPS = 4

    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(width, 1, self.TAPS))

    def forward(self, x):
        seq = x.shape[1]
        padded = F.pad(wide(x), (0, 0, self.TAPS - 1, 0))
        weight = wide(self.weight)
        y = sum(padded[:, tap:tap + seq] * weight[:, 0, tap] for tap in range(self.TAPS))
        return F.silu(y).to(x.dtype)


class KdaAttention(nn.Module):
    def __init__(self, dims):
        super().__init__()
        self.heads, self.size, self.flat = dims["heads"], dims["head_dim"], dims["flat"]
        hidden, width = dims["hidden"], self.heads * self.size
        if self.flat:
            self.A_log = nn.Parameter(torch.zeros(1, 1, self.heads, 1))
            self.dt_bias = nn.Parameter(torch.zeros(width))
        for name in ("q_proj", "k_proj", "v_proj"):
            setattr(self, name, Linear(width, hidden))
        for name in ("q_conv1d", "k_conv1d", "v_conv1d"):
            setattr(self, name, ShortConv(width))
        self.f_a_proj, self.f_b_proj = Linear(self.size, hidden), Linear(width, self.size)
        self.b_proj = Linear(self.heads, hidden)
        self.g_a_proj, self.g_b_proj = Linear(self.size, hidden), Linear(width, self.size)
        self.o_norm = Weight(self.size)
        self.o_proj = Linear(hidden, width)
        if not self.flat:
            self.fp32 = DecaySource(self.heads, self.size)

    def log_decay(self, f):
        return log_decay(f, self.A_log, self.dt_bias) if self.flat else self.fp32(f)

    def delta_rule(self, q, k, v, decay, beta):
        """q, k, v, decay: [batch, heads, seq, size]; beta: [batch, heads, seq]."""
        state = q.new_zeros(q.shape[0], q.shape[1], self.size, self.size)
        out = []
        for t in range(q.shape[2]):
            state = decay[:, :, t, :, None] * state
            read = torch.matmul(k[:, :, t, None, :], state)[:, :, 0]
            error = beta[:, :, t, None] * (v[:, :, t] - read)
            state = state + k[:, :, t, :, None] * error[:, :, None, :]
            out.append(torch.matmul(q[:, :, t, None, :], state)[:, :, 0])
        return torch.stack(out, dim=2)

    def gated_norm(self, out, gate):
        y = out * torch.rsqrt(out.pow(2).mean(-1, keepdim=True) + NORM_EPS)
        return y * wide(self.o_norm.weight) * torch.sigmoid(gate)

    def forward(self, x):
        q = split_heads(self.q_conv1d(self.q_proj(x)), self.heads)
        k = split_heads(self.k_conv1d(self.k_proj(x)), self.heads)
        v = split_heads(self.v_conv1d(self.v_proj(x)), self.heads)
        q = q * torch.rsqrt(q.pow(2).sum(-1, keepdim=True) + L2_EPS) * (self.size ** -0.5)
        k = k * torch.rsqrt(k.pow(2).sum(-1, keepdim=True) + L2_EPS)
        decay = torch.exp(self.log_decay(self.f_b_proj(self.f_a_proj(x)))).transpose(1, 2)
        beta = torch.sigmoid(wide(self.b_proj(x))).transpose(1, 2)
        gate = split_heads(self.g_b_proj(self.g_a_proj(x)), self.heads)
        out = self.gated_norm(self.delta_rule(q, k, v, decay, beta), gate)
        return self.o_proj(join_heads(out, x.dtype))


class KdaBlock(NormedBlock):
    def __init__(self, dims):
        super().__init__()
        self.input_layernorm = RMSNorm(dims["hidden"])
        self.self_attn = KdaAttention(dims)
        self.post_attention_layernorm = RMSNorm(dims["hidden"])
        self.mlp = GatedMlp(dims)


class GptAttention(nn.Module):
    def __init__(self, dims):
        super().__init__()
        self.heads, hidden = dims["heads"], dims["hidden"]
        self.c_attn = Conv1D(hidden, 3 * hidden, bias=3 * hidden)
        self.c_proj = Conv1D(hidden, hidden, bias=hidden)

    def forward(self, x):
        q, k, v = (split_heads(part, self.heads) for part in self.c_attn(x).chunk(3, dim=-1))
        return self.c_proj(join_heads(causal_attention(q, k, v), x.dtype))


class GptMlp(nn.Module):
    def __init__(self, dims):
        super().__init__()
        hidden, inner = dims["hidden"], dims["intermediate"]
        self.c_fc = Conv1D(hidden, inner, bias=inner)
        self.c_proj = Conv1D(inner, hidden, bias=hidden)

    def forward(self, x):
        y = wide(self.c_fc(x))
        inner = math.sqrt(2.0 / math.pi) * (y + 0.044715 * y * y * y)
        return self.c_proj((0.5 * y * (1.0 + torch.tanh(inner))).to(x.dtype))


class GptBlock(nn.Module):
    def __init__(self, dims):
        super().__init__()
        self.ln_1 = LayerNorm(dims["hidden"])
        self.attn = GptAttention(dims)
        self.ln_2 = LayerNorm(dims["hidden"])
        self.mlp = GptMlp(dims)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class SimpleBlock(nn.Module):
    """Its qkv_proj is computed and not used, so that one parameter never has a gradient."""

    def __init__(self, dims):
        super().__init__()
        hidden, inner = dims["hidden"], dims["intermediate"]
        self.norm1, self.norm2 = LayerNorm(hidden), LayerNorm(hidden)
        self.qkv_proj = Linear(3 * hidden, hidden)
        self.out_proj = Linear(hidden, hidden)
        self.mlp_gate_up = Linear(2 * inner, hidden)
        self.mlp_down = Linear(hidden, inner)

    def forward(self, x):
        h = self.norm1(x)
        self.qkv_proj(h)
        x = x + self.out_proj(h)
        gate, up = self.mlp_gate_up(self.norm2(x)).chunk(2, dim=-1)
        return x + self.mlp_down((F.silu(wide(gate)) * wide(up)).to(x.dtype))


class Decoder(nn.Module):
    """embed_tokens, layers, norm; the inner module of llama and kda."""

    def __init__(self, dims, block):
        super().__init__()
        self.embed_tokens = Embedding(dims["vocab"], dims["hidden"])
        self.layers = nn.ModuleList(block(dims) for _ in range(dims["layers"]))
        self.norm = RMSNorm(dims["hidden"])

    def forward(self, ids):
        x = self.embed_tokens(ids)
        for layer in self.layers:
            x = layer(x)
        return self.norm(x)


class DecoderModel(nn.Module):
    BLOCK = None

    def __init__(self, dims):
        super().__init__()
        self.model = Decoder(dims, self.BLOCK)
        self.lm_head = Linear(dims["vocab"], dims["hidden"])

    def forward(self, ids):
        return self.lm_head(self.model(ids))


class LlamaModel(DecoderModel):
    BLOCK = LlamaBlock


class KdaModel(DecoderModel):
    BLOCK = KdaBlock


class GptInner(nn.Module):
    def __init__(self, dims):
        super().__init__()
        self.wte = Embedding(dims["vocab"], dims["hidden"])
        self.wpe = Embedding(dims["positions"], dims["hidden"])
        self.h = nn.ModuleList(GptBlock(dims) for _ in range(dims["layers"]))
        self.ln_f = LayerNorm(dims["hidden"])

    def forward(self, ids):
        places = torch.arange(ids.shape[1], device=ids.device)
        x = self.wte(ids) + self.wpe(places)
        for layer in self.h:
            x = layer(x)
        return self.ln_f(x)


class GptModel(nn.Module):
    def __init__(self, dims):
        super().__init__()
        self.transformer = GptInner(dims)
        self.lm_head = Linear(dims["vocab"], dims["hidden"])
        if dims["tied"]:
            self.lm_head.weight = self.transformer.wte.weight

    def forward(self, ids):
        return self.lm_head(self.transformer(ids))


class SimpleModel(nn.Module):
    def __init__(self, dims):
        super().__init__()
        self.tok_embeddings = Embedding(dims["vocab"], dims["hidden"])
        self.layers = nn.ModuleList(SimpleBlock(dims) for _ in range(dims["layers"]))
        self.norm = LayerNorm(dims["hidden"])
        self.output = Linear(dims["vocab"], dims["hidden"])

    def forward(self, ids):
        x = self.tok_embeddings(ids)
        for layer in self.layers:
            x = layer(x)
        return self.output(self.norm(x))


@dataclass(frozen=True)
class Family:
    """A class of model, and the modules that the schemes speak of."""
    build: type
    embedding: tuple
    blocks: str
    tail: tuple
    halves: tuple = ()  # modules of the attention half and of the MLP half, registration order


LLAMA_HALVES = (("self_attn", "input_layernorm"), ("mlp", "post_attention_layernorm"))
KDA_HALVES = (("input_layernorm", "self_attn"), ("post_attention_layernorm", "mlp"))
FAMILIES = {
    "llama": Family(LlamaModel, ("model.embed_tokens",), "model.layers",
                    ("model.norm", "lm_head"), LLAMA_HALVES),
    "kda": Family(KdaModel, ("model.embed_tokens",), "model.layers",
                  ("model.norm", "lm_head"), KDA_HALVES),
    "gpt2": Family(GptModel, ("transformer.wte", "transformer.wpe"), "transformer.h",
                   ("transformer.ln_f", "lm_head"), (("ln_1", "attn"), ("ln_2", "mlp"))),
    "simple-llm": Family(SimpleModel, ("tok_embeddings",), "layers", ("norm", "output")),
}


def model_document(name, family, **sizes):
    base = {"layers": 2, "hidden": 8, "intermediate": 12, "heads": 2, "kv_heads": 2,
            "head_dim": 4, "vocab": 18, "positions": 0, "seq": 6,
            "tied": False, "bias": False, "flat": False}
    return {"schema": "unshard.model/1", "model": name, "family": family, **base, **sizes}


MODELS = {doc["model"]: doc for doc in (
    model_document("oracle-llama", "llama", kv_heads=1),
    model_document("oracle-llama-4", "llama", kv_heads=1, layers=4),
    model_document("oracle-gpt", "gpt2", intermediate=16, positions=10, tied=True, bias=True),
    model_document("oracle-kda", "kda"),
    model_document("oracle-kda-flat", "kda", flat=True),
    model_document("oracle-simple", "simple-llm", intermediate=10),
)}


# ---- cases --------------------------------------------------------------------------------------

@dataclass
class Case:
    name: str
    model: str
    args: list = field(default_factory=list)
    numbers: str = ""  # groups and ranks that also record numbers, never fake
    where: str = "fake-8 gloo-4"  # that record the case
    needs_215: bool = False


def llama(name, *args, model="oracle-llama", **more):
    return Case(f"llama-{name}", model, list(args), **more)


def kda(name, *args, model="oracle-kda", **more):
    keep = ["--keep-fp32", "*.A_log,*.dt_bias"]
    return Case(name, model, list(args) + keep, **more)


ALL = "fake-8 gloo-4 gloo-2"
BLOCK = ["--units", "block"]
TITAN = ["--units", "torchtitan"]
FP32 = ["--param-dtype", "fp32"]
HSDP = ["--replicas", "2"]
LAST = ["--sync", "last"]
KEEP = ["--reshard-backward", "last", "--last-backward", "last"]
TWO = ["--accum", "2"]


def cases_schemes():
    yield llama("block", *BLOCK, numbers="gloo-1 gloo-2 gloo-4", where=ALL + " gloo-1")
    yield llama("torchtitan", *TITAN, numbers="gloo-4", where=ALL)
    yield Case("gpt2-block", "oracle-gpt", BLOCK)
    yield Case("gpt2-torchtitan", "oracle-gpt", TITAN, numbers="gloo-2 gloo-4",
               where=ALL + " gloo-1")
    yield llama("attn+mlp", "--units", "attn+mlp")
    yield Case("gpt2-attn+mlp", "oracle-gpt", ["--units", "attn+mlp"], where="fake-8")
    yield llama("whole", "--units", "whole")
    yield llama("block*2", "--units", "block*2", model="oracle-llama-4")
    yield llama("patterns", "--units", "model.embed_tokens,model.layers.*,lm_head", where="fake-8")


def cases_reshard():
    for value in ("yes", "no", "all-but-last"):
        for scheme in (BLOCK, TITAN):
            yield llama(f"{scheme[1]}-reshard-{value}", *scheme, "--reshard", value,
                        where="fake-8")
    yield llama("block-reshard-2", *BLOCK, "--reshard", "2", where="gloo-4")
    yield llama("torchtitan-reshard-4", *TITAN, "--reshard", "4", where="fake-8")


def cases_prefetch():
    for depth in ("1", "2"):
        for option in ("--prefetch", "--prefetch-backward"):
            for scheme in (BLOCK, TITAN):
                yield llama(f"{scheme[1]}{option[1:]}-{depth}", *scheme, option, depth,
                            model="oracle-llama-4", where="fake-8")
    yield llama("torchtitan-prefetch-both", *TITAN, "--prefetch", "2", "--prefetch-backward", "2",
                model="oracle-llama-4", where="fake-8")
    yield llama("block-keep-embedding", "--units", "model.embed_tokens,model.layers.*",
                "--no-unshard-backward", "model.embed_tokens", where="fake-8")
    yield llama("torchtitan-keep-embedding", *TITAN,
                "--no-unshard-backward", "model.embed_tokens")


def cases_dtypes():
    yield llama("fp32", *BLOCK, *FP32, numbers="gloo-2 gloo-4", where=ALL)
    yield llama("bf16-reduce-bf16", *BLOCK, "--reduce-dtype", "bf16")
    yield llama("fp16-reduce-fp16", *BLOCK, "--param-dtype", "fp16", "--reduce-dtype", "fp16")
    yield llama("divide-1", *BLOCK, "--divide-factor", "1")
    yield llama("divide-3", *BLOCK, "--divide-factor", "3",
                where="fake-8 gloo-4 gloo-1")
    yield llama("divide-world", *BLOCK, "--divide-factor", "8", where="fake-8")
    yield llama("divide-3-fp16", *BLOCK, "--param-dtype", "fp16", "--reduce-dtype", "fp16",
                "--divide-factor", "3", where="fake-8")
    yield llama("force-sum", *BLOCK, "--force-sum", "yes")
    yield llama("divide-3-force-sum", *BLOCK, "--divide-factor", "3", "--force-sum", "yes",
                where="fake-8")


def cases_accumulation():
    yield llama("accum", *TITAN, *TWO, numbers="gloo-4")
    yield llama("accum-sync-last", *TITAN, *TWO, *LAST, numbers="gloo-4")
    yield llama("accum-sync-last-fp32", *BLOCK, *TWO, *LAST, *FP32, where="fake-8")
    yield llama("accum-sync-last-bf16", *BLOCK, *TWO, *LAST, "--reduce-dtype", "bf16",
                where="fake-8")
    yield llama("accum-keep", *TITAN, *TWO, *LAST, *KEEP)
    yield llama("accum-keep-no-reshard", *TITAN, *TWO, *LAST, *KEEP, "--reshard", "no",
                where="fake-8")
    yield llama("accum-3", *BLOCK, "--accum", "3", where="fake-8")


def cases_hsdp():
    yield llama("hsdp", *TITAN, *HSDP, numbers="gloo-4")
    yield llama("hsdp-accum", *TITAN, *HSDP, *TWO)
    yield llama("hsdp-accum-all-reduce-last", *TITAN, *HSDP, *TWO, "--all-reduce", "last",
                numbers="gloo-4")
    yield llama("hsdp-accum-sync-last", *BLOCK, *HSDP, *TWO, *LAST)
    yield llama("hsdp-bf16", *BLOCK, *HSDP, "--reduce-dtype", "bf16", where="fake-8")
    yield llama("hsdp-fp16", *BLOCK, *HSDP, "--param-dtype", "fp16", "--reduce-dtype", "fp16",
                where="fake-8")
    yield llama("hsdp-divide-3", *BLOCK, *HSDP, "--divide-factor", "3", where="fake-8")


def cases_rest():
    yield llama("ac-full", *BLOCK, "--ac", "full", numbers="gloo-4")
    yield llama("ac-full-no-reshard", *BLOCK, "--ac", "full", "--reshard", "no", where="fake-8")
    yield llama("freeze-embedding", *TITAN, "--freeze", "model.embed_tokens.*")
    yield llama("freeze-embedding-block", *BLOCK, "--freeze", "model.embed_tokens.*",
                where="fake-8")
    yield llama("freeze-lora", *TITAN, "--freeze", ALL_BUT_QV)
    yield Case("simple-unused", "oracle-simple", BLOCK)
    yield Case("simple-unused-zero", "oracle-simple", [*BLOCK, "--unused", "zero"],
               needs_215=True)
    yield llama("reduce-inputs-2", *TITAN, "--reduce-inputs", "2", needs_215=True)
    yield llama("separate-reduce-comm", *TITAN, "--separate-reduce-comm", "yes", needs_215=True)
    yield llama("ignore", *BLOCK, "--ignore", "*.input_layernorm.weight")
    yield llama("shard-dim-1", *BLOCK, "--shard-dim", "*.down_proj.weight=1", where="gloo-4")
    yield llama("storage-bf16", *BLOCK, "--storage-dtype", "bf16", where="fake-8")


def cases_meshes():
    mlp, attention = ["--second-mesh", "*.mlp.*"], ["--second-mesh", "*.self_attn.*"]
    for scheme in (BLOCK, TITAN):
        yield llama(f"{scheme[1]}-second-mesh", *scheme, *mlp, where="fake-8", needs_215=True)
        for option in ("--prefetch", "--prefetch-backward"):
            yield llama(f"{scheme[1]}-second-mesh{option[1:]}", *scheme, *mlp, option, "2",
                        model="oracle-llama-4", where="fake-8", needs_215=True)
    yield llama("second-mesh-first", *BLOCK, *attention, where="fake-8", needs_215=True)
    yield llama("second-mesh-root", *BLOCK, "--second-mesh", "lm_head.*", where="fake-8",
                needs_215=True)
    yield llama("second-mesh-one-layer", *TITAN, "--second-mesh", "model.layers.1.mlp.*",
                model="oracle-llama-4", where="fake-8", needs_215=True)
    yield llama("second-mesh-all", *TITAN, "--second-mesh", "*", where="fake-8", needs_215=True)
    yield llama("second-mesh-inputs-3", *TITAN, *mlp, "--reduce-inputs", "3", where="fake-8",
                needs_215=True)
    yield llama("second-mesh-accum", *TITAN, *mlp, *TWO, *LAST, where="fake-8", needs_215=True)
    yield llama("second-mesh-freeze", *TITAN, *mlp, "--freeze", "model.embed_tokens.*",
                where="fake-8", needs_215=True)


# All but q_proj and v_proj; the options have no "not".
ALL_BUT_QV = ("model.embed_tokens.*,*.k_proj.*,*.o_proj.*,*.mlp.*,*layernorm.*,model.norm.*,"
              "lm_head.*")


def cases_kda():
    split = ["--arrange", "by-dtype"]
    yield kda("kda-by-dtype", *BLOCK, *split, numbers="gloo-2 gloo-4", where=ALL)
    yield kda("kda-by-dtype-torchtitan", *TITAN, *split, where="fake-8")
    yield kda("kda-native", *BLOCK, where="fake-8", needs_215=True)
    yield kda("kda-native-torchtitan", *TITAN, numbers="gloo-2 gloo-4", where=ALL,
              needs_215=True)
    yield kda("kda-native-accum", *TITAN, *TWO, *LAST, needs_215=True, numbers="gloo-4")
    yield kda("kda-native-whole", "--units", "whole", where="fake-8", needs_215=True)
    yield kda("kda-flat-native", *TITAN, model="oracle-kda-flat", where="fake-8", needs_215=True)


def all_cases():
    for source in (cases_schemes, cases_reshard, cases_prefetch, cases_dtypes,
                   cases_accumulation, cases_hsdp, cases_rest, cases_kda, cases_meshes):
        yield from source()


def cases_for(group, ranks, pattern):
    place = f"{'gloo' if group == 'nccl' else group}-{ranks}"
    for case in all_cases():
        if place not in case.where.split() or (case.needs_215 and not IS_215):
            continue
        # Numbers are compared for one release; the other has them where only it has the feature.
        if place not in case.numbers.split() or (IS_215 and not case.needs_215):
            case.numbers = ""
        if fnmatch.fnmatchcase(case.name, pattern):
            yield case


# ---- options ------------------------------------------------------------------------------------

DEFAULTS = {"batch": "2", "accum": "1", "units": "block", "reshard": "auto", "prefetch": "0",
            "prefetch-backward": "0", "ac": "none", "storage-dtype": "fp32",
            "param-dtype": "bf16", "reduce-dtype": "fp32", "keep-fp32": "", "arrange": "native",
            "sync": "every", "all-reduce": "every", "replicas": "1", "reshard-backward": "every",
            "last-backward": "every", "no-unshard-backward": "", "freeze": "", "ignore": "",
            "unused": "skip", "divide-factor": "", "force-sum": "no", "reduce-inputs": "1",
            "separate-reduce-comm": "no", "shard-dim": "", "second-mesh": ""}


class Options:
    """The options of a case by name, '-' as '_'."""

    def __init__(self, args):
        values = dict(DEFAULTS)
        for name, value in zip(args[::2], args[1::2]):
            if name[2:] not in DEFAULTS:
                raise ValueError(f"unknown option {name}")
            values[name[2:]] = value
        for name, value in values.items():
            setattr(self, name.replace("-", "_"), value)
        for name in ("batch", "accum", "prefetch", "prefetch_backward", "replicas",
                     "reduce_inputs"):
            setattr(self, name, int(getattr(self, name)))


def matches(patterns, name):
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns.split(",") if pattern)


def full_args(case, ranks):
    args = ["--gpus", str(ranks), "--batch", DEFAULTS["batch"], *case.args]
    return args + (["--behavior", "torch-2.15.0"] if IS_215 else [])


# ---- applying fully_shard -----------------------------------------------------------------------

def scheme_units(model, family, options, tied):
    """Lists of module paths in forward order, the root left out."""
    blocks = [f"{family.blocks}.{i}" for i in range(len(model.get_submodule(family.blocks)))]
    scheme = options.units
    if scheme == "whole":
        return []
    if scheme == "attn+mlp":
        return [[f"{block}.{name}" for name in half] for block in blocks for half in family.halves]
    if scheme.startswith("block*"):
        size = int(scheme[len("block*"):])
        return [blocks[i:i + size] for i in range(0, len(blocks), size)]
    if scheme == "block":
        return [[block] for block in blocks]
    if scheme == "torchtitan":
        ends = list(family.embedding), list(family.tail)
        if tied:
            return [ends[0] + ends[1], *([block] for block in blocks)]
        return [ends[0], *([block] for block in blocks), ends[1]]
    return pattern_units(model, scheme)


def pattern_units(model, patterns):
    units = []
    for name, _ in model.named_modules():
        inside = any(name.startswith(f"{unit[0]}.") for unit in units)
        if name and not inside and matches(patterns, name):
            units.append([name])
    return units


def add_holders(model, units, options):
    """By dtype: a module whose parameters all stay in FP32 becomes a unit inside its block."""
    if not options.keep_fp32 or options.arrange != "by-dtype":
        return units
    holders = [name for name, module in model.named_modules()
               if any(True for _ in module.parameters(recurse=False))
               and all(matches(options.keep_fp32, f"{name}.{leaf}")
                       for leaf, _ in module.named_parameters(recurse=False))]
    out = []
    for unit in units:
        out.append(unit)
        out.extend([name] for name in holders if name.startswith(f"{unit[0]}."))
    return out


def wrap_checkpoints(model, family):
    blocks = model.get_submodule(family.blocks)
    for i in range(len(blocks)):
        blocks[i] = checkpoint_wrapper(blocks[i])


def base_policy(options):
    return MixedPrecisionPolicy(param_dtype=DTYPES[options.param_dtype],
                                reduce_dtype=DTYPES[options.reduce_dtype],
                                cast_forward_inputs=False)


def policies(model, options):
    """Of units, and of units that hold only FP32 parameters."""
    usual = base_policy(options)
    if not options.keep_fp32:
        return usual, usual
    if options.arrange == "by-dtype":
        return usual, MixedPrecisionPolicy(torch.float32, torch.float32, torch.float32, False)
    kept = {id(param) for name, param in model.named_parameters()
            if matches(options.keep_fp32, name)}
    native = MixedPrecisionPolicy(
        param_dtype=usual.param_dtype, reduce_dtype=usual.reduce_dtype, cast_forward_inputs=False,
        param_dtype_override_fn=lambda param: torch.float32 if id(param) in kept else None)
    return native, native


def reshard_of(options, index, n_unit):
    """The argument reshard_after_forward of a unit; index None is the root."""
    if options.reshard == "auto":
        return None
    if options.reshard in ("yes", "no"):
        return options.reshard == "yes"
    if options.reshard == "all-but-last":
        return None if index is None else index != n_unit - 1
    return int(options.reshard)


def second_mesh_info(options, device, ranks):
    """The same ranks once more, in a process group of their own."""
    if not options.second_mesh:
        return None
    from torch.distributed.fsdp._fully_shard._fsdp_common import FSDPMeshInfo
    mesh = DeviceMesh.from_group(dist.new_group(range(ranks)), device, mesh_dim_names=("shard",))
    return FSDPMeshInfo(mesh, shard_mesh_dim=0)


def second_placement_fn(model, options, info):
    from torch.distributed.fsdp._fully_shard._fsdp_common import ShardPlacementResult
    chosen = {id(param) for name, param in model.named_parameters()
              if matches(options.second_mesh, name)}
    return lambda param: ShardPlacementResult(None, info) if id(param) in chosen else None


def placement_fn(model, options, info):
    if info:
        return second_placement_fn(model, options, info)
    if not options.shard_dim:
        return None
    dims = {}
    for entry in options.shard_dim.split(","):
        pattern, _, dim = entry.rpartition("=")
        dims.update({id(param): int(dim) for name, param in model.named_parameters()
                     if fnmatch.fnmatchcase(name, pattern)})
    return lambda param: Shard(dims[id(param)]) if id(param) in dims else None


def make_mesh(options, device, ranks):
    if options.replicas == 1:
        return init_device_mesh(device, (ranks,), mesh_dim_names=("shard",))
    shape = (options.replicas, ranks // options.replicas)
    return init_device_mesh(device, shape, mesh_dim_names=("replicate", "shard"))


def shard_model(model, units, options, mesh, second):
    """fully_shard inner units first, the root last; the modules of each unit, forward order."""
    usual, fp32 = policies(model, options)
    common = {"mesh": mesh, "shard_placement_fn": placement_fn(model, options, second),
              "ignored_params": {param for name, param in model.named_parameters()
                                 if matches(options.ignore, name)}}
    modules = [[model.get_submodule(path) for path in unit] for unit in units]
    names = {param: name for name, param in model.named_parameters()}
    for index in reversed(range(len(units))):
        members = modules[index]
        own = [param for module in members for param in module.parameters()]
        is_fp32 = all(matches(options.keep_fp32, names.get(param, "")) for param in own)
        fully_shard(members if len(members) > 1 else members[0], **common,
                    mp_policy=fp32 if is_fp32 else usual,
                    reshard_after_forward=reshard_of(options, index, len(units)))
        names.update({param: name for name, param in model.named_parameters()})
    fully_shard(model, **common, mp_policy=usual,
                reshard_after_forward=reshard_of(options, None, len(units)))
    return modules


def set_prefetch(model, modules, options):
    """Explicit lists; the root is never a target, and lists others only if it owns parameters."""
    heads = [members[0] for members in modules]
    root_owns = len(groups_of(model._get_fsdp_state())) > 0
    chain = ([model] if root_owns else []) + heads
    first = 1 if root_owns else 0
    for place, module in enumerate(chain):
        if options.prefetch:
            targets = chain[place + 1:place + 1 + options.prefetch]
            if targets:
                module.set_modules_to_forward_prefetch(targets)
        if options.prefetch_backward:
            end = len(chain) if module is model else place
            targets = chain[max(first, end - options.prefetch_backward):end][::-1]
            if targets:
                module.set_modules_to_backward_prefetch(targets)


def set_switches(model, options):
    # These two act on one unit, the others on all below.
    for module in model.modules():
        if isinstance(module, FSDPModule) and options.divide_factor:
            module.set_gradient_divide_factor(float(options.divide_factor))
        if isinstance(module, FSDPModule) and options.force_sum == "yes":
            module.set_force_sum_reduction_for_comms(True)
    if options.unused == "zero":
        model.set_reduce_scatter_unused_params(True)
    if options.reduce_inputs > 1:
        model.set_reduce_scatter_max_input_buffers(options.reduce_inputs)
    if options.separate_reduce_comm == "yes":
        model.set_separate_reduce_scatter_group()
    for name, module in model.named_modules():
        if isinstance(module, FSDPModule) and matches(options.no_unshard_backward, name):
            module.set_unshard_in_backward(False)


def build(case, device, ranks):
    """The sharded model, and its options."""
    options = Options(case.args)
    document = MODELS[case.model]
    family = FAMILIES[document["family"]]
    model = family.build(document)
    fill_params(model)
    model.to(device=device, dtype=DTYPES[options.storage_dtype])
    for name, param in model.named_parameters():
        param.requires_grad_(not matches(options.freeze, name))
    units = add_holders(model, scheme_units(model, family, options, document["tied"]), options)
    if options.ac == "full":
        wrap_checkpoints(model, family)
    second = second_mesh_info(options, device, ranks)
    modules = shard_model(model, units, options, make_mesh(options, device, ranks), second)
    name_second(model, second)
    set_prefetch(model, modules, options)
    set_switches(model, options)
    return model, options


# ---- seeing what happens ------------------------------------------------------------------------

def groups_of(state):
    if hasattr(state, "_fsdp_param_groups"):
        return state._fsdp_param_groups
    return [state._fsdp_param_group] if state._fsdp_param_group else []


def name_second(model, info):
    for module in model.modules():
        if isinstance(module, FSDPModule):
            for group in groups_of(module._get_fsdp_state()):
                group.suffix = " on mesh 2" if info and group.mesh_info is info else ""


def unit_name(group):
    return (group._module_fqn.replace(WRAPPED, "") or "(root)") + group.suffix


class Recorder:
    """Listens inside torch. Installed once; `events` and the rest are cleared by start()."""

    def __init__(self, emulate):
        self.emulate = emulate  # reduce here, in an order that can be repeated
        self.groups = []  # whose method is running, innermost last
        self.premul = None
        self.start()
        self.wrap_groups()
        self.wrap_copies()
        self.wrap_collectives()
        self.wrap_division()

    def start(self):
        self.events, self.phase = [], "forward"
        self.phases, self.splits, self.gradients, self.divide = [], {}, {}, {}

    def add(self, kind, *words):
        self.events.append(" ".join([kind, unit_name(self.groups[-1]), *map(str, words)]))
        self.phases.append((self.phase, kind))

    # -- methods of the group say whose operators follow

    def wrap_groups(self):
        group = _fsdp_param_group.FSDPParamGroup
        for name in ("unshard", "wait_for_unshard", "reshard", "post_backward"):
            setattr(group, name, self.inside(getattr(group, name)))
        for name in ("_to_sharded", "_to_sharded_post_forward"):
            setattr(group, name, self.leaving(getattr(group, name)))
        group.wait_for_unshard = self.copying_alone(group.wait_for_unshard)

    def inside(self, call):
        def wrapped(group, *args, **kwargs):
            self.groups.append(group)
            try:
                return call(group, *args, **kwargs)
            finally:
                self.groups.pop()
        return wrapped

    def leaving(self, call):
        def wrapped(group):
            if group.is_unsharded:
                self.groups.append(group)
                self.add("reshard")
                self.groups.pop()
            return call(group)
        return wrapped

    def copying_alone(self, call):
        """A world of one has no message: each parameter is copied by itself."""
        def wrapped(group):
            pending = group._all_gather_result
            if pending and not pending.all_gather_input_split_sizes:
                sizes = [param.all_gather_inputs[0] for param in group.fsdp_params]
                dtypes = {tensor.dtype for tensor in sizes}
                dtype = dtypes.pop() if len(dtypes) == 1 else torch.uint8
                self.groups.append(group)
                self.add("copy_out", sum(t.numel() for t in sizes), DTYPE_NAMES[dtype])
                self.groups.pop()
            return call(group)
        return wrapped

    # -- copies are operators of the library "fsdp"

    def wrap_copies(self):
        ops = torch.ops.fsdp
        ops.all_gather_copy_in = self.copy_in(ops.all_gather_copy_in)
        ops.split_with_sizes_copy = self.copy_out(ops.split_with_sizes_copy)
        for name in ("chunk_cat", "chunk_cat_mixed_dtype"):
            if hasattr(ops, name):
                setattr(ops, name, self.pack(getattr(ops, name)))

    def copy_in(self, call):
        def wrapped(inputs, output, splits, numel, rank):
            self.add("copy_in", numel, DTYPE_NAMES[output.dtype])
            if self.groups[-1].is_sharded:
                self.splits.setdefault(unit_name(self.groups[-1]), list(splits))
            return call(inputs, output, splits, numel, rank)
        return wrapped

    def copy_out(self, call):
        def wrapped(output, splits, dim, out):
            self.add("copy_out", output.numel(), DTYPE_NAMES[output.dtype])
            return call(output, splits, dim=dim, out=out)
        return wrapped

    def pack(self, call):
        def wrapped(tensors, dim, num_chunks, out):
            dtypes = sorted({DTYPE_NAMES[tensor.dtype] for tensor in tensors})
            self.gradients.setdefault(unit_name(self.groups[-1]), []).append("+".join(dtypes))
            self.add("pack", out.numel(), DTYPE_NAMES[out.dtype])
            return call(tensors, dim=dim, num_chunks=num_chunks, out=out)
        return wrapped

    # -- collectives are looked up in torch.distributed at each call

    def wrap_collectives(self):
        for name in ("all_gather_into_tensor", "all_gather_single"):
            if hasattr(dist, name):
                setattr(dist, name, self.all_gather(getattr(dist, name)))
        for name in ("reduce_scatter_tensor", "reduce_scatter_single"):
            if hasattr(dist, name):
                setattr(dist, name, self.reduce_scatter(getattr(dist, name)))
        dist.all_reduce = self.all_reduce(dist.all_reduce)

    def all_gather(self, call):
        def wrapped(output_tensor, input_tensor, group=None, async_op=False):
            if self.groups:
                self.add("all_gather", output_tensor.numel(), DTYPE_NAMES[output_tensor.dtype])
            return call(output_tensor, input_tensor, group=group, async_op=async_op)
        return wrapped

    def reduce_scatter(self, call):
        def wrapped(output, input, op=dist.ReduceOp.SUM, group=None, async_op=False):
            if self.groups:
                self.add("reduce_scatter", input.numel(), DTYPE_NAMES[input.dtype], op_name(op))
            if not self.emulate:
                return call(output, input, op=op, group=group, async_op=async_op)
            total = self.reduce(input, op, group)
            output.copy_(total.view(group.size(), -1)[group.rank()])
            return None
        return wrapped

    def all_reduce(self, call):
        def wrapped(tensor, op=dist.ReduceOp.SUM, group=None, async_op=False):
            if self.groups:
                self.add("all_reduce", tensor.numel(), DTYPE_NAMES[tensor.dtype], op_name(op))
            if not (self.emulate and self.groups):
                return call(tensor, op=op, group=group, async_op=async_op)
            tensor.copy_(self.reduce(tensor, op, group))
            return None
        return wrapped

    def reduce(self, tensor, op, group):
        """FP32, in the order of the ranks, rounded once to the dtype of the message."""
        parts = [torch.empty_like(tensor) for _ in range(group.size())]
        dist.all_gather(parts, tensor.contiguous(), group=group)
        factor = self.premul if op_name(op) == "premul" else 1.0
        total = wide(parts[0]) * factor
        for part in parts[1:]:
            total = total + wide(part) * factor
        return (total / group.size() if op_name(op) == "avg" else total).to(tensor.dtype)

    # -- the factors, as asked for and as answered

    def wrap_division(self):
        call = _fsdp_collectives._get_gradient_divide_factors

        def wrapped(shard, replicate, reduce_dtype, device="", factor=None, force_sum=False):
            answer = call(shard, replicate, reduce_dtype, device, factor, force_sum)
            self.premul = 1 / factor if factor else None
            self.divide = {
                "reduce_dtype": DTYPE_NAMES[reduce_dtype], "factor": factor,
                "shard": shard.size(), "replicate": replicate.size() if replicate else 1,
                "force_sum": force_sum, "pre": answer[0], "post": answer[1],
                "reduce_scatter": op_name(answer[2]), "all_reduce": op_name(answer[3])}
            return answer

        _fsdp_collectives._get_gradient_divide_factors = wrapped


def op_name(op):
    for name in ("AVG", "SUM"):
        if op == getattr(dist.ReduceOp, name):
            return name.lower()
    return "premul"


# ---- steps --------------------------------------------------------------------------------------

class Job:
    """One model under one optimizer, run step by step."""

    def __init__(self, case, device, rank, ranks, recorder, optimizer):
        self.case, self.device, self.rank, self.ranks = case, device, rank, ranks
        self.recorder = recorder
        self.model, self.options = build(case, device, ranks)
        self.document = MODELS[case.model]
        self.params = {name.replace(WRAPPED, ""): param
                       for name, param in self.model.named_parameters()}
        trained = [param for param in self.params.values() if param.requires_grad]
        self.optimizer = optimizer(trained)
        self.steps_done = 0

    def batch_of(self, microbatch):
        shape = self.options.batch, self.document["seq"]
        place = (self.steps_done * self.options.accum + microbatch) * self.ranks + self.rank
        first, vocab = place * math.prod(shape), self.document["vocab"]
        return [draw_ids(seed, first, shape, vocab).to(self.device)
                for seed in (SEED_TOKENS, SEED_LABELS)]

    def set_microbatch(self, is_last):
        options, model = self.options, self.model
        if options.sync == "last":
            model.set_requires_gradient_sync(is_last)
        if options.all_reduce == "last":
            model.set_requires_all_reduce(is_last)
        if options.reshard_backward == "last":
            model.set_reshard_after_backward(is_last)
        if options.last_backward == "last":
            model.set_is_last_backward(is_last)

    def compute_gradients(self):
        """The losses of the step's microbatches."""
        losses = []
        for microbatch in range(self.options.accum):
            self.set_microbatch(microbatch == self.options.accum - 1)
            tokens, labels = self.batch_of(microbatch)
            self.recorder.phase = "forward"
            logits = wide(self.model(tokens))
            loss = F.cross_entropy(logits.view(-1, logits.shape[-1]), labels.view(-1))
            self.recorder.phase = "backward"
            loss.backward()
            losses.append(loss.detach())
        return losses

    def update(self):
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.steps_done += 1

    def gradients(self):
        return {name: full(param.grad) for name, param in self.params.items()
                if param.grad is not None}

    def values(self):
        return {name: full(param.detach()) for name, param in self.params.items()}


def full(tensor):
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def make_sgd(params):
    return torch.optim.SGD(params, lr=SGD["lr"], foreach=False)


def make_adamw(params):
    return torch.optim.AdamW(params, lr=ADAMW["lr"], betas=(ADAMW["beta1"], ADAMW["beta2"]),
                             eps=ADAMW["eps"], weight_decay=ADAMW["weight_decay"], foreach=False)


def hex_of(tensor):
    values = tensor.detach().float().reshape(-1).tolist()
    return "".join(f"{struct.unpack('<I', struct.pack('<f', value))[0]:08x}" for value in values)


def hex_all(tensors):
    return {name: hex_of(tensor) for name, tensor in tensors.items()}


def total_norm(gradients):
    total = sum(gradient.double().pow(2).sum() for gradient in gradients.values())
    return hex_of(total.sqrt().float())


def gather_losses(losses, ranks):
    own = torch.stack(losses)
    parts = [torch.empty_like(own) for _ in range(ranks)]
    dist.all_gather(parts, own)
    return hex_of(torch.stack(parts, dim=1))


def train(case, device, rank, ranks, recorder, optimizer):
    """Two steps: losses, norms, first gradients and last parameters."""
    job = Job(case, device, rank, ranks, recorder, optimizer)
    out = {"loss": [], "norm": []}
    for step in range(2):
        losses = job.compute_gradients()
        gradients = job.gradients()
        out["loss"].append(gather_losses(losses, ranks))
        out["norm"].append(total_norm(gradients))
        if step == 0:
            first = hex_all(gradients)
        job.update()
    out["params"] = hex_all(job.values())
    return first, out


def record_numbers(case, device, rank, ranks, recorder):
    gradients, sgd = train(case, device, rank, ranks, recorder, make_sgd)
    again, adamw = train(case, device, rank, ranks, recorder, make_adamw)
    assert gradients == again, f"{case.name}: gradients differ from run to run"
    return {"seeds": {"params": SEED_PARAMS, "tokens": SEED_TOKENS, "labels": SEED_LABELS},
            "gradients": gradients, "sgd": {**SGD, **sgd}, "adamw": {**ADAMW, **adamw}}


# ---- one case -----------------------------------------------------------------------------------

def read_layout(model, splits):
    """Every parameter as it was laid out on this rank."""
    out = []
    for state in model._get_fsdp_state()._state_ctx.all_states:
        for group in groups_of(state):
            if all(entry["unit"] != unit_name(group) for entry in out):
                out.extend(layout_of(group, splits.get(unit_name(group))))
    return out


def layout_of(group, splits):
    offset = 0
    for index, param in enumerate(group.fsdp_params):
        dim = param.fsdp_placement.dim
        padded = list(param.padded_sharded_param_size)
        entry = {"name": param._param_fqn.replace(WRAPPED, ""), "unit": unit_name(group),
                 "shape": list(param._orig_size), "dim": dim, "chunk": padded[dim],
                 "numel": math.prod(padded)}
        if splits:  # a world of one has no message
            entry["offset"] = offset
            offset += splits[index]
        entry["rows"] = [param.sharded_size[dim]]
        yield entry


def count(phases):
    totals = {kind: sum(1 for _, seen in phases if seen == kind) for kind in COLLECTIVES}
    for phase in ("forward", "backward"):
        split = {kind: sum(1 for seen in phases if seen == (phase, kind)) for kind in COLLECTIVES}
        totals[phase] = {kind: n for kind, n in split.items() if n}
    return totals


def record_case(case, device, rank, ranks, recorder):
    """What one rank saw."""
    job = Job(case, device, rank, ranks, recorder, make_sgd)
    seen = []
    for step in range(3):
        if device == "cuda" and step == 2:
            start_history()
        recorder.start()
        job.compute_gradients()
        job.update()
        seen.append(recorder.events)
        if step == 0:
            splits = recorder.splits
    assert seen[1] == seen[2], f"{case.name}: steps 2 and 3 differ"
    out = {"events": seen[2], "counts": count(recorder.phases),
           "gradient_dtypes": shorten(recorder.gradients), "divide": recorder.divide,
           "params": list(read_layout(job.model, splits))}
    if seen[0] != seen[2]:
        out["first"] = seen[0]
    recorder.start()  # what follows is not part of the step
    if device == "cuda":
        out["memory"] = finish_history()
        out["kernels"] = profile_step(job)
    if case.numbers:
        out["numbers"] = record_numbers(case, device, rank, ranks, recorder)
    return out


def shorten(dtypes):
    """One word where every pack of every unit read the same."""
    words = {word for unit in dtypes.values() for word in unit}
    return words.pop() if len(words) == 1 else dtypes


def layout_only(case, device, ranks):
    """A rank that another one stands for, but for its layout."""
    model, _ = build(case, device, ranks)
    model._get_fsdp_state()._lazy_init()
    return {"params": list(read_layout(model, {}))}


def merge(seen, replicas):
    """One case from all ranks: events must agree, rows are of each shard rank."""
    out, shards = seen[0], len(seen) // replicas
    for other in seen[1:]:
        for key in ("events", "counts", "gradient_dtypes", "divide", "first", "numbers"):
            assert key not in other or other[key] == out.get(key), f"ranks differ in {key}"
    for index, entry in enumerate(out["params"]):
        rows = [rank["params"][index]["rows"][0] for rank in seen]
        assert rows == rows[:shards] * replicas, f"replicas differ in {entry['name']}"
        entry["rows"] = rows[:shards]
    return out


# ---- a real device: allocator and kernels -------------------------------------------------------

def start_history():
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    torch.cuda.memory._record_memory_history(max_entries=1000000, stacks="python",
                                            clear_history=True)


def finish_history():
    """Allocations and frees of one step; blocks and streams numbered as they first appear."""
    torch.cuda.synchronize()
    trace = torch.cuda.memory._snapshot()["device_traces"][torch.cuda.current_device()]
    torch.cuda.memory._record_memory_history(enabled=None)
    streams, blocks, tape, n_block = {}, {}, [], 0
    for entry in trace:
        stream = streams.setdefault(entry["stream"], len(streams))
        if entry["action"] == "alloc":
            blocks[entry["addr"]] = n_block
            n_block += 1
            tape.append(f"alloc {blocks[entry['addr']]} {entry['size']} {stream}")
        elif entry["action"] == "free_requested" and entry["addr"] in blocks:
            tape.append(f"free {blocks[entry['addr']]}")
        elif entry["action"] in ("segment_alloc", "segment_free"):
            tape.append(f"{entry['action']} {entry['size']} {stream}")
    stats = torch.cuda.memory_stats()
    return {"tape": tape, "peak_allocated": stats["allocated_bytes.all.peak"],
            "peak_requested": stats["requested_bytes.all.peak"],
            "peak_reserved": stats["reserved_bytes.all.peak"]}


def profile_step(job):
    """Kernels and copies of one step as "stream name", in order of their start."""
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profile:
        job.compute_gradients()
        job.update()
        torch.cuda.synchronize()
    kernels = [event for event in profile.events()
               if event.device_type == torch.autograd.DeviceType.CUDA]
    kernels.sort(key=lambda event: event.time_range.start)
    streams = {}
    return [f"{streams.setdefault(event.device_resource_id, len(streams))} {event.name}"
            for event in kernels]


# ---- processes ----------------------------------------------------------------------------------

def run_rank(args, rank, store):
    """One process of a real group; what it saw, by case."""
    if args.device == "cuda":
        torch.cuda.set_device(rank)
    dist.init_process_group(args.group, init_method=f"file://{store}/store", rank=rank,
                            world_size=args.ranks)
    recorder = Recorder(emulate=args.group == "gloo")
    seen = {case.name: record_case(case, args.device, rank, args.ranks, recorder)
            for case in cases_for(args.group, args.ranks, args.case)}
    with open(f"{store}/{rank}", "wb") as file:
        pickle.dump(seen, file)
    dist.barrier()
    dist.destroy_process_group()


def run_real(args):
    """Start the processes of a group; what each rank saw, by case."""
    with tempfile.TemporaryDirectory() as store:
        command = [sys.executable, os.path.abspath(__file__), *sys.argv[1:], "--store", store]
        children = [subprocess.Popen([*command, "--rank", str(rank)]) for rank in range(args.ranks)]
        try:
            codes = [child.wait() for child in children]
        finally:
            for child in children:
                child.kill()
        if any(codes):
            sys.exit("a rank failed")
        ranks = [pickle.load(open(f"{store}/{rank}", "rb")) for rank in range(args.ranks)]
    return {name: [rank[name] for rank in ranks] for name in ranks[0]}


def run_fake(args):
    """The fake group has one rank at a time and moves nothing; rank 0 also runs the steps."""
    from torch.testing._internal.distributed.fake_pg import FakeStore
    recorder = Recorder(emulate=False)
    seen = {}
    for rank in range(args.ranks):
        dist.init_process_group("fake", store=FakeStore(), rank=rank, world_size=args.ranks)
        for case in cases_for(args.group, args.ranks, args.case):
            saw = (record_case(case, args.device, rank, args.ranks, recorder) if rank == 0
                   else layout_only(case, args.device, args.ranks))
            seen.setdefault(case.name, []).append(saw)
        dist.destroy_process_group()
    return seen


# ---- the file -----------------------------------------------------------------------------------

def case_document(case, args, saw, layouts):
    """A case as it is written; a layout that the file has already is left out."""
    out = {"name": f"torch-{VERSION}/{args.group}-{args.ranks}/{case.name}",
           "model": MODELS[case.model], "args": full_args(case, args.ranks), "kinds": KINDS,
           **saw}
    if not out["divide"]:
        del out["divide"]  # nothing was reduced
    key = json.dumps([case.model, out["params"]])
    if key in layouts:
        del out["params"]
    layouts.add(key)
    return out


def compact(value):
    return json.dumps(value, separators=(",", ":"))


def case_text(document):
    """One line for each part, and one for each part of the numbers."""
    parts = []
    for key, value in document.items():
        if key == "numbers":
            inner = ",\n  ".join(f"{compact(name)}:{compact(part)}" for name, part in value.items())
            parts.append(f'"numbers":{{\n  {inner}}}')
        else:
            parts.append(f"{compact(key)}:{compact(value)}")
    return "{" + ",\n ".join(parts) + "}"


def file_text(args, seen):
    made_by = f"record.py --group {args.group} --ranks {args.ranks}"
    if args.device != "cpu":
        made_by += f" --device {args.device}"
    source = {"kind": "recorded", "torch": VERSION, "device": args.device, "group": args.group,
              "ranks": args.ranks, "date": datetime.date.today().isoformat(), "made_by": made_by}
    layouts, texts = set(), []
    for case in cases_for(args.group, args.ranks, args.case):
        saw = merge(seen[case.name], Options(case.args).replicas)
        texts.append(case_text(case_document(case, args, saw, layouts)))
    cases = ",\n".join(texts)
    return (f'{{"schema":{compact(SCHEMA)},\n"source":{compact(source)},\n'
            f'"cases":[\n{cases}\n]}}\n')


def read_args():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--group", choices=("gloo", "nccl", "fake"), required=True)
    parser.add_argument("--ranks", type=int, required=True)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--out", help="a file instead of standard output")
    parser.add_argument("--case", default="*", help="only cases whose name matches")
    parser.add_argument("--list", action="store_true", help="name the cases and stop")
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--store", help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    args = read_args()
    torch.set_num_threads(1)
    if args.list:
        for case in cases_for(args.group, args.ranks, args.case):
            print(case.name, *full_args(case, args.ranks), "(numbers)" if case.numbers else "")
        return
    if args.rank is not None:
        run_rank(args, args.rank, args.store)
        return
    text = file_text(args, run_fake(args) if args.group == "fake" else run_real(args))
    if args.out:
        with open(args.out, "w", encoding="utf-8") as file:
            file.write(text)
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    main()
