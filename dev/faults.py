# SPDX-License-Identifier: Apache-2.0
"""Plants the faults of `faults/` in the RTL and runs the tests that must notice them.

A fault is a patch against the tree with two header lines: `Fault:` says what is wrong, `Test:`
names the test that must turn red, with FULL=1 behind it if only its long form does. All faults that
can be chosen at run time are in one model (`dev.fault_merge`), which a plusarg tells the fault to
have; the few others are built one by one. A test may be that of a block's bench: then the block
alone is built, in seconds. Every test also runs on that model without a fault and must pass, so
that its failure is the fault's doing. A fault that goes unnoticed, a patch that no longer applies
and a model that no longer builds are failures.
"""

from __future__ import annotations

import itertools
import json
import shutil
import subprocess
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from dev import fault_merge
from spec.configurations import ChipParameters
from spec.paths import BUILD, ROOT, RTL
from tb.run import build, registry, runner, units

FAULTS = ROOT / "faults"
PLANTED = BUILD / "faults"
"""Where the patched copies of `rtl/` and the merged one are made."""
RUNS = BUILD / "runs" / "faults"
REPORT = BUILD / "reports" / "faults.json"
MERGED = "merged"
NO_CHECK = ("the simulator ended", "did not converge")
"""What a run says that has failed without any check of the bench or the RTL."""


class FaultError(ValueError):
    """A fault file that cannot be used."""


@dataclass(frozen=True)
class Fault:
    """One planted fault.

    Attributes:
        path: the patch.
        summary: what is wrong with it in the tree.
        test: the test that must fail.
        full: whether that is its long form.
    """

    path: Path
    summary: str
    test: registry.BenchTest
    full: bool = False

    @property
    def name(self) -> str:
        """The file's name without its ending."""
        return self.path.stem

    @property
    def block(self) -> str:
        """The block whose bench must notice it, "" if that is a test of the chip."""
        return _block(self.test)


@dataclass(frozen=True)
class Verdict:
    """What became of a fault.

    Attributes:
        fault: the fault.
        noticed: whether its test has failed because of it.
        reason: the test's message, or why the fault was not noticed.
        seconds: wall-clock time of the test.
    """

    fault: Fault
    noticed: bool
    reason: str
    seconds: float = 0.0

    def __str__(self) -> str:
        lines = self.reason.splitlines() or [""]
        return (
            f"{'noticed' if self.noticed else 'MISSED '} {self.fault.name} by "
            f"{self.fault.test.name} ({self.seconds:.1f} s)\n"
            f"        {self.fault.summary}\n        {lines[0][:160]}"
        )


@dataclass(frozen=True, slots=True)
class Noticed:
    """A verdict as the report has it: names of fault and test."""

    fault: str
    test: str
    noticed: bool
    reason: str
    seconds: float


def _block(test: registry.BenchTest) -> str:
    return units.block_of(test) if test.module.startswith("tb.unit.") else ""


def discover(folder: Path = FAULTS) -> list[Fault]:
    """Return the faults of `folder`.

    Raises:
        FaultError: a file lacks a header line or names a test that does not exist.
    """
    tests = [*registry.discover(), *units.tests_of()]
    found = []
    for path in sorted(folder.glob("*.patch")):
        header = {}
        for line in path.read_text(encoding="utf-8").splitlines()[:2]:
            key, _, value = line.partition(": ")
            header[key] = value.strip()
        if not header.get("Fault") or not header.get("Test"):
            raise FaultError(f"{path.name}: the first lines must be `Fault: ...` and `Test: ...`")
        name = header["Test"].removesuffix(" FULL=1")
        named = [test for test in tests if test.name == name]
        if not named:
            raise FaultError(f"{path.name}: there is no test {name}")
        found.append(Fault(path, header["Fault"], named[0], name != header["Test"]))
    return found


