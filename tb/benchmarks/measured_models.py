# SPDX-License-Identifier: Apache-2.0
"""Whole models to measure: the shipped checkpoints, and random ones of GPT-2 small's shape.

What runs is what a driver would run: the compiled programs from a `Placement`, behind a K/V cache
of the network's own values. Besides the instruction-level model, which every benchmark is compared
with, the tokens are those of the network itself (golden.session).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial

import numpy as np

from golden.decoder import KeyValues
from golden.session import GoldenSession, generate
from npu.asm import assemble
from npu.compiler import CompiledModel, CompiledProgram, compile_model
from npu.compiler.model import Place
from npu.compiler.shape import Shape
from npu.planner.placement import Placement
from spec.isa.operands import up
from spec.regs import StartState
from tb.benchmarks.benchmark_load import BenchmarkLoad, ProgramRun
from tb.models.sample_model import TEXT
from weights.formats.recipe import INT8, Encoding
from weights.importer import parse_config
from weights.model import AnyLinear, Block, Linear, Norm, QuantizedModel
from weights.quantize import quantize_checkpoint
from weights.shipped import CHECKPOINTS
from weights.stored.folder import CONFIG
from weights.synthetic import random_narrow

EDGE = 16
PROMPT, TOKENS = 5, 10
"""Of the jobs of the tiny GPT-2."""


def tiny_shape(family: str) -> Shape:
    """Return the shape of a shipped checkpoint."""
    config = json.loads((CHECKPOINTS / f"{family}-tiny" / CONFIG).read_text(encoding="utf-8"))
    _, shape = parse_config(config, family)
    return shape.plain()


def small_shape(layers: int = 12, vocab: int = 50_257, heads: int = 12) -> Shape:
    """Return GPT-2 small's shape; `heads` are another number of them, of the same size."""
    return Shape(
        family="gpt2",
        norm="layernorm",
        hidden=64 * heads,
        layers=layers,
        heads=heads,
        kv_heads=heads,
        head_dim=64,
        ffn=256 * heads,
        vocab=vocab,
        context=1024,
    )


@cache
def tiny(family: str) -> QuantizedModel:
    """Return a shipped checkpoint, quantised."""
    return quantize_checkpoint(str(CHECKPOINTS / f"{family}-tiny"))


def _norm(random: np.random.Generator, size: int) -> Norm:
    """Return a norm whose results have a standard deviation of about 40."""
    return Norm(
        1 << 20,
        random.integers(1 << 14, 1 << 15, size).astype(np.uint16),
        np.full(size, 23, np.uint8),
        random.integers(-8, 9, size, np.int8),
    )


def _linear(
    random: np.random.Generator, encoding: Encoding, inputs: int, outputs: int, deviation: float
) -> AnyLinear:
    """Return full-range weights whose results on int8 inputs have about this deviation."""
    narrow = None if encoding == INT8 else random_narrow(random, encoding, inputs, outputs)
    # Inputs of deviation 40; int8 weights are uniform.
    sums = 40 * np.sqrt(inputs) * (73 if narrow is None else float(narrow.weight.std()))
    shift = round(float(np.log2(24_000 * sums / deviation)))
    if narrow is not None:
        return replace(narrow, shift=np.full(outputs, shift, np.uint8))
    return Linear(
        random.integers(-127, 128, (inputs, outputs), np.int8),
        random.integers(-int(sums), int(sums), outputs).astype(np.int32),
        random.integers(1 << 14, 1 << 15, outputs).astype(np.uint16),
        np.full(outputs, shift, np.uint8),
    )


def random_gpt2(
    shape: Shape, random: np.random.Generator, encoding: Encoding = INT8
) -> QuantizedModel:
    """Return a GPT-2 of a shape with random integers, in which every stage changes the result."""
    hidden, ffn = shape.hidden, shape.ffn
    linear = partial(_linear, random, encoding)
    blocks = tuple(
        Block(
            norm1=_norm(random, hidden),
            qkv=linear(hidden, 3 * hidden, 40),
            score_mult=int(random.integers(1 << 14, 1 << 15)),
            score_shift=21,
            proj=linear(hidden, hidden, 1000),
            norm2=_norm(random, hidden),
            up=linear(hidden, ffn, 40),
            table=random.integers(-127, 128, 256, np.int8),
            down=linear(ffn, hidden, 1000),
        )
        for _ in range(shape.layers)
    )
    return QuantizedModel(
        shape=shape,
        wte=random.integers(-4000, 4001, (shape.vocab, hidden), np.int16),
        wpe=random.integers(-4000, 4001, (shape.context, hidden), np.int16),
        rope=None,
        blocks=blocks,
        final_norm=_norm(random, hidden),
        head=linear(hidden, shape.vocab, 8000),
        scales={},
    )


