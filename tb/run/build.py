# SPDX-License-Identifier: Apache-2.0
"""Builds a model of the bench with Verilator, once per configuration, in a folder of its own.

The fast build lets Python see only the signals of `tb_top`, which makes it several times faster;
the debug build makes everything visible and can record waveforms. Cycle counts are the same.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

import cocotb_tools.config

from npu import optional
from npu.commands import build_folder, progress
from spec.configurations import USUAL, ChipParameters
from spec.paths import BUILD, DOCS, GENERATED, HDL, ROOT, RTL
from tb.run import digest, simulator_library, sources, verilator

Kind = Literal["fast", "debug"]
TOP = "tb_top"
COCOTB_MAIN = cocotb_tools.config.share_dir / "lib" / "verilator" / "verilator.cpp"
"""The main program of a simulator under cocotb."""
_CACHE_OF_ALL_CLONES = {"CCACHE_BASEDIR": str(ROOT), "CCACHE_NOHASHDIR": "1"}
"""Settings of ccache by which one clone finds what another one has compiled."""


class BuildError(RuntimeError):
    """Verilator or the compiler refused the sources."""


@dataclass(frozen=True)
class Configuration:
    """What one model is built from.

    Attributes:
        kind: "fast" for runs, "debug" for waveforms.
        chip: the chip's parameters (make variable CONFIG).
        rtl: folder of the design's sources; another one to try a changed copy.
        label: folder name in build/sim, derived from the rest if empty.
        coverage: whether each run leaves `coverage.dat`, the lines and branches that it executed.
        beside: more sources, behind all others, wherever they are.
    """

    kind: Kind = "fast"
    chip: ChipParameters = USUAL
    rtl: Path = RTL
    label: str = ""
    coverage: bool = False
    beside: tuple[Path, ...] = ()

    takes: ClassVar[str] = "1 to 2 minutes"

    @property
    def parameters(self) -> list[str]:
        """The chip's parameters, as arguments of Verilator and slang."""
        return [f"-G{name}={value}" for name, value in self.chip.parameters.items()]

    def parameters_in(self, top: Path) -> list[str]:
        """The chip's parameters that a top declares; it sets the rest itself."""
        declared = re.findall(r"^ *parameter .*?(\w+) =", top.read_text(encoding="utf-8"), re.M)
        values = self.chip.parameters.items()
        return [f"-G{name}={value}" for name, value in values if name in declared]

    @property
    def top(self) -> str:
        """The module that Python sees as `dut`, and the executable."""
        return TOP

    @property
    def variant(self) -> str:
        """What the name of the folder says of the kind."""
        if not self.coverage:
            return self.kind
        return "cov" if self.kind == "fast" else f"cov-{self.kind}"

    @property
    def folder(self) -> Path:
        """Where the model is built."""
        return BUILD / "sim" / (self.label or f"{self.variant}-{self.chip.name}")

    @property
    def binary(self) -> Path:
        """The simulator's executable."""
        return self.folder / self.top

    @property
    def options(self) -> list[str]:
        """Arguments of Verilator that models of this kind have."""
        return ["-I" + os.path.relpath(HDL, ROOT)]

    @property
    def recorder(self) -> Path | None:
        """The main program of a model that records waveforms; None: this one does not."""
        return HDL / "window_main.cpp" if traces(self) else None

    @property
    def recording(self) -> list[str]:
        """Arguments of Verilator that a model with a recorder has."""
        return ["--trace-fst", "--trace-structs"]

    @property
    def inputs(self) -> list[Path]:
        """What Verilator reads: what Python sees, waivers of the design, sources."""
        seen = [HDL / "fast.vlt", *([HDL / "debug.vlt"] if self.kind == "debug" else [])]
        waivers = sources.waivers(self.rtl, GENERATED)
        return [*seen, *waivers, *sources.bench_sources(self.rtl, GENERATED), *self.beside]

    def repeat(self, test: str, seed: int) -> list[str]:
        """Return the words of the command that runs a test on such a model again."""
        return ["make", "SIM=verilator", f"TESTCASE={test}", f"SEED={seed}", *self.config]

    @property
    def config(self) -> list[str]:
        """The words of make that name the chip, none for the usual one."""
        return [] if self.chip == USUAL else [f"CONFIG={self.chip.name}"]


