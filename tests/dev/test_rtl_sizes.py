# SPDX-License-Identifier: Apache-2.0
"""The sizes on the pages of docs/rtl are those of the table in docs/synthesis.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dev import rtl_sizes
from spec.paths import RTL

TABLE = "| vector | npu_vec | 7,750 | 2,354 | 16 | 50,264 |\n| sram | npu_sram | 1 | 2 | 3 | 4 |\n"
PAGE = "before\n\n<!-- size: vector -->\n| old |\n\nafter\n"


def test_a_page_gets_the_figures_of_its_blocks() -> None:
    """The rows that it names stand below the line; the rest stays."""
    page = rtl_sizes.filled("vec.md", PAGE, rtl_sizes.measured(TABLE))
    assert page.startswith("before\n\n<!-- size: vector -->\n| block |")
    assert page.endswith("| vector | 7,750 | 2,354 | 16 | 50,264 |\n\nafter\n")
    assert "old" not in page


def test_filling_twice_changes_nothing() -> None:
    """A filled page is current."""
    figures = rtl_sizes.measured(TABLE)
    once = rtl_sizes.filled("vec.md", PAGE, figures)
    assert rtl_sizes.filled("vec.md", once, figures) == once


def test_an_unknown_block_is_named() -> None:
    """With page, name and the names that there are."""
    with pytest.raises(
        rtl_sizes.SizeError, match=r"vec\.md: given block 'vektor', .* vector, sram"
    ):
        rtl_sizes.filled("vec.md", PAGE.replace("vector", "vektor"), rtl_sizes.measured(TABLE))


def test_a_page_with_other_figures_is_stale(tmp_path: Path) -> None:
    """A new measurement makes the page stale until it is written again."""
    page, table = tmp_path / "vec.md", tmp_path / "table"
    page.write_text(rtl_sizes.filled("", PAGE, rtl_sizes.measured(TABLE)), encoding="utf-8")
    table.write_text(TABLE, encoding="utf-8")
    assert not rtl_sizes.stale(tmp_path, table)
    table.write_text(TABLE.replace("2,354", "2,355"), encoding="utf-8")
    assert [path.name for path in rtl_sizes.stale(tmp_path, table)] == ["vec.md"]


def test_the_page_of_the_sram_has_the_ports_of_the_package() -> None:
    """And the longest waits, which follow from them: two turns of reads more than ports."""
    package = (RTL / "sram" / "npu_sram_pkg.sv").read_text(encoding="utf-8")
    reads, writes = (
        int(re.findall(rf"NumSram{kind} = (\d+);", package)[0]) for kind in ("Rd", "Wr")
    )
    page = (rtl_sizes.FOLDER / "sram.md").read_text(encoding="utf-8")
    assert f"read requests ({reads} ports) and write requests ({writes} ports)" in page
    assert f"A read waits at most {reads + 1} cycles, a write at most {writes - 1};" in page
