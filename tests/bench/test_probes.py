# SPDX-License-Identifier: Apache-2.0
"""The bench looks inside the chip through bound probes and through nothing else."""

from __future__ import annotations

import re

from spec.paths import HDL, RTL
from tb.run import sources

_INSIDE = re.compile(r"\btb_top\.dut\.[\w.\[\]]+")
_PROBE = re.compile(r"\.u_probe\.trace_i$")
SRAM_BANK = "tb_top.dut.u_core.u_engines.u_sram.gen_bank[b].u_bank.mem_q[r]"
"""Copied out as a whole at the end of a program."""


def test_only_the_collector_of_the_probes_names_what_is_inside() -> None:
    """No other file of the bench, and no wave, knows the chip's hierarchy."""
    files = [*HDL.rglob("*.sv"), HDL / "waves.toml"]
    texts = {file.name: file.read_text(encoding="utf-8") for file in files}
    named = {name for name, text in texts.items() if "tb_top.dut.u_" in text}
    assert named == {"tb_probe.sv"}


def test_names_inside_are_names_of_instances() -> None:
    """What a module calls its signals stands in its bind statement only."""
    names = set(_INSIDE.findall((HDL / "tb_probe.sv").read_text(encoding="utf-8")))
    assert {name for name in names if not _PROBE.search(name)} == {SRAM_BANK}


def test_the_design_knows_nothing_of_the_probes() -> None:
    """Neither a probe nor a type of the bench is named in the RTL."""
    for file in RTL.rglob("*.sv"):
        assert not re.search(r"trace_pkg|trace_probe|tb_pkg", file.read_text(encoding="utf-8")), (
            file
        )


def test_streams_are_checked_where_there_are_modules() -> None:
    """Verilator is silent about a bind to a module that is gone; each folder has its own file."""
    for file in [HDL / "tb_binds.sv", *sources.CHECKS.glob("*_checks.sv")]:
        bound = sources.bound(file)
        room = RTL if file.parent == HDL else RTL / file.stem.removesuffix("_checks")
        assert bound, file
        assert bound <= {path.stem for path in room.rglob("*.sv")}, file
