# SPDX-License-Identifier: Apache-2.0
"""Measures how long an edited line of RTL takes to the verdict of its block's bench."""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from spec.paths import BUILD, RTL
from tb.run import build, runner, units

REPORT = BUILD / "reports" / "unit_times.json"
HEAD = f"{'block':12} {'edited':20} {'wall s':>7} {'processor s':>11}"


@dataclass(frozen=True)
class Time:
    """What an edited line of a block costs, build and all its tests.

    Attributes:
        block: its name.
        module: the module that was edited, or the first of them.
        wall_s: seconds on the clock.
        processor_s: seconds of processor time, of user and system.
    """

    block: str
    module: str
    wall_s: float
    processor_s: float

    def __str__(self) -> str:
        return f"{self.block:12} {self.module:20} {self.wall_s:7.1f} {self.processor_s:11.1f}"


def modules_under_test(block: str) -> list[str]:
    """Return the modules that a wrapper is about: those of the design that it instantiates."""
    top = units.UnitConfiguration(block=block).top
    text = (units.UNIT_HDL / f"{top}.sv").read_text(encoding="utf-8")
    return sorted(set(re.findall(r"^ +(npu_\w+) (?:#\(|u_\w+ \()", text, re.MULTILINE)))


def measure(block: str) -> Time:
    """Build a block from a copy of `rtl/`, edit a line, and time until all its tests have passed.

    The compiler's cache is off, and simulations run one after the other.

    Raises:
        RuntimeError: a test fails.
    """
    os.environ["CCACHE_DISABLE"] = "1"
    copy = BUILD / "unit" / f"edited-{block}-rtl"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(RTL, copy)
    configuration = units.UnitConfiguration(block=block, rtl=copy, label=f"edited-{block}")
    build.build(configuration)
    modules = modules_under_test(block)
    for module in modules:
        _edit(next(copy.rglob(f"{module}.sv")))
    wall, processor = time.monotonic(), _processor_s()
    build.build(configuration)
    for test in units.tests_of(block):
        result = runner.run(runner.Job(test, configuration))
        if not result.passed:
            raise RuntimeError(f"{test.name}: {result.message}")
    return Time(block, modules[0], time.monotonic() - wall, _processor_s() - processor)


def write_report(times: Iterable[Time], path: Path = REPORT) -> None:
    """Write times as a list of {block, module, wall_s, processor_s}, seconds to a tenth."""
    rows = [asdict(each) for each in times]
    for row in rows:
        row |= {name: round(row[name], 1) for name in ("wall_s", "processor_s")}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def _edit(path: Path) -> None:
    """Shift all lines by one: they are named in assertions, so the whole model changes."""
    path.write_text("\n" + path.read_text(encoding="utf-8"), encoding="utf-8")


def _processor_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
