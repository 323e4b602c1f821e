# SPDX-License-Identifier: Apache-2.0
"""The SRAM and its crossbars alone: data, one access to a bank in a cycle, bounded waits."""

from __future__ import annotations

from collections.abc import Callable

import cocotb
import numpy as np
import numpy.typing as npt

from tb.bench.dut import Dut
from tb.stimulus.sram_space import bank_of
from tb.unit.requests import REQUEST, Records, RequestPort, play, slot
from tb.unit.world import UnitBench

READERS, WRITERS, WORDS = 6, 4, 1024
"""Ports and size of the SRAM in `unit_sram`."""
READ_WAIT, WRITE_WAIT = READERS + 1, WRITERS - 1
"""Cycles that a request waits at most: there are two turns more of reads than ports."""
COUNT = 1500
"""Requests of each port."""
WORD = np.dtype(("u1", (16,)))

Addresses = Callable[[np.random.Generator], npt.NDArray[np.int64]]
"""Draws the addresses of a port: (COUNT,)."""


class SramError(AssertionError):
    """The SRAM is not what it should be."""


def anywhere(random: np.random.Generator) -> npt.NDArray[np.int64]:
    """Return addresses from the whole SRAM."""
    return random.integers(0, WORDS, COUNT)


def few(random: np.random.Generator) -> npt.NDArray[np.int64]:
    """Return addresses of which many are written and read at the same time."""
    return random.choice(np.array([0, 1, 17, 16, 33, 1023]), COUNT)


def one_bank(random: np.random.Generator) -> npt.NDArray[np.int64]:
    """Return addresses of one bank."""
    return random.choice(np.flatnonzero(bank_of(np.arange(WORDS)) == 5), COUNT)


def requests(random: np.random.Generator, addresses: Addresses) -> Records:
    """Return a port's list: addresses, data, and now and then a pause."""
    records = np.zeros(COUNT, REQUEST)
    payload = random.integers(0, 256, (COUNT, 14), np.uint8)
    payload[:, :2] = addresses(random).astype("<u2").view(np.uint8).reshape(COUNT, 2)
    records["payload"] = payload
    pauses = random.integers(0, 1 + int(random.choice([0, 2, 20])), COUNT)
    records["wait"] = np.where(random.random(COUNT) < 0.5, pauses, 0)
    return records


def places(port: RequestPort) -> npt.NDArray[np.int64]:
    """Return the addresses of a port's requests."""
    payload = np.ascontiguousarray(port.requests["payload"][:, :2])
    return payload.view("<u2")[:, 0].astype(np.int64)


def check_turns(ports: list[RequestPort], most: int) -> None:
    """Check that each bank serves one port in a cycle if any asks; nobody waits longer than `most`.

    Raises:
        SramError: with port or bank and cycle.
    """
    last = max(int(port.notes["accepted"].max()) for port in ports) + 1
    served = np.zeros((last, 16), np.int64)
    asked = np.zeros((last, 16), np.bool_)
    for number, port in enumerate(ports):
        banks, notes = bank_of(places(port)), port.notes
        np.add.at(served, (notes["accepted"], banks), 1)
        for bank, first, end in zip(banks, notes["offered"], notes["accepted"], strict=True):
            asked[first : end + 1, bank] = True
        waits = notes["accepted"].astype(np.int64) - notes["offered"]
        if waits.max() > most:
            raise SramError(f"port {number} of {len(ports)} waited for {waits.max()} cycles")
    wrong = np.argwhere(served != asked)
    if wrong.size:
        cycle, bank = wrong[0].tolist()
        raise SramError(
            f"bank {bank} served {served[cycle, bank]} ports in cycle {cycle}, "
            f"asked by {'some' if asked[cycle, bank] else 'none'}"
        )


def check_data(
    readers: list[RequestPort], writers: list[RequestPort], answers: list[Records]
) -> None:
    """Replay all accesses in the order of their cycles.

    What a read finds of a word that is written in the same cycle is left open.

    Raises:
        SramError: a read returns another word.
    """
    events = []
    for number, port in enumerate([*readers, *writers]):
        writes = int(number >= len(readers))
        for index, (cycle, word) in enumerate(
            zip(port.notes["accepted"].tolist(), places(port).tolist(), strict=True)
        ):
            events.append((cycle, writes, number, index, word))
    written = {(cycle, word) for cycle, writes, _, _, word in events if writes}
    held: dict[int, bytes] = {}
    for cycle, writes, number, index, word in sorted(events):
        if writes:
            data = writers[number - len(readers)].requests["payload"][index, 2:]
            held[word] = data.tobytes() + bytes(4)
        elif (cycle, word) in written or word not in held:
            continue
        elif answers[number][index].tobytes() != held[word]:
            raise SramError(
                f"port {number}, word {word:#x} in cycle {cycle}: expected {held[word].hex()}, "
                f"actual {answers[number][index].tobytes().hex()}"
            )


async def _run(dut: Dut, addresses: Addresses) -> None:
    unit = UnitBench.of(dut)
    lists = [requests(unit.random, addresses) for _ in range(READERS + WRITERS)]
    ports = await play(unit, lists, limit=100_000)
    readers, writers = ports[:READERS], ports[READERS:]
    answers = [slot(unit, len(ports) + number, COUNT, WORD) for number in range(READERS)]
    check_turns(readers, READ_WAIT)
    check_turns(writers, WRITE_WAIT)
    check_data(readers, writers, answers)


@cocotb.test
async def unit_sram_anywhere(dut: Dut) -> None:
    """Ports that meet by chance."""
    await _run(dut, anywhere)


@cocotb.test
async def unit_sram_same_words(dut: Dut) -> None:
    """Reads and writes of the same words, one right behind the other."""
    await _run(dut, few)


@cocotb.test
async def unit_sram_one_bank(dut: Dut) -> None:
    """All ports on one bank: each waits its turn and no longer."""
    await _run(dut, one_bank)
