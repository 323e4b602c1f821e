# SPDX-License-Identifier: Apache-2.0
"""Accounts for every byte of a compiled stream: what it is for, and how much of it is necessary.

Necessary are weights without padding, 8 bytes per output channel, 4 per norm channel, and tables as
the format lists them. The rest is padding and headers. Layouts: docs/reference/isa.md.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from npu.asm.program import Program
from npu.compiler.ideal import cached, looked_up
from npu.compiler.model import CompiledModel, CompiledProgram
from npu.image import StreamShare
from spec.isa.gemm import GemmForm
from spec.isa.generated import LINE, GemmQ, Opcode
from spec.isa.instruction import Instruction
from spec.isa.operands import TABLE_BYTES, share_bytes, up

CHANNEL_BYTES, NORM_CHANNEL_BYTES, HEADER_BYTES = 8, 4, 64


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of an instruction's share.

    Attributes:
        share: name of the share.
        what: "weights", "channels", "table", "norm channels" or "header".
        bytes: as it lies in the stream.
        necessary: those of them that no format could leave out.

    """

    share: str
    what: str
    bytes: int
    necessary: int


def _gemm(word: Instruction, name: str, edge: int) -> Iterator[Piece]:
    form = GemmForm.of(word)
    columns = up(word.n, edge)
    if form.activation:
        yield Piece(name, "table", TABLE_BYTES, TABLE_BYTES)
    if form.mode and form.requant and form.q == GemmQ.TENSOR:
        yield Piece(name, "header", HEADER_BYTES, 0)
    if form.mode and form.requant and form.q == GemmQ.CHANNEL:
        yield Piece(name, "channels", CHANNEL_BYTES * columns, CHANNEL_BYTES * word.n)
    if form.stream:
        layout = form.layout(edge)
        size = columns // edge * layout.lines(word.k) * LINE
        yield Piece(name, "weights", size, -(-word.n * layout.bits(word.k) // 8))


def _norm(word: Instruction, name: str) -> Iterator[Piece]:
    yield Piece(name, "header", HEADER_BYTES, 0)
    size = up(NORM_CHANNEL_BYTES * up(word.n), HEADER_BYTES)
    yield Piece(name, "norm channels", size, NORM_CHANNEL_BYTES * word.n)


class Streamed(Protocol):
    """A program and the shares that it takes, in order."""

    @property
    def program(self) -> Program:
        """The program."""

    @property
    def shares(self) -> tuple[StreamShare, ...]:
        """Its shares."""

    @property
    def edge(self) -> int:
        """Tile edge of the chip."""


def pieces(block: Streamed) -> list[Piece]:
    """Return the parts of what a program takes from the stream, in order.

    Raises ValueError if they are not all of it.
    """
    takers = [word for word in block.program.instructions if share_bytes(word, block.edge)]
    found: list[Piece] = []
    for word, share in zip(takers, block.shares, strict=True):
        if word.opcode == Opcode.GEMM:
            parts = list(_gemm(word, share.name, block.edge))
        elif word.opcode in (Opcode.LAYERNORM, Opcode.RMSNORM):
            parts = list(_norm(word, share.name))
        else:
            parts = [Piece(share.name, "table", TABLE_BYTES, TABLE_BYTES)]
        size = sum(part.bytes for part in parts)
        if size != share.bytes:
            raise ValueError(f"share {share.name}: parts of {size} bytes, it has {share.bytes}")
        found += parts
    return found


def weight_counts(block: Streamed) -> dict[str, int]:
    """Return the weights in each share that has some, by its name."""
    takers = [word for word in block.program.instructions if share_bytes(word, block.edge)]
    return {
        share.name: word.n * word.k
        for word, share in zip(takers, block.shares, strict=True)
        if word.opcode == Opcode.GEMM and GemmForm.of(word).stream
    }


def weight_bits(block: Streamed) -> float:
    """Return the bits of a weight in the stream, side bytes and padding included."""
    size = sum(piece.bytes for piece in pieces(block) if piece.what == "weights")
    return 8 * size / sum(weight_counts(block).values())


def overhead(parts: Sequence[Piece]) -> float:
    """Return the bytes of the stream per necessary byte."""
    return sum(part.bytes for part in parts) / sum(part.necessary for part in parts)


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes on the bus that no program could do without."""

    read: int
    write: int


def traffic(model: CompiledModel, program: CompiledProgram, pos: int = 0) -> Traffic:
    """Return the necessary traffic of a decode step at `pos`, or of a prompt that begins there.

    Parameters once, rows of the tables, ids in and out, logits where the program stores them; if
    the cache lies in memory, the appended rows of K and V and the earlier ones that can be seen.
    """
    shape, rows = model.shape, max(1, program.rows)
    parts = {(part.share, part.what): part.necessary for part in pieces(program)}
    read = sum(parts.values())
    read += rows * looked_up(shape)
    read += 4 * program.rows
    write = 4
    if any(ref.name == "logits" for ref in program.tensors):
        write += 2 * shape.vocab
    if model.cache.in_memory:
        layers = [cached(shape, rows, pos, number) for number in range(shape.layers)]
        read += sum(each.read_bytes for each in layers)
        write += sum(each.write_bytes for each in layers)
    return Traffic(read, write)
