# SPDX-License-Identifier: Apache-2.0
"""Compiles the programs of `firmware/examples` for a RISC-V core.

Two compilers do: the one of the Python package `ziglang`, which needs no system package, and
Debian's gcc with picolibc, whose printf then writes to the UART.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from npu import optional
from spec.paths import BUILD, ROOT
from weights.firmware.export import write_headers

FIRMWARE = ROOT / "firmware"
EXAMPLES = FIRMWARE / "examples"
LIBRARY = FIRMWARE / "lib"
Name = Literal["zig", "gcc"]
Floats = Literal["soft", "hard"]
PLAN = "npu_plan.h"
"""Header with the plan of a model."""
JOB = "npu_job"
"""What that of a decoder defines."""
SOURCE = ".c"
"""Ends the name of a source."""
WEIGHTS = '_weights.h"'
"""Ends the name of a header with a model's weights."""
PACKAGES = {
    "zig": "the Python package ziglang (make setup)",
    "gcc": f"the Debian packages {' and '.join(optional.RISCV)}",
}
"""What to install for each compiler."""


class FirmwareError(RuntimeError):
    """A program that is not there or does not compile, or no compiler for it."""


def compilers() -> list[Name]:
    """Return the compilers that are installed, the one to take first."""
    found: list[Name] = []
    if importlib.util.find_spec("ziglang") is not None:
        found.append("zig")
    if optional.missing(*optional.RISCV) is None:
        found.append("gcc")
    return found


def examples() -> list[str]:
    """Return the names of the programs that come with the project."""
    return sorted(path.name for path in EXAMPLES.iterdir() if path.is_dir())


def sources_of(name: str) -> list[Path]:
    """Return the sources of a program.

    Raises:
        FirmwareError: there is none of this name.
    """
    if name not in examples():
        raise FirmwareError(f"program: given {name!r}, allowed {', '.join(examples())}")
    return sorted((EXAMPLES / name).glob("*.c"))


def needs_plan(name: str) -> bool:
    """Whether a program runs a compiled model: it includes what `npu compile --plan` writes."""
    return _mentions(name, f'"{PLAN}"')


def needs_prompt(name: str) -> bool:
    """Whether the model of a program is a decoder that goes on with a prompt."""
    return _mentions(name, JOB)


def _mentions(name: str, text: str) -> bool:
    return any(text in path.read_text(encoding="utf-8") for path in sources_of(name))


@cache
def weights_folder() -> Path:
    """Write the models of `weights.firmware` as C headers; return their folder."""
    folder = BUILD / "firmware" / "weights"
    with tempfile.TemporaryDirectory(dir=_made(folder)) as fresh:
        write_headers(Path(fresh))
        # Others may compile at the same time: a header is there as a whole or not at all.
        for path in Path(fresh).iterdir():
            path.replace(folder / path.name)
    return folder


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@dataclass(frozen=True)
class FirmwareTarget:
    """How a program is compiled.

    Attributes:
        compiler: which one; None takes the first that is installed.
        floats: "soft" for a core without float registers, "hard" for rv32imf with ilp32f.
        optimize: level, of -O.
    """

    compiler: Name | None = None
    floats: Floats = "soft"
    optimize: str = "2"

    def chosen(self) -> Name:
        """Return the compiler.

        Raises:
            FirmwareError: it, or any at all, is missing; names what to install.
        """
        found = compilers()
        if self.compiler is not None and self.compiler not in found:
            raise FirmwareError(f"no compiler {self.compiler}: install {PACKAGES[self.compiler]}")
        if not found:
            raise FirmwareError(f"no compiler for RISC-V: install {' or '.join(PACKAGES.values())}")
        return self.compiler or found[0]

    def kind(self) -> str:
        """Return what the name of an ELF file ends with."""
        return self.chosen() if self.floats == "soft" else f"{self.chosen()}-hard"

    def command(self) -> list[str]:
        """Return compiler and options for this target."""
        hard = self.floats == "hard"
        if self.chosen() == "gcc":
            march, abi = ("rv32imf", "ilp32f") if hard else ("rv32im", "ilp32")
            first = [optional.RISCV_GCC, f"-march={march}", f"-mabi={abi}"]
            return [*first, "--specs=picolibc.specs", "-nostartfiles"]
        first = [sys.executable, "-m", "ziglang", "cc", "-target", "riscv32-freestanding-none"]
        # The checks that it adds to C have no one to tell.
        cpu = "generic_rv32+m+f" if hard else "generic_rv32+m"
        abi = "ilp32f" if hard else "ilp32"
        return [*first, f"-mcpu={cpu}", f"-mabi={abi}", "-fno-sanitize=all"]


