# SPDX-License-Identifier: Apache-2.0
"""How memory and host behave: latency, gaps, back-pressure, order, injected errors."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from tb.bench.dut import Dut
from tb.bench.memory_kinds import MemoryKind

LATENCY_MAX = 0xFFFF
"""Cycles of latency that the memory knows."""


@dataclass(frozen=True)
class Knobs:
    """Settings of the memory and the host; each is the signal `knob_<name>` of `tb_top`.

    The defaults are the conditions of all performance figures: 40 cycles from the address
    handshake to the first read beat and from the last write beat to the response, pipelined, one
    beat per cycle. With a spread each burst takes up to so many cycles more. Gaps and stalls are
    percentages of cycles, 0..99; with `host_stall` it is the host who is slow to offer and to
    accept what makes a register access. A silent memory neither accepts nor answers; one that is
    silent only from `silent_first` to `silent_last` accepts everything and withholds its answers
    there, and those that would have to come after them.

    On a DRAM latency, spread and interleave do not count.
    """

    read_latency: int = 40
    write_latency: int = 40
    read_spread: int = 0
    write_spread: int = 0
    read_gap: int = 0
    write_gap: int = 0
    ar_stall: int = 0
    aw_stall: int = 0
    w_stall: int = 0
    host_stall: int = 0
    interleave: int = 0
    read_silent: int = 0
    write_silent: int = 0
    read_error: int = 0
    write_error: int = 0
    error_first: int = 0
    error_last: int = 0
    silent_first: int = 0
    silent_last: int = 0xFFFF_FFFF
    log: int = 1
    trace: int = 0
    memory: int = MemoryKind.FIXED

    def __post_init__(self) -> None:
        if self.memory not in [*MemoryKind]:
            raise ValueError(f"memory: given {self.memory}, allowed 0..{len(MemoryKind) - 1}")
        for name in ("read_latency", "write_latency"):
            if not 1 <= getattr(self, name) <= LATENCY_MAX:
                raise ValueError(
                    f"{name}: given {getattr(self, name)}, allowed 1..{LATENCY_MAX} cycles"
                )
        for name in ("read_spread", "write_spread"):
            if not 0 <= getattr(self, name) <= LATENCY_MAX:
                raise ValueError(
                    f"{name}: given {getattr(self, name)}, allowed 0..{LATENCY_MAX} cycles"
                )
        for name in ("read_gap", "write_gap", "ar_stall", "aw_stall", "w_stall", "host_stall"):
            if not 0 <= getattr(self, name) <= 99:
                raise ValueError(f"{name}: given {getattr(self, name)}, allowed 0..99 percent")

    @classmethod
    def hostile(cls, random: np.random.Generator) -> Knobs:
        """Return latency, back-pressure on every channel of both ports, and interleaving."""

        def percent(most: int) -> int:
            return int(random.integers(most)) if random.random() < 0.7 else 0

        return cls(
            read_latency=int(random.integers(1, 100)),
            write_latency=int(random.integers(1, 100)),
            read_spread=int(random.choice((0, 7, 60))),
            write_spread=int(random.choice((0, 7, 60))),
            read_gap=percent(60),
            write_gap=percent(60),
            ar_stall=percent(80),
            aw_stall=percent(80),
            w_stall=percent(60),
            host_stall=percent(60),
            interleave=int(random.integers(2)),
        )

    @property
    def as_late_as_usual(self) -> bool:
        """Whether latency and spread are as by default, and nothing is silent."""
        late = "read_latency write_latency read_spread write_spread read_silent write_silent"
        return all(getattr(self, name) == getattr(Knobs(), name) for name in late.split())

    @property
    def unusual(self) -> str:
        """What is not as by default, for people."""
        usual = Knobs()
        found = {name: value for name, value in vars(self).items() if value != vars(usual)[name]}
        return ", ".join(f"{name}={value}" for name, value in found.items()) or "as usual"

    def or_else(self, other: Knobs) -> Knobs:
        """Return these knobs, with those of another set where these are as by default."""
        usual = Knobs()
        changed = {
            field.name: getattr(other, field.name)
            for field in fields(self)
            if getattr(self, field.name) == getattr(usual, field.name)
        }
        return replace(self, **changed)

    def apply(self, dut: Dut) -> None:
        """Set the signals; they take effect at the next clock edge."""
        for field in fields(self):
            getattr(dut, f"knob_{field.name}").value = getattr(self, field.name)
