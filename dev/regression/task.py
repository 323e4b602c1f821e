# SPDX-License-Identifier: Apache-2.0
"""What a regression consists of: tasks, batches of them for one process, and how they end.

All of it is plain data, so that it can stand in a database and travel to another machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

Kind = Literal["rtl", "unit", "sweep", "python", "nightly"]
Status = Literal["", "passed", "failed"]


@dataclass(frozen=True, order=True)
class Task:
    """One test with one seed on one model.

    Attributes:
        kind: "rtl" for a test on the chip, "unit" for one of a block's bench, "sweep" for all
            inputs of a function of the coprocessor, "python" for a file of pytest, "nightly" for
            such a file that has more to do at night.
        name: of the test, the function or the file.
        model: name of the folder of the simulation's model, "" for none.
        seed: of all random choices.
        full: whether a test that has a long form runs it.
        hostile: seed of a hostile memory, 0 for the usual one.
        memory: a DRAM behind the chip, "" for a memory of fixed latency.
    """

    kind: Kind
    name: str
    model: str = ""
    seed: int = 1
    full: bool = False
    hostile: int = 0
    memory: str = ""

    @property
    def key(self) -> str:
        """Its name in a run."""
        form = "full" if self.full else "short"
        memory = [f"hostile{self.hostile}"] if self.hostile else []
        memory += [self.memory] if self.memory else []
        model = [self.model] if self.model else []
        return "/".join([self.kind, *model, self.name, str(self.seed), form, *memory])

    @property
    def test(self) -> str:
        """Which test it is, whatever its seed, form and memory."""
        return "/".join([self.kind, self.model, self.name])

    @property
    def short(self) -> str:
        """What people call it."""
        model = f" on {self.model}" if self.model and self.model != "fast-a16" else ""
        hostile = f" hostile {self.hostile}" if self.hostile else ""
        memory = f" on {self.memory}" if self.memory else ""
        return f"{self.name}{model} seed {self.seed}{hostile}{memory}"


@dataclass(frozen=True)
class Batch:
    """Tasks for one process.

    Attributes:
        tasks: at least one; several only of one kind, model, seed, form and memory.
        coverage: whether the model is one that counts what is executed.
        attempt: how often its tasks were given out before, plus one.
    """

    tasks: tuple[Task, ...]
    coverage: bool = False
    attempt: int = 1

    @property
    def name(self) -> str:
        """A name for its folder, without slashes."""
        first = self.tasks[0]
        more = f"+{len(self.tasks) - 1}" if len(self.tasks) > 1 else ""
        return first.key.replace("/", "-") + more


class ExecutedRow(NamedTuple):
    """A row of the coverage table that a test has executed.

    Attributes:
        name: of the row.
        times: how often.
        programs: in how many programs, random ones in most tests.
    """

    name: str
    times: int
    programs: int


@dataclass(frozen=True)
class Outcome:
    """How a task ended.

    Attributes:
        task: the task.
        status: whether it passed; "" for a task that has not ended.
        message: the reason of a failure.
        seconds: wall-clock time, its own.
        cycles: simulated cycles of the clock, 0 if unknown.
        rows: what it executed of the coverage table.
        output: what it printed.
        log: the end of the log of a failure.
        repeat: the command that repeats it.
        waves: the save file of the failure's waveform, "" for none.
        worker: who ran it.
        attempt: the batch's.
        covered: points of the design that its process executed, packed by `dev.coverage`, b"" for
            none.
        table: what these points are.
    """

    task: Task
    status: Status = ""
    message: str = ""
    seconds: float = 0.0
    cycles: int = 0
    rows: tuple[ExecutedRow, ...] = ()
    output: str = ""
    log: str = ""
    repeat: str = ""
    waves: str = ""
    worker: str = "local"
    attempt: int = 1
    covered: bytes = b""
    table: bytes = b""

    @property
    def passed(self) -> bool:
        """Whether it passed."""
        return self.status == "passed"

    @property
    def failed(self) -> bool:
        """Whether it ended otherwise."""
        return self.status not in ("passed", "")
