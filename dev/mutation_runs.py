# SPDX-License-Identifier: Apache-2.0
"""Runs tests on a model with many mutants: once without any, then with each until one is red.

The run without a mutant says which mutants give another value in which test. A test in which a
mutant never does so is the same with it and without, so only the others can notice it.
"""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np

from dev.mutation_sites import DROP_RESET, Mutant
from dev.mutation_verdict import SURVIVOR, UNSEEN, Verdict, fate_of
from dev.regression import batches
from dev.regression.task import Task
from tb.run import build, parallel, registry, runner, together

STRETCH_NS = 1 << 14
"""Simulated time in which `tb/hdl/mutant_dpi.cpp` notes a mutant once."""
_NOTE = np.dtype([("number", "<u8"), ("nanoseconds", "<u8")])
_ALONE = 2
"""Tests that are tried with a mutant in processes of their own before others share one."""
_BATCH_S = 12.0
_BATCH = 12
"""Seconds and number of tests that share a process, which ends with the first that fails."""
_TAGS: Mapping[str, tuple[str, ...]] = {
    "cmd": ("cmd",),
    "cop": ("cop",),
    "dma": ("ld", "st"),
    "gemm": ("gemm",),
    "host": ("registers",),
    "mem_port": ("ld", "st", "stream", "faults"),
    "rows": ("smx", "nrm"),
    "seq": ("seq",),
    "stream": ("stream",),
    "vec": ("vec",),
}
"""Folders of `rtl/`, and the tags of the tests that are about what is there."""
_WORTH = {"random", "timing"}
"""Tags of tests that notice more than others in the same time."""


@dataclass(frozen=True)
class Sound:
    """What a run without a mutant has said of a test.

    Attributes:
        seconds: wall-clock time of the test.
        shows: numbers of the mutants that give another value in it.
    """

    seconds: float
    shows: frozenset[int]


