# SPDX-License-Identifier: Apache-2.0
"""What ends a command besides a wrong command line: one line, a status, and no traceback.

Build folders that cannot be written or are full, output that nobody reads, Ctrl-C, and errors that
nobody has foreseen.
"""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import NoReturn

import pytest

from npu.cli import command_line
from npu.commands import build_folder, last_resort
from npu.commands.arguments import AddCommand
from spec.paths import BUILD, ROOT
from tb.benchmarks import publish
from tb.run import build, registry, runner
from tests.bench.process import npu

LIST = [sys.executable, "-m", "npu.cli", "test", "--list"]
FULL = os.strerror(errno.ENOSPC)


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Run a command in this process and return the line that it ends with, status 2."""
    status = command_line.main(arguments)
    printed = capsys.readouterr()
    assert (status, printed.out) == (2, ""), printed
    assert printed.err.count("\n") == 1, printed.err
    return printed.err.strip()


def raising(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """Make the command `gen` raise an error."""

    def fail(**_: object) -> NoReturn:
        raise error

    monkeypatch.setattr(build, "generate", fail)


# The build folder


def test_build_is_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Something else is where the folder would be; what needs no such folder goes on."""
    (tmp_path / "build").touch()
    monkeypatch.setattr(build_folder, "BUILD", tmp_path / "build")
    line = refused(capsys, "build")
    assert line == f"npu: {tmp_path}/build: given something else, allowed a folder, or nothing"
    assert command_line.main(["test", "--list"]) == 0
    (tmp_path / "end.npu").write_text("END\n", encoding="utf-8")
    assert command_line.main(["inspect", str(tmp_path / "end.npu")]) == 0


@pytest.mark.parametrize("command", ["build", "pytest", "quality", "bench", "gen"])
def test_read_only_build_folder(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
) -> None:
    """A folder on a read-only file system is refused before anything is built."""
    monkeypatch.setattr(build_folder, "BUILD", tmp_path)
    monkeypatch.setattr(os, "access", lambda *_: False)
    line = refused(capsys, command)
    assert line == f"npu: {tmp_path}: given a folder that is read-only, allowed one to write in"


def test_no_room_to_begin_with(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A full file system is found before the build."""
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=5 << 20))
    assert refused(capsys, "build").endswith("given 5 MiB of free space, allowed 64 and more")


@pytest.mark.parametrize("free", [0, 1 << 40])
def test_no_room_for_the_build(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], free: int
) -> None:
    """A tool that fails because of it is not quoted for pages, whether it says so or not."""
    said = "a page of commands" if not free else f"g++ ...\nfatal error: cannot write: {FULL}\n"
    done = SimpleNamespace(returncode=1, stdout=f"{said}\nmake: *** Error 1")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: done)
    monkeypatch.setattr(build_folder, "require", lambda: None)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free))
    line = refused(capsys, "gen")
    assert line == f"npu: python -m spec.isa.generate failed: {BUILD}: {FULL}"


def test_a_generator_that_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of the traceback of a tool its last line is shown."""
    trace = "Traceback (most recent call last):\n  File x\nOSError: [Errno 30] Read-only: 'docs'\n"
    done = SimpleNamespace(returncode=1, stdout=trace)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: done)
    line = refused(capsys, "gen")
    assert line == "npu: python -m spec.isa.generate failed: OSError: [Errno 30] Read-only: 'docs'"


def test_no_room_for_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The memory of a run gets its place when it is made, not when it is written to."""

    def full(*_: int) -> NoReturn:
        raise OSError(errno.ENOSPC, FULL)

    (test,) = registry.select(["test_program_end_only"], registry.discover())
    job = runner.Job(test, build.Configuration(), place=tmp_path / "run")
    runner.prepare(job)
    stat = (tmp_path / "run" / "memory.bin").stat()
    assert stat.st_blocks * 512 >= stat.st_size == test.memory_bytes
    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(OSError, match=r"memory\.bin") as caught:
        runner.prepare(job)
    assert caught.value.errno == errno.ENOSPC


def test_no_room_for_the_logs_of_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that failed on a full file system is no verdict about the chip."""
    (test,) = registry.select(["test_program_end_only"], registry.discover())
    job = runner.Job(test, build.Configuration(), place=tmp_path)
    (tmp_path / runner.LOG).write_text("no results")
    assert "before any test had run" in runner.outcome(job, 1, 0.0).message
    monkeypatch.setattr(build_folder, "is_full", lambda: True)
    with pytest.raises(OSError, match=FULL):
        runner.outcome(job, 1, 0.0)


