# SPDX-License-Identifier: Apache-2.0
"""What `make timing` makes of levels: bars, lines, the page; and a sample of blocks."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dev import ecp5, gates, synth, timing, timing_report, yosys
from dev.netlist import Path as LogicPath
from dev.netlist import Stage
from spec.paths import ROOT

PATH = LogicPath("a_q", "u_b.c_q", 7, (Stage("", "npu_x", 2), Stage("u_b", "npu_b", 5)))
SHORT = LogicPath("u_b.a_q", "u_b.(CARRY4)", 4, (Stage("u_b", "npu_b", 4),))


def _timing(block: str = "stream", **changes: int) -> timing.BlockTiming:
    (found,) = synth.chosen([block], timing.BLOCKS)
    made = timing.BlockTiming(
        block=block,
        top=found.top,
        parameters=dict(found.parameters),
        lut=1000,
        ff=100,
        dsp=0,
        memory_bits=5,
        levels=7,
        lut_levels=4,
        circles=0,
        seconds=2.0,
        paths=(PATH,),
        lut_paths=(SHORT,),
    )
    return replace(made, **changes)  # type: ignore[arg-type]


BAR = {"levels": 7, "lut_levels": 4, "lut": 1000, "ff": 100, "dsp": 0}


def test_a_figure_may_be_two_percent_above_its_bar() -> None:
    """One more is named with its block, both figures and, for levels, the path."""
    assert timing.worse([_timing(lut=1020, ff=102)], {"stream": BAR}) == []
    assert timing.worse([_timing(lut=1021)], {"stream": BAR}) == ["stream: lut 1,021, bar 1,000"]
    assert timing.worse([_timing(dsp=1)], {"stream": BAR}) == ["stream: dsp 1, bar 0"]
    low = BAR | {"levels": 6, "lut_levels": 3}
    assert timing.worse([_timing()], {"stream": low}) == [
        "stream: levels 7, bar 6: a_q -> npu_x 2 -> u_b 5 -> u_b.c_q",
        "stream: lut_levels 4, bar 3: u_b: a_q -> npu_b 4 -> (CARRY4)",
    ]
    assert timing.worse([_timing(lut=10**6)], {"seq": BAR}) == [], "no bar, nothing to say"


def test_bars_fall_by_themselves_and_rise_by_name() -> None:
    """Those of a new block are its figures; those of others stay."""
    known = {"stream": BAR, "seq": BAR}
    found = timing.lowered([_timing(levels=5, lut=2000), _timing("host")], known)
    assert found["stream"] == BAR | {"levels": 5}
    assert found["seq"] == found["host"] == BAR
    assert timing.lowered([_timing(lut=2000)], known, ["stream"])["stream"]["lut"] == 2000


def test_bars_are_read_as_they_were_written(tmp_path: Path) -> None:
    """In a file of their own."""
    file = tmp_path / "bars.toml"
    timing.write_bars({"top-a8-min": BAR, "stream": BAR | {"lut": 3}}, file)
    assert timing.bars(file) == {"top-a8-min": BAR, "stream": BAR | {"lut": 3}}


def test_every_block_has_bars() -> None:
    """For each figure; no bar is of a block that there is not."""
    bars = timing.bars()
    assert [*bars] == [block.name for block in timing.BLOCKS]
    assert all([*bar] == [*timing.FIGURES] for bar in bars.values())


def test_names_are_of_blocks() -> None:
    """Those that are left out or not routed, chips; an unknown one is refused."""
    names = {block.name for block in timing.BLOCKS}
    assert len(names) == len(timing.BLOCKS)
    left_out = {*timing.NOT_IN_GATES, *timing.NOT_ON_ECP5}
    assert {*left_out, *ecp5.UNROUTED, gates.ROW, *timing.WHOLE} <= names
    with pytest.raises(yosys.SynthesisError, match=r"^given 'adder', allowed 'top-a8-min', "):
        synth.chosen(["seq", "adder"], timing.BLOCKS)


def test_a_record_is_read_as_it_was_written() -> None:
    """Figures that are kept are those that were made."""
    text = {**vars(_timing()), "paths": [vars(PATH) | {"stages": [vars(s) for s in PATH.stages]}]}
    text["lut_paths"] = [vars(SHORT) | {"stages": [vars(s) for s in SHORT.stages]}]
    assert timing.from_record(text) == _timing()


def test_the_table_shows_levels_and_gates() -> None:
    """Rows of the array are nanoseconds over those of a row."""
    mapped = [gates.Gates("row-a16", 18.7, 6.0, 1.0), gates.Gates("stream", 5.0, 9.0, 1.0)]
    row = next(s for s in timing_report.render([_timing()], mapped).splitlines() if "│" in s)
    cells = [cell.strip() for cell in row.strip("│").split("│")]
    figures = ["7", "4", "1,000", "100", "0", "5.0", "9.0", "1.5", "2"]
    assert cells == ["stream", "npu_streamer", *figures]
    bare = timing_report.render([_timing()], [])
    assert "kGE" not in bare
    assert "stream: 7 levels: a_q -> npu_x 2 -> u_b 5 -> u_b.c_q\n" in bare


def test_what_is_slow_in_gates_or_on_the_device_is_named() -> None:
    """In rows of the array, whatever a row takes; in megahertz, of wires that are there or not."""
    mapped = [gates.Gates("row-a16", 18.7, 4.0, 1.0), gates.Gates("seq", 70.0, 5.3, 1.0)]
    assert gates.slow(mapped) == []
    assert gates.slow([*mapped, gates.Gates("cmd", 60.0, 5.5, 1.0)]) == [
        "cmd: 1.4 rows of the array in gates, at most 1.3"
    ]
    clocks = [
        ecp5.Clock("seq", 65.0, True, 150.0),
        ecp5.Clock("post-a8", 55.94, True, 43.0),
        ecp5.Clock("cop", 64.9, False, 43.0),
    ]
    assert ecp5.slow(clocks) == [
        "post-a8: routed at 55.9 MHz, at least 65",
        "cop: placed at 64.9 MHz, at least 65",
    ]


def test_nothing_drives_more_than_it_can() -> None:
    """Trees of buffers, of two stages here; each input has the value that it had, clocks too."""
    ins, outs = {"A": "input", "CLK": "input", "Q": "output"}, {"A": "input", "Y": "output"}
    cells: dict[str, Any] = {
        f"load{number}": {
            "type": "DFFPOSX1",
            "port_directions": ins,
            "connections": {"A": [2], "CLK": [3], "Q": [4 + number]},
        }
        for number in range(5)
    }
    module = {"cells": cells, "netnames": {"all": {"bits": ["0", *range(2, 9)]}}}
    gates.add_buffers(module, 2)
    driver = {
        cell["connections"]["Y"][0]: cell["connections"]["A"][0]
        for cell in cells.values()
        if cell.get("port_directions") == outs
    }
    used = Counter(cell["connections"]["A"][0] for cell in cells.values())
    assert len(driver) == 5
    assert max(used.values()) == 2
    for number in range(5):
        wire = cells[f"load{number}"]["connections"]["A"][0]
        assert driver[driver[wire]] == 2
        assert cells[f"load{number}"]["connections"]["CLK"] == [3]


def _page(tmp_path: Path) -> Path:
    page = tmp_path / "page.md"
    parts = ("levels", "paths", "gates", "ecp5", "history")
    text = "".join(f"<!-- begin {name} -->\n<!-- end {name} -->\n" for name in parts)
    page.write_text(f"before\n{text}after\n", encoding="utf-8")
    return page


def test_the_page_keeps_what_was_not_measured(tmp_path: Path) -> None:
    """Gates and ECP5 of an earlier run stay; a release is a row, written anew under its name."""
    page = _page(tmp_path)
    tops = [_timing(name) for name in timing.WHOLE]
    device = ecp5.Ecp5Report(
        (ecp5.MappedModule("npu_vec", 24_923, 30_000, 1, 16, 0),),
        (ecp5.Clock("stream", 91.2, True, 3.0),),
    )
    mapped = [gates.Gates("row-a16", 18.7, 6.0, 1.0), gates.Gates("stream", 5.0, 9.0, 1.0)]
    timing_report.write_page([*tops, _timing()], mapped, device, "0.1.0", page)
    timing_report.write_page([replace(one, levels=9) for one in tops], [], None, "0.2.0", page)
    timing_report.write_page([replace(one, levels=8) for one in tops], [], None, "0.2.0", page)
    text = page.read_text(encoding="utf-8")
    assert "| stream | npu_streamer | 7 | 5.0 | 9.0 | 1.5 |\n" in text
    assert "| npu_vec | 24,923 | 30,000 | 1 | 16 | 0 |\n" in text
    assert "| stream | routed | 91.2 | 3 |\n" in text
    assert re.findall(r"^\| (0\.\d\.0) \| (\d+) ", text, re.M) == [("0.1.0", "7"), ("0.2.0", "8")]
    assert "| 7 | npu_x | a_q | npu_x 2, u_b 5 | u_b.c_q |\n" in text
    assert text.startswith("before\n") and text.endswith("after\n")
    page.write_text("no marks\n", encoding="utf-8")
    with pytest.raises(yosys.SynthesisError, match=r"page\.md: given parts"):
        timing_report.write_page(tops, [], None, None, page)


def test_the_page_has_the_levels_of_the_bars() -> None:
    """The page is written with the bars, and lists every block."""
    text = timing_report.PAGE.read_text(encoding="utf-8")
    rows = re.findall(
        r"^\| ([a-z0-9-]+) \| npu_[^|]*\| ([\d,]+) \| ([\d,]+) \| ([\d,]+) ", text, re.M
    )
    found = {name: tuple(int(one.replace(",", "")) for one in rest) for name, *rest in rows}
    for name, bar in timing.bars().items():
        for figure, limit in zip(
            found[name], (bar["levels"], bar["lut_levels"], bar["lut"]), strict=True
        ):
            assert limit <= figure <= limit * (1 + timing.MARGIN), name


def test_ecp5_counts_all_instances_of_a_module(tmp_path: Path) -> None:
    """With what is below it; what is small is left out."""
    cells = {"LUT4": 100, "CCU2C": 10, "TRELLIS_DPR16X4": 5, "npu_leaf": 2}
    half = {"num_cells_by_type": cells}
    modules = {
        "\\npu_top": {
            "num_cells_by_type": {"LUT4": 7, "npu_half$a": 1, "npu_half$b": 1, "npu_one$c": 1}
        },
        "\\npu_leaf": {"num_cells_by_type": {"LUT4": 10}},
        "\\npu_half$a": half,
        "\\npu_half$b": half,
        "\\npu_one$c": {"num_cells_by_type": {"LUT4": 1, "TRELLIS_FF": 3, "DP16KD": 1}},
    }
    (tmp_path / "small.json").write_text(json.dumps({"modules": modules}))
    modules["\\npu_leaf"] = {"num_cells_by_type": {"LUT4": 15}}
    (tmp_path / "shallow.json").write_text(json.dumps({"modules": modules}))
    found = ecp5.modules(timing.SMALLEST, tmp_path)
    assert [(one["module"], one["lut4"], one["shallow_lut4"]) for one in found] == [
        ("npu_top", 328, 348),
        ("npu_half", 320, 340),
        ("npu_leaf", 40, 60),
    ]
    assert (found[0]["ff"], found[0]["block_rams"]) == (3, 1)


def test_the_smallest_chip_is_that_of_the_page() -> None:
    """The page says what it has in words."""
    text = " ".join((ROOT / "docs" / "timing.md").read_text(encoding="utf-8").split())
    given = timing.SMALLEST.parameters
    assert f"(array {given['ArrayDim']}, {given['SramKiB']} KiB, no command port" in text
    assert given["EnableCmd"] == given["EnableCop"] == given["NarrowFormats"] == 0
