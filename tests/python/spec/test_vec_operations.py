# SPDX-License-Identifier: Apache-2.0
"""Every operation of VEC in isa.toml is there from end to end: golden, its formula, its lane."""

from __future__ import annotations

import re

import pytest

from golden.vec import OPERATIONS
from spec.isa import VEC_OPS, VecOp
from spec.isa.emit_python import camel
from tests.python.golden.test_golden_oracles import TABLE
from tests.python.golden.test_golden_vec import FORMULAS
from tests.python.graph.sources import ROOT

LANE = ROOT / "rtl/vec/npu_vec_pkg.sv"
PROOF = ROOT / "tb/hdl/proofs/npu_arithmetic_proof.sv"
each = pytest.mark.parametrize("op", list(VecOp), ids=lambda op: op.name)


@each
def test_golden_has_a_function(op: VecOp) -> None:
    """And says of its instruction what isa.toml says: two witnesses of one specification."""
    golden, isa = OPERATIONS[op], VEC_OPS[op]
    src1 = {"operand": golden.two, "bound": golden.low, "table": golden.table}
    assert [name for name, used in src1.items() if used] == ([isa.src1] if isa.src1 else [])
    assert golden.k == bool(isa.k)
    assert (golden.shift, golden.converts, golden.wide) == (isa.shift, isa.converts, isa.wide)


@each
def test_an_oracle_checks_the_instruction(op: VecOp) -> None:
    """By a formula of numpy, or, with a table, by numpy's own indexing."""
    assert op in FORMULAS or VEC_OPS[op].src1 == "table"
    assert f"spec.isa.VecOp.{op.name}" in TABLE


@each
def test_a_lane_computes_it(op: VecOp) -> None:
    """The arithmetic of a lane names it, and so does the proof beside it."""
    name = re.compile(rf"\bVec{camel(op.name)}\b")
    assert name.search(LANE.read_text(encoding="utf-8")), f"{LANE} has no lane for {op.name}"
    found = name.search(PROOF.read_text(encoding="utf-8"))
    assert found, f"{PROOF} does not say what {op.name} is"
