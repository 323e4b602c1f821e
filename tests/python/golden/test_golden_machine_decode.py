# SPDX-License-Identifier: Apache-2.0
"""A whole decode program, turn after turn, against the operations on the sequence itself.

The program is the listing of a LLaMA layer, twice, inside the listing of the frame. What it must
compute is written down here without a cache, a loop, or an instruction.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from golden import gemm as ops
from golden import layernorm, rope, softmax
from golden.gemm import Post
from npu.asm import assemble
from spec.isa import GemmOp, Instruction, Opcode
from tests.python.golden import golden_programs as gp
from tests.python.golden.golden_programs import ProgramBench
from tests.python.golden.golden_support import random_linear, random_norm, seeded
from weights.model import Linear, Norm

HIDDEN, HEADS, KV_HEADS, DIM, FFN = 64, 4, 2, 16, 128
LAYERS, VOCAB, CONTEXT = 2, 97, 64
OUT, TABLE, ANGLES, CACHE = 0x2F000, 0x30000, 0x38000, 0x3A000
"""BASE1, BASE2 and BASE4 in memory, and the cache there."""
SRAM_CACHE = 0x20000
KV_HEAD = CONTEXT * DIM
KV_VOFF, KV_LAYER = KV_HEADS * KV_HEAD, 2 * KV_HEADS * KV_HEAD
LISTINGS = Path(__file__).parents[1] / "listings"

Rows8 = npt.NDArray[np.int8]
Rows16 = npt.NDArray[np.int16]


@dataclass(frozen=True, slots=True, eq=False)
class Layer:
    """The parameters of one layer; biases are present but not used."""

    norm1: Norm
    qkv: Linear
    proj: Linear
    norm2: Norm
    gate: Linear
    table: Rows8
    up: Linear
    down: Linear


@dataclass(frozen=True, slots=True, eq=False)
class DecodeNetwork:
    """Two layers, the tables, the final norm and the head."""

    embedding: Rows16
    angles: Rows16
    layers: list[Layer]
    norm: Norm
    head: Linear


def random_network() -> DecodeNetwork:
    """Return a network of which every stage has values over its range."""
    rng = seeded(670)

    def linear(inputs: int, outputs: int, spread: float) -> Linear:
        guess = np.clip(np.rint(rng.normal(0, 35, (64, inputs))), -128, 127).astype(np.int8)
        return random_linear(rng, guess, outputs, spread)

    layers = [
        Layer(
            random_norm(rng, HIDDEN),
            linear(HIDDEN, (HEADS + 2 * KV_HEADS) * DIM, 30),
            linear(HIDDEN, HIDDEN, 3000),
            random_norm(rng, HIDDEN),
            linear(HIDDEN, FFN, 30),
            rng.integers(-90, 91, 256).astype(np.int8),
            linear(HIDDEN, FFN, 60),
            linear(FFN, HIDDEN, 3000),
        )
        for _ in range(LAYERS)
    ]
    turn = np.exp(1j * np.arange(CONTEXT)[:, None] * 10.0 ** (-np.arange(DIM // 2) / 4))
    pairs = np.stack([turn.real, turn.imag], axis=2).reshape(CONTEXT, DIM)
    return DecodeNetwork(
        rng.normal(0, 5000, (VOCAB, HIDDEN)).astype(np.int16),
        np.rint(pairs * 16384).astype(np.int16),
        layers,
        random_norm(rng, HIDDEN),
        linear(HIDDEN, VOCAB, 6000),
    )


def norm(x: Rows16, p: Norm) -> Rows8:
    """Return the RMSNorm of rows."""
    return layernorm.norm8(x, p.eps_term, p.gain, p.shift, p.bias, rms=True)


def apply(x: Rows8, p: Linear, post: Post) -> npt.NDArray[np.integer]:
    """Return a linear layer without its bias."""
    return ops.gemm(x, p.weight, ops.per_channel(p.mult, p.shift), post)


def layer_rows(net: DecodeNetwork, p: Layer, x: Rows16, window: int) -> tuple[Rows16, Rows8, Rows8]:
    """Return the residual stream (S, H) after a layer, and its K and V (S, KV_HEADS, DIM)."""
    rows = x.shape[0]
    qkv = apply(norm(x, p.norm1), p.qkv, Post()).reshape(rows, -1, DIM).astype(np.int8)
    cos, sin = net.angles[:rows, None, 0::2], net.angles[:rows, None, 1::2]
    q = rope.rotate(qkv[:, :HEADS], cos, sin)
    k = rope.rotate(qkv[:, HEADS : HEADS + KV_HEADS], cos, sin)
    v = qkv[:, HEADS + KV_HEADS :]
    context = np.zeros((rows, HEADS, DIM), np.int8)
    for head in range(HEADS):
        keys, values = k[:, head // 2], v[:, head // 2]
        scores = ops.gemm(q[:, head], keys.T, ops.per_tensor(20011, 21), Post(16))
        numer, sums = softmax.numerators16(scores, causal=True, window=window)
        context[:, head] = ops.gemm(numer, values, ops.per_row(sums))
    add = Post(16, combine=GemmOp.ADD, d=x)
    x = apply(context.reshape(rows, -1), p.proj, add).astype(np.int16)
    y = norm(x, p.norm2)
    gate = apply(y, p.gate, Post(table=p.table))
    up = apply(y, p.up, Post(combine=GemmOp.MUL, d=gate, mul=17003, sh=22)).astype(np.int8)
    x = apply(up, p.down, Post(16, combine=GemmOp.ADD, d=x)).astype(np.int16)
    return x, k, v


def next_token(
    net: DecodeNetwork, ids: list[int], window: int
) -> tuple[int, list[tuple[Rows8, Rows8]]]:
    """Return the token that follows a sequence, and K and V of each layer."""
    x, cache = net.embedding[ids], []
    for p in net.layers:
        x, k, v = layer_rows(net, p, x, window)
        cache.append((k, v))
    logits = apply(norm(x[-1:], net.norm), net.head, Post(16))[0].tolist()
    return logits.index(max(logits)), cache


def program() -> list[Instruction]:
    """Return the frame with the layers inside."""
    lines = (LISTINGS / "tail.npu").read_text(encoding="utf-8").splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("RMSNORM"))
    start, end = "\n".join(lines[:first]), "\n".join(lines[first:]).replace("50257", str(VOCAB))
    words = list(assemble(start).instructions)
    text = (LISTINGS / "llama_decode.npu").read_text(encoding="utf-8")
    for layer in range(LAYERS):
        words += assemble(text, symbols={"L": layer, "CTX": CONTEXT}).instructions
    return words + list(assemble(end).instructions)


def stream(net: DecodeNetwork) -> bytes:
    """Return the parameters in the order of the program."""
    parts = []
    for p in net.layers:
        parts += [gp.norm_share(p.norm1), gp.linear_share(p.qkv), gp.linear_share(p.proj)]
        parts += [gp.norm_share(p.norm2), gp.linear_share(p.gate, p.table)]
        parts += [gp.linear_share(p.up), gp.linear_share(p.down)]
    return b"".join([*parts, gp.norm_share(net.norm), gp.linear_share(net.head)])


def decode_bench(
    net: DecodeNetwork, words: list[Instruction], turns: int, window: int, in_memory: bool
) -> ProgramBench:
    """Return a bench that generates `turns` tokens from token 5 on."""
    bench = ProgramBench(words, stream(net))
    # The stream is longer than the place that small programs have for it.
    bench.memory = np.zeros(1 << 19, np.uint8)
    offset = 1 << 18
    bench.bases = (0, OUT + offset, TABLE + offset, 0, ANGLES + offset, 0, 0, 0)
    bench.registers = {
        "token": 5,
        "window": window,
        "loop_left": turns - 1,
        "kv_base": CACHE + offset if in_memory else SRAM_CACHE,
        "kv_layer": KV_LAYER,
        "kv_head": KV_HEAD,
        "kv_voff": KV_VOFF,
        "kv_cap": CONTEXT,
        "kv_in_memory": in_memory,
    }
    for base, table in ((2, net.embedding), (4, net.angles)):
        raw = table.reshape(-1).view(np.uint8)
        bench.memory[bench.bases[base] :][: raw.size] = raw
    return bench


@pytest.mark.parametrize("in_memory", [True, False])
@pytest.mark.parametrize("window", [0, 21])
def test_tokens_and_cache_of_a_loop(window: int, in_memory: bool) -> None:
    """The program fills its context in one start; the last turn needs no room for another."""
    net = random_network()
    bench = decode_bench(net, program(), CONTEXT, window, in_memory)
    result = bench.run()
    assert result.error is None
    assert [str(race) for race in result.races] == []
    ids = [5]
    cache: list[tuple[Rows8, Rows8]] = []
    for _ in range(CONTEXT):
        token, cache = next_token(net, ids, window)
        ids.append(token)
    stored = bench.memory[bench.bases[1] :][: 4 * CONTEXT].view("<u4").tolist()
    assert stored == ids[1:]
    assert len(set(ids)) > 12
    assert (result.token, result.out_count, result.pos) == (ids[-1], CONTEXT, CONTEXT - 1)
    space = bench.memory if in_memory else bench.sram
    for layer, pair in enumerate(cache):
        for kind, rows in enumerate(pair):
            at = bench.registers["kv_base"] + layer * KV_LAYER + kind * KV_VOFF
            held = space[at : at + KV_VOFF].view(np.int8).reshape(KV_HEADS, CONTEXT, DIM)
            assert np.array_equal(held, rows.transpose(1, 0, 2))


@pytest.mark.parametrize("in_memory", [True, False])
def test_every_barrier_of_a_decode_program_is_needed(in_memory: bool) -> None:
    """Without any one of them two turns race; the frame's last one has stood in each layer."""
    net, words = random_network(), program()
    barriers = [i for i, word in enumerate(words) if word.opcode == Opcode.BARRIER]
    for index in barriers[:-1]:
        shorter = words[:index] + words[index + 1 :]
        result = decode_bench(net, shorter, 2, 0, in_memory).run()
        assert result.error is None
        assert result.races, f"no race without the barrier at {index}"
