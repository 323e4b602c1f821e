# SPDX-License-Identifier: Apache-2.0
"""The benchmarks of whole models: jobs, decode steps, turns of a loop, GPT-2 small's shape."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

import numpy as np

from npu.compiler import ideal
from npu.compiler.ideal import LeastWork
from npu.compiler.shape import Shape
from spec.isa import Opcode
from tb.bench.knobs import Knobs
from tb.bench.memory_kinds import MemoryKind, suffix
from tb.benchmarks import measured_models
from tb.benchmarks.benchmark import Benchmark, Interval, met_keys
from tb.benchmarks.benchmark_load import BenchmarkLoad

FAMILIES = ("gpt2", "llama", "mistral", "qwen2")
POSITIONS = (1, 64, 127)
PICTURED = ("gpt2", 64)
"""The decode step with a timeline, and alone in the roofline, where all of them coincide."""
LOOP_FROM, TURNS = 60, 8
"""The first turn, which is not timed, and the turns that are."""
SMALL_MEMORY = 256 << 20
SMALL_POSITIONS = (100, 1000)
SMALL_ROWS, SMALL_CHUNK = 128, 48
"""Rows of the prompt, and how many of them have room in SRAM at a time."""
LONG_ROWS, LONG_CHUNK = 512, 64
"""The same of a longer prompt at a hidden size of 256."""
SLOW_LATENCY = 200
"""A slower memory."""


def attention_macs(shape: Shape, rows: int, past: int) -> int:
    """Return the multiplications of a pass's attention as the chip counts them, in all layers.

    The numerators are 16-bit values.
    """
    met = sum(met_keys(rows, past, shape.window_of(layer)) for layer in range(shape.layers))
    return 3 * met * shape.q_columns


def counted(shape: Shape, rows: int, past: int) -> int:
    """Return the multiplications of a pass as the chip counts them."""
    work = ideal.forward(shape, rows, past, in_memory=False)
    least = shape.layers * ideal.attention(shape, rows, past).macs
    return work.macs - least + attention_macs(shape, rows, past)


def _passes(shape: Shape, passes: list[tuple[int, int]]) -> LeastWork:
    """Return the work of passes of (rows, past), with a cache in SRAM."""
    works = (ideal.forward(shape, rows, past, in_memory=False) for rows, past in passes)
    return sum(works, LeastWork())


def _counted(shape: Shape, passes: list[tuple[int, int]]) -> int:
    return sum(counted(shape, rows, past) for rows, past in passes)


def _step(family: str, pos: int, turns: int, random: np.random.Generator) -> BenchmarkLoad:
    return measured_models.step(measured_models.tiny(family), pos, turns, random)


def _memory(latency: int) -> Knobs:
    return Knobs(read_latency=latency, write_latency=latency)


def _step_case(family: str, pos: int, latency: int = 40, *, traced: bool = False) -> Benchmark:
    shape = measured_models.tiny_shape(family)
    name = f"tiny_decode_{family}_p{pos}"
    slow = latency == SLOW_LATENCY
    return Benchmark(
        f"{name}_l{latency}" if slow else name,
        {"position": pos, "latency": latency},
        ideal.forward(shape, 1, pos, in_memory=False),
        partial(_step, family, pos, 1),
        knobs=_memory(latency),
        traced=traced,
        pictured=(family, pos) == PICTURED and not slow,
        counted=counted(shape, 1, pos),
    )


def _loop_case(family: str, latency: int = 40, *, traced: bool = False) -> Benchmark:
    shape = measured_models.tiny_shape(family)
    name = f"tiny_decode_{family}_loop"
    slow = latency == SLOW_LATENCY
    steps = [(1, LOOP_FROM + turn) for turn in range(1 + TURNS)]
    return Benchmark(
        f"{name}_l{latency}" if slow else name,
        {"position": LOOP_FROM + 1, "turns": TURNS, "latency": latency},
        _passes(shape, steps[1:]),
        partial(_step, family, LOOP_FROM, 1 + TURNS),
        interval=Interval.TURNS,
        opcode=Opcode.ARGMAX,
        knobs=_memory(latency),
        traced=traced,
        pictured=False,
        counted=_counted(shape, steps),
    )


def _job_case(name: str, *, cached: bool) -> Benchmark:
    shape = measured_models.tiny_shape("gpt2")
    prompt, tokens = measured_models.PROMPT, measured_models.TOKENS
    if cached:
        passes = [(prompt, 0), *((1, past) for past in range(prompt, prompt + tokens - 1))]
    else:
        passes = [(rows, 0) for rows in range(prompt, prompt + tokens)]
    return Benchmark(
        name,
        {"prompt": prompt, "tokens": tokens, "latency": 40},
        _passes(shape, passes),
        partial(measured_models.job, cached=cached),
        pictured=not cached,
        counted=_counted(shape, passes),
    )


def _small_step(pos: int, random: np.random.Generator) -> BenchmarkLoad:
    return measured_models.random_step(measured_models.small_shape(), pos, random)


def small_dimensions(shape: Shape, memory: MemoryKind = MemoryKind.FIXED) -> Mapping[str, int]:
    """Return a shape's dimensions for bench.json, and the latency of a memory that has one."""
    dimensions = {"hidden": shape.hidden, "layers": shape.layers, "heads": shape.heads}
    return dimensions | ({} if memory else {"latency": 40})


