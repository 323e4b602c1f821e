# SPDX-License-Identifier: Apache-2.0
"""Runs programs on the machine that `make test` has built."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from npu.firmware import compile as firmware
from npu.firmware.plan import ROOM
from spec.paths import ROOT
from tb.run import machine as machines
from tb.run.machine import Core, MachineConfiguration
from tb.soc import program_run
from tb.soc.elf_file import Elf
from tb.soc.program_run import MachineKnobs, Ran

PROGRAMS = ROOT / "tb" / "soc" / "programs"
HARSH = (
    MachineKnobs(latency=1),
    MachineKnobs(latency=200, memory_gap=30),
    MachineKnobs(latency=40, core_gap=40, seed=7),
)
"""The machine's memory and buses in other moods."""


def machine(core: Core = "cv32e40x") -> MachineConfiguration:
    """Return the model with a core."""
    (configuration,) = (model for model in machines.models() if model.core == core)
    assert configuration.binary.exists(), f"{configuration.binary} is not built: run make test"
    return configuration


@cache
def test_program(name: str, compiler: firmware.Name | None = None, *defines: str) -> Path:
    """Compile a program of tb/soc/programs; return its ELF file."""
    target = firmware.FirmwareTarget(compiler)
    output = program_run.FOLDER / "-".join(
        ["test", name, target.chosen(), *defines, str(os.getpid())]
    )
    return firmware.compile_sources(
        [PROGRAMS / f"{name}.c"], name, target, defines=defines, output=output.with_suffix(".elf")
    )


def run(
    path: Path,
    name: str,
    knobs: MachineKnobs | None = None,
    text: bytes = b"",
    core: Core = "cv32e40x",
    profile: bool = False,
) -> Ran:
    """Run a program; Python must not have been entered."""
    elf = Elf.load(path, ROOM)
    knobs = knobs or MachineKnobs(limit=2_000_000)
    ran = program_run.run_program(
        machine(core), elf, name=f"test-{name}", knobs=knobs, text=text, profile=profile
    )
    assert ran.entries == 0
    return ran
