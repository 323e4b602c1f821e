# SPDX-License-Identifier: Apache-2.0
"""Plants the faults of `faults/` in copies of the RTL and runs the tests that must notice them.

A fault is a patch against the tree with two header lines: `Fault:` says what is wrong, `Test:`
names the test that must turn red. A fault that goes unnoticed, a patch that no longer applies and a
model that no longer builds are failures.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tb import build, registry, runner
from tb.paths import BUILD, ROOT, RTL

FAULTS = ROOT / "faults"


class FaultError(ValueError):
    """A fault file that cannot be used."""


@dataclass(frozen=True)
class Fault:
    """One planted fault.

    Attributes:
        path: the patch.
        summary: what is wrong with it in the tree.
        test: the test that must fail.
    """

    path: Path
    summary: str
    test: registry.BenchTest

    @property
    def name(self) -> str:
        """The file's name without its ending."""
        return self.path.stem


@dataclass(frozen=True)
class Verdict:
    """What became of a fault: `reason` is the test's message, or why it was not noticed."""

    fault: Fault
    noticed: bool
    reason: str


def discover(folder: Path = FAULTS) -> list[Fault]:
    """Return the faults of `folder`.

    Raises:
        FaultError: a file lacks a header line or names a test that does not exist.
    """
    tests = registry.discover()
    found = []
    for path in sorted(folder.glob("*.patch")):
        header = {}
        for line in path.read_text(encoding="utf-8").splitlines()[:2]:
            key, _, value = line.partition(": ")
            header[key] = value.strip()
        if not header.get("Fault") or not header.get("Test"):
            raise FaultError(f"{path.name}: the first lines must be `Fault: ...` and `Test: ...`")
        named = [test for test in tests if test.name == header["Test"]]
        if not named:
            raise FaultError(f"{path.name}: there is no test {header['Test']}")
        found.append(Fault(path, header["Fault"], named[0]))
    return found


def _planted(fault: Fault) -> Path:
    """Return a copy of `rtl/` with the fault in it."""
    root = BUILD / "faults" / fault.name
    shutil.rmtree(root, ignore_errors=True)
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


def _try(fault: Fault, array_dim: int, seed: int) -> Verdict:
    try:
        rtl = _planted(fault)
        configuration = build.Configuration(
            array_dim=array_dim, rtl=rtl, label=f"fault-{fault.name}"
        )
        if not fault.test.fits(configuration.scratch_bytes):
            raise FaultError(f"{fault.test.name} is for another command port than ARRAY_DIM has")
        build.build(configuration)
    except (FaultError, build.BuildError) as error:
        return Verdict(fault, False, str(error))
    result = runner.run(runner.Job(fault.test, configuration, seed))
    shutil.rmtree(configuration.folder, ignore_errors=True)
    if result.passed:
        return Verdict(fault, False, f"{fault.test.name} passes")
    if result.message.startswith("the simulator ended"):
        return Verdict(fault, False, result.message)
    return Verdict(fault, True, result.message)


def run_all(
    faults: Sequence[Fault], array_dim: int, seed: int, on_verdict: Callable[[Verdict], None]
) -> list[Verdict]:
    """Plant the faults one after the other, because a build takes all cores."""
    verdicts = []
    for fault in faults:
        verdict = _try(fault, array_dim, seed)
        on_verdict(verdict)
        verdicts.append(verdict)
    return verdicts
