# SPDX-License-Identifier: Apache-2.0
"""Runs the array alone, under Gaussian activations and idle, in a simulator that counts toggles."""

from __future__ import annotations

from pathlib import Path

from dev import yosys
from npu.commands import progress
from spec.paths import BUILD
from tb.run import build, sources, verilator

BENCH = Path(__file__).with_name("array_bench.sv")
FOLDER = BUILD / "power" / "array-bench"
CYCLES = 1000
PERIOD_NS = 10
SCOPE = "array_bench.u_array"


def run(*, idle: bool) -> Path:
    """Return the SAIF file of `CYCLES` cycles.

    Raises:
        VerilatorError: there is none.
        BuildError: the bench cannot be built, or fails.
    """
    place = FOLDER / ("idle" if idle else "gaussian")
    place.mkdir(parents=True, exist_ok=True)
    files = [*sources.closure("npu_systolic_array", sources.rtl_sources()), BENCH]
    binary = FOLDER / "array_bench"

    def make() -> dict[str, bool]:
        tool = verilator.find()
        command = [*tool.command, "--cc", "--exe", "--main", "--timing", "--trace-saif"]
        command += ["--trace-underscore", "--trace-max-array", "256", "--trace-max-width", "4096"]
        command += ["-DSYNTHESIS", "-Wno-fatal", "--top-module", BENCH.stem, "-Mdir", str(FOLDER)]
        command += ["--timescale", "1ns/1ns", "-o", binary.name, *map(str, files)]
        build.called(command, "verilator", tool.environment)
        make = ["make", "-C", str(FOLDER), "-f", f"V{BENCH.stem}.mk", "-j2", "OPT_FAST=-O1"]
        clean = {"MAKEFLAGS": "", "MAKELEVEL": "", "MFLAGS": ""}
        build.called([*make, *tool.make_variables], "compiling the array", tool.environment | clean)
        return {"built": True}

    with progress.step("building the array alone"):
        yosys.kept(FOLDER / "result.json", yosys.digest(Path(__file__).read_text(), files), make)
    command = [str(binary), f"+cycles={CYCLES}", f"+idle={int(idle)}"]
    build.called(command, "running the array", {}, place)
    return place / "toggles.saif"