def compile_program(
    name: str,
    target: FirmwareTarget | None = None,
    *,
    more: Sequence[Path] = (),
    include: Sequence[Path] = (),
    defines: Sequence[str] = (),
    output: Path | None = None,
) -> Path:
    """Compile a program of `firmware/examples`; return its ELF file.

    Args:
        name: of its folder.
        target: how.
        more: sources beside those of the folder.
        include: folders of headers, such as one with the plan.
        defines: macros, NAME or NAME=VALUE.
        output: the file to write, by default build/firmware/NAME-COMPILER.elf.

    Raises:
        FirmwareError: no such program, no compiler, or the compiler's message.
    """
    sources = [*sources_of(name), *more]
    if _mentions(name, WEIGHTS):
        include = [*include, weights_folder()]
    return compile_sources(sources, name, target, include=include, defines=defines, output=output)


def compile_sources(
    sources: Sequence[Path],
    name: str,
    target: FirmwareTarget | None = None,
    *,
    include: Sequence[Path] = (),
    defines: Sequence[str] = (),
    flags: Sequence[str] = (),
    output: Path | None = None,
) -> Path:
    """Compile sources with start-up code and library; as `compile_program`.

    `flags` are for the compiler, behind its other ones.
    """
    target = target or FirmwareTarget()
    output = output or BUILD / "firmware" / f"{name}-{target.kind()}.elf"
    output.parent.mkdir(parents=True, exist_ok=True)
    # What is there stays unless a program comes out, whole.
    with tempfile.TemporaryDirectory(dir=_made(BUILD / "firmware")) as folder:
        made = Path(folder, "program.elf")
        _run(target, sources, name, (include, defines, flags), made)
        shutil.copy(made, output)
    return output


def _run(
    target: FirmwareTarget,
    sources: Sequence[Path],
    name: str,
    options: tuple[Sequence[Path], Sequence[str], Sequence[str]],
    output: Path,
) -> None:
    include, defines, flags = options
    chosen = target.chosen()
    library = [*sorted(LIBRARY.glob("*.S")), *sorted(LIBRARY.glob("*.c"))]
    command = [
        *target.command(),
        f"-O{target.optimize}",
        *("-g", "-Wall", "-Wextra", "-Werror", "-std=gnu11", "-ffreestanding"),
        *("-ffunction-sections", "-fdata-sections", "-Wl,--gc-sections"),
        *(f"-D{define}" for define in defines),
        *(f"-I{folder}" for folder in (FIRMWARE / "include", LIBRARY, *include)),
        *flags,
        *map(str, library),
        *map(str, sources),
        *("-T", str(LIBRARY / "link.ld"), "-o", str(output)),
    ]
    caches = {
        "ZIG_GLOBAL_CACHE_DIR": str(BUILD / "zig-cache"),
        "ZIG_LOCAL_CACHE_DIR": str(BUILD / "zig-cache"),
    }
    run = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, **caches},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if run.returncode != 0:
        raise FirmwareError(f"compiling {name} with {chosen} failed:\n{run.stdout.strip()[-4000:]}")
    if not _is_program(output):
        raise FirmwareError(
            f"compiling {name} with {chosen} made no program: given the flags {' '.join(flags)}, "
            "allowed those with which it compiles and links one"
        )


def _is_program(path: Path) -> bool:
    """Whether a compiler that has ended well has left an ELF file that can be executed."""
    head = path.read_bytes()[:18] if path.is_file() else b""
    return head.startswith(b"\x7fELF") and head[16:] == b"\x02\x00"
