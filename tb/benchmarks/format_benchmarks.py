# SPDX-License-Identifier: Apache-2.0
"""The benchmarks of narrow weight formats: a stream GEMM in each, and decode steps of models.

Ideal is the time of a format's own bytes: elements, side bytes, channel records. CLAIMS holds the
steps against the same steps in int8.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial

import numpy as np

from npu.asm import assemble
from npu.compiler import ideal
from npu.compiler.stream import gemm_share
from npu.compiler.weight_tiles import format_of
from spec.isa.weight_formats import GROUPED, NARROW, StreamLayout
from tb.benchmarks import measured_models
from tb.benchmarks.against_int8 import Claim
from tb.benchmarks.benchmark import Benchmark
from tb.benchmarks.benchmark_load import BenchmarkLoad, single
from tb.benchmarks.model_benchmarks import (
    SMALL_MEMORY,
    SMALL_POSITIONS,
    counted,
    small_dimensions,
)
from weights.formats.recipe import WORDS, Encoding, parse_recipe
from weights.model import QuantizedModel
from weights.quantize import quantize_checkpoint
from weights.shipped import CHECKPOINTS
from weights.synthetic import random_narrow

STREAM_K, STREAM_N = 768, 3072
STREAMED = [fmt.asm for fmt in NARROW]
"""Words of recipes; groups are of 32 rows."""
TINY = ("mxfp6e2", "int8s", "int4g32", "int4", "int4s", "int2")
SMALL = ("mxfp6e2", "int4g32", "int4", "int4s")
FAMILIES = ("gpt2", "llama")
POSITION = 64
TINY_MOST, SMALL_MOST = 1.015, 1.01
"""Share of int8's cycles over that of its bytes, where the bus binds."""
CHAIN_CYCLES = {
    "gpt2": {"int4s": 7_900, "int2": 7_100},
    "llama": {"int4s": 6_600, "int2": 6_100},
}
"""Cycles of a tiny model's step where the chain of attention, norms and barriers binds."""
INT4_SHARE = 0.52
"""Cycles of the small step in INT4 over those in int8."""


def _claims() -> Iterator[Claim]:
    for family in FAMILIES:
        for word in TINY:
            cycles = CHAIN_CYCLES[family].get(word)
            most = TINY_MOST if cycles is None else None
            reference = f"tiny_decode_{family}_p{POSITION}"
            yield Claim(f"fmt_tiny_{family}_{word}", reference, most, cycles)
    pos = SMALL_POSITIONS[0]
    for word in SMALL:
        share = INT4_SHARE if word == "int4" else None
        yield Claim(f"fmt_small_{word}_{pos}", f"small_decode_{pos}", SMALL_MOST, share=share)


CLAIMS = tuple(_claims())


def _layout(encoding: Encoding) -> StreamLayout:
    layer = random_narrow(np.random.default_rng(0), encoding, 1, 1)
    return StreamLayout.of(*format_of(layer), measured_models.EDGE)


def _stream(encoding: Encoding, random: np.random.Generator) -> BenchmarkLoad:
    layer = random_narrow(random, encoding, STREAM_K, STREAM_N)
    fmt, group = format_of(layer)
    named = f"fmt={fmt.asm}" + (f" group={group.asm}" if fmt in GROUPED else "")
    size = f"M=1 N={STREAM_N} K={STREAM_K}"
    text = f"GEMM dst=0x20000 src0=0x0 {size} B=stream {named} q=ch bias out=i8\nEND"
    return single(assemble(text).instructions, gemm_share(layer))


def _stream_case(word: str) -> Benchmark:
    encoding = WORDS[word]
    return Benchmark(
        f"fmt_stream_m1_{word}",
        {"m": 1, "n": STREAM_N, "k": STREAM_K, "latency": 40},
        ideal.linear(1, STREAM_N, STREAM_K, layout=_layout(encoding)),
        partial(_stream, encoding),
        pictured=False,
    )


@cache
def _model(family: str, word: str) -> QuantizedModel:
    folder = CHECKPOINTS / f"{family}-tiny"
    return quantize_checkpoint(str(folder), parse_recipe(f"{word},head={word}"))


def _step(family: str, word: str, random: np.random.Generator) -> BenchmarkLoad:
    return measured_models.step(_model(family, word), POSITION, 1, random)


def _layouts(word: str) -> dict[str, StreamLayout]:
    """Return the layout of every share, head too."""
    return dict.fromkeys(("qkv", "proj", "up", "gate", "down", "head"), _layout(WORDS[word]))


def _tiny_case(family: str, word: str) -> Benchmark:
    shape = measured_models.tiny_shape(family)
    return Benchmark(
        f"fmt_tiny_{family}_{word}",
        {"position": POSITION, "latency": 40},
        ideal.forward(shape, 1, POSITION, in_memory=False, layouts=_layouts(word)),
        partial(_step, family, word),
        pictured=False,
        counted=counted(shape, 1, POSITION),
    )


def _small_step(word: str, random: np.random.Generator) -> BenchmarkLoad:
    shape, pos = measured_models.small_shape(), SMALL_POSITIONS[0]
    return measured_models.random_step(shape, pos, random, WORDS[word])


def _small_case(word: str) -> Benchmark:
    shape, pos = measured_models.small_shape(), SMALL_POSITIONS[0]
    return Benchmark(
        f"fmt_small_{word}_{pos}",
        {"position": pos, **small_dimensions(shape)},
        ideal.forward(shape, 1, pos, in_memory=True, layouts=_layouts(word)),
        partial(_small_step, word),
        pictured=False,
        limit=20_000_000,
        counted=counted(shape, 1, pos),
        memory_bytes=SMALL_MEMORY,
    )


def format_cases() -> Iterator[Benchmark]:
    """Yield all of them."""
    for word in STREAMED:
        yield _stream_case(word)
    for family in FAMILIES:
        for word in TINY:
            yield _tiny_case(family, word)
    for word in SMALL:
        yield _small_case(word)