def cache_image(
    model: CompiledModel, past: Sequence[KeyValues], random: np.random.Generator
) -> bytes:
    """Return the K/V cache with these positions in it; the rest of it is random."""
    shape, layout = model.shape, model.cache
    image = random.integers(0, 256, layout.bytes, np.uint8)
    blocks = up(shape.head_dim, EDGE) // EDGE
    p = np.arange(past[0].k.shape[0])[:, None, None]
    h = np.arange(shape.kv_heads)[None, :, None]
    c = np.arange(shape.head_dim)[None, None, :]
    place = h * layout.head + (p // EDGE * blocks + c // EDGE) * EDGE * EDGE + p % EDGE * EDGE
    place = (place + c % EDGE).reshape(p.size, -1)
    for layer, values in enumerate(past):
        for offset, rows in ((0, values.k), (layout.v_offset, values.v)):
            image[layer * layout.layer + offset + place] = rows.view(np.uint8)
    return image.tobytes()


def ids_of(shape: Shape, count: int) -> list[int]:
    """Return tokens of a text."""
    text = (TEXT * (1 + count // len(TEXT))).encode()[:count]
    return [byte % shape.vocab for byte in text]


def _run(launch: StartState, program: CompiledProgram, *tokens: int) -> ProgramRun:
    """Return a run that must leave these tokens at BASE1."""
    expected = (launch.bases[1], np.array(tokens, "<u4").tobytes())
    return ProgramRun(program.program.instructions, launch, expected=expected)


def _cache_loader(model: CompiledModel, source: int, placement: Placement) -> ProgramRun:
    """Return a program that fills the cache in SRAM with the bytes at `source`."""
    layout, row = model.cache, 256
    text = f"DMA_LOAD dst={layout.base:#x} M={layout.bytes // row} N={row} b=0\nEND"
    program = assemble(text)
    address = up(source + layout.bytes, 1 << 12)
    placement.pieces.append((address, program.image()))
    bases = (source, *[0] * 7)
    launch = StartState(address, len(program.instructions), bases=bases)
    return ProgramRun(program.instructions, launch, timed=False)


def step(
    model: QuantizedModel, pos: int, turns: int, random: np.random.Generator, place: Place = "auto"
) -> BenchmarkLoad:
    """Return `turns` decode steps from position `pos` on, behind the network's own cache."""
    compiled = compile_model(model, cache=place)
    placement = Placement(compiled)
    ids = ids_of(model.shape, pos + 1)
    session = GoldenSession(model)
    session.prefill(ids[:-1])
    image = cache_image(compiled, session.cache, random)
    tokens, token = [], ids[-1]
    for _ in range(turns):
        token = int(session.step(token).argmax())
        tokens.append(token)
    program = compiled.decode()
    launch = replace(placement.launch(program), pos=pos, token=ids[-1], loop_left=turns - 1)
    run = _run(launch, program, *tokens)
    if compiled.cache.in_memory:
        placement.pieces.append((placement.cache, image))
        return BenchmarkLoad(placement.pieces, [run])
    source = placement.end
    placement.pieces.append((source, image))
    return BenchmarkLoad(placement.pieces, [_cache_loader(compiled, source, placement), run])


def random_past(shape: Shape, pos: int, random: np.random.Generator) -> list[KeyValues]:
    """Return random keys and values of all layers, of positions before `pos`."""
    size = (pos, shape.kv_columns)
    return [
        KeyValues(*(np.clip(random.normal(0, 40, size), -127, 127).astype(np.int8) for _ in "kv"))
        for _ in range(shape.layers)
    ]


def random_step(
    shape: Shape, pos: int, random: np.random.Generator, encoding: Encoding = INT8
) -> BenchmarkLoad:
    """Return a decode step of a random model behind random keys and values in memory.

    `encoding` is that of all weights, the head's too.
    """
    model = random_gpt2(shape, random, encoding)
    compiled = compile_model(model, cache="memory")
    placement = Placement(compiled)
    past = random_past(shape, pos, random)
    placement.pieces.append((placement.cache, cache_image(compiled, past, random)))
    session = GoldenSession(model)
    session.cache = past
    token = int(random.integers(shape.vocab))
    program = compiled.decode()
    launch = replace(placement.launch(program), pos=pos, token=token)
    return BenchmarkLoad(
        placement.pieces, [_run(launch, program, int(session.step(token).argmax()))]
    )


def random_prompt(
    shape: Shape, rows: int, chunk: int, random: np.random.Generator
) -> BenchmarkLoad:
    """Return the prefill of a random model, `chunk` rows at a time."""
    model = random_gpt2(shape, random)
    compiled = compile_model(model, cache="memory")
    placement = Placement(compiled)
    program = compiled.prefill(rows, chunk=chunk)
    launch = placement.launch(program)
    ids = random.integers(0, shape.vocab, rows)
    placement.pieces.append((launch.bases[0], ids.astype("<u4").tobytes()))
    (token,) = generate(model, [int(i) for i in ids], 1)
    return BenchmarkLoad(placement.pieces, [_run(launch, program, token)])


def job(random: np.random.Generator, *, cached: bool) -> BenchmarkLoad:
    """Return the tiny GPT-2's job: all in one start, or each token from all those before it."""
    del random  # the prompt is a real one
    model = tiny("gpt2")
    compiled = compile_model(model)
    placement = Placement(compiled)
    prompt = ids_of(model.shape, PROMPT)
    tokens = generate(model, prompt, TOKENS)
    if cached:
        program = compiled.generate(PROMPT)
        launch = replace(placement.launch(program), loop_left=TOKENS - 1)
        runs = [_run(launch, program, *tokens)]
        ids = prompt
    else:
        runs = []
        ids = prompt + tokens[:-1]
        for index, token in enumerate(tokens):
            program = compiled.prefill(PROMPT + index)
            runs.append(_run(placement.launch(program), program, token))
    address = runs[0].start.bases[0]
    placement.pieces.append((address, np.array(ids, "<u4").tobytes()))
    return BenchmarkLoad(placement.pieces, runs)