def generate(*, anew: bool = False) -> None:
    """Make the generated SystemVerilog and Python files, before anything is built.

    Nothing is done if neither their sources nor they have changed since the last time, unless they
    are wanted `anew`.

    Raises:
        BuildError: a generator fails.
        RoomError: there is no folder to build in.
    """
    build_folder.require()
    stamp = GENERATED / "digest.txt"
    if not anew and stamp.exists() and stamp.read_text(encoding="utf-8") == _digest_of_generated():
        return
    for module in ("spec.isa.generate", "spec.regs.generate"):
        called([sys.executable, "-m", module], f"python -m {module}", {})
    stamp.write_text(_digest_of_generated(), encoding="utf-8")


def _digest_of_generated() -> str:
    """Return the digest of what is generated and of what it is generated from."""
    homes = (
        (ROOT / "spec" / "isa", ("*.py", "*.toml", "*.tmpl")),
        (ROOT / "spec" / "regs", ("*.py", "*.toml", "*.rdl")),
        (DOCS / "reference", ("*.md",)),
        (ROOT / "firmware" / "include", ("*.h",)),
        (GENERATED, ("*.sv", "*.h", "*_mnemonics.txt")),
    )
    files = [
        path
        for home, patterns in homes
        for pattern in patterns
        for path in sorted(home.rglob(pattern))
    ]
    names = (os.path.relpath(path, ROOT) for path in files)
    return digest.of(names, (), [ROOT / "constraints.txt", *files])


