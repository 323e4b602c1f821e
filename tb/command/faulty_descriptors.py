# SPDX-License-Identifier: Apache-2.0
"""Descriptors that fail because of what stands in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from spec.regs import CmdOp, RingStatus
from tb.command.descriptor_words import SCALARS, DescriptorWords, Extension, TileWords, launch
from tb.command.random_descriptors import SOURCE, TARGET

PRODUCT = TileWords.gemm(2, 3, 4, (0, 8, 24), (4, 3, 12))
"""A tile that is accepted."""
PROGRAM_PLACE = 0x0036_0000
Fault = tuple[str, int, DescriptorWords]
"""What is wrong, DESC_STATUS[7:0], and the descriptor."""


def _tile(op: CmdOp, tile: TileWords, target: int) -> DescriptorWords:
    return DescriptorWords(op, writeback=True, extension=Extension.of_tile(tile, target))


def _reserved(made: DescriptorWords, word: int, bit: int) -> Fault:
    """Return a descriptor with a bit of its extension set, in word 5, 6 or 7."""
    words = (int(word == 0) << bit, int(word == 1) << bit, int(word == 2) << bit)
    what = f"word {5 + word} bit {bit}"
    return what, RingStatus.OPERATION, replace(made, extension=Extension(0, words))


def configuration_faults(scratch_bytes: int) -> Iterator[Fault]:
    """Yield descriptors whose fields are wrong."""
    wide = scratch_bytes > 64
    add = DescriptorWords(CmdOp.ADD, 1, 2)
    yield "no owner", RingStatus.OWNER, replace(add, owner=False)
    yield "no owner, extended", RingStatus.OWNER, replace(add, owner=False, extension=Extension())
    yield "no owner, program", RingStatus.OWNER, replace(launch(PROGRAM_PLACE, 1), owner=False)
    nothing_else = replace(add, owner=False, stream=(1, 1), a=1)
    yield "no owner and a bad stream", RingStatus.OWNER, nothing_else
    for bit in (6, 7, *range(9, 16), 22, 23):
        if bit in (22, 23) and wide:
            continue
        yield (
            f"bit {bit}",
            RingStatus.OPERATION,
            replace(add, extension=Extension(), flipped=1 << bit),
        )
    reserved: list[tuple[int, Iterable[int]]] = [(0, range(24, 32)), (1, range(24, 32))]
    if not wide:
        reserved += [(0, (7, 10, 15, 19, 23)), (1, (6, 7, 14, 15, 22, 23)), (2, (4, 12, 20, 23))]
    for word, bits in reserved:
        for bit in bits:
            yield _reserved(add, word, bit)
    program = launch(PROGRAM_PLACE, 1)
    for bit in (0, 3, 6, 8, 12, 16, 21, 22, 24, 29, 30):
        yield f"program with bit {bit}", RingStatus.OPERATION, replace(program, flipped=1 << bit)
    for bit in (0, 1, 2, 3):
        yield f"program at bit {bit}", RingStatus.OPERATION, launch(PROGRAM_PLACE | 1 << bit, 1)
    for bit in (0, 11, 23):
        yield (
            f"program with bit {bit} of word 7",
            RingStatus.OPERATION,
            replace(program, extension=Extension(PROGRAM_PLACE, (1, 0, 1 << bit))),
        )
    for source, stream in (
        (SOURCE + 1, (0, 4)),
        (SOURCE + 2, (0, 4)),
        (SOURCE, (2, 4)),
        (SOURCE, (1, 4)),
        (SOURCE, (0, 0)),
        (SOURCE, (0, 6)),
        (SOURCE, (0, 63)),
        (SOURCE, (scratch_bytes - 4, 8)),
        (SOURCE, (scratch_bytes - 56, 60)),
    ):
        made = replace(add, a=source, stream=stream)
        yield f"stream {source:#x} {stream}", RingStatus.STREAM_CONFIG, made
        extended = replace(made, extension=Extension(1), writeback=True)
        yield f"stream {source:#x} {stream}, extended", RingStatus.STREAM_CONFIG, extended
    yield "scalar written back", RingStatus.WRITEBACK_CONFIG, replace(add, b=TARGET, writeback=True)
    for op in SCALARS[::3]:
        yield (
            f"{op.name} at 2",
            RingStatus.WRITEBACK_CONFIG,
            DescriptorWords(op, 1, 1, writeback=True, extension=Extension(TARGET + 2)),
        )
    for tile, target in (
        (PRODUCT, TARGET + 1),
        (TileWords.gemm(0, 3, 4, (0, 8, 24), (4, 3, 12)), TARGET),
        (TileWords.gemm(2, 0, 4, (0, 8, 24), (4, 3, 12)), TARGET),
    ):
        yield (
            f"writeback of {tile} to {target:#x}",
            RingStatus.WRITEBACK_CONFIG,
            _tile(CmdOp.GEMM_S8, tile, target),
        )
    for tile in (
        TileWords.vrelu(0, 0, 0),
        TileWords.vrelu(3, 0, 0),
        TileWords.vrelu(6, 0, 0),
        TileWords.vrelu(8, 0, 2),
        TileWords.vrelu(scratch_bytes + 4, 0, 0),
    ):
        yield (
            f"writeback of {tile}",
            RingStatus.WRITEBACK_CONFIG,
            _tile(CmdOp.VRELU_S8, tile, TARGET),
        )
    for tile in (
        TileWords.gemm(1, 1, 0, (0, 8, 24), (4, 3, 12)),
        TileWords.gemm(2, 3, 4, (0, 8, 25), (4, 3, 12)),
        TileWords.gemm(2, 3, 4, (0, 8, 24), (4, 3, 10)),
        TileWords.gemm(2, 3, 4, (0, 8, 12), (4, 3, 12)),
    ):
        yield (
            f"refused {tile}",
            RingStatus.OPERATION,
            _tile(CmdOp.GEMM_S8, tile, TARGET),
        )
    beyond = TileWords.vrelu(8, scratch_bytes - 4, 0)
    yield (
        f"refused {beyond}",
        RingStatus.OPERATION,
        _tile(CmdOp.VRELU_S8, beyond, TARGET),
    )
    yield "reserved lane", RingStatus.OPERATION, DescriptorWords(CmdOp.DOT4_FP8_E4M3, 0x7F00)