@dataclass
class Bench:
    """Runs on one model.

    Attributes:
        configuration: the model.
        place: folder for the folders of the runs.
        seed: of all random choices.
        workers: runs side by side.
        patience: seconds, as tests take without a mutant, after which no more tests are tried with
            one.
        sound: what each test did without a mutant.
        unfit: tests that fail without a mutant, with their messages; none of them is used.
    """

    configuration: build.Configuration
    place: Path
    seed: int
    workers: int
    patience: float = math.inf
    sound: dict[str, Sound] = field(default_factory=dict)
    unfit: dict[str, str] = field(default_factory=dict)

    def job(self, tests: Sequence[registry.BenchTest], name: str, *plusargs: str) -> runner.Job:
        """Return the run of tests in one process, in a folder of its own."""
        first, *others = tests
        return runner.Job(
            first,
            self.configuration,
            self.seed,
            place=self.place / name,
            plusargs=plusargs,
            companions=tuple(others),
            until_failure=True,
        )

    # ----------------------------------------------------------------------------------------------
    # Without a mutant
    # ----------------------------------------------------------------------------------------------
    def run_sound(self, tests: Sequence[registry.BenchTest], say: Callable[[str], None]) -> None:
        """Run all tests without a mutant, many in a process; those that fail once more alone."""
        by_name = {test.name: test for test in tests}
        tasks = [Task("rtl", test.name, self.configuration.folder.name) for test in tests]
        groups = [[by_name[task.name] for task in batch.tasks] for batch in batches.make(tasks, {})]

        def one(group: Sequence[registry.BenchTest]) -> int:
            job = replace(self.job(group, f"sound-{group[0].name}", "differs"), until_failure=False)
            left = {test.name for test in group} - set(self._sound_group(job))
            for name in sorted(left):
                alone = self.job([by_name[name]], f"sound-{name}", "differs")
                if not self._sound_group(alone):
                    self.unfit[name] = self.unfit.get(name) or "has not run"
            return len(group)

        done = 0

        def show(count: int) -> None:
            nonlocal done
            done += count
            say(f"     {done} of {len(tests)} tests without a mutant")

        todo = [group for group in groups if any(t.name not in self.sound for t in group)]
        parallel.as_they_end([partial(one, group) for group in todo], self.workers, show)

    def _sound_group(self, job: runner.Job) -> list[str]:
        """Run tests without a mutant; return the names of those that pass."""
        try:
            if job.test.alone:
                results, cases = [runner.run(job)], []
            else:
                results = together.run(job)
                cases = runner.cases_of(job.folder)
            notes = _notes(job.folder)
            spans = {str(case.get("name")): runner.span_of(case) for case in cases}
            passed = []
            for result in results:
                name = result.job.test.name
                if result.passed:
                    shows = _shown(notes, spans.get(name))
                    self.sound[name] = Sound(result.seconds, shows)
                    self.unfit.pop(name, None)
                    passed.append(name)
                else:
                    self.unfit[name] = result.message
            return passed
        finally:
            shutil.rmtree(job.folder, ignore_errors=True)

    # ----------------------------------------------------------------------------------------------
    # With a mutant
    # ----------------------------------------------------------------------------------------------
    def try_mutant(
        self, number: int, mutant: Mutant, tests: Iterable[registry.BenchTest]
    ) -> Verdict:
        """Run the tests in which a mutant shows until one of them fails."""
        chosen = self.order(number, mutant, tests)
        started, ran = time.monotonic(), 0
        verdict = Verdict(
            mutant.name,
            mutant.file,
            mutant.line,
            mutant.operator,
            mutant.change,
            SURVIVOR if chosen else UNSEEN,
            shows=len(chosen),
        )
        for group in self._groups(self._within_patience(chosen)):
            failed = self.first_failure(group, number)
            ran += len(group)
            if failed is not None:
                test, message = failed
                lines = message.splitlines() or [""]
                verdict = replace(verdict, fate=fate_of(message), test=test, reason=lines[0][:300])
                break
        return replace(verdict, ran=ran, seconds=round(time.monotonic() - started, 1))

    def order(
        self, number: int, mutant: Mutant, tests: Iterable[registry.BenchTest]
    ) -> list[registry.BenchTest]:
        """Return the tests in which a mutant shows, those first that notice much in little time.

        Random ones of its folder notice most: the shortest of these lead. Behind them a test of its
        folder counts as a half of its seconds, one that is random or compares cycles as a third.
        A dropped reset shows after power-up at once: the tests of that come first, whose runs
        note only the last of their states.
        """
        tags = {*_TAGS.get(mutant.file.split("/")[0], ())}
        is_reset = mutant.operator == DROP_RESET
        ranks = {}
        for test in tests:
            sound = self.sound.get(test.name)
            powers = is_reset and test.power_ups > 0
            if sound is not None and (powers or number in sound.shows):
                worth = 1 + bool(tags & {*test.tags}) + 2 * bool(_WORTH & {*test.tags})
                ranks[test] = (not powers, test.power_ups > 0, sound.seconds / worth)
        ordered = sorted(ranks, key=lambda test: (ranks[test], test.name))
        leading = [test for test in ordered if tags & {*test.tags} and "random" in test.tags]
        return list(dict.fromkeys([*leading[: 0 if is_reset else _ALONE], *ordered]))

    def _within_patience(self, tests: Sequence[registry.BenchTest]) -> Sequence[registry.BenchTest]:
        spent = np.cumsum([self.sound[test.name].seconds for test in tests])
        return tests[: 1 + int((spent <= self.patience).sum())]

    def _groups(self, tests: Sequence[registry.BenchTest]) -> Iterator[list[registry.BenchTest]]:
        """Yield tests for one process each: the first ones, those that want it alone, the rest."""
        group: list[registry.BenchTest] = []
        for place, test in enumerate(tests):
            if place < _ALONE or test.alone:
                yield [test]
                continue
            seconds = sum(self.sound[each.name].seconds for each in (*group, test))
            unlike = group and group[0].memory_bytes != test.memory_bytes
            if group and (unlike or len(group) == _BATCH or seconds > _BATCH_S):
                yield group
                group = []
            group.append(test)
        if group:
            yield group

    def first_failure(
        self, group: Sequence[registry.BenchTest], number: int
    ) -> tuple[str, str] | None:
        """Run tests with a mutant; return the first that fails and what it says, None if none."""
        limit = 30.0 + 6.0 * sum(self.sound[test.name].seconds for test in group)
        name = f"{number}-{group[0].name}"
        job = replace(self.job(group, name, f"fault={number}"), processor_s=limit)
        try:
            if len(group) == 1:
                result = runner.run(job)
                return None if result.passed else (job.test.name, result.message)
            results = together.run(job)
        finally:
            shutil.rmtree(job.folder, ignore_errors=True)
        for result in results:
            if not result.passed:
                return result.job.test.name, result.message
        passed = {result.job.test.name for result in results}
        left = [test for test in group if test.name not in passed]
        # The simulator ended and nobody knows in which of them.
        failures = (self.first_failure([test], number) for test in left)
        return next(filter(None, failures), None)


def _notes(folder: Path) -> np.ndarray:
    path = folder / "differs.bin"
    data = path.read_bytes() if path.exists() else b""
    return np.frombuffer(data[: len(data) // _NOTE.itemsize * _NOTE.itemsize], _NOTE)


def _shown(notes: np.ndarray, span: tuple[int, int] | None) -> frozenset[int]:
    """Return the mutants of which a note may be of a test that ran in a span of simulated time."""
    if span is not None:
        start, stop = (when // STRETCH_NS for when in span)
        stretch = notes["nanoseconds"] // STRETCH_NS
        notes = notes[(stretch >= start) & (stretch <= stop)]
    return frozenset(np.unique(notes["number"]).tolist())
