# SPDX-License-Identifier: Apache-2.0
"""The file that says where a test failed: the first mismatch, whatever it was and ran before it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from spec.isa import Engine
from tb.bench import failure, logs
from tb.bench.failure import UNKNOWN, Failure
from tb.bench.logs import EVENT, Records
from tb.bench.scoreboard import MismatchError

RESULTS = """<?xml version='1.0' encoding='utf-8'?>
<testsuites><testsuite>
<testcase name="test_first"><properties>
  <property name="sim_time_start" value="0.0" />
  <property name="sim_time_stop" value="50002.0" />
</properties></testcase>
<testcase name="test_second"><properties>
  <property name="sim_time_start" value="50002.0" />
  <property name="sim_time_stop" value="90002.0" />
</properties></testcase>
</testsuite></testsuites>
"""
"""What cocotb writes about two tests of one process: 5,000 cycles and 4,000 cycles."""


def _records(*records: tuple[int, int, int, int]) -> Records:
    """Return (cycle, kind, engine, instruction) as a log."""
    log = np.zeros(len(records), EVENT)
    for index, (cycle, kind, engine, instr) in enumerate(records):
        log[index] = (cycle, kind, engine, instr, np.zeros(16))
    return log


EVENTS = _records((610, logs.DISPATCH, 0, 3), (700, logs.DONE, Engine.VEC, 3))
TRACE = _records((600, logs.START, 0, 0), (812, logs.FINISH, 0, 0))


def _noted(folder: Path, error: MismatchError, found: int = 900, trace: Records = TRACE) -> Failure:
    """Return where a test failed whose bench has found this."""
    failure.note(folder, error, EVENTS, trace, found)
    return failure.of_run(folder, folder / "log.txt", "test_first", "wrong")


def test_a_wrong_write_is_where_it_happened(tmp_path: Path) -> None:
    """Its cycle is the failure's, and the engine is that which ended the instruction."""
    found = _noted(tmp_path, MismatchError("wrong", 3, 655))
    assert found == Failure("test_first", 0, 655, 3, "VEC", "wrong")


def test_a_write_that_never_came_is_missed_when_its_instruction_is_done(tmp_path: Path) -> None:
    """There is no cycle of the write."""
    assert _noted(tmp_path, MismatchError("wrong", 3)).cycle == 700


def test_what_is_wrong_in_the_end_is_wrong_when_the_program_ends(tmp_path: Path) -> None:
    """An image or a register; if the program's end is not in the log, when the bench found it."""
    assert _noted(tmp_path, MismatchError("wrong")).cycle == 812
    (tmp_path / "other").mkdir()
    found = _noted(tmp_path / "other", MismatchError("wrong"), trace=TRACE[:1])
    assert (found.cycle, found.instr, found.engine) == (900, UNKNOWN, "")


def test_the_first_mismatch_counts(tmp_path: Path) -> None:
    """A test that goes on after a difference fails where it began."""
    _noted(tmp_path, MismatchError("wrong", 3, 655))
    assert _noted(tmp_path, MismatchError("wrong", 3, 1655), 1900).cycle == 655


def test_mismatches_of_another_test_of_the_process_do_not_count(tmp_path: Path) -> None:
    """The clock goes on from test to test, so each knows its own by the time."""
    (tmp_path / "results.xml").write_text(RESULTS, encoding="utf-8")
    for cycle, found in ((655, 900), (6655, 6900)):
        failure.note(tmp_path, MismatchError("wrong", 3, cycle), EVENTS, TRACE, found)
    first, second = (
        failure.of_run(tmp_path, tmp_path / "log.txt", f"test_{name}", "wrong")
        for name in ("first", "second")
    )
    assert (first.start, first.cycle) == (0, 655)
    assert (second.start, second.cycle) == (5000, 6655)


def test_without_a_mismatch_it_is_where_the_test_ended(tmp_path: Path) -> None:
    """A time-out, an error on the bus, a check of the test itself."""
    (tmp_path / "results.xml").write_text(RESULTS, encoding="utf-8")
    found = failure.of_run(tmp_path, tmp_path / "log.txt", "test_second", "no end")
    assert found == Failure("test_second", 5000, 9000, UNKNOWN, "", "no end")


@pytest.mark.parametrize("results", ["", RESULTS])
def test_an_assertion_is_where_the_simulator_stopped(tmp_path: Path, results: str) -> None:
    """By the time that it prints, whether cocotb could still write its results or not."""
    if results:
        (tmp_path / "results.xml").write_text(results, encoding="utf-8")
    log = tmp_path / "log.txt"
    log.write_text(
        "   40.00ns INFO     cocotb.regression   running\n"
        "[7255] %Error: axi_monitor.sv:87: Assertion failed in tb_top.u_axi_monitor.Len_A: len\n"
        "%Error: /tb/hdl/axi_monitor.sv:87: Verilog $stop\n",
        encoding="utf-8",
    )
    assert failure.of_run(tmp_path, log, "test_first", "stopped").cycle == 725


def test_a_simulator_that_died_without_a_word_is_nowhere(tmp_path: Path) -> None:
    """Nobody knows the cycle then."""
    assert failure.of_run(tmp_path, tmp_path / "log.txt", "test_first", "").cycle == UNKNOWN


def test_the_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    """A test that has not failed has none."""
    found = Failure("test_first", 0, 655, 3, "VEC", "instruction 3 (VEC): wrong")
    path = failure.save(tmp_path, found)
    assert path.name == "test_first.failure.json"
    assert failure.load(tmp_path, "test_first") == found
    assert failure.load(tmp_path, "test_second") is None


def test_cycles_change_with_the_rising_edge() -> None:
    """The clock of the bench rises first after 5 ns."""
    assert [failure.cycle_at(time) for time in (0, 4, 5, 14, 15)] == [0, 0, 1, 1, 2]
