# SPDX-License-Identifier: Apache-2.0
"""The benchmarks of narrow weight formats: a stream GEMM in each, and decode steps of models.

Ideal is the time of a format's own bytes: elements, side bytes, channel records.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial

import numpy as np

from npu.asm import assemble
from npu.compiler import ideal
from npu.compiler.stream import gemm_share
from npu.compiler.weight_tiles import format_of
from npu.isa.weight_formats import GROUPED, StreamLayout
from tb.benchmarks import measured_models
from tb.benchmarks.benchmark import Benchmark
from tb.benchmarks.benchmark_load import BenchmarkLoad, single
from tb.benchmarks.model_benchmarks import counted
from weights.formats.element import Format
from weights.formats.recipe import WORDS, Encoding, parse_recipe
from weights.model import QuantizedModel
from weights.quantize import quantize_checkpoint
from weights.synthetic import random_narrow

STREAM_K, STREAM_N = 768, 3072
STREAMED = [str(fmt) for fmt in Format]
"""Words of recipes; groups are of 32 rows."""
TINY = ("mxfp6e2", "int8s", "int4g32", "int4", "int4s", "int2")
POSITION = 64


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
    folder = measured_models.CHECKPOINTS / f"{family}-tiny"
    return quantize_checkpoint(str(folder), parse_recipe(f"{word},head={word}"))


def _step(family: str, word: str, random: np.random.Generator) -> BenchmarkLoad:
    return measured_models.step(_model(family, word), POSITION, 1, random)


def _tiny_case(family: str, word: str) -> Benchmark:
    shape = measured_models.tiny_shape(family)
    layout = _layout(WORDS[word])
    layouts = dict.fromkeys(("qkv", "proj", "up", "gate", "down", "head"), layout)
    return Benchmark(
        f"fmt_tiny_{family}_{word}",
        {"position": POSITION, "latency": 40},
        ideal.forward(shape, 1, POSITION, in_memory=False, layouts=layouts),
        partial(_step, family, word),
        pictured=False,
        counted=counted(shape, 1, POSITION),
    )


def format_cases() -> Iterator[Benchmark]:
    """Yield all of them."""
    for word in STREAMED:
        yield _stream_case(word)
    for family in ("gpt2", "llama"):
        for word in TINY:
            yield _tiny_case(family, word)
