# SPDX-License-Identifier: Apache-2.0
"""Coverage of the RTL is read, kept and merged: made-up files."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from dev.coverage.points import CoverageError, Point, Points, Table, merge, parse
from spec.configurations import CHIPS
from tb.run import build, machine, units

HEAD = "# SystemC::Coverage-3\n"


def _record(count: int, **changes: str) -> str:
    words = {
        "f": "rtl/vec/npu_vec.sv",
        "l": "10",
        "n": "3",
        "t": "line",
        "page": "v_line/npu_vec",
        "o": "block",
        "S": "10-12,14",
        "h": "top.u_vec",
    }
    key = "".join(f"\1{name}\2{value}" for name, value in (words | changes).items())
    return f"C '{key}' {count}\n"


def _read(folder: Path, *records: str) -> Points:
    path = folder / "coverage.dat"
    path.write_text(HEAD + "".join(records), encoding="utf-8")
    return parse(path)


def _otherwise(count: int) -> str:
    return _record(count, page="v_branch/npu_vec", o="else", S="13", l="12")


def test_instances_and_parameterisations_are_one(tmp_path: Path) -> None:
    """Two instances, and one with another parameter: one point, their counts added."""
    run = _read(
        tmp_path,
        _record(3),
        _record(4, h="top.u_other"),
        _record(5, page="v_line/npu_vec__A8_Bz1", S="10-11"),
    )
    assert run.table.points == (Point("rtl/vec/npu_vec.sv", 10, 3, "line", "npu_vec", "block"),)
    assert run.table.spans == ((10, 11, 12, 14),)
    assert run.counts.tolist() == [12]


def test_only_the_design_counts(tmp_path: Path) -> None:
    """Bench, generated registers, a core elsewhere, and toggles have no points."""
    run = _read(
        tmp_path,
        _record(1, f="tb/hdl/tb_top.sv"),
        _record(1, f="build/gen/regs/npu_chip_regs.sv"),
        _record(1, f="/usr/lib/core/rtl/core.sv"),
        _record(1, page="v_toggle/npu_vec"),
        _otherwise(0),
    )
    assert [(point.kind, point.arm, point.line) for point in run.table.points] == [
        ("branch", "else", 12)
    ]
    assert run.hit.tolist() == [False]


@pytest.mark.parametrize("text", ["", HEAD + _record(1)[:-5], HEAD + _record(1) + "C 'x' y\n"])
def test_half_a_file_is_refused(text: str, tmp_path: Path) -> None:
    """A simulator that was killed leaves one: it must not look like a run that covers little."""
    path = tmp_path / "coverage.dat"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(CoverageError, match="not a whole file of Verilator's coverage"):
        parse(path)


def test_a_missing_file_says_what_leaves_one(tmp_path: Path) -> None:
    """The model was built without coverage."""
    with pytest.raises(CoverageError, match=r"no such file; .* coverage=True"):
        parse(tmp_path / "coverage.dat")


def test_a_run_is_kept_in_few_bytes(tmp_path: Path) -> None:
    """Run and table come back as they were, large counts included."""
    run = _read(tmp_path, _record(2**40 + 7), _otherwise(0))
    table = Table.decode(run.table.encode())
    assert table == run.table
    assert table.digest == Points.digest_of(run.encode())
    assert Points.decode(run.encode(), table).counts.tolist() == run.counts.tolist()


def test_a_run_of_another_table_is_refused(tmp_path: Path) -> None:
    """Both tables are named; damage is told as well."""
    run, other = _read(tmp_path, _record(1)), _read(tmp_path, _otherwise(1))
    with pytest.raises(CoverageError, match=f"of table {run.table.digest}, given table"):
        Points.decode(run.encode(), other.table)
    with pytest.raises(CoverageError, match="a kept run cannot be read"):
        Points.decode(run.encode()[:-3], run.table)
    with pytest.raises(CoverageError, match="a kept table of points cannot be read"):
        Table.decode(b"no table")


def test_runs_of_different_models_are_merged(tmp_path: Path) -> None:
    """Points that only one of them has stay; counts of the others are added."""
    first = _read(tmp_path, _record(1), _otherwise(0))
    second = _read(tmp_path, _otherwise(2))
    both = merge([first, second, first])
    assert dict(zip((p.arm for p in both.table.points), both.counts.tolist(), strict=True)) == {
        "block": 2,
        "else": 2,
    }
    assert first.counts.tolist() == [1, 0]


def test_a_thousand_runs_are_merged_in_seconds() -> None:
    """With as many points as the chip has: 0.1 s of one core."""
    points = tuple(Point("rtl/a.sv", line, 1, "line", "a", "block") for line in range(1, 3201))
    table = Table(points, tuple((point.line,) for point in points))
    draw = np.random.default_rng(1)
    kept = [Points(table, draw.integers(0, 3, 3200) * 1000).encode() for _ in range(10)] * 100
    begun = time.process_time()
    whole = merge(Points.decode(run, table) for run in kept)
    assert time.process_time() - begun < 3.0
    assert whole.counts.sum() == 100 * sum(Points.decode(r, table).counts.sum() for r in kept[:10])


def test_models_with_coverage_have_their_own_folders() -> None:
    """So a model without it is never rebuilt, nor has it anything of it."""
    plain = [build.Configuration(), units.UnitConfiguration(block="vec")]
    counted = [
        build.Configuration(coverage=True),
        build.Configuration(coverage=True, kind="debug", chip=CHIPS["a16-int8"]),
        units.UnitConfiguration(block="vec", coverage=True),
        machine.MachineConfiguration(coverage=True),
    ]
    assert [each.folder.name for each in plain] == ["fast-a16", "fast-vec"]
    assert [each.folder.name for each in counted] == [
        "cov-a16",
        "cov-debug-a16-int8",
        "cov-vec",
        "soc-cov-a16",
    ]
