# SPDX-License-Identifier: Apache-2.0
"""Where a test failed: cycle, instruction and engine of the first mismatch, as a file of its run.

The bench notes every difference that it finds between chip and model while the test runs; a test
may go on after one. When the test has failed, the first of them is where, else the time of a failed
assertion, else that at which the test ended: when a wait was given up or a check failed.
"""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import asdict, dataclass
from pathlib import Path

from spec.isa import Engine
from tb.bench.dut import CLOCK_NS
from tb.bench.logs import DONE, FINISH, Records
from tb.bench.scoreboard import MismatchError

_NOTES = "mismatches.jsonl"
_STOPPED = re.compile(r"^\[(\d+)\] %Error", re.MULTILINE)
"""How the simulator begins the line of a failed assertion: with the time in nanoseconds."""
UNKNOWN = -1


@dataclass(frozen=True)
class Failure:
    """Where a test failed.

    Attributes:
        test: its name.
        start: clock cycle at which the test began; not 0 after other tests of the same process.
        cycle: that of the first mismatch, counted from the start of the simulator; UNKNOWN if the
            simulator died without a word.
        instr: index of the instruction whose result is wrong, or UNKNOWN.
        engine: the name of its engine, "" if that is not known.
        message: what the run says.
    """

    test: str
    start: int
    cycle: int
    instr: int
    engine: str
    message: str

    @property
    def alone(self) -> int:
        """The cycle since the test began, which is that of a process of its own; or UNKNOWN."""
        return UNKNOWN if self.cycle == UNKNOWN else self.cycle - self.start


@dataclass(frozen=True)
class _Note:
    """A mismatch that the bench found: when it noticed, and where it was."""

    found: int
    cycle: int
    instr: int
    engine: str


def cycle_at(nanoseconds: float) -> int:
    """Return what the bench's counter of clock cycles, which counts rising edges, shows then."""
    return int(nanoseconds + CLOCK_NS // 2) // CLOCK_NS


def note(folder: Path, error: MismatchError, events: Records, trace: Records, found: int) -> None:
    """Write down a mismatch of a program in the folder of its run.

    Args:
        folder: the run's folder.
        error: what is wrong.
        events: the bench's log of the program: a write that never came is missed when its
            instruction was done.
        trace: the milestones of the program: what is wrong in the end is so from its end on.
        found: cycle at which the bench noticed.
    """
    done = events[(events["kind"] == DONE) & (events["instr"] == error.instr)]
    ends = trace[trace["kind"] == FINISH]
    engine = Engine(int(done[0]["engine"])).name if done.size else ""
    last = int(ends[-1]["cycle"]) if ends.size else found
    late = int(done[-1]["cycle"]) if done.size else last
    cycle = late if error.cycle == UNKNOWN else error.cycle
    line = json.dumps(asdict(_Note(found, cycle, error.instr, engine)))
    with (folder / _NOTES).open("a", encoding="utf-8") as file:
        print(line, file=file)


def _notes(folder: Path) -> list[_Note]:
    path = folder / _NOTES
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [_Note(**json.loads(line)) for line in lines]


def _span(folder: Path, test: str) -> tuple[int, int] | None:
    """Return the cycles at which a test began and ended, None if the simulator did not say."""
    results = folder / "results.xml"
    if not results.exists():
        return None
    for case in ElementTree.parse(results).getroot().iterfind(f".//testcase[@name='{test}']"):
        told = {entry.get("name"): entry.get("value") for entry in case.iter("property")}
        begun, ended = told.get("sim_time_start"), told.get("sim_time_stop")
        if begun is not None and ended is not None:
            return cycle_at(float(begun)), cycle_at(float(ended))
    return None


def _stopped(log: Path) -> int:
    """Return the cycle whose values an assertion refused at its end, UNKNOWN if none did."""
    text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    found = _STOPPED.search(text)
    return int(found[1]) // CLOCK_NS if found else UNKNOWN


def of_run(folder: Path, log: Path, test: str, message: str) -> Failure:
    """Return where a test failed that has ended.

    Args:
        folder: the run's folder.
        log: output of the simulator.
        test: name of the test, one of those that the simulator ran.
        message: what the run says.
    """
    span = _span(folder, test)
    start, end = span or (0, UNKNOWN)
    for found in _notes(folder):
        if span is None or start <= found.found <= end:
            return Failure(test, start, found.cycle, found.instr, found.engine, message)
    stopped = _stopped(log)
    return Failure(test, start, end if stopped == UNKNOWN else stopped, UNKNOWN, "", message)


def file_of(folder: Path, test: str) -> Path:
    """Return the file in a run's folder that says where a test failed."""
    return folder / f"{test}.failure.json"


def save(folder: Path, failure: Failure) -> Path:
    """Write where a test failed; return the file."""
    path = file_of(folder, failure.test)
    path.write_text(json.dumps(asdict(failure), indent=1) + "\n", encoding="utf-8")
    return path


def load(folder: Path, test: str) -> Failure | None:
    """Return where a test failed in its last run, None if it did not."""
    path = file_of(folder, test)
    if not path.exists():
        return None
    return Failure(**json.loads(path.read_text(encoding="utf-8")))
