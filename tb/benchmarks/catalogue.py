# SPDX-License-Identifier: Apache-2.0
"""The benchmarks: for each the program, what of it is timed, and the work in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from golden import decoder
from npu.asm import assemble
from npu.compiler import CompiledBlock, compile_block, ideal
from npu.compiler.stream import gemm_share
from spec.configurations import CHIPS, USUAL, ChipParameters
from spec.isa import Opcode
from tb.bench.knobs import Knobs
from tb.bench.memory_kinds import CEILING, MemoryKind, suffix
from tb.benchmarks import measured_models
from tb.benchmarks.batch_benchmarks import batch_cases
from tb.benchmarks.benchmark import Benchmark, Interval, met_keys
from tb.benchmarks.benchmark_load import BenchmarkLoad, single
from tb.benchmarks.command_benchmarks import port_cases
from tb.benchmarks.cop_benchmarks import cop_cases
from tb.benchmarks.format_benchmarks import format_cases
from tb.benchmarks.model_benchmarks import whole_cases
from tb.benchmarks.network_benchmarks import network_cases, nightly_cases
from tb.benchmarks.plan_benchmarks import plan_cases
from tb.models.sample_model import TEXT
from weights.model import Linear

LAYER = 0
OTHER_ARRAYS = tuple(CHIPS[name] for name in ("a4", "a8", "a32"))
"""Chips on which some benchmarks run once more, with the chip's name behind theirs."""


def _text(text: str, random: np.random.Generator, inputs: int = 0) -> BenchmarkLoad:
    words = assemble(text).instructions
    return single(words, inputs=random.integers(0, 256, inputs, np.uint8).tobytes())


def _linear(random: np.random.Generator, n: int, k: int, edge: int = 16) -> bytes:
    """Return a share of full-range weights whose results are mostly not saturated."""
    return gemm_share(
        Linear(
            random.integers(-127, 128, (k, n), np.int8),
            random.integers(-(1 << 12), 1 << 12, n).astype(np.int32),
            random.integers(1 << 14, 1 << 15, n).astype(np.uint16),
            np.full(n, 26, np.uint8),
        ),
        edge,
    )


def _sram_gemm(random: np.random.Generator) -> BenchmarkLoad:
    text = "GEMM dst=0x8000 src0=0x0 src1=0x4000 M=128 N=128 K=128 q=imm mul=9000 sh=24 out=i8"
    return _text(f"{text}\nEND", random)


def _stream_gemm(
    chip: ChipParameters, m: int, n: int, k: int, random: np.random.Generator
) -> BenchmarkLoad:
    text = f"GEMM dst=0x20000 src0=0x0 M={m} N={n} K={k} B=stream q=ch bias out=i8\nEND"
    words = assemble(text, limits=chip.limits).instructions
    return single(words, _linear(random, n, k, chip.limits.edge))


def _catch_up(random: np.random.Generator) -> BenchmarkLoad:
    # The softmax takes about ten times as long as the bus needs to fill the FIFO.
    text = """
        SOFTMAX dst=0x20000 src0=0x10000 src1=0x30000 M=64 N=512 out=u16
        BARRIER smx
        GEMM dst=0x1000 src0=0x0 M=1 N=256 K=112 B=stream q=ch bias out=i8
        END
    """
    return single(assemble(text).instructions, _linear(random, 256, 112))


def _loads(count: int, size: int) -> str:
    lines = [
        f"DMA_LOAD dst={size * index:#x} M=1 N={size} b=0 off={size * index:#x}"
        for index in range(count)
    ]
    return "\n".join([*lines, "END"])


def _dma(count: int, size: int, random: np.random.Generator) -> BenchmarkLoad:
    return _text(_loads(count, size), random, count * size)


def _dma_fetched(count: int, size: int, random: np.random.Generator) -> BenchmarkLoad:
    # While the softmax runs, the queue of the microcode fetch fills with what follows.
    wait = "SOFTMAX dst=0x30000 src0=0x20000 src1=0x3F000 M=16 N=64 out=u16\nBARRIER smx\n"
    return _text(wait + _loads(count, size), random, count * size)


def _dma_rows(rows: int, size: int, random: np.random.Generator) -> BenchmarkLoad:
    text = f"DMA_LOAD dst=0x0 M={rows} N={size} b=0 pitch={2 * size}\nEND"
    return _text(text, random, 2 * rows * size)


def compiled(rows: int, chip: ChipParameters = USUAL) -> CompiledBlock:
    """Return the fused block of the blocks' benchmarks."""
    return compile_block(measured_models.tiny("gpt2"), LAYER, rows, limits=chip.limits)


def _block(chip: ChipParameters, rows: int, random: np.random.Generator) -> BenchmarkLoad:
    del random  # the input is a real one
    block = compiled(rows, chip)
    inputs = decoder.residuals(measured_models.tiny("gpt2"), list(TEXT.encode()[:rows]))[LAYER]
    return single(block.program.instructions, block.stream, inputs.astype("<i2").tobytes())


