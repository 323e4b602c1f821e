# SPDX-License-Identifier: Apache-2.0
"""What a machine may lack is looked up in one place, can be hidden, and is named when skipped."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from npu import optional
from npu.cli import command_line
from npu.firmware import compile as firmware
from npu.optional import BARE, PACKAGES
from spec import paths
from spec.paths import ROOT
from tb.run import build, run_commands

FOLDERS = (*paths.PACKAGES, "tests")
REQUIRED = {"dev/bootstrap.py", "tb/run/verilator.py"}
"""They look for what must be there."""
SKIPS = {".importorskip", ".skip", ".skipif", ".skipTest", ".skipUnless"}
TESTS = """
import pytest
from tests.needs import needs

def test_runs(): pass
def test_lacks(): needs("gtkwave", "xvfb")
"""


def _names(path: Path) -> set[str]:
    """Return the attributes that a module uses, as in "shutil.which" and ".which"."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    used = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    return {ast.unparse(node) for node in used} | {f".{node.attr}" for node in used}


def _sources() -> list[Path]:
    return [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]


def test_programs_are_looked_up_in_one_place() -> None:
    """A look-up elsewhere would find what a bare machine hides."""
    found = {str(path.relative_to(ROOT)) for path in _sources() if "shutil.which" in _names(path)}
    assert found - {"tests/dev/test_report_page.py"} == REQUIRED | {"npu/optional.py"}


def test_tests_are_skipped_in_one_place() -> None:
    """`needs` has the reasons that are allowed."""
    found = {str(p.relative_to(ROOT)) for p in _sources() if SKIPS & _names(p)}
    assert {name for name in found if name.startswith("tests/")} == {"tests/needs.py"}


SETS = {
    "TEST_GROUPS": ("bad_input", "bench", "dev", "python", "rtl", "soc", "suites"),
    "SUITE_GROUPS": ("suites",),
    "ORACLE_GROUPS": ("oracles",),
}
"""Lists of the Makefile, and the folders whose tests ask for what stands in them."""


def _asked(folders: tuple[str, ...]) -> set[str]:
    """Return the groups that tests of some folders ask for, also by what they read."""
    texts = {
        path: path.read_text(encoding="utf-8")
        for folder in folders
        for path in (ROOT / "tests" / folder).rglob("test_*.py")
    }
    found = {
        name
        for text in texts.values()
        for call in re.findall(r"^ *needs\((.*)\)$", text, re.M)
        for name in re.findall(r'"(\w+)"', call)
    }
    for group, function in (("published", "published"), ("sentences", "published_encoder")):
        if any(re.search(rf"\b{function}\(", text) for text in texts.values()):
            found.add(group)
    return found & {*optional.groups()}


def test_make_installs_what_its_tests_need() -> None:
    """Each target all groups that some test of it asks for; what only suites read is their own."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    lists = dict(re.findall(r"^(\w+_GROUPS) = (.*)$", makefile, re.M))
    assert lists.keys() == SETS.keys()
    data = {"published", "sentences"}
    asked = {name: _asked(folders) for name, folders in SETS.items()}
    assert lists["TEST_GROUPS"].split() == sorted(asked["TEST_GROUPS"] - data)
    assert lists["SUITE_GROUPS"].split() == sorted(asked["SUITE_GROUPS"] & data)
    assert lists["ORACLE_GROUPS"].split() == sorted({"oracles"} | asked["ORACLE_GROUPS"])
    for target, name in (("regress", "SUITE"), ("nightly", "SUITE"), ("oracles", "ORACLE")):
        assert re.search(rf"^{target}:.*\n\t.*bootstrap.py .*\$\({name}_GROUPS\)", makefile, re.M)


@pytest.fixture
def everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every look-up of a package find it."""
    monkeypatch.setattr(optional, "_found", lambda _: True)
    monkeypatch.delenv(BARE, raising=False)


