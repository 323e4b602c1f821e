# SPDX-License-Identifier: Apache-2.0
"""Long steps are not silent, whether somebody watches a terminal or reads a log later."""

from __future__ import annotations

import io
import os
import time
from pathlib import Path

import pytest
from rich.console import Console

from dev import quality
from npu.commands import progress
from spec.configurations import CHIPS
from tb.run import build


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a tenth of a second a long time."""
    monkeypatch.setattr(progress, "PATIENCE_S", 0.05)
    monkeypatch.setattr(progress, "EVERY_S", 0.2)
    monkeypatch.setattr(progress, "REFRESH_S", 0.05)


def test_lines(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a terminal: a line when it is known to be long, then one from time to time."""
    with progress.step("working", lambda: "3 of [4]"):
        time.sleep(0.5)
    first, second, *_ = capsys.readouterr().err.splitlines()
    assert first == "working ..."
    assert second.startswith("working ... (3 of [4], 0 s)")


def test_short_steps_are_not_mentioned(capsys: pytest.CaptureFixture[str]) -> None:
    """What is over at once needs no words."""
    with progress.step("working"):
        pass
    assert capsys.readouterr().err == ""


def test_terminal() -> None:
    """On a terminal the line lives: it shows how far the step is, and goes when it ends."""
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=80)
    with progress.step("working", lambda: "half", console):
        time.sleep(0.3)
    assert "working" in screen.getvalue()
    assert "(half, 0 s)" in screen.getvalue()
    assert screen.getvalue().endswith("\x1b[2K")  # the line is erased


def test_an_error_ends_the_step(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is said any more once the body has failed."""
    with pytest.raises(ValueError, match="broken"), progress.step("working"):
        raise ValueError("broken")
    time.sleep(0.2)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("again", [False, True])
def test_build(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    again: bool,
) -> None:
    """A build names what it builds, how long that takes, and the files that are done."""
    monkeypatch.setattr(build, "BUILD", tmp_path)
    folder = tmp_path / "sim" / "fast-a4"

    def verilate(*_: object) -> str:
        for name in ("a", "b"):
            (folder / f"Vtop__{name}.cpp").touch()
        (folder / "Vtop__old.o").touch()
        os.utime(folder / "Vtop__old.o", (0, 0))
        time.sleep(0.15)
        return ""

    def compile_model(*_: object) -> str:
        (folder / "Vtop__a.o").touch()
        (folder / "verilated.o").touch()
        time.sleep(0.5)
        return ""

    monkeypatch.setattr(build, "called", verilate)
    monkeypatch.setattr(build, "_make", compile_model)
    monkeypatch.setattr(build, "_start_afresh_if_changed", lambda *_: None)
    folder.mkdir(parents=True)
    if again:
        (folder / build.TOP).touch()
    build.build(build.Configuration(chip=CHIPS["a4"]))
    what = "building fast-a4" + (", what has changed of it" if again else " (1 to 2 minutes)")
    first, second, third, *_ = capsys.readouterr().err.splitlines()
    assert first == f"{what}: Verilator reads the design ..."
    assert second == f"{what}: compiling ..."
    assert third.startswith(f"{what}: compiling ... (1 of 2 files, ")


def test_quality(capsys: pytest.CaptureFixture[str]) -> None:
    """A measurement says how many windows are done."""
    with quality._counted("tiny", 9) as advance:
        advance(4)
        advance(1)
        time.sleep(0.5)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "measuring tiny ..."
    assert lines[1].startswith("measuring tiny ... (5 of 9 windows, ")


def test_the_rest_is_foretold(monkeypatch: pytest.MonkeyPatch) -> None:
    """From what the parts took so far; each kind of part anew."""
    now = 100.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    far = progress.Progress()
    assert far.text() == ""
    now = 110.0
    far.advance("layers", 2, 6)
    assert far.text() == "2 of 6 layers, about 20 s left"
    now = 113.0
    assert far.text() == "2 of 6 layers, about 17 s left"
    now = 130.0
    far.advance("layers", 6, 6)
    assert far.text() == "6 of 6 layers"
    more = far.counter("rows", 4)
    now = 136.0
    more(1)
    more(1)
    assert far.text() == "2 of 4 rows, about 6 s left"