def _suffix(chip: ChipParameters) -> str:
    return "" if chip is USUAL else f"_{chip.name}"


def _on(chip: ChipParameters, work: ideal.LeastWork) -> ideal.LeastWork:
    return replace(work, array_dim=chip.array_dim)


def _sram_case(chip: ChipParameters = USUAL) -> Benchmark:
    return Benchmark(
        f"gemm_sram_128{_suffix(chip)}",
        {"m": 128, "n": 128, "k": 128, "latency": 40},
        _on(chip, ideal.multiply(128, 128, 128)),
        _sram_gemm,
        interval=Interval.INSTRUCTION,
        opcode=Opcode.GEMM,
        traced=chip is USUAL,
        pictured=chip is USUAL,
        chip=chip,
    )


def _stream_case(
    name: str,
    m: int,
    n: int,
    k: int,
    latency: int = 40,
    chip: ChipParameters = USUAL,
    memory: MemoryKind = MemoryKind.FIXED,
) -> Benchmark:
    return Benchmark(
        name + _suffix(chip) + suffix(memory),
        {"m": m, "n": n, "k": k} | ({} if memory else {"latency": latency}),
        _on(chip, ideal.linear(m, n, k)),
        partial(_stream_gemm, chip, m, n, k),
        knobs=Knobs(read_latency=latency, write_latency=latency, memory=memory),
        pictured=latency == 40 and chip is USUAL and not memory,
        chip=chip,
    )


def _block_case(rows: int, *, traced: bool = True, chip: ChipParameters = USUAL) -> Benchmark:
    hidden, heads, ffn = 64, 4, 256
    work = ideal.block(rows, hidden, heads, ffn)
    # A block of rows meets the keys of its last row, and the numerators are 16-bit values.
    unseen = 3 * met_keys(rows) - 2 * ideal.visible_keys(rows, 0)
    return Benchmark(
        f"block_s{rows}{_suffix(chip)}",
        {"rows": rows, "hidden": hidden, "heads": heads, "ffn": ffn, "latency": 40},
        _on(chip, work),
        partial(_block, chip, rows),
        traced=traced and chip is USUAL,
        pictured=chip is USUAL,
        counted=work.macs + unseen * hidden,
        chip=chip,
    )


def _dma_case(
    name: str,
    count: int,
    size: int,
    load: Callable[[int, int, np.random.Generator], BenchmarkLoad] = _dma,
) -> Benchmark:
    return Benchmark(
        name,
        {"transfers": count, "bytes": size, "latency": 40},
        ideal.transfer(count * size),
        partial(load, count, size),
        share=True,
        interval=Interval.CHAIN,
        opcode=Opcode.DMA_LOAD,
    )


def _cases() -> Iterator[Benchmark]:
    yield _sram_case()
    for latency in (40, 100, 200, 400):
        yield _stream_case(f"gemm_stream_m1_l{latency}", 1, 3072, 768, latency=latency)
    for memory in CEILING:
        yield _stream_case("gemm_stream_m1", 1, 3072, 768, memory=memory)
    yield _stream_case("gemm_stream_m16", 16, 768, 768)
    yield _stream_case("gemm_stream_m128", 128, 768, 768)
    yield Benchmark(
        "gemm_catch_up",
        {"m": 1, "n": 256, "k": 112, "latency": 40},
        ideal.multiply(1, 256, 112),  # the stream is in the FIFO already
        _catch_up,
        interval=Interval.DISPATCHED,
        opcode=Opcode.GEMM,
        traced=True,
    )
    yield _block_case(16)
    yield _block_case(1)
    yield _block_case(5)
    yield _block_case(128, traced=False)
    yield _dma_case("dma_4k", 64, 4096)
    yield _dma_case("dma_256", 60, 256, _dma_fetched)
    yield _dma_case("dma_256_long", 512, 256)
    yield Benchmark(
        "dma_256_rows",
        {"transfers": 1, "rows": 512, "bytes": 256, "latency": 40},
        ideal.transfer(512 * 256),
        partial(_dma_rows, 512, 256),
        share=True,
        interval=Interval.CHAIN,
        opcode=Opcode.DMA_LOAD,
    )
    yield from port_cases()
    yield from cop_cases()
    yield from whole_cases()
    yield from batch_cases()
    yield from format_cases()
    yield from network_cases()
    yield from plan_cases()
    for chip in OTHER_ARRAYS:
        yield _sram_case(chip)
        yield _stream_case("gemm_stream_m16", 16, 768, 768, chip=chip)
        for rows in (1, 16):
            yield _block_case(rows, chip=chip)


CASES = {case.name: case for case in _cases()}
NIGHTLY = {case.name: case for case in nightly_cases()}
"""Those that take minutes: `make nightly`."""
LONG_RUN = "gemm_stream_m128"
"""The longest benchmark: speed of the bench and calls into Python are taken from it."""
