# SPDX-License-Identifier: Apache-2.0
"""Instructions of a given engine and shape class, and what keeps the other engines busy meanwhile.

The shape classes are the sizes at which blocks of hardware change their ways: one element, an odd
few, one below, at and above a tile, more than two tiles, and long enough for several bursts and a
crossing of 4 KiB.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from spec.isa import Engine, GemmA, GemmB, GemmOp, GemmOut, GemmQ
from spec.isa.operands import up
from tb.stimulus.gemm_cases import GemmMode, GemmSize, build, random_mode
from tb.stimulus.random_case import Case, Generator
from tb.stimulus.simple_cases import (
    Extent,
    StoreWindow,
    dma_load,
    dma_store,
    gelu,
    layernorm,
    rmsnorm,
    rope,
    silu,
    softmax,
    vec,
)
from tb.stimulus.sram_space import Space

ENGINES = (Engine.LD, Engine.ST, Engine.GEMM, Engine.SMX, Engine.NRM, Engine.VEC)

ROWS = 64
"""Rows that the accumulators hold of any A."""
SHAPES = ("one", "odd", "below", "tile", "above", "tiles", "long")
"""The shape classes in the order of `shapes`."""


def shapes(edge: int) -> list[GemmSize]:
    """Return a GEMM of each class for arrays of this tile edge."""
    return [
        GemmSize(1, 1, 1),
        GemmSize(3, 5, 7),
        GemmSize(edge - 1, edge - 1, edge - 1),
        GemmSize(edge, edge, edge),
        GemmSize(edge + 1, edge + 1, edge + 1),
        GemmSize(min(2 * edge + 3, ROWS), 2 * edge + 1, 2 * edge + 5),
        GemmSize(3, 2 * edge + 7, 300),
    ]


EXTENTS: tuple[Extent, ...] = ((1, 1), (3, 5), (15, 15), (16, 16), (17, 17), (37, 35), (2, 517))
"""Rows and columns of the vector engines' classes; a word holds 16 int8 or 8 int16."""
TRANSFERS: tuple[Extent, ...] = (*EXTENTS[:-1], (2, 4700))
"""Rows and bytes of a DMA's classes; the last one crosses 4 KiB in each row."""
SMALL: Extent = (8, 8)
"""Rows and columns such that a row of int16 is one word."""


def gemm_of(
    shape: GemmSize, edge: int, from_stream: bool, random: np.random.Generator, space: Space
) -> Case:
    """Return a GEMM of a given shape in a random mode, with B from the stream or from SRAM."""
    mode = random_mode(random, edge)
    while (mode.b_form == GemmB.STREAM) != from_stream:
        mode = random_mode(random, edge)
    return build(random, space, shape, mode, edge)


def narrow_gemm(edge: int, random: np.random.Generator, space: Space) -> Case:
    """Return a GEMM whose operands all have rows of one word: B from SRAM, int32 sums."""
    mode = GemmMode(
        a_type=GemmA(int(random.integers(4))),
        b_form=GemmB.ROW_MAJOR,
        transpose=bool(random.integers(2)),
        requant=False,
        q=GemmQ.PREFIX,
        out=GemmOut.INT32,
        op=GemmOp.NONE,
        accumulate=bool(random.integers(2)),
        bias=False,
        relu=False,
        table=False,
    )
    return build(random, space, GemmSize(4, 4, 8), mode, edge)


def of_class(engine: Engine, index: int, memory: StoreWindow, edge: int) -> list[Generator]:
    """Return generators of an engine's instructions of shape class `index` (of SHAPES).

    GEMM comes with B from the stream and from SRAM, nrm and vec come as each of their opcodes.
    """
    extent = EXTENTS[index]
    shape = shapes(edge)[index]
    match engine:
        case Engine.LD:
            return [partial(dma_load, extent=TRANSFERS[index])]
        case Engine.ST:
            return [partial(dma_store, memory, extent=TRANSFERS[index])]
        case Engine.GEMM:
            return [partial(gemm_of, shape, edge, stream) for stream in (True, False)]
        case Engine.SMX:
            return [partial(softmax, extent=extent)]
        case Engine.NRM:
            rows, lanes = extent
            turned = (rows, up(lanes, 2))
            norms = [partial(make, extent=extent) for make in (layernorm, rmsnorm)]
            return [*norms, partial(rope, extent=turned, heads=2)]
        case Engine.VEC:
            return [partial(make, extent=extent) for make in (vec, gelu, silu)]
        case _:
            raise ValueError(f"{engine} executes no instructions")


def of_one_word_rows(engine: Engine, memory: StoreWindow, edge: int) -> Generator:
    """Return the generator of an instruction of a few rows, of a word each where that can be."""
    match engine:
        case Engine.LD:
            return partial(dma_load, extent=SMALL)
        case Engine.ST:
            return partial(dma_store, memory, extent=SMALL)
        case Engine.GEMM:
            return partial(narrow_gemm, edge)
        case Engine.SMX:
            return partial(softmax, extent=SMALL)
        case Engine.NRM:
            return partial(layernorm, extent=SMALL)
        case Engine.VEC:
            return partial(vec, extent=SMALL)
        case _:
            raise ValueError(f"{engine} executes no instructions")


def companion(generator: Generator, random: np.random.Generator, space: Space) -> Case:
    """Return a case that works on what the SRAM happens to hold: no loads go before it."""
    return replace(generator(random, space), fills=[])
