# SPDX-License-Identifier: Apache-2.0
"""Every small size of the engines beside GEMM: rows 1 to 5 of 1 to 35 columns, or 65 bytes."""

from __future__ import annotations

from functools import partial
from itertools import product

import cocotb

from spec.isa import VecOp
from tb.bench.dut import Dut
from tb.bench.environment import Bench
from tb.stimulus import build_program
from tb.stimulus.random_case import Generator
from tb.stimulus.simple_cases import (
    DMA_BASES,
    StoreWindow,
    dma_load,
    dma_store,
    gelu,
    layernorm,
    softmax,
    vec,
)

TAGS = ("ld", "smx", "nrm", "vec")

EXTENTS = tuple(product(range(1, 6), range(1, 36)))
"""Past two words of int8 and past four of int16."""
TRANSFERS = tuple(product(range(1, 6), range(1, 66)))
"""Past four words."""


async def _run(bench: Bench, generators: list[Generator]) -> None:
    program, stream = build_program(bench, generators)
    execution = await bench.execute(program, stream, bases=DMA_BASES, limit=1_000_000)
    assert execution.finish.error is None, str(execution.finish.error)


@cocotb.test
async def test_dimensions_dma(dut: Dut) -> None:
    """Loads and stores of every size."""
    bench = await Bench.start(dut)
    store = partial(dma_store, StoreWindow())
    for make in (dma_load, store):
        await _run(bench, [partial(make, extent=extent) for extent in TRANSFERS])


@cocotb.test
async def test_dimensions_vec(dut: Dut) -> None:
    """Each operation of VEC on every number of columns, and GELU on every size."""
    bench = await Bench.start(dut)
    for op in VecOp:
        await _run(bench, [partial(vec, op=op, extent=extent) for extent in EXTENTS])
    await _run(bench, [partial(gelu, extent=extent) for extent in EXTENTS])


@cocotb.test
async def test_dimensions_softmax(dut: Dut) -> None:
    """SOFTMAX of every size, in a form drawn for each."""
    bench = await Bench.start(dut)
    for _ in range(3):
        await _run(bench, [partial(softmax, extent=extent) for extent in EXTENTS])


@cocotb.test
async def test_dimensions_layernorm(dut: Dut) -> None:
    """LAYERNORM of every size, in a form drawn for each."""
    bench = await Bench.start(dut)
    for _ in range(3):
        await _run(bench, [partial(layernorm, extent=extent) for extent in EXTENTS])
