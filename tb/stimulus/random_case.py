# SPDX-License-Identifier: Apache-2.0
"""A random instruction with what it needs, and programs made of many of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from spec.isa import OPCODES, PREFIX_FIELDS, WORD, Engine, Instruction, Opcode
from spec.isa.legality import check
from spec.isa.operands import Limits, up
from tb.bench.environment import INPUT, PROGRAM, Bench, Execution, turns
from tb.bench.memory import Memory
from tb.stimulus.sram_space import NoRoomError, Place, Space

LARGEST_LOAD = 32 * 1024
"""Bytes that one DMA_LOAD of a fill carries."""


@dataclass
class Case:
    """One or a few instruction words with their data.

    Attributes:
        words: prefix words included.
        stream: the shares they take, in order.
        fills: (SRAM byte address, contents) to be loaded before they run.
        data: what was drawn for each operand and parameter, by its name in the instruction set.
    """

    words: list[Instruction]
    stream: bytes = b""
    fills: list[tuple[int, bytes]] = field(default_factory=list)
    data: dict[str, npt.NDArray[Any]] = field(default_factory=dict)

    def fill(self, name: str, place: Place, rows: npt.NDArray[Any]) -> None:
        """Give an operand its contents: (rows, n) elements, 0xA5 up to each row's word."""
        self.data[name] = rows
        raw = np.ascontiguousarray(rows, rows.dtype.newbyteorder("<")).view(np.uint8)
        raw = raw.reshape(place.rows, place.row_bytes)
        for index, row in enumerate(raw):
            padded = np.full(up(place.row_bytes), 0xA5, np.uint8)
            padded[: row.size] = row
            self.fills.append(((place.word + index * place.pitch) * WORD, padded.tobytes()))


def instruction(
    opcode: Opcode,
    *,
    flags: Sequence[str] = (),
    imm: int | Mapping[str, int] = 0,
    prefix: Mapping[str, int] | None = None,
    needs_prefix: bool = False,
    **fields: int,
) -> list[Instruction]:
    """Return an instruction from named flags and mode fields, with a prefix word if it needs one.

    An all-zero prefix is left out unless `needs_prefix`: some operands must be named even at 0.
    """
    info = OPCODES[opcode]
    bits = 0
    for name in flags:
        bits |= 1 << info.flags[name]
    if not isinstance(imm, int):
        imm = sum(info.imm[name].put(value) for name, value in imm.items())
    word = Instruction(opcode, flags=bits, imm=imm, **fields)
    named = {name: value for name, value in (prefix or {}).items() if value}
    if not named and not needs_prefix:
        return [word]
    return [Instruction(Opcode.PFX, **{PREFIX_FIELDS[k]: v for k, v in named.items()}), word]


Generator = Callable[[np.random.Generator, Space], Case]
"""Makes one random case in a space that it shares with others of its group."""


def size(random: np.random.Generator, most: int) -> int:
    """Return a dimension from 1 to `most`: small and odd ones favoured, edges of 16 included."""
    kind = random.random()
    if kind < 0.15:
        value = int(random.integers(1, 4))
    elif kind < 0.4:
        value = int(random.integers(1, most // 16 + 2)) * 16 + int(random.integers(-1, 2))
    else:
        value = int(random.integers(1, most + 1))
    return min(max(value, 1), most)


def loads(
    fills: Sequence[tuple[int, bytes]], memory: Memory, at: int
) -> tuple[list[Instruction], int]:
    """Stage fills in memory from `at` and return the loads that bring them to SRAM, and the end."""
    merged: list[tuple[int, bytearray]] = []
    for address, data in fills:
        last = merged[-1] if merged else None
        joins = last is not None and last[0] + len(last[1]) == address
        if last is not None and joins and len(last[1]) + len(data) <= LARGEST_LOAD:
            last[1].extend(data)
        else:
            merged.append((address, bytearray(data)))
    words = []
    for address, joined in merged:
        for start in range(0, len(joined), LARGEST_LOAD):
            data = bytes(joined[start : start + LARGEST_LOAD])
            memory.stage(at, data)
            offset = at - INPUT
            words += instruction(
                Opcode.DMA_LOAD,
                dst=(address + start) // WORD,
                src0=offset & 0xFFFF,
                src1=offset >> 16,
                m=1,
                n=len(data),
            )
            at = up(at + len(data))
    return words, at


def check_legal(words: Sequence[Instruction], array_dim: int = 16) -> None:
    """Raise ValueError, with the reason, if a generator made what the chip must refuse."""
    limits = Limits(array_dim=array_dim)
    prefix: Instruction | None = None
    for word in words:
        if word.opcode == Opcode.PFX:
            prefix = word
            continue
        refused = check(word, prefix, limits)
        if refused is not None:
            raise ValueError(f"{word} with prefix {prefix}: {refused[0].name}, {refused[1]}")
        prefix = None


def draw(
    random: np.random.Generator, generators: Sequence[Generator], count: int
) -> list[Generator]:
    """Return `count` generators picked at random."""
    return [generators[int(random.integers(len(generators)))] for _ in range(count)]


def join(bench: Bench, groups: Iterable[Sequence[Case]]) -> tuple[list[Instruction], bytes]:
    """Return (program, stream) of groups of cases.

    Nothing is waited for within a group, so its operands must lie apart; between groups everything
    is waited for. Fills are staged in memory behind BASE0.
    """
    program: list[Instruction] = []
    stream = b""
    at = INPUT
    for cases in groups:
        filling, at = loads([fill for case in cases for fill in case.fills], bench.memory, at)
        if at > PROGRAM:
            raise ValueError(f"the cases need memory past {PROGRAM:#x} for fills")
        program += filling
        if filling:
            program.append(Instruction(Opcode.BARRIER, m=1 << Engine.LD))
        for case in cases:
            check_legal(case.words, bench.config.array_dim)
            program += case.words
            stream += case.stream
        program.append(Instruction(Opcode.BARRIER))
    program.append(Instruction(Opcode.END))
    return program, stream


def build_program(
    bench: Bench, generators: Sequence[Generator], group: int = 4
) -> tuple[list[Instruction], bytes]:
    """Return (program, stream) of one case of each generator, in groups that may overlap in time.

    A group has at most `group` cases, and as many as find room.
    """
    random = bench.random
    groups: list[list[Case]] = []
    left = list(generators)
    while left:
        space = Space(random, bench.config.sram_bytes // WORD)
        cases: list[Case] = []
        for generator in left[: int(random.integers(1, group + 1))]:
            try:
                cases.append(generator(random, space))
            except NoRoomError:
                if not cases:
                    raise
                break
        del left[: len(cases)]
        groups.append(cases)
    return join(bench, groups)


async def run_cases(
    bench: Bench, generators: Sequence[Generator], count: int, group: int = 4, programs: int = 1
) -> list[Execution]:
    """Run random programs of `count` cases each; each agrees in every byte.

    There are `programs` of them, half as many in the short form of a test.
    """
    executions = []
    for _ in range(turns(programs)):
        program, stream = build_program(bench, draw(bench.random, generators, count), group)
        execution = await bench.execute(program, stream, limit=2_000_000)
        if execution.finish.error is not None:
            raise AssertionError(f"a legal program was refused: {execution.finish.error}")
        executions.append(execution)
    return executions
