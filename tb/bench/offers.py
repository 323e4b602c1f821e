# SPDX-License-Identifier: Apache-2.0
"""Instructions as Python leaves them for the coprocessor's agent, in a file of the run's folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from cocotb.triggers import First, Timer, ValueChange

from npu.driver.errors import DeviceError
from tb.bench.dut import CLOCK_NS, Dut

FILE = "offers.bin"
MOST = 1024
"""So many instructions are in a list at most."""
PATIENCE = 100_000
"""Cycles within which a list must have been played unless a test says otherwise."""
RECORD: np.dtype[Any] = np.dtype(
    [
        *(("word", "<u4"), ("rs", "<u4", 3), ("gap", "<u2"), ("flags", "<u2")),
        *(("source_delay", "u1", 3), ("commit_delay", "u1"), ("step", "u1"), ("hold", "u1")),
        *(
            ("beside", "u1"),
            ("withdraw", "u1"),
            ("unused", "u1", 4),
            ("state", "u1"),
            ("registers", "u1"),
            ("id", "u1"),
            ("rd", "u1"),
        ),
        *(("data", "<u4"), ("offered", "<u4"), ("issued", "<u4"), ("committed", "<u4")),
        *(("resulted", "<u4"), ("answered", "<u4"), ("named", "<u4")),
    ]
)
"""An instruction as `offer_t` of tb_pkg knows it; from `state` on it is the answer."""
_FLAGS = ("kill", "early", "batch", "alone", "stays", "repeat", "swap")
"""Fields of an `Offer` that are bits, in the order of `offer_flag_e`."""
_ISSUED, _ACCEPTED, _WRITEBACK, _COMMITTED, _KILLED, _RESULTED, _WRITTEN = (
    1 << bit for bit in range(7)
)


@dataclass(frozen=True)
class Offer:
    """An instruction and how the host offers it.

    Attributes:
        word: 32 bits.
        rs: contents of its source registers.
        gap: cycles without an offer before it.
        sources: cycles until each source is there: from the offer on, where registers come with the
            issue; from the issue on where they come behind it, in one transaction.
        commit: cycles from issue to its commit, 0 for the same cycle; from the offer if `early`.
        early: the commit does not wait for the issue.
        kill: the commit kills it, and all younger ones that are under way or offered.
        batch: no commit of its own if a younger one is there to be committed.
        alone: it is offered when nothing is under way.
        hold: cycles that its result waits for the host.
        step: its identifier minus that of the offer before, 1..15.
        beside: its commit names an identifier so far behind its own, a kill one so far before it,
            as if that were another coprocessor's, where there is room.
        stays: when an older one is killed, or it by an early kill, the offer is not withdrawn: it
            waits for its issue, and is killed.
        repeat: it, or one that is `beside` before it, is committed a second time, if it is still
            under way then.
        withdraw: cycles after which the offer is withdrawn once if it still waits, 0 for never.
        swap: withdrawn by the next identifier, without a cycle between.
    """

    word: int
    rs: tuple[int, int, int] = (0, 0, 0)
    gap: int = 0
    sources: tuple[int, int, int] = (0, 0, 0)
    commit: int = 1
    early: bool = False
    kill: bool = False
    batch: bool = False
    alone: bool = False
    hold: int = 0
    step: int = 1
    beside: int = 0
    stays: bool = False
    repeat: bool = False
    withdraw: int = 0
    swap: bool = False

    @property
    def flags(self) -> int:
        """Bits of `offer_flag_e`."""
        return sum(1 << bit for bit, name in enumerate(_FLAGS) if getattr(self, name))


@dataclass(frozen=True)
class Answer:
    """What became of an instruction.

    Attributes:
        accepted: whether the coprocessor took it.
        writeback: whether it said so of a result register.
        register_read, float_registers: bit masks, as it answered.
        killed: by its own kill or that of an older one.
        resulted: there was a result.
        we, rd, data: of the result.
        id, named: its identifier and the one that its commit or kill named, modulo 256.
        offered, issued, committed, answered, resulted_at: cycles modulo 2^32: first one of the
            offer, handshake of issue, commit or kill, first cycle of its result, handshake of it.
    """

    accepted: bool
    writeback: bool
    register_read: int
    float_registers: int
    killed: bool
    resulted: bool
    we: bool
    rd: int
    data: int
    id: int
    named: int
    offered: int
    issued: int
    committed: int
    answered: int
    resulted_at: int

    @classmethod
    def of(cls, record: np.void) -> Answer:
        """Read a record.

        Raises:
            DeviceError: the instruction was never issued.
        """
        state = int(record["state"])
        if not state & _ISSUED:
            raise DeviceError(f"instruction {int(record['word']):#010x} was not issued")
        return cls(
            bool(state & _ACCEPTED),
            bool(state & _WRITEBACK),
            int(record["registers"]) & 15,
            int(record["registers"]) >> 4,
            bool(state & _KILLED),
            bool(state & _RESULTED),
            bool(state & _WRITTEN),
            *(int(record[name]) for name in ("rd", "data", "id", "named")),
            *(
                int(record[name])
                for name in ("offered", "issued", "committed", "answered", "resulted")
            ),
        )

    @property
    def cycles(self) -> int:
        """From issue to the result taken."""
        return (self.resulted_at - self.issued) & 0xFFFF_FFFF


class OfferPlayer:
    """The coprocessor's port of `tb_top`, played by `cop_agent`."""

    def __init__(self, dut: Dut, run_dir: Path) -> None:
        self._dut = dut
        self._turn = int(dut.cop_played.value)
        self._list = np.memmap(run_dir / FILE, dtype=RECORD, mode="w+", shape=(MOST,))

    def begin(self, offers: Sequence[Offer]) -> None:
        """Have a list played; `finish` waits for its end.

        Raises:
            ValueError: they are too many.
        """
        if not 1 <= len(offers) <= MOST:
            raise ValueError(f"offers: given {len(offers)}, allowed 1..{MOST} in a list")
        records = np.zeros(len(offers), RECORD)
        for record, one in zip(records, offers, strict=True):
            record["word"], record["rs"] = one.word, one.rs
            record["gap"], record["flags"], record["step"] = one.gap, one.flags, one.step
            record["source_delay"], record["commit_delay"] = one.sources, one.commit
            record["hold"], record["beside"], record["withdraw"] = (
                one.hold,
                one.beside,
                one.withdraw,
            )
        self._list[: len(offers)] = records
        self._dut.cop_count.value = len(offers)
        self._turn = 1 - int(self._dut.cop_played.value)
        self._dut.cop_play.value = self._turn

    @property
    def playing(self) -> bool:
        """Whether a list is under way."""
        return int(self._dut.cop_played.value) != self._turn

    async def finish(self, count: int, limit: int = PATIENCE) -> list[Answer]:
        """Sleep until the list of `count` instructions has been played; return the answers.

        Raises:
            DeviceError: it was not within `limit` cycles, or a reset cut it short.
        """
        played = self._dut.cop_played
        if self.playing:
            patience = Timer(limit * CLOCK_NS, "ns")
            if await First(ValueChange(played), patience) is patience:
                at = int(self._dut.cop_index.value)
                raise DeviceError(f"instruction {at} of {count}: no end within {limit} cycles")
        return [Answer.of(record) for record in self._list[:count]]

    async def play(self, offers: Sequence[Offer], limit: int = PATIENCE) -> list[Answer]:
        """Have a list played, sleep until its end, return the answers."""
        self.begin(offers)
        return await self.finish(len(offers), limit)
