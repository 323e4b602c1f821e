# SPDX-License-Identifier: Apache-2.0
"""What a user gives make is text: it reaches the commands whole, and nobody reads it on the way."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from spec.paths import ROOT

MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
GIVEN = re.findall(r"^(\w+) (?:\?=|:= \$\(shell)", MAKEFILE, re.M)
TARGETS = re.findall(r"^([a-z-]+):.*##", MAKEFILE, re.M)
SWITCHES = {
    "FULL",
    "DEBUG",
    "ACCEPT_LOSS",
    "LIST",
    "COV",
    "RESUME",
    "TOGETHER",
    "SKIPPED",
    "ECP5",
    "COMMON",
    "DRAFT",
}
"""Those of which only whether they are given counts."""
PROGRAMS = {"PYTHON", "VENV"}
NASTY = (
    'it\'s "5" \\ `touch {0}`$(touch {0})$(shell touch {0});touch {0}\ntouch {0} # $$HOME$x 100%'
)


@pytest.fixture
def told(tmp_path: Path) -> Path:
    """A stand-in for Python that writes down its arguments and environment."""
    script = tmp_path / "python"
    script.write_text(
        f"#!{sys.executable} -IS\n"
        "import json, os, sys\n"
        f"with open({str(tmp_path / 'told')!r}, 'a') as file:\n"
        "    print(json.dumps([sys.argv[1:], sorted(os.environ)]), file=file)\n",
        encoding="utf-8",
    )
    script.chmod(0o755)
    return script


def make(told: Path, target: str, given: list[str], **environment: str) -> list[list[list[str]]]:
    """Run a target; return the arguments and the environment's names of each call of Python."""
    subprocess.run(
        ["make", "-k", "--no-print-directory", target, f"PYTHON={told}", f"VENV={told}", *given],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        check=False,
    )
    seen = told.with_name("told")
    lines = seen.read_text(encoding="utf-8").splitlines() if seen.exists() else []
    seen.unlink(missing_ok=True)
    return [json.loads(line) for line in lines]


def targets_with(name: str) -> list[str]:
    """Return the targets whose recipes have a variable, through other variables as well."""
    lists = re.findall(
        r"^(CHIP|RUN_OPTIONS|ROOM|WRITING|REGRESS_OPTIONS) = ((?:.*\\\n)*.*)", MAKEFILE, re.M
    )
    wanted = [name]
    for each, text in lists:  # in the order in which they stand on one another
        if any(re.search(rf"\b{part}\b", text) for part in wanted):
            wanted.append(each)
    found = []
    for target in TARGETS:
        recipe = re.search(rf"^{target}:.*((?:\n\t.*)+)", MAKEFILE, re.M)
        if recipe and any(re.search(rf"\$[({{]*{each}\b", recipe[1]) for each in wanted):
            found.append(target)
    return found


@pytest.mark.parametrize("name", sorted({*GIVEN} - SWITCHES - PROGRAMS))
@pytest.mark.parametrize("by", ["line", "environment"])
def test_a_text_arrives_as_it_is(told: Path, tmp_path: Path, name: str, by: str) -> None:
    """In every target that takes it: with quotes, dollars, lines, by either way of giving it."""
    planted = tmp_path / "planted"
    text = NASTY.format(planted)
    targets = [target for target in targets_with(name) if target != "help"]
    assert targets
    for target in targets:
        if by == "line":
            calls = make(told, target, [f"{name}={text}"])
        else:
            calls = make(told, target, [], **{name: text})
        words = [word for arguments, _ in calls for word in arguments]
        assert [word for word in words if word.endswith(text)], (target, words)
        assert not planted.exists(), target


@pytest.mark.parametrize("name", sorted(SWITCHES | PROGRAMS))
def test_nothing_in_a_switch_is_run(told: Path, tmp_path: Path, name: str) -> None:
    """Nor in the name of a program; a switch is on whatever it says."""
    planted = tmp_path / "planted"
    for target in ("run", "generate", "regress", "test", "setup", "oracles"):
        calls = make(told, target, [f"{name}={NASTY.format(planted)}"])
        assert not planted.exists(), target
        assert calls or name in PROGRAMS


def test_every_variable_is_taken_as_text() -> None:
    """None is left to make or to the shell: the list that says so has them all."""
    (listed,) = re.findall(r"^GIVEN := ((?:.*\\\n)*.*)", MAKEFILE, re.M)
    assert {*listed.replace("\\", " ").split()} == {*GIVEN} | PROGRAMS
    assert set(GIVEN) >= SWITCHES
    recipes = "".join(re.findall(r"^(?:\t|CLI|RUN_|REGRESS_|  ).*", MAKEFILE, re.M))
    bare = set(re.findall(r"(?<!\$\(if )\$\((\w+)\)", recipes)) & {*GIVEN, *PROGRAMS}
    assert not bare


def test_the_users_python_is_not_ours(told: Path) -> None:
    """What leads a Python elsewhere, takes assertions out or slows it down is not let through."""
    names = "PYTHONHOME PYTHONPATH PYTHONPLATLIBDIR PYTHONSAFEPATH PYTHONINSPECT PYTHONOPTIMIZE"
    names += " PYTHONDONTWRITEBYTECODE"
    pips = "PIP_PREFIX PIP_REQUIRE_VIRTUALENV PIP_ROOT PIP_TARGET PIP_USER"
    hostile = dict.fromkeys(f"{names} {pips}".split(), "1")
    for target in ("setup", "gen", "oracles"):
        calls = make(told, target, [], **hostile, PIP_INDEX_URL="x")
        assert calls
        for _, environment in calls:
            assert not {*hostile} & {*environment}
            assert "PIP_INDEX_URL" in environment
