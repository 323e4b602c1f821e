# SPDX-License-Identifier: Apache-2.0
"""The benches of single blocks: a wrapper in `tb/hdl/unit`, tests in `tb/unit`, a model of its own.

The block `x` has the wrapper `unit_x.sv` and the tests `test_x.py`; nothing else registers it. Its
model holds the wrapper, the packages and what the wrapper instantiates, which Verilator finds by
the names of the modules, with the checks of its streams: an edited line in another block changes
nothing, and compiling takes seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from spec.configurations import USUAL, ChipParameters
from spec.paths import BUILD, GENERATED, HDL, ROOT
from tb.run import registry, sources
from tb.run.build import Configuration

UNIT_HDL = HDL / "unit"
UNIT_TESTS = ROOT / "tb" / "unit"


VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "cop_split": ("cop", {"cop_id_width": 3, "cop_hartid_width": 32, "cop_split": True}),
    "cop_two": ("cop", {"cop_sources": 2, "cop_id_width": 32, "cop_hartid_width": 5}),
    "gemm_a4": ("gemm", {"array_dim": 4}),
    "nrm_a8": ("nrm", {"array_dim": 8}),
    "softmax_a8": ("softmax", {"array_dim": 8}),
    "vec_a8": ("vec", {"array_dim": 8}),
}
"""Blocks in the bench of another one with another port or array: that one's name, and which."""


class UnknownBlockError(ValueError):
    """A name that no block has."""


class NoArrayError(ValueError):
    """Another size of the array for a block without one."""


@dataclass(frozen=True)
class UnitConfiguration(Configuration):
    """A block alone in its bench.

    Attributes:
        block: the block's name.
    """

    block: str = ""

    takes: ClassVar[str] = "10 to 30 seconds"

    def __post_init__(self) -> None:
        """Give the chip what the block is there for: its tests are told of it too."""
        if self.block in VARIANTS:
            object.__setattr__(self, "chip", replace(self.chip, **VARIANTS[self.block][1]))

    @property
    def bench(self) -> str:
        """The block whose bench it is in."""
        return VARIANTS[self.block][0] if self.block in VARIANTS else self.block

    @property
    def wrapper(self) -> Path:
        """The bench of the block."""
        return UNIT_HDL / f"{self.top}.sv"

    @property
    def has_array(self) -> bool:
        """Whether the bench can have any array."""
        return self.block == self.bench and " ArrayDim = " in self.wrapper.read_text("utf-8")

    @property
    def parameters(self) -> list[str]:
        """The array and the port where they matter; the wrapper sets the rest."""
        return self.parameters_in(self.wrapper)

    @property
    def top(self) -> str:
        """The wrapper."""
        return f"unit_{self.bench}"

    @property
    def folder(self) -> Path:
        """Where the model is built; the chip of a variant is in its block's name."""
        usual = self.block in VARIANTS or self.chip == USUAL
        chip = "" if usual else f"-{self.chip.name}"
        return BUILD / "unit" / (self.label or f"{self.variant}-{self.block}{chip}")

    @property
    def options(self) -> list[str]:
        """One C++ file, which is faster for a small model, and folders to find modules in."""
        homes = {path.parent for path in [*self.rtl.rglob("*.sv"), *GENERATED.rglob("*.sv")]}
        folders = sources.relative(sorted({*homes, HDL, UNIT_HDL, sources.CHECKS}))
        return ["--output-split", "0", *(word for home in folders for word in ("-y", home))]

    @property
    def inputs(self) -> list[Path]:
        """What Verilator reads: what Python sees, waivers, all packages, wrapper, and checks."""
        seen = [UNIT_HDL / "unit.vlt", *([HDL / "debug.vlt"] if self.kind == "debug" else [])]
        hdl = [*self.rtl.rglob("*.sv"), *GENERATED.rglob("*.sv"), HDL / "tb_pkg.sv"]
        packages = sources.packages([*hdl, UNIT_HDL / "unit_pkg.sv"])
        waivers = sources.waivers(self.rtl, GENERATED)
        checks = sources.checks(self.wrapper, self.rtl, GENERATED)
        return [*seen, *waivers, *packages, self.wrapper, *checks, *self.beside]

    def repeat(self, test: str, seed: int) -> list[str]:
        """Return the words of the command that runs a test on such a model again."""
        words = [f"BLOCK={self.block}", f"TESTCASE={test}", f"SEED={seed}"]
        return ["make", "unit", *words, *self.config]


def blocks() -> list[str]:
    """Return the names of all blocks that have a bench."""
    return sorted(path.stem.removeprefix("test_") for path in UNIT_TESTS.glob("test_*.py"))


def select(names: Sequence[str], chip: ChipParameters = USUAL) -> list[str]:
    """Return the blocks that are named, each once; without a name all that the array matters to.

    Raises:
        UnknownBlockError: a name is not there; the message lists near ones.
        NoArrayError: the array does not matter to a block that is named.
    """
    known = blocks()
    for name in names:
        if name not in known:
            hint = registry.near(name, known) or f"; all: {', '.join(known)}"
            raise UnknownBlockError(f"no block is called {name!r}{hint}")
    sized = [name for name in known if UnitConfiguration(block=name).has_array]
    if chip == USUAL:
        return list(dict.fromkeys(names)) or known
    for name in names:
        if name not in sized:
            raise NoArrayError(
                f"BLOCK={name}: given CONFIG={chip.name}, allowed {USUAL.name}; the array matters "
                f"to {', '.join(sized)}"
            )
    return list(dict.fromkeys(names)) or sized


def tests_of(block: str | None = None) -> list[registry.BenchTest]:
    """Return the tests of a block, or those of all blocks."""
    tests = registry.discover(UNIT_TESTS, "tb.unit")
    return [test for test in tests if block is None or block_of(test) == block]


def block_of(test: registry.BenchTest) -> str:
    """Return the block that a test is of."""
    return test.group.removeprefix("test_")
