# SPDX-License-Identifier: Apache-2.0
"""Runs a token on the RTL in a model that counts toggles: a SAIF file from start to interrupt."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np

from dev.yosys import SynthesisError
from spec.paths import BUILD
from tb.bench import logs
from tb.benchmarks import suite
from tb.benchmarks.catalogue import CASES
from tb.benchmarks.format_benchmarks import FAMILIES, POSITION, TINY
from tb.benchmarks.measure import RunFigures
from tb.run import build, runner

MAIN = Path(__file__).with_name("saif_main.cpp")
FOLDER = BUILD / "power"
MODELS = tuple(f"{family}-tiny" for family in FAMILIES)
FORMATS = ("int8", *TINY)
"""Of weights."""


@dataclass(frozen=True)
class SaifConfiguration(build.Configuration):
    """The bench as it is, with a recorder of toggles."""

    takes: ClassVar[str] = "5 to 10 minutes"

    @property
    def variant(self) -> str:
        """What the name of the folder says of the kind."""
        return "saif"

    @property
    def recorder(self) -> Path | None:
        """The main program."""
        return MAIN

    @property
    def recording(self) -> list[str]:
        """Structs are the vectors that a netlist has; arrays that are memories stay out."""
        limits = ["--trace-max-array", "256", "--trace-max-width", "4096"]
        return ["--trace-saif", "--trace-underscore", *limits]


@dataclass(frozen=True)
class Token:
    """A token on the RTL.

    Attributes:
        saif: the file, of the cycles from the program's start to its interrupt.
        cycles: so many.
        figures: what the benchmark has counted.
    """

    saif: Path
    cycles: int
    figures: RunFigures


def benchmark(model: str, word: str) -> str:
    """Return the benchmark that is one token of a model with weights of a format."""
    family = model.removesuffix("-tiny")
    return f"tiny_decode_{family}_p{POSITION}" if word == "int8" else f"fmt_tiny_{family}_{word}"


def run(model: str, word: str) -> Token:
    """Run a token twice: where it begins, then what toggles in it.

    Args:
        model: one of `MODELS`.
        word: one of `FORMATS`.

    Raises:
        SynthesisError: the run failed.
        BuildError: the model cannot be built.
    """
    configuration = SaifConfiguration()
    case = CASES[benchmark(model, word)]
    place = FOLDER / f"token-{case.name}"
    job = replace(suite.job_of(case), configuration=configuration, place=place)
    build.build(configuration)
    _checked(job)
    trace = np.fromfile(place / logs.TRACE_FILE, logs.EVENT)
    # The last program: the first one loads the cache of keys and values.
    start, end = (
        int(trace["cycle"][trace["kind"] == kind][-1]) for kind in (logs.START, logs.INTERRUPT)
    )
    saif = place / "token.saif"
    _checked(replace(job, waves=saif, window=(start, end)))
    return Token(saif, end - start, RunFigures.load(place, case.name))


def _checked(job: runner.Job) -> None:
    result = runner.run(job)
    if not result.passed:
        raise SynthesisError(f"{job.test.name}: {result.message}")
