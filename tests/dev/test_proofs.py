# SPDX-License-Identifier: Apache-2.0
"""The proofs of `make synth`: they hold, every output is proved, planted faults are in the tree."""

from __future__ import annotations

import re

from dev import proofs
from spec.isa import VecOp
from spec.paths import HDL, RTL
from tb.run import build, sources


def test_every_output_is_proved() -> None:
    """An output that nobody proves would say nothing; a vector has a proof for each bit."""
    text = (HDL / "proofs" / f"{proofs.TOP}.sv").read_text(encoding="utf-8")
    outputs = []
    for size, name in re.findall(r"output logic (?:\[(.+):0\] )?(\w+)", text):
        bits = len(VecOp) if size == "VecOps-1" else int(size or 0) + 1
        outputs += [f"{name}[{bit}]" for bit in range(bits)] if size else [name]
    assert sorted(outputs) == sorted(proofs.OUTPUTS)


def test_planted_faults_are_of_the_tree() -> None:
    """Each changes text that stands in its file once, and names an output."""
    files = {path.name: path for path in sources.in_order(RTL.rglob("*.sv"))}
    for name, (file, before, after, output) in proofs.PLANTED.items():
        assert files[file].read_text(encoding="utf-8").count(before) == 1, name
        assert before != after and output in proofs.OUTPUTS, name
    file, before, _ = proofs.REGISTERED_PLANTED
    assert files[file].read_text(encoding="utf-8").count(before) == 1


def test_they_hold_and_each_planted_fault_is_refuted() -> None:
    """As `make synth` begins; half a minute."""
    build.generate()
    proofs.check()