def _patched(fault: Fault, root: Path) -> Path:
    """Return a copy of `rtl/` in `root` with the fault in it.

    Raises:
        FaultError: the patch does not apply.
    """
    shutil.copytree(RTL, root / "rtl")
    patched = subprocess.run(
        ["git", "apply", "-p1", "--unsafe-paths", f"--directory={root}", str(fault.path)],
        cwd=root,
        env={"PATH": "/usr/local/bin:/usr/bin:/bin", "GIT_DIR": "/nonexistent"},
        capture_output=True,
        text=True,
        check=False,
    )
    if patched.returncode != 0:
        raise FaultError(f"the patch does not apply: {patched.stderr.strip()}")
    return root / "rtl"


@dataclass(frozen=True)
class Planted:
    """The faults in copies of `rtl/`.

    Attributes:
        numbers: the faults in the copy `merged`, with the value of `+fault=` for each.
        alone: those of blocks, or that cannot be chosen at run time, in copies of their names.
        errors: those that cannot be planted, with the reason.
    """

    numbers: dict[Fault, int]
    alone: list[Fault]
    errors: dict[Fault, str]


def plant(faults: Sequence[Fault], folder: Path) -> Planted:
    """Patch copies of `rtl/` in `folder`, which is emptied, and merge what can be merged."""
    shutil.rmtree(folder, ignore_errors=True)
    merger = fault_merge.Merger(RTL)
    planted = Planted({}, [], {})
    for number, fault in enumerate(faults, 1):
        try:
            patched = _patched(fault, folder / fault.name)
        except FaultError as error:
            planted.errors[fault] = str(error)
            continue
        if not fault.block and merger.take(patched, number, fault.name):
            planted.numbers[fault] = number
            shutil.rmtree(folder / fault.name)
        else:
            planted.alone.append(fault)
    merger.write(folder / MERGED / "rtl")
    return planted


@dataclass
class _Campaign:
    """One run of `run_all`: the models, and a verdict for every fault whose fate is known."""

    faults: Sequence[Fault]
    planted: Planted
    chip: ChipParameters
    seed: int
    workers: int
    say: Callable[[str], None]
    verdicts: dict[Fault, Verdict] = field(default_factory=dict)

    def model(self, name: str) -> build.Configuration:
        """Return the configuration of the model that is made from `build/faults/NAME/rtl`."""
        rtl = PLANTED / name / "rtl"
        return build.Configuration(chip=self.chip, rtl=rtl, label=f"fault-{name}")

    def model_of(self, fault: Fault) -> build.Configuration:
        """Return the configuration of a fault that is built alone."""
        if not fault.block:
            return self.model(fault.name)
        folder, label = PLANTED / fault.name / "rtl", f"fault-{fault.name}"
        return units.UnitConfiguration(block=fault.block, rtl=folder, label=label)

    def sound_model(self, test: registry.BenchTest) -> build.Configuration:
        """Return the configuration of a model without a fault; that of a block is built."""
        if not _block(test):
            return self.model(MERGED)
        configuration = units.UnitConfiguration(block=_block(test))
        build.build(configuration)
        return configuration

    def miss(self, fault: Fault, reason: str) -> None:
        """Settle a fault that cannot be tried."""
        self.settle(Verdict(fault, False, reason))

    def settle(self, verdict: Verdict) -> None:
        """Note and show what became of a fault."""
        self.verdicts[verdict.fault] = verdict
        self.say(f"[{len(self.verdicts)}/{len(self.faults)}] {verdict}")

    def left(self) -> list[Fault]:
        """Return the faults whose fate is not known yet."""
        return [fault for fault in self.faults if fault not in self.verdicts]

    def refuse(self) -> None:
        """Settle the faults that cannot be planted in this chip or tried on it."""
        for fault, reason in self.planted.errors.items():
            self.miss(fault, reason)
        for fault in self.left():
            if not fault.test.fits(self.chip):
                self.miss(fault, f"{fault.test.name} is for another chip than {self.chip.name}")

    def job(self, fault: Fault, model: build.Configuration) -> runner.Job:
        """Return the run that must notice the fault."""
        number = self.planted.numbers.get(fault, 0)
        place = RUNS / fault.name
        plusargs = (f"fault={number}",)
        return runner.Job(
            fault.test, model, self.seed, place=place, plusargs=plusargs, full=fault.full
        )

    def run_without_fault(self) -> None:
        """Run every test without a fault; settle the faults of those that fail all the same."""
        forms = list(dict.fromkeys((fault.test, fault.full) for fault in self.left()))
        jobs = [
            runner.Job(
                test,
                self.sound_model(test),
                self.seed,
                place=RUNS / f"{test.name}{'-full' * full}",
                full=full,
            )
            for test, full in forms
        ]
        progress = itertools.count(1)

        def show(result: runner.TestResult) -> None:
            word = "passes" if result.passed else "FAILS "
            name = result.job.test.name
            _tidy(result, result.passed)
            self.say(f"[{next(progress)}/{len(jobs)}] {word} {name} ({result.seconds:.1f} s)")

        failed = {
            (result.job.test, result.job.full): result.message
            for result in runner.run_all(jobs, self.workers, show)
            if not result.passed
        }
        for fault in self.left():
            message = failed.get((fault.test, fault.full))
            if message is not None:
                self.miss(fault, f"{fault.test.name} fails without it: {message}")

    def run_merged(self) -> None:
        """Run the tests of the faults that are in the one model, side by side."""
        faults = {fault.name: fault for fault in self.left() if fault in self.planted.numbers}
        jobs = [self.job(fault, self.model(MERGED)) for fault in faults.values()]

        def show(result: runner.TestResult) -> None:
            self.settle(_verdict(faults[result.job.folder.name], result))

        runner.run_all(jobs, self.workers, show)

    def run_alone(self) -> None:
        """Build and run the other faults one by one, because a build takes all cores."""
        for fault in self.left():
            model = self.model_of(fault)
            try:
                build.build(model)
            except build.BuildError as error:
                self.miss(fault, str(error))
                continue
            self.settle(_verdict(fault, runner.run(self.job(fault, model))))
            shutil.rmtree(model.folder, ignore_errors=True)