def _small_case(pos: int, memory: MemoryKind = MemoryKind.FIXED) -> Benchmark:
    shape = measured_models.small_shape()
    return Benchmark(
        f"small_decode_{pos}{suffix(memory)}",
        {"position": pos, **small_dimensions(shape, memory)},
        ideal.forward(shape, 1, pos, in_memory=True),
        partial(_small_step, pos),
        knobs=Knobs(memory=memory),
        pictured=pos == max(SMALL_POSITIONS),
        limit=20_000_000,
        counted=counted(shape, 1, pos),
        memory_bytes=SMALL_MEMORY,
    )


def _prompt(heads: int, rows: int, chunk: int, random: np.random.Generator) -> BenchmarkLoad:
    return measured_models.random_prompt(_layer(heads), rows, chunk, random)


def _layer(heads: int) -> Shape:
    return measured_models.small_shape(layers=1, vocab=measured_models.EDGE, heads=heads)


def _prompt_case(name: str, heads: int, rows: int, chunk: int) -> Benchmark:
    shape = _layer(heads)
    linear = ideal.forward(shape, rows, 0, in_memory=True).macs
    linear -= ideal.attention(shape, rows, 0).macs
    chunks = range(0, rows, chunk)
    seen = sum(attention_macs(shape, min(chunk, rows - past), past) for past in chunks)
    return Benchmark(
        f"{name}_{rows}",
        {"rows": rows, "chunk": chunk, **small_dimensions(shape)},
        ideal.layer(shape, rows, 0, in_memory=True),
        partial(_prompt, heads, rows, chunk),
        limit=10_000_000,
        counted=linear + seen,
        memory_bytes=SMALL_MEMORY,
    )


def whole_cases() -> Iterator[Benchmark]:
    """Yield all of them."""
    yield _job_case("tiny_job_cached", cached=True)
    yield _job_case("tiny_job_recompute", cached=False)
    for family in FAMILIES:
        for pos in POSITIONS:
            yield _step_case(family, pos, traced=(family, pos) == PICTURED)
        yield _loop_case(family, traced=family == "gpt2")
    for family in ("gpt2", "llama"):
        yield _step_case(family, 64, SLOW_LATENCY)
        yield _loop_case(family, SLOW_LATENCY)
    for pos in SMALL_POSITIONS:
        yield _small_case(pos)
    yield _small_case(min(SMALL_POSITIONS), MemoryKind.DDR4)
    yield _prompt_case("small_prefill", 12, SMALL_ROWS, SMALL_CHUNK)
    yield _prompt_case("prefill", 4, LONG_ROWS, LONG_CHUNK)