def called(
    command: Sequence[str], what: str, environment: Mapping[str, str], place: Path = ROOT
) -> str:
    """Run a tool to its end in a folder; return what it has printed.

    Raises:
        BuildError: it failed; says what it was to do, and why it did not.
    """
    run = subprocess.run(
        command,
        cwd=place,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if run.returncode != 0:
        raise BuildError(f"{what} failed:{_reason(run.stdout)}")
    return run.stdout


def _reason(output: str) -> str:
    """Return why a tool failed: one line where the reason is not in the sources, else its last."""
    full = os.strerror(errno.ENOSPC)
    if full in output or build_folder.is_full():
        return f" {BUILD}: {full}"
    if "Traceback (most recent call last):" in output:
        return f" {output.strip().splitlines()[-1]}"
    return f"\n{output.strip()[-6000:]}"


def fst_missing() -> str | None:
    """Return what the system lacks for recording waveforms and what brings it, None if nothing."""
    return optional.missing(*optional.WAVES)


def traces(configuration: Configuration) -> bool:
    """Whether the model can record waveforms: a debug build on a system that has what it takes."""
    return configuration.kind == "debug" and fst_missing() is None


def _verilator_arguments(configuration: Configuration) -> list[str]:
    libraries = cocotb_tools.config.libs_dir
    arguments = [
        "--cc",
        "--exe",
        "--timing",
        "--assert",
        "--vpi",
        "--timescale",
        "1ns/1ns",
        "--x-initial",
        "unique",
        "-Wno-fatal",
        "--top-module",
        configuration.top,
        "--prefix",
        "Vtop",
        "-Mdir",
        str(configuration.folder),
        "-o",
        configuration.top,
        *configuration.parameters,
        *configuration.options,
        "-LDFLAGS",
        f"-Wl,-rpath,{libraries} -L{libraries} -lcocotbvpi_verilator",
    ]
    if configuration.recorder is not None:
        arguments += [*configuration.recording, "-CFLAGS", f"-I{COCOTB_MAIN.parent}"]
    if configuration.coverage:
        arguments.append("--coverage-line")
    return arguments


def build(configuration: Configuration) -> Path:
    """Build the model, or only what changed of it; return the executable.

    Raises:
        BuildError: with the tool's message.
    """
    tool = verilator.find()
    with _locked(configuration.folder):
        _build_locked(configuration, tool)
    return configuration.binary


def link_host(configuration: Configuration, makefile: Path, source: Path) -> Path:
    """Link another main program with the library of a built model; return the executable.

    Raises:
        BuildError: with the compiler's message.
    """
    tool = verilator.find()
    with _locked(configuration.folder):
        variables = [*_make_variables(configuration, tool), f"HOST_SOURCE={source}"]
        arguments = ["-f", str(makefile), *variables]
        _make(configuration.folder, arguments, f"compiling {source.name}", tool)
    return configuration.folder / "plain_host"


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the folder's lock: two commands may build the same configuration at once."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_name(folder.name + ".lock").open("w") as file:
        with progress.step(f"waiting for another command that builds {folder.name}"):
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _start_afresh_if_changed(folder: Path, recipe: str) -> None:
    """Empty the folder if what it holds was built in another way."""
    stamp = folder / "recipe.txt"
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != recipe:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        stamp.write_text(recipe, encoding="utf-8")


def _make_variables(configuration: Configuration, tool: verilator.Verilator) -> list[str]:
    # -O2 takes twice the compiler's time for a model that is no faster.
    variables = [*tool.make_variables, "OPT_FAST=-O1", "OPT_SLOW=-O0", "OPT_GLOBAL=-O1"]
    variables.append(f"VM_TRACE={int(configuration.recorder is not None)}")
    return variables


def _make(folder: Path, arguments: list[str], what: str, tool: verilator.Verilator) -> str:
    # Debian's make sets these for its children; ours starts afresh.
    clean = {"MAKEFLAGS": "", "MAKELEVEL": "", "MFLAGS": ""}
    environment = {**tool.environment, **clean, **_CACHE_OF_ALL_CLONES}
    # No part of what makes a model another one: it may come and go.
    cached = ["OBJCACHE=ccache"] if optional.has("ccache") else []
    return called(["make", "-C", str(folder), *cached, *arguments], what, environment)


def _compiled(folder: Path, begun: float) -> str:
    """Return how many files of the design have been compiled since a time; of one file nothing."""
    if (folder / "Vtop__ALL.cpp").exists():
        return ""
    done = sum(path.stat().st_mtime >= begun for path in folder.glob("Vtop*.o"))
    return f"{done} of {len(list(folder.glob('Vtop*.cpp')))} files"


def _build_locked(configuration: Configuration, tool: verilator.Verilator) -> None:
    folder = configuration.folder
    counted = [HDL / "coverage.vlt"] if configuration.coverage else []
    main = configuration.recorder or COCOTB_MAIN
    command = [
        *tool.command,
        *_verilator_arguments(configuration),
        str(main),
        str(HDL / "memory_dpi.cpp"),
        *sources.relative([*counted, *configuration.inputs]),
    ]
    started = time.monotonic()
    variables = _make_variables(configuration, tool)
    recipe = "\n".join([tool.version, *_verilator_arguments(configuration), *variables])
    homes = (configuration.rtl, GENERATED, HDL)
    built = digest.of([*command, *variables], homes, [main, *configuration.beside])
    stamp = folder / "digest.txt"
    if configuration.binary.exists() and stamp.exists() and stamp.read_text() == built:
        return
    library = simulator_library.folder([tool.version, *variables, *sources.relative(counted)])
    _start_afresh_if_changed(folder, recipe)
    simulator_library.copy(library, folder)
    doing = f"building {folder.name} ({configuration.takes})"
    if configuration.binary.exists():
        doing = f"building {folder.name}, what has changed of it"
    with progress.step(f"{doing}: Verilator reads the design"):
        called(command, "verilator", tool.environment)
    jobs = len(os.sched_getaffinity(0))
    # Every run of Verilator writes Vtop.mk, which is no reason to compile its library again: other
    # options have another recipe.
    make = ["-f", "Vtop.mk", "-o", "Vtop.mk", f"-j{jobs}", *variables]
    begun = time.time() - 1.0  # file systems have coarser clocks
    with progress.step(f"{doing}: compiling", lambda: _compiled(folder, begun)):
        log = _make(folder, make, "compiling the model", tool)
    simulator_library.copy(folder, library)
    stamp.write_text(built, encoding="utf-8")
    seconds = time.monotonic() - started
    if "g++" in log:
        said = f"built {folder.relative_to(BUILD.parent)} in {seconds:.0f} s ({tool.version})"
        print(said, file=sys.stderr)  # standard output is for what was asked
