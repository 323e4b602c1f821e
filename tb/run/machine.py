# SPDX-License-Identifier: Apache-2.0
"""The model of the machine: the chip with a RISC-V core in front, `tb/hdl/soc`."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from npu.paths import BUILD, GENERATED, HDL
from tb.run import build, sources

SOC_HDL = HDL / "soc"
CORE = "pythondata_cpu_cv32e40x"
"""The Python package that holds the core's sources."""


class CoreMissingError(RuntimeError):
    """The core's sources are not installed."""


def core_folder() -> Path:
    """Return the folder of the core's sources.

    Raises:
        CoreMissingError: the package is not installed.
    """
    spec = importlib.util.find_spec(CORE)
    if spec is None or not spec.submodule_search_locations:
        raise CoreMissingError(
            f"the core's sources are missing: install the Python package {CORE.replace('_', '-')} "
            "(make setup)"
        )
    return Path(spec.submodule_search_locations[0]) / "system_verilog"


@dataclass(frozen=True)
class MachineConfiguration(build.Configuration):
    """The chip with a core, memory and devices around it."""

    takes: ClassVar[str] = "2 to 4 minutes"

    @property
    def top(self) -> str:
        """The machine."""
        return "soc_top"

    @property
    def parameters(self) -> list[str]:
        """Those of the chip, but for the coprocessor's port, which is the core's."""
        return [word for word in super().parameters if not word.startswith("-GCop")]

    @property
    def folder(self) -> Path:
        """Where the model is built."""
        return BUILD / "sim" / (self.label or f"soc-{self.variant}-a{self.array_dim}")

    @property
    def options(self) -> list[str]:
        """No checks of unique cases: the core's are not met by the random bits before a reset."""
        return ["--no-assert-case"]

    @property
    def inputs(self) -> list[Path]:
        """What Verilator reads: what Python sees, waivers, the core, chip and machine."""
        core = core_folder()
        seen = [SOC_HDL / "soc.vlt", *([HDL / "debug.vlt"] if self.kind == "debug" else [])]
        core_sources = [
            *sorted((core / "rtl" / "include").glob("*.sv")),
            *sorted((core / "rtl").glob("if_*.sv")),
            *sorted((core / "rtl").glob("cv32e40x_*.sv")),
            core / "bhv" / "cv32e40x_sim_clock_gate.sv",
        ]
        hdl = [*HDL.glob("*.sv"), *SOC_HDL.glob("*.sv")]
        design = sources.in_order([*self.rtl.rglob("*.sv"), *GENERATED.rglob("*.sv"), *hdl])
        needed = set(sources.closure(self.top, design))
        ours = [path for path in design if path in needed]
        return [*seen, *sources.waivers(self.rtl, GENERATED), *core_sources, *ours]

    def repeat(self, test: str, seed: int) -> list[str]:
        """Return the words of the command that runs a test on such a model again."""
        return ["make", "SIM=verilator", f"TESTCASE={test}", f"SEED={seed}"]
