# SPDX-License-Identifier: Apache-2.0
"""How a batch runs: what fails with others runs again by itself, and who is to blame."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from dev.regression import execute, models
from dev.regression.task import Batch, Outcome, Task
from tb.bench import isa_coverage
from tb.run import runner, together

NAMES = ("test_dma_boundaries", "test_dma_random", "test_registers_lock")
TASKS = tuple(Task("rtl", name, "fast-a16", 7, True, 3) for name in NAMES)
WORDS = "SEED=7 FULL=1 HOSTILE=3"
Told = dict[str, str]
"""What tests say, by name: "" for a pass; a test that is not there has not run."""


class Simulator:
    """Ends tests as it is told, and remembers what ran.

    Attributes:
        together: what the tests of a shared process say.
        alone: what each says by itself.
        ran: the tests of each process.
        stopped: the error in the log of the shared process.
    """

    def __init__(self, shared: Told, alone: Told) -> None:
        self.together, self.alone = shared, alone
        self.ran: list[tuple[str, ...]] = []
        self.stopped = ""

    def run_together(self, job: runner.Job) -> list[runner.TestResult]:
        """Stand for `together.run`."""
        return self._run(job, self.together)

    def run(self, job: runner.Job) -> runner.TestResult:
        """Stand for `runner.run`."""
        (result,) = self._run(job, self.alone)
        return result

    def _run(self, job: runner.Job, said: Told) -> list[runner.TestResult]:
        assert job.binary == Path("simulator")
        self.ran.append(tuple(test.name for test in job.tests))
        job.folder.mkdir(parents=True)
        log = f"{self.stopped if said is self.together else ''}log of {len(self.ran)}\n"
        (job.folder / runner.LOG).write_text(log, encoding="utf-8")
        results = []
        for test in job.tests:
            if test.name in said:
                one = runner.Job(
                    test, job.configuration, job.seed, place=job.place, full=job.full,
                    hostile=job.hostile,
                )  # fmt: skip
                rows = isa_coverage.rows_file(job.folder, test.name)
                rows.write_text('{"NOP": [2, 1]}', encoding="utf-8")
                message = said[test.name]
                results.append(runner.TestResult(one, not message, message, "", 0.5, 100))
        return results


@pytest.fixture
def ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[dict[str, Outcome], Simulator]]:
    """Run three tests in one process, and return how they ended."""

    def run(shared: Told, alone: Told, stopped: str = "") -> tuple[dict[str, Outcome], Simulator]:
        simulator = Simulator(shared, alone)
        simulator.stopped = stopped
        monkeypatch.setattr(execute, "RUNS", tmp_path)
        monkeypatch.setattr(models, "provide", lambda _: Path("simulator"))
        monkeypatch.setattr(together, "run", simulator.run_together)
        monkeypatch.setattr(runner, "run", simulator.run)
        outcomes = execute.execute(Batch(TASKS, attempt=2))
        assert {outcome.attempt for outcome in outcomes} == {2}
        assert len(outcomes) == len(TASKS)
        assert list(tmp_path.iterdir()) == [], "folders of runs are left"
        return {outcome.task.name: outcome for outcome in outcomes}, simulator

    return run


Ended = Callable[..., tuple[dict[str, Outcome], Simulator]]
PASSES = dict.fromkeys(NAMES, "")


def statuses(outcomes: dict[str, Outcome]) -> Sequence[str]:
    """Return how the tests ended, in their order."""
    return [outcomes[name].status for name in NAMES]


def test_all_pass_in_one_process(ended: Ended) -> None:
    """One process, and each has its own rows, cycles and repeat line."""
    outcomes, simulator = ended(PASSES, {})
    assert simulator.ran == [NAMES]
    for task in TASKS:
        outcome = outcomes[task.name]
        assert (outcome.task, outcome.status, outcome.cycles) == (task, "passed", 100)
        assert outcome.rows == (("NOP", 2, 1),)
        assert outcome.repeat == f"make SIM=verilator TESTCASE={task.name} {WORDS}"
        assert outcome.log == ""


def test_a_failure_runs_again_by_itself(ended: Ended) -> None:
    """What it says alone counts, with the log and the repeat line of that run."""
    failing = NAMES[1]
    outcomes, simulator = ended({**PASSES, failing: "with others"}, {failing: "alone"})
    assert simulator.ran == [NAMES, (failing,)]
    assert statuses(outcomes) == ["passed", "failed", "passed"]
    outcome = outcomes[failing]
    assert (outcome.message, outcome.log) == ("alone", "log of 2\n")
    assert outcome.repeat == f"make SIM=verilator TESTCASE={failing} {WORDS}"
    assert outcome.rows == ()


def test_a_test_that_passes_only_alone_has_failed(ended: Ended) -> None:
    """Something that another test left behind breaks it; the command has all of them."""
    outcomes, _ = ended({**PASSES, NAMES[2]: "locked"}, PASSES)
    assert statuses(outcomes) == ["passed", "passed", "failed"]
    outcome = outcomes[NAMES[2]]
    assert outcome.message == "passes alone, fails behind others: locked"
    assert outcome.repeat == f"make SIM=verilator TESTCASE={','.join(NAMES)} {WORDS} TOGETHER=1"
    assert outcome.log == "log of 1\n"


def test_a_stopped_simulator_keeps_others_from_running(ended: Ended) -> None:
    """The test in which it stopped is to blame; those behind it run by themselves."""
    stopped = "the simulator stopped: %Error: no grant"
    shared = {NAMES[0]: "", NAMES[1]: stopped}
    outcomes, simulator = ended(shared, {NAMES[1]: stopped, NAMES[2]: ""})
    assert simulator.ran == [NAMES, (NAMES[1],), (NAMES[2],)]
    assert statuses(outcomes) == ["passed", "failed", "passed"]
    assert outcomes[NAMES[1]].message == stopped


def test_a_simulator_that_says_nothing(ended: Ended) -> None:
    """Killed, for example: each test runs by itself, and none is forgotten."""
    outcomes, simulator = ended({}, {**PASSES, NAMES[0]: "alone"})
    assert simulator.ran == [NAMES, *((name,) for name in NAMES)]
    assert statuses(outcomes) == ["failed", "passed", "passed"]


def test_an_error_after_all_tests_is_not_forgotten(ended: Ended) -> None:
    """Each passes alone; the first has the error, and the command that repeats it."""
    outcomes, simulator = ended({}, PASSES, "%Error: FIFO not empty at the end\n")
    assert simulator.ran == [NAMES, *((name,) for name in NAMES)]
    assert statuses(outcomes) == ["failed", "passed", "passed"]
    assert "FIFO not empty at the end" in outcomes[NAMES[0]].message
    assert outcomes[NAMES[0]].repeat.endswith("TOGETHER=1")


SKIPPED = (
    "import pytest\n@pytest.mark.skip(reason='no browser: install one')\ndef test_it(): pass\n"
)
MODULE = "import pytest\npytest.importorskip('tessera_missing', reason='needs group \"x\"')\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def test_it(): pass", ""),
        (SKIPPED + "def test_other(): pass", ""),
        ("def test_it(): assert 1 > 2, 'no'", "test_it: AssertionError: no"),
        (SKIPPED, "nothing of it ran: no browser: install one"),
        (MODULE, 'nothing of it ran: needs group "x"'),
        ("", "nothing of it ran: no tests"),
    ],
    ids=["passes", "in part", "fails", "skipped", "module", "empty"],
)
def test_a_file_of_which_nothing_ran_has_failed(
    text: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tool that is missing must not look like a pass."""
    monkeypatch.setattr(execute, "RUNS", tmp_path)
    file = tmp_path / "test_file.py"
    file.write_text(text, encoding="utf-8")
    (outcome,) = execute.execute(Batch((Task("python", str(file), "", 1, True),)))
    assert outcome.message.splitlines()[:1] == ([message] if message else [])
    assert (outcome.status == "passed") == (not message)
