# SPDX-License-Identifier: Apache-2.0
"""The memory port and its guard alone: bursts of four clients, and all that can go wrong.

That is a request that it must refuse, an answer with an error, and a memory that falls silent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cocotb
import numpy as np

from spec.isa import Engine, ErrorCode
from tb.bench.dut import Dut
from tb.bench.environment import PROGRAM
from tb.unit.memory_faults import MemoryFaults
from tb.unit.requests import OBSERVED, REQUEST, SLOT_BYTES, Records, RequestPort, play, slot
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
"""Of a fault: address, instruction, engine and code; then its cycle, and, before a silent memory
speaks again, whether the port is stuck and whether it is idle."""
ON_BUS = np.dtype([("address", "<u4"), ("writes", "<u4"), ("zero", "<u8")])
"""A burst that came to the bus."""
LIMIT = 200_000
TIMEOUT, MOST_STALL = 250, 50
"""A time-out that no wait reaches while the memory refuses no more than this percent of cycles."""


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

    def record(self, pause: int) -> tuple[list[int], int]:
        """Return payload and wait, see `REQUEST`."""
        payload = self.address | self.words - 1 << 32 | self.instr << 40
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


async def run(
    unit: UnitBench,
    bursts: Sequence[Sequence[PortBurst]],
    faults: MemoryFaults,
    world: World,
    first: int | None = None,
) -> list[RequestPort]:
    """Play the bursts of each client, with random words to write.

    Args:
        unit: the bench.
        bursts: of each client.
        faults: what goes wrong.
        world: how the memory behaves.
        first: the client that begins at once, the others somewhat later.
    """
    words = unit.random.integers(0, 256, SLOT_BYTES, np.uint8)
    unit.memory.stage(PROGRAM + WORD_SLOT * SLOT_BYTES, words)
    faults.stage(unit)
    unit.memory.stage(OBSERVED + READ_SLOT * SLOT_BYTES, bytes(5 * SLOT_BYTES))
    lists: list[Records] = []
    for client, each in enumerate(bursts):
        pauses = unit.random.choice([0, 0, 0, 1, 7, 60], len(each))
        if first is not None:
            pauses[0] = 0 if client == first else 20
        lists.append(
            np.array([b.record(int(p)) for b, p in zip(each, pauses, strict=True)], REQUEST)
        )
    return await play(unit, lists, LIMIT, world)


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
        # No single wait is as long as the time-out, although all of them are.
        world = World.draw(unit.random)
        faults = MemoryFaults(timeout=TIMEOUT if world.memory_stall <= MOST_STALL else 0)
        await run(unit, bursts, faults, world)
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


def check_report(
    unit: UnitBench, client: int, burst: PortBurst, address: int, code: ErrorCode | None
) -> None:
    """Compare what the port says of a burst that goes wrong at an address, or nothing of it.

    Raises:
        PortError: it says something else.
    """
    report = slot(unit, FAULT_SLOT, 1, REPORT)["fields"][0].tolist()
    expected = [0, 0, 0, 0]
    if code is not None:
        expected = [address, burst.instr, int(ENGINES[client]), int(code)]
    if report != expected:
        raise PortError(f"{burst} of client {client}: {report}, expected {expected}")


def check_words(
    unit: UnitBench, bursts: Sequence[Sequence[PortBurst]], exact: dict[int, int]
) -> None:
    """Every client that reads got words of its bursts in order, perhaps not all of them.

    Args:
        unit: the bench.
        bursts: of each client.
        exact: of some clients how many words they got.

    Raises:
        PortError: a client got another word, or another number of them.
    """
    for client in range(WRITER):
        want = b"".join(unit.memory.read(b.address, b.words * WORD) for b in bursts[client])
        room = slot(unit, READ_SLOT + client, len(want) // WORD + 1, np.dtype(("u1", (WORD,))))
        count = int(room.any(axis=1).sum())
        if room[:count].tobytes() != want[: count * WORD]:
            raise PortError(f"client {client} got other words than memory holds")
        if count != exact.get(client, count):
            raise PortError(f"client {client} got {count} words, expected {exact[client]}")


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
            before = unit.memory.view(0, PROGRAM).copy()
            await run(unit, bursts, MemoryFaults(), World.draw(unit.random))
            allowed = special.allowed(client == WRITER)
            refused += not allowed
            check_report(
                unit, client, special, special.address, None if allowed else ErrorCode.REGION
            )
            seen = slot(unit, BUS_SLOT, 100, ON_BUS)
            here = (seen["address"] == special.address) & (seen["writes"] == (client == WRITER))
            if here.any() != allowed:
                raise PortError(f"{special} of client {client} came to the bus: {here.any()}")
            wrong = np.flatnonzero(before != unit.memory.view(0, PROGRAM))
            mine = written(unit, bursts[WRITER][: None if client != WRITER or allowed else 1])
            if not set(wrong.tolist()) <= {address for address, _ in mine}:
                raise PortError(f"{special} of client {client}: memory changed elsewhere")
    assert refused > 20, f"only {refused} were refused"


def around(random: np.random.Generator, client: int) -> list[list[PortBurst]]:
    """Return three bursts of each client; nobody else is in the page of the client's second one."""
    while True:
        bursts = [legal(random, each, 3) for each in range(4)]
        page = bursts[client][1].address // PAGE
        if sum(each.address // PAGE == page for one in bursts for each in one) == 1:
            return bursts


async def run_faulty(
    unit: UnitBench,
    client: int,
    bursts: list[list[PortBurst]],
    faults: MemoryFaults,
    first: int | None,
) -> list[RequestPort]:
    """Play bursts while something goes wrong; nobody but the writer may change memory."""
    before = unit.memory.view(0, PROGRAM).copy()
    world = World(
        stream_gap=int(unit.random.choice([0, 50])),
        memory_stall=int(unit.random.choice([0, 20, MOST_STALL])),
    )
    ports = await run(unit, bursts, faults, world, first)
    wrong = np.flatnonzero(before != unit.memory.view(0, PROGRAM)).tolist()
    if not set(wrong) <= {address for address, _ in written(unit, bursts[WRITER])}:
        raise PortError(f"{faults} at client {client}: memory changed elsewhere")
    return ports


@cocotb.test
async def unit_mem_port_errors(dut: Dut) -> None:
    """An answer with an error: who is named, and that its word and what follows reach nobody."""
    unit = UnitBench.of(dut)
    for client in [*range(4)] * 12:
        bursts = around(unit.random, client)
        special = bursts[client][1]
        index = int(unit.random.integers(special.words))
        bad = special.address + WORD * index
        byte = bad + int(unit.random.integers(WORD))
        writes = client == WRITER
        faults = MemoryFaults(
            timeout=int(unit.random.choice([0, TIMEOUT])),
            errors=range(byte, byte + 1),
            writes=writes,
        )
        await run_faulty(unit, client, bursts, faults, None)
        code = ErrorCode.WRITE_ERROR if writes else ErrorCode.READ_ERROR
        check_report(unit, client, special, special.address if writes else bad, code)
        check_words(unit, bursts, {} if writes else {client: bursts[client][0].words + index})


@cocotb.test
async def unit_mem_port_silence(dut: Dut) -> None:
    """An answer that does not come: who is named; the port is stuck until it has come."""
    unit = UnitBench.of(dut)
    for client in [*range(4)] * 8:
        bursts = around(unit.random, client)
        special = bursts[client][1]
        writes = client == WRITER
        index = special.words - 1 if writes else int(unit.random.integers(special.words))
        missing = special.address + WORD * index
        faults = MemoryFaults(timeout=TIMEOUT, silent=range(missing, missing + WORD), writes=writes)
        await run_faulty(unit, client, bursts, faults, None)
        check_report(
            unit, client, special, special.address if writes else missing, ErrorCode.TIMEOUT
        )
        check_words(unit, bursts, {} if writes else {client: bursts[client][0].words + index})
        check_stuck(unit)


@cocotb.test
async def unit_mem_port_deafness(dut: Dut) -> None:
    """A memory that takes no address or no word: the first one waits as long as was set."""
    unit = UnitBench.of(dut)
    for client, no_words in [*((each, False) for each in range(4)), (WRITER, True)] * 6:
        bursts = around(unit.random, client)
        timeout = int(unit.random.choice([1, 2, 100, TIMEOUT]))
        if no_words:
            timeout = TIMEOUT
        everything = range(0) if no_words else range(1 << 32)
        faults = MemoryFaults(
            timeout, silent=everything, writes=client == WRITER, no_words=no_words
        )
        ports = await run_faulty(unit, client, bursts, faults, client)
        special = bursts[client][0]
        check_report(unit, client, special, special.address, ErrorCode.TIMEOUT)
        check_stuck(unit)
        waited = fault_cycle(unit) - int(ports[client].notes["accepted"][0]) - 1
        if not no_words and waited != timeout:
            raise PortError(f"client {client}: given up after {waited} cycles, expected {timeout}")


def fault_cycle(unit: UnitBench) -> int:
    """Return the cycle of the fault."""
    return int(slot(unit, FAULT_SLOT, 2, REPORT)["fields"][1][0])


def check_stuck(unit: UnitBench) -> None:
    """While the memory is silent the port says so.

    Raises:
        PortError: it does not.
    """
    stuck, idle = slot(unit, FAULT_SLOT, 2, REPORT)["fields"][1][1:3].tolist()
    if (stuck, idle) != (1, 0):
        raise PortError(f"before the memory speaks again: stuck, idle {stuck, idle}, expected 1, 0")
