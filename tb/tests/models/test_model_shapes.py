# SPDX-License-Identifier: Apache-2.0
"""Random models of many shapes on the RTL: grouped heads, odd sizes, windows, chunks, memories.

Prompt and steps are compared tensor by tensor with the network and write by write with the model,
then a greedy generation by one start with the network's tokens.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import cocotb
import numpy as np

from golden import session
from golden.session import GoldenSession
from npu.compiler.model import Place
from npu.driver import generate
from tb.bench.dut import Dut
from tb.bench.environment import Bench, full
from tb.bench.knobs import Knobs
from tb.models.decoder_kinds import KINDS, limited, model_of_kind
from tb.models.resident_model import Resident
from tb.tests.models.generation import QUIET
from weights.checkpoint import CheckpointShape
from weights.formats.recipe import parse_recipe
from weights.model import QuantizedModel
from weights.synthetic import random_model, shape_of

TAGS = ("models", "random")

FEW_KINDS = ("windows, tables, heads, parts", "everything of other sizes", "only parts and rows")
"""Kinds of the short form."""


async def _check(
    bench: Bench,
    shape: CheckpointShape,
    prompt: int,
    steps: int,
    *,
    chunk: int | None = None,
) -> None:
    """Check a random model of a shape."""
    model = random_model(shape, int(bench.random.integers(1 << 30)))
    await _check_model(bench, model, prompt, steps, chunk=chunk)


async def _check_model(
    bench: Bench,
    model: QuantizedModel,
    prompt: int,
    steps: int,
    *,
    chunk: int | None = None,
    cache: Place = "auto",
) -> None:
    """Run a prompt and steps in detail, then the same prompt and more tokens by one start."""
    shape = model.shape
    ids = bench.random.integers(0, shape.vocab, prompt + steps).tolist()
    resident, golden = Resident.place(bench, model, cache), GoldenSession(model)
    await bench.set_knobs(Knobs())
    await resident.prompt_in_detail(ids[:prompt], golden, chunk)
    for token in ids[prompt:]:
        await resident.step_in_detail(token, golden)
    await bench.set_knobs(QUIET)
    count = min(4, shape.context - prompt + 1)
    generated = await generate.greedy(resident.chip, resident.plan(ids[:prompt]), count)
    assert generated.ids == session.generate(model, ids[:prompt], count), shape


@cocotb.test
async def test_shapes_grouped_heads(dut: Dut) -> None:
    """1, 2, 4 and 7 query heads per K/V head."""
    bench = await Bench.start(dut)
    for group, kv_heads in ((1, 3), (2, 2), (4, 2), (7, 1), (7, 2)):
        family = "qwen2" if group > 1 else "llama"
        heads = group * kv_heads
        shape = shape_of(family, heads=heads, kv_heads=kv_heads, head_dim=16, layers=1)
        await _check(bench, shape, prompt=5, steps=1)


@cocotb.test
async def test_shapes_head_dims(dut: Dut) -> None:
    """Heads of 16, 32, 64 and 128 lanes, and of sizes that are no multiple of a tile."""
    bench = await Bench.start(dut)
    for family, kv_heads, head_dim in (
        ("gpt2", 2, 16),
        ("llama", 1, 20),
        ("qwen2", 1, 32),
        ("mistral", 1, 64),
        ("gpt2", 2, 80),
        ("llama", 1, 128),
    ):
        shape = shape_of(
            family,
            hidden=2 * head_dim if family == "gpt2" else 48,
            heads=2,
            kv_heads=kv_heads,
            head_dim=head_dim,
            layers=1,
        )
        await _check(bench, shape, prompt=6, steps=1)


@cocotb.test
async def test_shapes_odd_sizes(dut: Dut) -> None:
    """Vocabularies, hidden and feed-forward sizes that fill no tile."""
    bench = await Bench.start(dut)
    for family, hidden, head_dim, ffn, vocab in (
        ("gpt2", 36, 18, 50, 257),
        ("llama", 50, 14, 70, 1001),
        ("qwen2", 24, 12, 33, 97),
        ("mistral", 40, 10, 17, 5),
    ):
        shape = shape_of(family, hidden=hidden, heads=2, head_dim=head_dim, ffn=ffn, vocab=vocab)
        await _check(bench, shape, prompt=3, steps=1)


@cocotb.test
async def test_shapes_narrow_behind_odd_heads(dut: Dut) -> None:
    """The projection behind attention in every kind of group, of heads that fill no words."""
    bench = await Bench.start(dut)
    for family, head_dim, word in (
        ("llama", 20, "int4g32"),
        ("mistral", 10, "mxfp6e2"),
        ("gpt2", 18, "int8s"),
        ("llama", 40, "nf4g64"),
    ):
        shape = shape_of(family, hidden=3 * head_dim, heads=3, kv_heads=3, head_dim=head_dim)
        recipe = parse_recipe(f"o={word}")
        model = random_model(shape, int(bench.random.integers(1 << 30)), weights=recipe)
        await _check_model(bench, model, prompt=3, steps=1)


@cocotb.test
async def test_shapes_windows(dut: Dut) -> None:
    """Windows shorter than the prompt, shorter than a tile, and across tile borders in steps."""
    bench = await Bench.start(dut)
    windows = (1, 5, 16, 17, 31, 33, 40) if full() else (1, 16, 21)
    for window in windows:
        shape = shape_of("mistral", kv_heads=2, layers=1, context=64, window=window)
        await _check(bench, shape, prompt=31, steps=3)


@cocotb.test
async def test_shapes_chunks(dut: Dut) -> None:
    """Prompts in several chunks give what one chunk gives, with and without a window."""
    bench = await Bench.start(dut)
    for family, window in (("gpt2", 0), ("mistral", 20)):
        shape = shape_of(family, layers=2, context=96, window=window)
        await _check(bench, shape, prompt=49, steps=1, chunk=16)


@cocotb.test
async def test_shapes_other_kinds(dut: Dut) -> None:
    """Norms of heads, of rows, behind parts or nowhere, parallel parts, windows and tables."""
    bench = await Bench.start(dut)
    for kind in KINDS if full() else FEW_KINDS:
        model = model_of_kind(kind, int(bench.random.integers(1 << 30)))
        await _check_model(bench, model, prompt=19, steps=2, chunk=16, cache="memory")


@cocotb.test
async def test_shapes_other_kinds_narrow(dut: Dut) -> None:
    """The same with narrow weights behind a constant position; tokens by one start."""
    bench = await Bench.start(dut, QUIET)
    for kind in KINDS if full() else FEW_KINDS[:1]:
        seed = int(bench.random.integers(1 << 30))
        model = model_of_kind(kind, seed, sink=3, weights="int4g32,qkv=mxfp6e2,o=int4,down=int2")
        ids = bench.random.integers(0, model.shape.vocab, 18).tolist()
        resident, count = Resident.place(bench, model), 24 if full() else 6
        generated = await generate.greedy(resident.chip, resident.plan(ids), count)
        assert generated.ids == session.generate(model, ids, count), kind


@cocotb.test
async def test_shapes_constant_position(dut: Dut) -> None:
    """Behind a constant first position, with the cache in SRAM and in memory, in chunks."""
    bench = await Bench.start(dut)
    cases: tuple[tuple[str, int, int, Place], ...] = (
        ("gpt2", 4, 0, "memory"),
        ("llama", 2, 0, "sram"),
        ("mistral", 1, 20, "memory"),
    )
    for family, kv_heads, window, cache in cases:
        shape = shape_of(family, kv_heads=kv_heads, head_dim=16, context=64, window=window)
        model = random_model(shape, int(bench.random.integers(1 << 30)), sink=3)
        if model.shape.wide:
            model = limited(model, 1000, 1) if window else limited(model, 32_767, louder=6)
        await _check_model(bench, model, prompt=18, steps=1, chunk=16, cache=cache)


@cocotb.test
async def test_shapes_pieces_of_a_prompt(dut: Dut) -> None:
    """A prompt in several programs, each behind what the ones before have cached."""
    bench = await Bench.start(dut)
    model = random_model(shape_of("llama", kv_heads=2, layers=2, context=64), 5)
    ids = bench.random.integers(0, model.shape.vocab, model.shape.context).tolist()
    resident, golden = Resident.place(bench, model), GoldenSession(model)
    borders = (0, 1, 17, 20, 36, 63, 64) if full() else (0, 1, 18, 64)
    for first, end in pairwise(borders):
        await resident.prompt_in_detail(ids[first:end], golden)


@cocotb.test
async def test_shapes_tile_borders(dut: Dut) -> None:
    """Steps across each border of tiles of 16 keys, from the first position to the last."""
    bench = await Bench.start(dut)
    shape = shape_of("qwen2", heads=4, kv_heads=1, layers=1, context=50)
    model = random_model(shape, 6)
    ids = bench.random.integers(0, shape.vocab, shape.context).tolist()
    resident, golden = Resident.place(bench, model), GoldenSession(model)
    for position in range(shape.context):
        if full() or position % 16 in (0, 1, 15):
            await resident.step_in_detail(ids[position], golden)
        else:
            launch = resident.launch(resident.compiled.decode(logits=True))
            logits = await resident.logits(replace(launch, pos=position, token=ids[position]))
            assert np.array_equal(logits, golden.step(ids[position])), f"position {position}"


@cocotb.test
async def test_shapes_memories(dut: Dut) -> None:
    """A cache in memory behind a fast, a slow, a stuttering and a reordering memory."""
    bench = await Bench.start(dut)
    shape = shape_of("mistral", kv_heads=2, layers=2, context=40, window=20)
    model = random_model(shape, 7)
    ids = bench.random.integers(0, shape.vocab, 24).tolist()
    expected = session.generate(model, ids[:18], 4)
    for knobs in (
        Knobs(read_latency=1, write_latency=1),
        Knobs(read_latency=300, write_latency=300),
        Knobs(read_gap=40, write_gap=40, ar_stall=50, aw_stall=50, w_stall=50),
        Knobs(read_latency=90, write_latency=7, interleave=1),
    ):
        await bench.set_knobs(knobs)
        resident, golden = Resident.place(bench, model, "memory"), GoldenSession(model)
        bench.memory.view(resident.placement.cache, resident.compiled.cache.bytes)[:] = 0x5A
        await resident.prompt_in_detail(ids[:18], golden)
        await resident.step_in_detail(ids[18], golden)
        generated = await generate.greedy(resident.chip, resident.plan(ids[:18]), 4)
        assert generated.ids == expected, knobs
