# SPDX-License-Identifier: Apache-2.0
"""What a machine may lack: optional packages of Debian, and optional groups of pip.

All look-ups of them are here. Whatever uses one asks here; a test that needs one is skipped with
the words from here, and a skip with any other words is a failure (`tests/conftest.py`). With
TESSERA_BARE=1 in the environment Debian's are not found, although they may be there: this is how
continuous integration begins.

    python3 -m npu.optional     the optional packages of Debian
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from types import MappingProxyType

from spec.paths import ROOT

DISTRIBUTION = "tessera-npu"
BARE = "TESSERA_BARE"
RISCV_GCC = "riscv64-unknown-elf-gcc"
GDB = "gdb-multiarch"
OSU018 = "/usr/share/qflow/tech/osu018"


def _program(name: str) -> Callable[[], bool]:
    return lambda: shutil.which(name) is not None


def _header(name: str) -> Callable[[], bool]:
    text = f"#include <{name}>\n"
    return lambda: _says(["g++", "-E", "-x", "c++", "-"], text) is not None


def _file(path: str) -> Callable[[], bool]:
    return lambda: Path(path).exists()


def _has_picolibc() -> bool:
    said = _says([RISCV_GCC, "-print-file-name=picolibc.specs"])
    return said is not None and Path(said).is_absolute()


def _says(command: list[str], text: str = "") -> str | None:
    """Return what a program prints, None if it is not there or ends with an error."""
    try:
        run = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return None if run.returncode else run.stdout.strip()


@dataclass(frozen=True)
class Package:
    """A package of Debian.

    Attributes:
        brings: what is missing without it.
        found: whether that is there, by looking for it.
    """

    brings: str
    found: Callable[[], bool]


PACKAGES: Mapping[str, Package] = MappingProxyType(
    {
        "ccache": Package("ccache", _program("ccache")),
        "chromium": Package("Chromium", _program("chromium")),
        "gcc-riscv64-unknown-elf": Package("gcc for RISC-V", _program(RISCV_GCC)),
        "gdb-multiarch": Package("GDB for RISC-V", _program(GDB)),
        "gtkwave": Package("GTKWave", _program("gtkwave")),
        "iverilog": Package("Icarus Verilog", _program("iverilog")),
        "liblz4-dev": Package("lz4.h", _header("lz4.h")),
        "opensta": Package("OpenSTA", _program("sta")),
        "picolibc-riscv64-unknown-elf": Package("picolibc", _has_picolibc),
        "qflow-tech-osu018": Package("cells of 180 nm", _file(f"{OSU018}/osu018_stdcells.lib")),
        "xvfb": Package("Xvfb", _program("Xvfb")),
        "zlib1g-dev": Package("zlib.h", _header("zlib.h")),
    }
)
"""By the names that apt takes."""
WAVES = ("zlib1g-dev", "liblz4-dev")
"""What recording waveforms needs."""
GATES = ("opensta", "qflow-tech-osu018")
"""What figures in gates need."""
RISCV = ("gcc-riscv64-unknown-elf", "picolibc-riscv64-unknown-elf")
"""The second of two compilers for firmware."""


@cache
def groups() -> Mapping[str, tuple[str, ...]]:
    """Return the groups of this package, and the packages of each as NAME==VERSION."""
    found: dict[str, list[str]] = {}
    for line in requires(DISTRIBUTION) or ():
        pin, _, group = line.partition("; extra == ")
        if group:
            found.setdefault(group.strip("\"'"), []).append(pin)
    inner = re.compile(rf"{DISTRIBUTION}\[([\w,]+)\]")

    def packages(group: str) -> Iterator[str]:
        for pin in found[group]:
            if within := inner.match(pin):
                yield from (each for name in within[1].split(",") for each in packages(name))
            else:
                yield pin

    return MappingProxyType({group: tuple(packages(group)) for group in found})


def has(name: str) -> bool:
    """Whether a package of Debian, or all packages of a group of pip, are there."""
    if name in PACKAGES:
        return not os.environ.get(BARE) and _found(name)
    # Metadata of an older version lacks groups that are new.
    pins = groups().get(name)
    return pins is not None and all(_installed(*pin.split("==")) for pin in pins)


@cache
def _found(name: str) -> bool:
    return PACKAGES[name].found()


def _installed(package: str, wanted: str) -> bool:
    try:
        return version(package).partition("+")[0] == wanted
    except PackageNotFoundError:
        return False


def missing(*names: str) -> str | None:
    """Return which packages or groups are not there and what brings them, None if all are.

    Groups are named before packages: one command brings one kind.
    """
    lacks = [name for name in names if not has(name)]
    return _words([name for name in lacks if name not in PACKAGES] or lacks) if lacks else None


def _words(lacks: list[str]) -> str:
    if lacks[0] in PACKAGES:
        brings = " and ".join(PACKAGES[name].brings for name in lacks)
        return f"no {brings}, apt install {' '.join(lacks)}"
    brings = f"python3 dev/bootstrap.py {' '.join(lacks)}"
    if not (ROOT / "Makefile").exists():  # installed elsewhere than in a checkout
        brings = f"pip install {DISTRIBUTION}[{','.join(lacks)}]"
    return f"no group {' and '.join(lacks)}, {brings}"


def group_of(module: str) -> str:
    """Return the group that brings a module of another project, "dev" if its name says none."""
    package = module.partition(".")[0].replace("_", "-")
    return next(
        (
            name
            for name, pins in groups().items()
            if any(pin.partition("==")[0].lower() == package.lower() for pin in pins)
        ),
        "dev",
    )


def objection(reason: str) -> str | None:
    """Return why nothing may be skipped for a reason, None if it may.

    It must be what `missing` says, and of packages that Debian has not installed: otherwise the
    look-up is wrong. A bare machine only seems to be without them.
    """
    names = reason.rpartition(", ")[2].split()[2:]
    known = names and all(name in PACKAGES for name in names)
    if not known and not (names and all(name in groups() for name in names)):
        return "a reason that is not in npu/optional.py"
    if _words(names) != reason:
        return "a reason that is not in npu/optional.py"
    if not known or os.environ.get(BARE):
        return None
    status = {name: _says(["dpkg-query", "-W", "-f=${db:Status-Abbrev}", name]) for name in names}
    there = [name for name, said in status.items() if said == "ii"]
    return f"but {' and '.join(there)} is installed" if there else None


if __name__ == "__main__":
    print(" ".join(PACKAGES))
