# SPDX-License-Identifier: Apache-2.0
"""The memory port and its guard alone: bursts of four clients, and requests that it must refuse."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cocotb
import numpy as np

from npu.isa import Engine, ErrorCode
from tb.bench.dut import Dut
from tb.bench.environment import PROGRAM
from tb.unit.requests import OBSERVED, REQUEST, SLOT_BYTES, Port, Records, play, slot
from tb.unit.world import UnitBench, World

WORD, PAGE = 16, 4096
READABLE = range(0x10_0000, 0x20_0000)
WRITABLE = range(0x20_0000, 0x30_0000)
STREAM = range(0x24_0040, 0x25_0040)
"""The regions and the stream in use that `unit_mem_port` sets."""
ENGINES = (Engine.SEQ, Engine.LD, Engine.STREAM, Engine.ST)
"""Whom the clients work for; the last one writes."""
WRITER = 3
READ_SLOT, FAULT_SLOT, BUS_SLOT, WORD_SLOT = 4, 7, 8, 8
REPORT = np.dtype([("fields", "<u4", (4,))])
"""Of a fault: address, instruction, engine and code."""
ON_BUS = np.dtype([("address", "<u4"), ("writes", "<u4"), ("zero", "<u8")])
"""A burst that came to the bus."""
LIMIT = 200_000


class PortError(AssertionError):
    """The memory port did something else than it should."""


@dataclass(frozen=True)
class PortBurst:
    """A request: address in bytes, words, and the instruction that it is for."""

    address: int
    words: int
    instr: int

    @property
    def last(self) -> int:
        """The address of its last byte."""
        return self.address + self.words * WORD - 1

    def allowed(self, writes: bool) -> bool:
        """Whether regions and stream permit it."""
        if not writes:
            return self.address in READABLE
        meets_stream = self.address < STREAM.stop and self.last >= STREAM.start
        return self.address in WRITABLE and not meets_stream

    def record(self, random: np.random.Generator) -> tuple[list[int], int]:
        """Return payload and wait, see `REQUEST`."""
        payload = self.address | self.words - 1 << 32 | self.instr << 40
        pause = int(random.choice([0, 0, 0, 1, 7, 60]))
        return list(payload.to_bytes(14, "little")), pause


def burst(random: np.random.Generator, client: int, index: int, page: int) -> PortBurst:
    """Return a random burst inside a page."""
    first, words = int(random.integers(256)), int(random.choice([1, 2, 31, 32]))
    words = min(words, 256 - first)
    return PortBurst(page + first * WORD, words, 1000 * client + index)


def legal(random: np.random.Generator, client: int, count: int) -> list[PortBurst]:
    """Return random bursts that are permitted; those that write are in a page each."""
    if client != WRITER:
        pages = random.integers(0, len(READABLE) // PAGE, count) * PAGE + READABLE.start
    else:
        free = [page for page in WRITABLE[::PAGE] if not STREAM.start - PAGE < page < STREAM.stop]
        pages = random.choice(free, count, replace=False).tolist()
    return [burst(random, client, index, int(page)) for index, page in enumerate(pages)]


async def run(unit: UnitBench, bursts: Sequence[Sequence[PortBurst]]) -> list[Port]:
    """Play the bursts of each client, with random words to write."""
    words = unit.random.integers(0, 256, SLOT_BYTES, np.uint8)
    unit.memory.stage(PROGRAM + WORD_SLOT * SLOT_BYTES, words)
    lists: list[Records] = [
        np.array([tuple(each.record(unit.random)) for each in client], REQUEST) for client in bursts
    ]
    return await play(unit, lists, LIMIT, World.draw(unit.random))


def written(unit: UnitBench, bursts: Sequence[PortBurst]) -> list[tuple[int, bytes]]:
    """Return (address, byte) of what the bursts write; bits 15:0 of a word are its strobe."""
    words = unit.memory.read(PROGRAM + WORD_SLOT * SLOT_BYTES, SLOT_BYTES)
    result, at = [], 0
    for each in bursts:
        for address in range(each.address, each.last, WORD):
            word = words[at : at + WORD]
            strobe = int.from_bytes(word[:2], "little")
            result += [(address + i, word[i : i + 1]) for i in range(WORD) if strobe >> i & 1]
            at += WORD
    return result


@cocotb.test
async def unit_mem_port_bursts(dut: Dut) -> None:
    """Bursts of all clients at once: every word comes back to whom it is for, in order."""
    unit = UnitBench.of(dut)
    for _ in range(6):
        bursts = [legal(unit.random, client, 120) for client in range(4)]
        before = unit.memory.view(WRITABLE.start, len(WRITABLE)).copy()
        await run(unit, bursts)
        for client in range(WRITER):
            want = b"".join(unit.memory.read(b.address, b.words * WORD) for b in bursts[client])
            kind = np.dtype(("u1", (WORD,)))
            got = slot(unit, READ_SLOT + client, len(want) // WORD, kind).tobytes()
            if got != want:
                raise PortError(f"client {client} got other words than memory holds")
        for address, byte in written(unit, bursts[WRITER]):
            before[address - WRITABLE.start] = byte[0]
        if not np.array_equal(before, unit.memory.view(WRITABLE.start, len(WRITABLE))):
            raise PortError("memory does not hold what was written")


def edges(client: int) -> list[PortBurst]:
    """Return bursts at both sides of each border of what a client may touch."""
    borders = [READABLE.start, READABLE.stop, WRITABLE.stop]
    if client == WRITER:
        borders += [STREAM.start, STREAM.stop]
    found = []
    for border in borders:
        for words in (1, 2, 32):
            for address in (
                border - words * WORD,
                border - words * WORD + WORD,
                border - WORD,
                border,
            ):
                found.append(PortBurst(address, words, 77))
    return [each for each in found if each.address // PAGE == each.last // PAGE]


@cocotb.test
async def unit_mem_port_guard(dut: Dut) -> None:
    """A burst at each border of each region and of the stream, between permitted ones of others.

    One that is refused is named with engine, instruction and address, and changes nothing.
    """
    unit = UnitBench.of(dut)
    refused = 0
    for client in range(4):
        for special in edges(client):
            bursts = [legal(unit.random, each, 3) for each in range(4)]
            bursts[client][1] = special
            unit.memory.stage(OBSERVED + FAULT_SLOT * SLOT_BYTES, bytes(2 * SLOT_BYTES))
            before = unit.memory.view(0, PROGRAM).copy()
            await run(unit, bursts)
            report = slot(unit, FAULT_SLOT, 1, REPORT)["fields"][0].tolist()
            expected = [0, 0, 0, 0]
            allowed = special.allowed(client == WRITER)
            if not allowed:
                refused += 1
                expected = [special.address, 77, int(ENGINES[client]), int(ErrorCode.REGION)]
            if report != expected:
                raise PortError(f"{special} of client {client}: {report}, expected {expected}")
            seen = slot(unit, BUS_SLOT, 100, ON_BUS)
            here = (seen["address"] == special.address) & (seen["writes"] == (client == WRITER))
            if here.any() != allowed:
                raise PortError(f"{special} of client {client} came to the bus: {here.any()}")
            wrong = np.flatnonzero(before != unit.memory.view(0, PROGRAM))
            mine = written(unit, bursts[WRITER][: None if client != WRITER or allowed else 1])
            if not set(wrong.tolist()) <= {address for address, _ in mine}:
                raise PortError(f"{special} of client {client}: memory changed elsewhere")
    assert refused > 20, f"only {refused} were refused"
