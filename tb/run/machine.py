# SPDX-License-Identifier: Apache-2.0
"""The model of the machine: the chip with a RISC-V core in front, `tb/hdl/soc`."""

from __future__ import annotations

import importlib.util
import os
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from npu import optional
from spec.configurations import CHIPS
from spec.paths import BUILD, GENERATED, HDL, ROOT
from tb.run import build, sources

SOC_HDL = HDL / "soc"
Core = Literal["cv32e40x", "cva6"]


class CoreMissingError(RuntimeError):
    """The core's sources are not installed."""


def core_folder(core: Core) -> Path:
    """Return the folder of a core's sources, which a Python package holds.

    Raises:
        CoreMissingError: the package is not installed.
    """
    package = f"pythondata_cpu_{core}"
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        brings = "make setup" if core == "cv32e40x" else "python3 dev/bootstrap.py emulator"
        raise CoreMissingError(
            f"the core's sources are missing: install the Python package "
            f"{package.replace('_', '-')} ({brings})"
        )
    return Path(spec.submodule_search_locations[0]) / "system_verilog"


def _cv32e40x(folder: Path) -> tuple[list[str], list[Path]]:
    """Return options and sources of the core, packages first."""
    return [], [
        *sorted((folder / "rtl" / "include").glob("*.sv")),
        *sorted((folder / "rtl").glob("if_*.sv")),
        *sorted((folder / "rtl").glob("cv32e40x_*.sv")),
        folder / "bhv" / "cv32e40x_sim_clock_gate.sv",
    ]


def _cva6(folder: Path) -> tuple[list[str], list[Path]]:
    """Return options and sources of the core by its own list of them.

    The package lacks some of the FPU, which this form of the core does not have.
    """
    listed = (folder / "core" / "Flist.cv32a60x").read_text(encoding="utf-8").splitlines()
    lines = [line.split("//")[0].strip() for line in listed]
    words = [line.replace("${CVA6_REPO_DIR}", os.path.relpath(folder, ROOT)) for line in lines]
    options = [word for word in words if word.startswith("+")]
    files = [ROOT / word for word in words if word and not word.startswith("+")]
    return options, [path for path in files if path.exists()]


_READ = {"cv32e40x": _cv32e40x, "cva6": _cva6}


@dataclass(frozen=True)
class MachineConfiguration(build.Configuration):
    """The chip with a core, memory and devices around it.

    Attributes:
        core: which one.
    """

    core: Core = "cv32e40x"

    takes: ClassVar[str] = "2 to 4 minutes"

    @property
    def top(self) -> str:
        """The machine."""
        return "soc_top"

    @property
    def parameters(self) -> list[str]:
        """The core, and those of the chip but for the coprocessor's port, which is the core's."""
        ours = self.parameters_in(SOC_HDL / "soc_top.sv")
        return [*ours, *(["-GCva6=1"] if self.core == "cva6" else [])]

    @property
    def folder(self) -> Path:
        """Where the model is built."""
        core = "" if self.core == "cv32e40x" else f"-{self.core}"
        return BUILD / "sim" / (self.label or f"soc-{self.variant}-{self.chip.name}{core}")

    @property
    def options(self) -> list[str]:
        """No checks of unique cases: the core's are not met by the random bits before a reset."""
        core = _READ[self.core](core_folder(self.core))[0]
        return [*super().options, "--no-assert-case", *core]

    @property
    def inputs(self) -> list[Path]:
        """What Verilator reads: what Python sees, waivers, the core, chip and machine."""
        seen = [SOC_HDL / "soc.vlt", *([HDL / "debug.vlt"] if self.kind == "debug" else [])]
        core_sources = _READ[self.core](core_folder(self.core))[1]
        hdl = [*HDL.glob("*.sv"), *SOC_HDL.glob("*.sv"), *(SOC_HDL / self.core).glob("*.sv")]
        design = sources.in_order([*self.rtl.rglob("*.sv"), *GENERATED.rglob("*.sv"), *hdl])
        needed = set(sources.closure(self.top, design))
        ours = [sources.STREAM, *(path for path in design if path in needed)]
        return [*seen, *sources.waivers(self.rtl, GENERATED), *core_sources, *ours]

    def repeat(self, test: str, seed: int) -> list[str]:
        """Return the words of the command that runs a test on such a model again."""
        return ["make", "SIM=verilator", f"TESTCASE={test}", f"SEED={seed}"]


def models() -> list[MachineConfiguration]:
    """Return the machines that tests look for, one for each core whose sources are installed."""
    cva6 = MachineConfiguration(core="cva6", chip=CHIPS["a8"])
    return [MachineConfiguration(), *([cva6] if optional.has("emulator") else [])]