def _tidy(result: runner.TestResult, expected: bool) -> None:
    """Keep what a run has left only if it did not end as it should: it is a lot."""
    if expected:
        shutil.rmtree(result.job.folder, ignore_errors=True)


def _verdict(fault: Fault, result: runner.TestResult) -> Verdict:
    if result.passed:
        return Verdict(fault, False, f"{fault.test.name} passes", result.seconds)
    noticed = not any(text in result.message for text in NO_CHECK)
    _tidy(result, noticed)
    return Verdict(fault, noticed, result.message, result.seconds)


def write_report(verdicts: Iterable[Verdict], path: Path = REPORT) -> None:
    """Write verdicts as a list of `Noticed`."""
    rows = [
        asdict(Noticed(one.fault.name, one.fault.test.name, one.noticed, one.reason, seconds))
        for one in verdicts
        for seconds in [round(one.seconds, 1)]
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def run_all(
    faults: Sequence[Fault],
    chip: ChipParameters,
    seed: int,
    workers: int,
    say: Callable[[str], None],
) -> list[Verdict]:
    """Plant the faults and run their tests.

    Args:
        faults: the faults to plant.
        chip: that they are planted in.
        seed: seed of all random choices.
        workers: runs side by side.
        say: is told of every step and of every verdict as it comes.

    Returns:
        The verdicts in the order of `faults`.

    Raises:
        build.BuildError: the model that has all faults cannot be built.
    """
    planted = plant(faults, PLANTED)
    campaign = _Campaign(faults, planted, chip, seed, workers, say)
    campaign.refuse()
    say(f"{len(planted.numbers)} faults in one model, {len(planted.alone)} built alone")
    for fault in planted.alone:
        say(f"        {fault.name}")
    if not all(fault.block for fault in faults):
        build.build(campaign.model(MERGED))
    say("the tests without a fault:")
    campaign.run_without_fault()
    say("the tests with their faults:")
    campaign.run_merged()
    campaign.run_alone()
    return [campaign.verdicts[fault] for fault in faults]
