# SPDX-License-Identifier: Apache-2.0
"""Functional coverage: its bins follow from the sources, and what is missing or wrong is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from dev import functional
from dev.functional import Exclusion, FunctionalError
from npu.asm import assemble
from spec.isa import OPCODES, Opcode
from tb.bench.isa_coverage import ERRORS, ISA, samples_of
from tb.bench.knobs import Knobs


def _items(name: str) -> list[functional.Item]:
    return functional.items([name])


def test_every_opcode_has_bins_of_the_cross() -> None:
    """A new opcode or flag makes new ones by itself; a prefix is a part of its word."""
    uses = {use.split(" ")[0] for use in ISA.points["use"]}
    assert uses == {opcode.name for opcode in OPCODES} - {"PFX"}
    assert "GEMM RELU" in ISA.points["use"]


def test_an_instruction_is_sampled_with_shape_place_and_memory() -> None:
    """What the words say is in the sample, and it is one of the bins."""
    words = assemble("GELU dst=0 src0=0 src1=0x100 M=4 N=24").instructions
    found = samples_of(words[-1], None, 16, 16, Knobs(read_gap=20))
    assert found == {ISA.row("GELU", "ragged", "in place", "stalled")}
    functional.sample(found)
    met = {one.name: one.covered for one in functional.judge(_items("isa"), [])[0]}
    assert set(met.values()) == {1}


def test_illegal_combinations_are_no_bins() -> None:
    """No shape of an instruction without dimensions, and no error of an engine without memory."""
    functional.sample([])
    isa = {one.name: one.missing for one in functional.judge(_items("isa"), [])[0]}
    cross = isa["isa.use x shape x place x stall"]
    assert [bins for bins in cross if bins.startswith("END ")] == [
        f"END | none | none | {stall}" for stall in ISA.points["stall"]
    ]
    errors = functional.judge(_items("errors.code x engine"), [])[0][0].missing
    assert "WRITE_ERROR | ST" in errors
    assert "WRITE_ERROR | LD" not in errors


def test_what_nobody_met_is_missing_unless_it_is_excluded() -> None:
    """An exclusion takes bins out of what is asked for."""
    functional.sample([ERRORS.row("REGION", "LD")])
    items = _items("errors.code x engine")
    out = Exclusion("errors", ["REGION", "S*"], "as a test")
    (plain,), _ = functional.judge(items, [])
    (found,), problems = functional.judge(items, [out])
    assert not problems
    assert found.excluded == 3
    assert {*plain.missing} - {*found.missing} == {
        "REGION | ST",
        "REGION | SEQ",
        "REGION | STREAM",
    }


@pytest.mark.parametrize(
    ("bins", "says"),
    [(["REGION", "LD"], "REGION | LD was met"), (["WRITE_ERROR", "VEC"], "excludes nothing")],
)
def test_an_exclusion_that_is_wrong_is_named(bins: list[str], says: str) -> None:
    """One whose bin was met, and one that excludes nothing."""
    functional.sample([ERRORS.row("REGION", "LD")])
    _, problems = functional.judge(_items("errors"), [Exclusion("errors", bins, "as a test")])
    assert [problem.rpartition(": ")[2] for problem in problems] == [says]


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ('group = "errrors"\nbins = ["*", "*"]', "no group is called 'errrors'; near: errors"),
        ('group = "errors"\nbins = ["REGIN", "*"]', "errors.code has no bin 'REGIN'; near: REGION"),
        ('group = "errors"\nbins = ["*"]', "needed a bin of code, engine"),
        ('group = "errors"', "needed are group, bins and reason"),
    ],
)
def test_an_entry_of_the_file_that_is_none_is_refused(
    tmp_path: Path, entry: str, says: str
) -> None:
    """With the near names."""
    path = tmp_path / "exclusions.toml"
    path.write_text(f'[[exclusion]]\n{entry}\nreason = "as a test"\n', encoding="utf-8")
    with pytest.raises(FunctionalError, match=says):
        functional.exclusions(path)


def test_an_unknown_point_names_near_ones() -> None:
    """Of groups, points and crosses."""
    with pytest.raises(FunctionalError, match=r"given 'isa.shap'.*near: isa.shape"):
        functional.items(["isa.shap"])
    assert [item.name for item in functional.items(["isa.shape"])] == ["isa.shape"]


def test_rows_of_the_table_are_bins() -> None:
    """Uses in the table of `make regress` are bins of the same model."""
    functional.sample(["GEMM", "COP.CASE nothing"])
    (found,), _ = functional.judge(_items("uses of instruction set"), [])
    assert found.covered == 1
    assert Opcode.GEMM.name not in found.missing