@pytest.mark.usefixtures("everything")
def test_a_bare_machine_has_no_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is installed; the product does without."""
    assert all(map(optional.has, PACKAGES))
    assert build.fst_missing() is None
    monkeypatch.setenv(BARE, "1")
    assert not any(map(optional.has, PACKAGES))
    assert build.fst_missing() == "no zlib.h and lz4.h, apt install zlib1g-dev liblz4-dev"
    assert "gcc" not in firmware.compilers()
    assert not build.traces(build.Configuration(kind="debug"))


def test_a_group_that_the_metadata_lacks_is_missing() -> None:
    """They are of an older version of this package; the command that brings groups renews them."""
    assert optional.missing("later") == "no group later, python3 dev/bootstrap.py later"


def test_groups_are_those_of_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    """A group is there with all its packages, those of groups inside it too."""
    assert {"onnxruntime==1.32.0", "torch==2.13.0"} <= set(optional.groups()["oracles"])
    have = {"torch": "2.13.0+cpu", "matplotlib": "3.11.2"}
    monkeypatch.setattr(optional, "version", have.__getitem__)
    monkeypatch.setattr(optional, "PackageNotFoundError", KeyError)
    assert [name for name in optional.groups() if optional.has(name)] == ["bench", "train"]
    assert optional.missing("bench") is None
    assert optional.missing("graphs", "bench", "oracles", "chromium") == (
        "no group graphs and oracles, python3 dev/bootstrap.py graphs oracles"
    )


@pytest.mark.parametrize(
    ("reason", "objection"),
    [
        ("no GTKWave and Xvfb, apt install gtkwave xvfb", None),
        ("no group graphs, python3 dev/bootstrap.py graphs", None),
        ("no group x, python3 dev/bootstrap.py x", "a reason that is not in npu/optional.py"),
        ("no GTKWave, apt install xvfb", "a reason that is not in npu/optional.py"),
        ("too slow", "a reason that is not in npu/optional.py"),
        ("", "a reason that is not in npu/optional.py"),
        ("no zlib.h, apt install zlib1g-dev", "but zlib1g-dev is installed"),
    ],
)
def test_reasons(reason: str, objection: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that are allowed, and what Debian has installed although it is not found."""
    monkeypatch.delenv(BARE, raising=False)
    monkeypatch.setattr(optional, "_says", lambda words: "ii" if "zlib1g-dev" in words else "un")
    assert optional.objection(reason) == objection


def _tested(folder: Path, text: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Run tests in a file of their own, as those of the project run, on a bare machine."""
    (folder / "test_it.py").write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.conftest", f"--rootdir={folder}"]
    return subprocess.run(
        [*command, "-p", "no:cacheprovider", *options, str(folder)],
        cwd=ROOT,
        env={**os.environ, BARE: "1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("options", [[], ["-n", "2"]], ids=["alone", "xdist"])
def test_what_was_skipped_is_told_and_written(tmp_path: Path, options: list[str]) -> None:
    """Tests and whole files, with the command that changes it; the run passes."""
    file = tmp_path / "skipped.json"
    for name in ("one", "two"):
        whole = f'from tests.needs import needs\nneeds("chromium")\ndef test_{name}(): pass\n'
        (tmp_path / f"test_{name}.py").write_text(whole, encoding="utf-8")
    run = _tested(tmp_path, TESTS, f"--write-skipped={file}", *options)
    assert run.returncode == 0, run.stdout
    assert "\n1 skipped: no GTKWave and Xvfb, apt install gtkwave xvfb\n" in run.stdout
    assert "\n2 skipped: no Chromium, apt install chromium\n" in run.stdout
    names = ["test_it.py::test_lacks", "test_one.py", "test_two.py"]
    assert json.loads(file.read_text(encoding="utf-8")) == names


@pytest.mark.parametrize("options", [[], ["-n", "2"]], ids=["alone", "xdist"])
@pytest.mark.parametrize("mark", ["pytest.mark.skip(reason='too slow')", "pytest.mark.skip"])
def test_a_skip_without_a_reason_that_is_allowed_fails(
    tmp_path: Path, mark: str, options: list[str]
) -> None:
    """Although all tests that ran have passed; it is named."""
    run = _tested(tmp_path, f"{TESTS}\n@{mark}\ndef test_hides(): pass\n", *options)
    assert run.returncode == 1, run.stdout
    assert re.search(r"not allowed, a reason .*optional.py: test_it.py::test_hides\n", run.stdout)


def test_only_what_was_skipped_runs_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Files and tests that the last run of all has written down; what is skipped again is kept."""
    asked: list[list[str]] = []

    def called(command: list[str], **_: object) -> SimpleNamespace:
        asked.append(command[command.index("-q") + 1 :])
        return SimpleNamespace(returncode=0)

    file = tmp_path / "skipped.json"
    monkeypatch.setattr(run_commands, "SKIPPED", file)
    monkeypatch.setattr(build, "generate", lambda: None)
    monkeypatch.setattr(build, "build", lambda _: None)
    monkeypatch.setattr(subprocess, "run", called)
    assert command_line.main(["pytest", "--skipped"]) == 2
    assert "given no run of all tests, allowed after make test" in capsys.readouterr().err
    for names in (["tests/needs.py", "tests/needs.py::test_x[a-b]"], []):
        file.write_text(json.dumps(names), encoding="utf-8")
        assert command_line.main(["pytest", "--skipped"]) == 0
    assert command_line.main(["pytest"]) == 0
    assert command_line.main(["pytest", "tests/needs.py"]) == 0
    write = f"--write-skipped={file}"
    assert asked == [
        [write, "tests/needs.py", "tests/needs.py::test_x[a-b]"],
        [write],
        ["tests/needs.py"],
    ]