def test_no_bench_run_to_publish(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`make bench-docs` before `make bench`."""
    monkeypatch.setattr(publish, "ROOT", tmp_path)
    monkeypatch.setattr(publish, "JSON", tmp_path / "bench.json")
    assert refused(capsys, "bench-docs") == "npu: bench.json is missing: run make bench first"


# Output


def test_closed_pipe() -> None:
    """The reader of a list goes away: no word, and the status of a closed pipe."""
    reader, writer = os.pipe()
    os.close(reader)
    run = subprocess.run(LIST, cwd=ROOT, stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert (run.returncode, run.stderr) == (141, b"")


def test_full_output() -> None:
    """Standard output on a full file system."""
    with Path("/dev/full").open("wb") as full:
        run = subprocess.run(LIST, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, check=False)
    assert (run.returncode, run.stderr.decode()) == (2, f"npu: {FULL}\n")


@pytest.mark.parametrize("closed", [">&-", ">&- 2>&-"])
def test_no_output_at_all(tmp_path: Path, closed: str) -> None:
    """Standard streams that are closed."""
    (tmp_path / "end.npu").write_text("END\n", encoding="utf-8")
    command = f'"{sys.executable}" -m npu.cli inspect "{tmp_path}/end.npu" {closed}'
    run = subprocess.run(["sh", "-c", command], cwd=ROOT, capture_output=True, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (0, b"", b"")


def test_output_of_another_encoding(tmp_path: Path) -> None:
    """What the terminal's encoding cannot say is replaced."""
    (tmp_path / "über.npu").write_text("NOP\nEND\n", encoding="utf-8")
    run = npu("inspect", str(tmp_path / "über.npu"), PYTHONIOENCODING="ascii")
    assert (run.returncode, run.stderr) == (0, "")
    assert "?ber.npu: a program" in run.stdout


# Everything else


def test_interrupted(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Ctrl-C."""
    raising(monkeypatch, KeyboardInterrupt())
    assert command_line.main(["gen"]) == 130
    assert capsys.readouterr().err == "npu: interrupted\n"


def test_imports(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Importing the commands, the first second of each, is covered like the command itself."""
    monkeypatch.delattr("dev.dev_commands")
    monkeypatch.setitem(sys.modules, "dev.dev_commands", None)  # makes the import an error
    line = refused(capsys, "gen")
    assert line == "npu: the Python package dev.dev_commands is missing: run make setup"


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (OSError(errno.EROFS, "Read-only file system", "/x/y"), "/x/y: Read-only file system"),
        (OSError(errno.ENOSPC, FULL), FULL),
        (FileNotFoundError("no standard library"), "no standard library"),
        (MemoryError(), "the memory of this machine does not suffice"),
    ],
)
def test_errors_of_the_system(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: Exception,
    line: str,
) -> None:
    """Files and memory, wherever it happens."""
    raising(monkeypatch, error)
    assert refused(capsys, "gen") == f"npu: {line}"


def test_unforeseen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The line says what to report; the file has the traceback and the command line."""
    raising(monkeypatch, ZeroDivisionError("two\nlines"))
    monkeypatch.setattr(last_resort, "REPORTS", tmp_path / "reports")
    path = tmp_path / "reports" / "traceback.txt"
    line = refused(capsys, "gen")
    assert line == (
        "npu: this must not happen (ZeroDivisionError: two lines): please report it together "
        f"with {path}"
    )
    text = path.read_text(encoding="utf-8")
    assert "Traceback (most recent call last):" in text
    assert "in fail" in text
    assert text.startswith("command: ")


def test_the_report_finds_another_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where build/ cannot be written, the traceback goes to the folder of temporary files."""
    raising(monkeypatch, ZeroDivisionError())
    (tmp_path / "file").touch()
    monkeypatch.setattr(last_resort, "REPORTS", tmp_path / "file" / "reports")
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    assert refused(capsys, "gen").endswith(f"with {tmp_path}/traceback.txt")
    (tmp_path / "traceback.txt").unlink()
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path / "file"))
    assert refused(capsys, "gen").endswith("please report it with what --debug shows")


@pytest.mark.parametrize("arguments", [["--debug", "gen"], ["gen", "--debug"]])
def test_debug(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    """With --debug, at any place, the traceback comes first; line and status stay."""
    raising(monkeypatch, build.BuildError("broken"))
    assert command_line.main(arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("Traceback (most recent call last):")
    assert error.endswith("\nnpu: broken\n")


def test_what_ends_or_turns_a_line_is_not_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """In the line of an error, whether of a command or of the parser: one line stays one."""
    for words in (
        ["asm", "a\u2028b\u2029c\x1b[31m", "-o", "x"],
        ["asm", "a", "-o", "b", "--\u2028\x1b"],
    ):
        with suppress(SystemExit):
            command_line.main(words)
        said = capsys.readouterr().err
        assert len(said.splitlines()) == 1
        assert said.removesuffix("\n").isprintable()


@pytest.mark.parametrize("command", command_line.COMMANDS)
def test_every_kind_of_refusal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    """Each error that stands for something that a user can cause is one line."""
    home = command_line.home_of(command)
    assert home.BAD_INPUT
    for kind in home.BAD_INPUT:
        monkeypatch.setattr(
            home, "add_commands", partial(_add_failing, command, kind.__new__(kind))
        )
        assert refused(capsys, command).startswith("npu:")


def _add_failing(name: str, error: Exception, command: AddCommand) -> None:
    """Add a command that raises an error."""

    def fail(_: object) -> NoReturn:
        """Fail."""
        raise error

    command(name, fail)


@pytest.mark.parametrize(
    "arguments", [["asm", "-h"], ["disasm", "-h"], ["compile", "-h"], ["inspect", "-h"]]
)
def test_commands_on_files_import_no_bench(arguments: list[str]) -> None:
    """They need neither the bench nor cocotb."""
    code = (
        "import sys; from npu.cli.command_line import main\n"
        f"try: main({arguments})\n"
        "except SystemExit: pass\n"
        "wrong = {'tb', 'dev', 'cocotb'} & set(sys.modules)\n"
        "sys.exit(f'imported: {wrong}' if wrong else 0)"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr


def test_make_passes_debug() -> None:
    """DEBUG=1 of make is --debug."""
    run = subprocess.run(
        ["make", "-n", "PYTHON=true", "DEBUG=1", "gen"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "-m npu.cli --debug gen" in run.stdout
