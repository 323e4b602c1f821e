# SPDX-License-Identifier: Apache-2.0
"""What `make synth` makes of yosys' files: counting, refusing, finding sources, the page."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pyslang.ast import SymbolKind
from pyslang.driver import Driver

from dev import synth, timing, yosys
from spec.paths import GENERATED, RTL
from tb.run import sources

STAT: dict[str, Any] = {
    "modules": {
        "\\top": {"num_cells_by_type": {"$lut": 5, "half$top.u_a": 2, "half$top.u_b": 1}},
        "\\half$top.u_a": {"num_cells_by_type": {"$lut": 10, "$_SDFFE_PP0P_": 3, "leaf": 2}},
        "\\half$top.u_b": {"num_cells_by_type": {"$__DSP": 4, "$mem_v2": 1}},
        "\\leaf": {"num_cells_by_type": {"$_DFFE_PP0P_": 7, "CARRY4": 1}},
    }
}


def _memory(words: int, width: int) -> dict[str, Any]:
    parameters = {"SIZE": f"{words:032b}", "WIDTH": f"{width:032b}"}
    return {"type": "$mem_v2", "parameters": parameters}


def _figures(**changes: object) -> dict[str, Any]:
    figures: dict[str, Any] = {
        "block": "vector",
        "top": "npu_vec",
        "parameters": {"ArrayDim": 4},
        "lut": 24284,
        "ff": 3888,
        "dsp": 32,
        "memory_bits": 1112,
        "seconds": 21.7,
        "modules": ["npu_vec"],
    }
    return figures | changes


def test_cells_count_with_every_instance() -> None:
    """A module below counts as often as it is there."""
    assert synth.cells(STAT, "top") == {
        "$lut": 5 + 2 * 10,
        "$_SDFFE_PP0P_": 2 * 3,
        "$_DFFE_PP0P_": 2 * 2 * 7,
        "CARRY4": 2 * 2,
        "$__DSP": 4,
        "$mem_v2": 1,
    }


def test_memory_bits_count_with_every_instance() -> None:
    """Words times width, for each instance of the module; other cells do not count."""
    netlist = {
        "modules": {
            "leaf": {"cells": {"a": _memory(1024, 128), "b": _memory(8, 3)}},
            "top": {"cells": {"c": {"type": "$lut", "parameters": {}}, "d": _memory(16, 1)}},
        }
    }
    assert synth.memory_bits(netlist, {"\\leaf": 4, "\\top": 1}) == 4 * (1024 * 128 + 24) + 16


@pytest.mark.parametrize("cell", ["$_DLATCH_P_", "$dlatch", "$_ALDFF_PP_", "$div", "$print", "$sr"])
def test_a_cell_that_the_target_lacks_is_named(cell: str) -> None:
    """Latches, arithmetic that was left over and cells of simulation are not mapped."""
    assert synth.unmapped(dict.fromkeys(["$lut", "$_DFFE_PP1P_", "$_DFF_P_", cell], 1)) == [cell]


def test_findings_are_warnings_and_errors_with_their_lines() -> None:
    """What belongs to a finding follows it, indented; the rest of the log is left out."""
    log = (
        "3. Executing CHECK pass.\n"
        "Warning: found logic loop in module m:\n"
        "    cell $1 ($mux) source: m.sv:1\n"
        "Checking module n...\n"
        "    not part of it\n"
        "m.sv:7: Warning: wait statement will not be synthesized\n"
        "Build succeeded: 0 errors, 1 warning\n"
        "ERROR: Found 1 problems in 'check -assert'.\n"
    )
    assert yosys.findings(log) == [
        "Warning: found logic loop in module m:\n    cell $1 ($mux) source: m.sv:1",
        "m.sv:7: Warning: wait statement will not be synthesized",
        "ERROR: Found 1 problems in 'check -assert'.",
    ]


def test_a_file_without_a_module_that_is_read_is_named(tmp_path: Path) -> None:
    """What no block needs is not synthesised by anything."""
    paths = [tmp_path / name for name in ("a.sv", "c.sv")]
    for path in paths:
        path.write_text(f"module {path.stem};\nendmodule", encoding="utf-8")
    assert synth.uncovered(["a", "x"], paths) == paths[1:]


def test_the_blocks_need_every_file_of_the_design() -> None:
    """No module of `rtl/` can be left out; every folder but that of shared cells has a block."""
    paths = sources.rtl_sources(RTL, GENERATED)
    needed = {path for block in synth.BLOCKS for path in sources.closure(block.top, paths)}
    assert {path for path in paths if RTL in path.parents} <= needed
    tops = {path.parent for path in paths if path.stem in {block.top for block in synth.BLOCKS}}
    folders = {path.parent for path in paths if RTL in path.parents}
    assert folders - {RTL / "cells"} <= tops


def test_the_script_of_a_block_says_its_parameters() -> None:
    """Parameters and files are part of the script, and so of what a kept result depends on."""
    block = synth.SynthBlock("b", "npu_gemm", {"ArrayDim": 4, "AccRows": 32})
    text = synth.script(block, [RTL / "gemm" / "npu_gemm.sv"], synth.FOLDER / "b")
    assert text.count("--top npu_gemm -G ArrayDim=4 -G AccRows=32 rtl/gemm/npu_gemm.sv") == 2
    assert "check -assert -nolatches" in text


def test_the_page_gets_the_table(tmp_path: Path) -> None:
    """Only what lies between the marks changes."""
    page = tmp_path / "page.md"
    page.write_text(f"before\n{synth.BEGIN}\nold\n{synth.END}\nafter\n", encoding="utf-8")
    synth.write_page([_figures()], page)
    text = page.read_text(encoding="utf-8")
    assert text.startswith(f"before\n{synth.BEGIN}\n| block |")
    assert "| vector | npu_vec ArrayDim 4 | 24,284 | 3,888 | 32 | 1,112 |\n" in text
    assert text.endswith(f"{synth.END}\nafter\n")
    assert "old" not in text
    synth.write_page([_figures(block="host", top="npu_host", lut=7)], page)
    synth.write_page([_figures(lut=9)], page)
    rows = re.findall(r"^\| (\w+) \| npu_\w+ ArrayDim 4 \| (\d+)", page.read_text(), re.M)
    assert rows == [("host", "7"), ("vector", "9")], "other rows stay, in the order of BLOCKS"
    page.write_text("no marks\n", encoding="utf-8")
    with pytest.raises(yosys.SynthesisError, match=r"page\.md lacks"):
        synth.write_page([_figures()], page)


def _pair(lut: int) -> dict[str, dict[str, Any]]:
    """Return an expander with some LUTs and an array with 1,000 cells."""
    array = _figures(block="array-a16", lut=300, ff=600, dsp=100)
    return {"expand-a16": _figures(block="expand-a16", lut=lut, ff=40, dsp=10), "array-a16": array}


def test_a_block_with_too_many_cells_is_named() -> None:
    """LUTs, flip-flops and multipliers count together; a quarter is allowed, one more is not."""
    assert synth.too_large(_pair(200)) == []
    assert synth.too_large(_pair(201)) == ["expand-a16"]
    assert synth.too_large({"expand-a16": _figures(lut=10**6)}) == [], "nothing to compare with"
    assert synth.share_text("expand-a16", _pair(200)) == (
        "`expand-a16` has 25.0% of the cells of `array-a16` "
        "(LUT 66.7%, FF 6.7%, DSP 10.0%); allowed are 25%."
    )


def test_the_page_says_the_share(tmp_path: Path) -> None:
    """From the rows that are there after the change."""
    page = tmp_path / "page.md"
    end = "<!-- share: expand-a16 -->\nold\nafter\n"
    page.write_text(f"{synth.BEGIN}\n{synth.END}\n{end}", encoding="utf-8")
    synth.write_page(list(_pair(200).values()), page)
    synth.write_page([_pair(100)["expand-a16"]], page)
    text = page.read_text(encoding="utf-8")
    assert text.endswith(f"{synth.share_text('expand-a16', _pair(100))}\nafter\n")
    assert "15.0% of the cells" in text


def test_the_pages_share_is_that_of_its_table() -> None:
    """And none is larger than it may be."""
    text = synth.PAGE.read_text(encoding="utf-8")
    assert re.findall(synth.SHARE, text) == [
        (f"<!-- share: {block} -->\n", block) for block in synth.SHARES
    ]
    figures = synth.page_figures(text)
    assert not synth.too_large(figures)
    for block in synth.SHARES:
        assert f"\n{synth.share_text(block, figures)}\n" in text


def test_the_table_has_a_row_for_each_block() -> None:
    """Block, module and parameters, and the figures."""
    text = synth.render([_figures(), _figures(block="host", top="npu_host", lut=7)])
    rows = [line.split() for line in text.splitlines() if "npu_" in line]
    assert [row[1] for row in rows] == ["vector", "host"]
    assert "24,284" in rows[0]
    assert "7" in rows[1]


def instances(tops: set[str], parameters: Mapping[str, int]) -> dict[str, list[dict[str, str]]]:
    """Return the parameters of every instance of a module below tops, a top being one, by module.

    Tops are those that nothing else has.
    """
    driver = Driver()
    driver.addStandardArgs()
    given = [*(f"--top={top}" for top in tops), *(f"-G{k}={v}" for k, v in parameters.items())]
    words = ["slang", *given, *map(str, sources.rtl_sources())]
    assert driver.parseCommandLine(" ".join(words))
    assert driver.processOptions()
    assert driver.parseAllSources()
    found: dict[str, list[dict[str, str]]] = {}

    def note(symbol: Any) -> bool:  # noqa: ANN401
        if symbol.kind == SymbolKind.InstanceBody:
            values = {
                one.name: str(one.value) for one in symbol.parameters if hasattr(one, "value")
            }
            where = symbol.hierarchicalPath.split(".")[0]
            found.setdefault(f"{where}/{symbol.definition.name}", []).append(values)
        return True

    driver.createCompilation().getRoot().visit(note)
    return found


def test_a_block_is_measured_as_the_chip_has_it() -> None:
    """With the parameters of an instance in the default chip, unless a smaller array is wanted."""
    blocks = [
        one
        for one in (*synth.BLOCKS, *timing.PARTS)
        if one.parameters.get("ArrayDim", 16) == 16 and not one.name.endswith(("-a4", "-a8"))
    ]
    plain = {block.top for block in blocks if not block.parameters}
    found = instances({"npu_top", *plain}, {})
    for block in blocks:
        top = block.top
        alone = found if top in plain else instances({top}, block.parameters)
        assert alone[f"{top}/{top}"][0] in found[f"npu_top/{top}"], block
