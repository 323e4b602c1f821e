# SPDX-License-Identifier: Apache-2.0
"""The DRAM of the bench keeps the rules of its standard, loses no access and answers in order.

The rules stand here once more, as the standards have them: in nanoseconds, or clocks where those
are more. What the model does is held against them command by command.
"""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path

import numpy as np
import pytest

from spec.paths import ROOT

ACTIVATE, READ, WRITE, PRECHARGE, PRECHARGE_ALL, REFRESH = range(6)
WORD = 16


@dataclass(frozen=True)
class Part:
    """A part by its standard, times in nanoseconds, `_ck` in clocks.

    Attributes:
        clock: of the clock.
        cycle_ck: of a cycle of the bus.
        groups, banks: bank groups, banks of each.
        line: bytes of a column access, which takes `burst_ck`.
        rl_ck, wl_ck: read and write latency; turn_ck: between the data of a read and of a write.
        rcd, rp, rp_all, ras, rrd_s, rrd_l, faw, ccd_s_ck, ccd_l_ck, wtr_s, wtr_l, wr, rtp: of the
            standard's names, with a `t` before them.
        refi, rfc: from refresh to refresh, and of one.
    """

    clock: float
    cycle_ck: int
    groups: int
    banks: int
    line: int
    burst_ck: int
    rl_ck: int
    wl_ck: int
    turn_ck: int
    rcd: float
    rp: float
    rp_all: float
    ras: float
    rrd_s: float
    rrd_l: float
    faw: float
    ccd_s_ck: int
    ccd_l_ck: int
    wtr_s: float
    wtr_l: float
    wr: float
    rtp: float
    refi: float
    rfc: float


