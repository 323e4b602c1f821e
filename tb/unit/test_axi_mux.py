# SPDX-License-Identifier: Apache-2.0
"""The multiplexer of the AXI masters alone: whose burst goes, whose words, whose answer."""

from __future__ import annotations

from dataclasses import dataclass

import cocotb
import numpy as np
import numpy.typing as npt

from tb.bench.dut import Dut
from tb.bench.environment import PROGRAM
from tb.unit.requests import REQUEST, SLOT_BYTES, Records, RequestPort, play, slot
from tb.unit.world import UnitBench, World

WORD, PAGE = 16, 4096
MASTERS = ("core", "command port", "coprocessor")
"""The second one goes first, the first one last."""
IDS = (8, 4, 4)
"""Numbers that their bursts may have."""
MORE = (6, 9, 12)
"""Slots of their words; beats, data and answers are noted from there on, see `unit_axi_master`."""
READABLE, WRITABLE = range(0x10_0000, 0x20_0000), range(0x20_0000, 0x34_0000)
NOWHERE = 0x4000_0000
"""No memory is there: accesses answer with an error."""
COUNT = 100
"""Bursts of each master and direction; their beats and words have room in a slot."""
LIMIT = 100_000
NOTE = np.dtype([("bits", "<u4"), ("zero", "u1", (12,))])
"""A beat: error 5, last 4, ID 3:0. An answer to a write: error 4, ID 3:0."""


class MuxError(AssertionError):
    """The multiplexer did something else than it should."""


@dataclass(frozen=True)
class AxiBurst:
    """A burst: the first byte, words, ID."""

    address: int
    words: int
    number: int

    @property
    def fails(self) -> bool:
        """Whether the memory answers with an error."""
        return self.address >= NOWHERE

    def record(self, pause: int) -> tuple[list[int], int]:
        """Return payload and wait, see `REQUEST`."""
        payload = self.address | self.number << 32 | self.words - 1 << 40
        return list(payload.to_bytes(14, "little")), pause


@dataclass(frozen=True)
class Lists:
    """What a master plays, and the words that it writes: (n, 16) uint8."""

    reads: list[AxiBurst]
    writes: list[AxiBurst]
    words: npt.NDArray[np.uint8]


def bursts(random: np.random.Generator, pages: list[int], ids: int) -> list[AxiBurst]:
    """Return random bursts, one in each page; some IDs are used more often than others."""
    found = []
    for page in pages:
        words = int(random.choice([1, 1, 2, 3, 16, 32]))
        base = NOWHERE if random.random() < 0.05 else page
        address = base + WORD * int(random.integers(257 - words))
        number = int(random.choice([0, 1, 1, 2, 3, 4, 5, 6, 7])) % ids
        found.append(AxiBurst(address, words, number))
    return found


def draw(random: np.random.Generator) -> list[Lists]:
    """Return lists for all masters; no two of their writes meet."""
    several = len(MASTERS)
    to_read = random.choice(np.array(READABLE[::PAGE]), (several, COUNT)).tolist()
    to_write = random.choice(np.array(WRITABLE[::PAGE]), (several, COUNT), replace=False).tolist()
    words = random.integers(0, 256, (several, SLOT_BYTES // WORD, WORD), np.uint8)
    return [
        Lists(bursts(random, reads, ids), bursts(random, writes, ids), data)
        for reads, writes, data, ids in zip(to_read, to_write, words, IDS, strict=True)
    ]


def records(random: np.random.Generator, listed: list[AxiBurst]) -> Records:
    """Return bursts as requests, close together or far apart."""
    pauses = random.choice([0, 0, 0, 1, int(random.choice([3, 60]))], len(listed)).tolist()
    return np.array([b.record(p) for b, p in zip(listed, pauses, strict=True)], REQUEST)


async def run(unit: UnitBench, lists: list[Lists], world: World) -> list[RequestPort]:
    """Play the lists; return what was noted of reads and writes, of each master in turn."""
    for master, each in enumerate(lists):
        unit.memory.stage(PROGRAM + MORE[master] * SLOT_BYTES, each.words)
    played = [records(unit.random, one) for each in lists for one in (each.reads, each.writes)]
    return await play(unit, played, LIMIT, world)


def check_reads(unit: UnitBench, master: int, reads: list[AxiBurst]) -> None:
    """Each beat came back with its ID, those of an ID in the order in which they were asked for.

    Raises:
        MuxError: a beat is another one.
    """
    due: dict[int, list[tuple[int, int, int]]] = {number: [] for number in range(IDS[master])}
    for burst in reads:
        for beat in range(burst.words):
            place = -1 if burst.fails else burst.address + WORD * beat
            due[burst.number].append((place, int(beat == burst.words - 1), int(burst.fails)))
    count = sum(burst.words for burst in reads)
    bits = slot(unit, MORE[master], count, NOTE)["bits"].tolist()
    data = slot(unit, MORE[master] + 1, count, np.dtype([("word", "u1", (WORD,))]))["word"]
    for index, seen in enumerate(bits):
        number = seen & 15
        place, last, error = due[number].pop(0) if due.get(number) else (-1, -1, -1)
        same = place < 0 or data[index].tobytes() == unit.memory.read(place, WORD)
        if (seen >> 4 & 1, seen >> 5) != (last, error) or not same:
            raise MuxError(
                f"{MASTERS[master]}, beat {index} with ID {number}: expected that of {place:#x}, "
                f"last {last}, error {error}; actual {data[index].tobytes().hex()}, bits {seen:#x}"
            )


def check_answers(unit: UnitBench, master: int, writes: list[AxiBurst]) -> None:
    """Each write was answered with its ID, those of an ID in order.

    Raises:
        MuxError: an answer is another one.
    """
    due = {number: [b.fails for b in writes if b.number == number] for number in range(IDS[master])}
    for index, seen in enumerate(slot(unit, MORE[master] + 2, COUNT, NOTE)["bits"].tolist()):
        number = seen & 15
        expected = int(due[number].pop(0)) if due.get(number) else -1
        if seen >> 4 != expected:
            raise MuxError(
                f"{MASTERS[master]}, answer {index} with ID {number}: expected error {expected}, "
                f"actual {seen >> 4}"
            )


def written(lists: Lists) -> list[tuple[int, int]]:
    """Return (address, byte) of what a master writes; bits 15:0 of a word are its strobe."""
    found, at = [], 0
    for burst in lists.writes:
        for index in range(burst.words if not burst.fails else 0):
            word = lists.words[at + index].tolist()
            strobe = word[0] | word[1] << 8
            place = burst.address + WORD * index
            found += [(place + i, word[i]) for i in range(WORD) if strobe >> i & 1]
        at += burst.words
    return found


@cocotb.test
async def unit_axi_mux_bursts(dut: Dut) -> None:
    """All masters at once: answers and memory; `unit_axi_mux` holds who goes first."""
    unit = UnitBench.of(dut)
    waited = 0
    for _ in range(12):
        lists = draw(unit.random)
        memory = unit.memory.view(WRITABLE.start, len(WRITABLE)).copy()
        ports = await run(unit, lists, World.draw(unit.random))
        for master, each in enumerate(lists):
            check_reads(unit, master, each.reads)
            check_answers(unit, master, each.writes)
            for address, byte in written(each):
                memory[address - WRITABLE.start] = byte
        if not np.array_equal(memory, unit.memory.view(WRITABLE.start, len(WRITABLE))):
            raise MuxError("memory does not hold what was written")
        waited += int((ports[0].notes["accepted"] - ports[0].notes["offered"] > 1).sum())
    assert waited > 100, f"only {waited} reads of the core had to wait"
