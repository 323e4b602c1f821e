# SPDX-License-Identifier: Apache-2.0
"""The bench's own figures, with which the chip's performance counters must agree."""

from __future__ import annotations

from collections.abc import Mapping

from npu.driver.counters import ChipCounters
from spec.isa import Engine
from tb.bench.dut import Dut
from tb.bench.scoreboard import MismatchError


def _by_engine(dut: Dut, name: str) -> list[int]:
    value = int(getattr(dut, f"perf_{name}").value)
    return [value >> 32 * engine & 0xFFFF_FFFF for engine in range(6)]


def monitored(dut: Dut) -> dict[str, int]:
    """Return what the bench has counted itself (`perf_monitor`), under the counters' names.

    MACS are not among them: they follow from the program (`golden.machine.RunResult.macs`).
    """
    names = ("cycles", "instrs", "read_beats", "write_beats", "stream_beats")
    figures = {name.upper(): int(getattr(dut, f"perf_{name}").value) for name in names}
    for name in ("busy", "stall"):
        for engine, cycles in enumerate(_by_engine(dut, name)):
            figures[f"{name.upper()} of {Engine(engine).name.lower()}"] = cycles
    return figures


def compare_counters(expected: Mapping[str, int], actual: ChipCounters) -> None:
    """Compare the counters that `expected` names.

    Raises:
        MismatchError: naming every counter that differs.
    """
    found = actual.named()
    wrong = [
        f"{name}: expected {value}, actual {found[name]}"
        for name, value in expected.items()
        if found[name] != value
    ]
    if wrong:
        raise MismatchError(f"counters: {'; '.join(wrong)}")