PARTS = {
    "ddr4": Part(
        1 / 1.2, 1, 4, 4, 64, 4, 17, 12, 2, rcd=14.16, rp=14.16, rp_all=14.16, ras=32, rrd_s=3.3,
        rrd_l=4.9, faw=21, ccd_s_ck=4, ccd_l_ck=6, wtr_s=2.5, wtr_l=7.5, wr=15, rtp=7.5, refi=7800,
        rfc=350,
    ),
    "lpddr4": Part(
        1 / 1.6, 4, 1, 8, 32, 8, 28, 14, 8, rcd=18, rp=18, rp_all=21, ras=42, rrd_s=10, rrd_l=10,
        faw=40, ccd_s_ck=8, ccd_l_ck=8, wtr_s=10, wtr_l=10, wr=18, rtp=7.5, refi=3904, rfc=280,
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def player(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the program that plays bursts to the model."""
    program = tmp_path_factory.mktemp("dram") / "player"
    source = Path(__file__).with_name("dram_player.cpp")
    subprocess.run(
        ["g++", "-O1", "-std=gnu++20", f"-I{ROOT}", str(source), "-o", str(program)], check=True
    )
    return program


Burst = tuple[int, str, int, int]
"""Cycle, r or w, address, beats."""


def bursts(random: np.random.Generator, count: int) -> Iterator[Burst]:
    """Return bursts that follow each other, jump within few rows or anywhere, close or apart."""
    cycle, address = 0, 0
    for _ in range(count):
        cycle += int(random.choice([0, 1, 4, 30, 700], p=[0.4, 0.3, 0.2, 0.09, 0.01]))
        beats = int(random.choice([1, 2, 7, 16]))
        jump = random.random()
        if jump < 0.2:
            address = int(random.integers(1 << 24)) * WORD
        elif jump < 0.5:
            address = int(random.integers(8) << 19 | random.integers(1 << 8) << 4)
        yield cycle, "rw"[int(random.random() < 0.4)], address, beats
        address = (address + beats * WORD) % (1 << 30)


@dataclass(frozen=True)
class Played:
    """What the model did: commands (clock, kind, bank, row or column), cycles of the beats."""

    commands: list[tuple[int, int, int, int]]
    beats: list[int]


def play(player: Path, name: str, given: Sequence[Burst], seed: int) -> Played:
    """Return what the model does with bursts."""
    text = "".join(f"{cycle} {kind} {address} {beats}\n" for cycle, kind, address, beats in given)
    output = subprocess.run(
        [str(player), name, str(seed)], input=text, capture_output=True, text=True, check=True
    ).stdout
    words = [line.split() for line in output.splitlines()]
    commands = [tuple(map(int, line[1:])) for line in words if line[0] == "command"]
    return Played(commands, [int(line[1]) for line in words if line[0] == "beat"])  # type: ignore[arg-type]


class Rules:
    """The rules of a part, against commands in their order."""

    def __init__(self, part: Part) -> None:
        self.part = part
        self.open: dict[int, int] = {}
        self.last: dict[tuple[int, int], int] = {}  # by kind and bank
        self.activates: list[int] = []
        self.refreshes: list[int] = []
        self.now = -1

    def ck(self, nanoseconds: float) -> int:
        """Return the clocks of a time; 0.025 clocks less count as reached, as JEDEC rounds."""
        return ceil(nanoseconds / self.part.clock - 0.025)

    def apart(self, kind: int, banks: Sequence[int], least: int, why: str) -> None:
        """Check the distance from the last command of a kind to these banks.

        Raises:
            AssertionError: it is smaller.
        """
        for bank in banks:
            before = self.last.get((kind, bank))
            assert before is None or self.now - before >= least, (
                f"clock {self.now}: {why} after {self.now - before}, allowed from {least} on"
            )

    def step(self, clock: int, kind: int, bank: int, row: int) -> None:
        """Check a command."""
        part, ck = self.part, self.ck
        assert clock > self.now, f"clock {clock}: two commands at once"
        self.now = clock
        every = range(part.groups * part.banks)
        group = [b for b in every if b // part.banks == bank // part.banks]
        write_end = part.wl_ck + part.burst_ck
        if kind == ACTIVATE:
            assert bank not in self.open, f"clock {clock}: bank {bank} is open"
            self.apart(PRECHARGE, [bank], ck(part.rp), "tRP")
            self.apart(PRECHARGE_ALL, [0], ck(part.rp_all), "tRPab")
            self.apart(REFRESH, [0], ck(part.rfc), "tRFC")
            self.apart(ACTIVATE, every, ck(part.rrd_s), "tRRD_S")
            self.apart(ACTIVATE, group, ck(part.rrd_l), "tRRD_L")
            four = self.activates[-4:]
            assert len(four) < 4 or clock - four[0] >= ck(part.faw), f"clock {clock}: tFAW"
            self.activates.append(clock)
            self.open[bank] = row
        elif kind in (READ, WRITE):
            assert bank in self.open, f"clock {clock}: bank {bank} is closed"
            self.apart(ACTIVATE, [bank], ck(part.rcd), "tRCD")
            self.apart(kind, every, part.ccd_s_ck, "tCCD_S")
            self.apart(kind, group, part.ccd_l_ck, "tCCD_L")
            if kind == READ:
                self.apart(WRITE, every, write_end + ck(part.wtr_s), "tWTR_S")
                self.apart(WRITE, group, write_end + ck(part.wtr_l), "tWTR_L")
            else:
                turn = part.rl_ck + part.burst_ck + part.turn_ck - part.wl_ck
                self.apart(READ, every, turn, "read to write")
        elif kind in (PRECHARGE, PRECHARGE_ALL):
            banks = [bank] if kind == PRECHARGE else list(every)
            assert kind == PRECHARGE_ALL or bank in self.open, f"clock {clock}: it is closed"
            opened = [b for b in banks if b in self.open]
            self.apart(ACTIVATE, opened, ck(part.ras), "tRAS")
            self.apart(READ, opened, ck(part.rtp), "tRTP")
            self.apart(WRITE, opened, write_end + ck(part.wr), "tWR")
            for b in banks:
                self.open.pop(b, None)
        else:
            assert not self.open, f"clock {clock}: refresh with open banks"
            self.apart(PRECHARGE, every, ck(part.rp), "tRP")
            self.apart(PRECHARGE_ALL, [0], ck(part.rp_all), "tRPab")
            self.refreshes.append(clock)
        self.last[kind, bank] = clock


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("name", PARTS)
def test_every_command_keeps_the_standard(player: Path, name: str, seed: int) -> None:
    """Random bursts: no command comes too early, to the wrong bank, or beside another one."""
    part = PARTS[name]
    given = list(bursts(np.random.default_rng(seed), 4000))
    played = play(player, name, given, seed)
    rules = Rules(part)
    for command in played.commands:
        rules.step(*command)
    kinds = Counter(kind for _, kind, _, _ in played.commands)
    assert min(kinds[kind] for kind in range(6)) > 5, kinds
    # Refreshes are as often as the standard wants; one may be late by what is under way.
    gaps = np.diff(rules.refreshes)
    assert abs(gaps.mean() - part.refi / part.clock) < 100 and gaps.max() < 9 * gaps.mean()


@pytest.mark.parametrize("name", PARTS)
def test_no_access_is_lost(player: Path, name: str) -> None:
    """Each beat comes, in order, no earlier than the part could; each written line is written."""
    part = PARTS[name]
    given = list(bursts(np.random.default_rng(7), 3000))
    played = play(player, name, given, 7)
    reads = [burst for burst in given if burst[1] == "r"]
    assert len(played.beats) == sum(beats for _, _, _, beats in reads)
    assert all(np.diff(played.beats) > 0)
    # Columns: at most one of each line, and fewer where accesses lie together or in the queue.
    lines = {
        kind: sum(
            (address + beats * WORD - 1) // part.line - address // part.line + 1
            for _, what, address, beats in given
            if what == kind
        )
        for kind in "rw"
    }
    kinds = Counter(kind for _, kind, _, _ in played.commands)
    assert 0.5 * lines["r"] < kinds[READ] <= lines["r"]
    assert 0.5 * lines["w"] < kinds[WRITE] <= lines["w"]


@pytest.mark.parametrize("name", PARTS)
def test_a_single_read_takes_what_the_part_takes(player: Path, name: str) -> None:
    """A closed bank: activate, read, data; an open one: read, data; of another row: all of it."""
    part = PARTS[name]
    rules = Rules(part)
    row = part.groups * part.banks * 8192  # of the same bank, since the row turns the banks
    given = [(1000, "r", 0, 1), (1200, "r", part.line * part.groups, 1), (1400, "r", 8 * row, 1)]
    played = play(player, name, given, 1)
    # The refresh of seed 1 is over by then.
    data = part.rl_ck + part.burst_ck
    closed, opened = ck_cycles(part, rules.ck(part.rcd) + data), ck_cycles(part, data)
    first, second, third = (
        beat - at for beat, (at, _, _, _) in zip(played.beats, given, strict=True)
    )
    assert second - opened == first - closed, "what the controller adds is the same"
    conflict = ck_cycles(part, rules.ck(part.rp) + rules.ck(part.rcd) + data)
    assert third - conflict == first - closed


def ck_cycles(part: Part, clocks: int) -> int:
    """Return the cycles of the bus in which clocks lie."""
    return -(-clocks // part.cycle_ck)
