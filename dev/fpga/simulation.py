# SPDX-License-Identifier: Apache-2.0
"""A board as a program of Verilator, whose serial port is a pseudo-terminal."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from dev.fpga import boards
from npu import optional
from npu.commands import progress
from npu.driver.serial_bus import BAUD, LONGEST, SerialBus, SerialPort
from spec.paths import BUILD
from tb.run import build, digest, sources, verilator

MAIN = boards.HOME / "board_main.cpp"
PREFIX = "Vboard"
DIVISOR = 4
"""Cycles of a bit of the simulated port: as few as there can be."""
IDLE = 1 << 16
"""Cycles behind which a broken request is forgotten: seconds of a simulated board."""
SECONDS = 120.0
"""That an answer may take: a simulated chip is 500 times slower."""
OPTIONS = ("-Wno-fatal", "-Wno-lint", "-O3", "--x-assign", "fast", "--x-initial", "fast")


def folder(board: boards.Board) -> Path:
    """Return where a board is built."""
    return BUILD / "sim" / f"board-{board.name}"


def build_board(
    board: boards.Board,
    own: Path | None = None,
    replaced: Mapping[Path, Path] | None = None,
) -> Path:
    """Build a board, if anything of it has changed; return the program.

    Args:
        board: its parameters.
        own: folder to build in, None for the board's.
        replaced: sources that stand in the place of others, to try a change.

    Raises:
        BuildError, VerilatorError: the tools do not build it, or are not there.
    """
    tool, own = verilator.find(), own or folder(board)
    parameters = {**board.parameters, "Divisor": DIVISOR, "IdleCycles": IDLE}
    files = [(replaced or {}).get(path, path) for path in boards.board_sources()]
    command = [*tool.command, "--cc", "--exe", "--assert", *OPTIONS, "--prefix", PREFIX]
    command += ["--top-module", boards.TOP, "-Mdir", str(own), "-o", "board"]
    command += [f"-G{name}={value}" for name, value in parameters.items()]
    command += [*sources.relative([*boards.waivers(), *files]), str(MAIN)]
    variables = ["OPT_FAST=-O1", "OPT_SLOW=-O0", "OPT_GLOBAL=-O1", *tool.make_variables]
    key = digest.of([tool.version, *command, *variables], (), [*files, MAIN])
    stamp, binary = own / "digest.txt", own / "board"
    if binary.exists() and stamp.exists() and stamp.read_text(encoding="utf-8") == key:
        return binary
    stamp.unlink(missing_ok=True)
    own.mkdir(parents=True, exist_ok=True)
    jobs = f"-j{len(os.sched_getaffinity(0))}"
    cached = ["OBJCACHE=ccache"] if optional.has("ccache") else []
    with progress.step(f"building {own.name} (1 minute)"):
        build.called(command, "verilator", tool.environment)
        make = ["make", "-C", str(own), "-f", f"{PREFIX}.mk", jobs, *cached, *variables]
        clean = {"MAKEFLAGS": "", "MAKELEVEL": "", "MFLAGS": ""}
        build.called(make, "compiling the board", {**tool.environment, **clean})
    stamp.write_text(key, encoding="utf-8")
    return binary


@contextmanager
def running(binary: Path) -> Iterator[Path]:
    """Run a board; give its serial port.

    Args:
        binary: of `build_board`.

    Raises:
        BuildError: it does not start.
    """
    command = [str(binary), str(DIVISOR)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as board:
        assert board.stdout is not None
        try:
            if not (name := board.stdout.readline().strip()):
                raise build.BuildError(f"{binary.parent.name} does not start")
            yield Path(name)
        finally:
            board.kill()


@contextmanager
def simulated(binary: Path, size: int) -> Iterator[SerialBus]:
    """Run a board; give the bus of its serial port, as that of a real one.

    Args:
        binary: of `build_board`.
        size: bytes of its memory.

    Raises:
        BuildError: it does not start.
    """
    with running(binary) as path, real(path, size, seconds=SECONDS) as bus:
        yield bus


@contextmanager
def real(path: Path, size: int, baud: int = BAUD, seconds: float = LONGEST) -> Iterator[SerialBus]:
    """Give the bus of a serial port.

    Raises:
        RequestError: there is no such port.
    """
    port = SerialPort(path, baud)
    try:
        yield SerialBus(port, size, seconds)
    finally:
        port.close()
