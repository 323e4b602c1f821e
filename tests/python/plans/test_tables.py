# SPDX-License-Identifier: Apache-2.0
"""Tables on narrow terminals: figures whole, no line too wide, names told apart."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.markup import escape

from npu.graph.form import Target
from npu.runtime.account import Cost
from npu.runtime.report import NetworkReport, OperationLine, SegmentLine
from npu.runtime.report_table import report_table
from npu.tables import GAP, FitTable, as_text, cut, cut_apart, pairs
from spec.isa.operands import Limits
from spec.paths import ROOT

WIDTHS = (60, 80, 100, 200)
LONG = [f"model/block_{i}/{'residual_' * 20}conv2d_{i}/Conv2D;bn_{i}" for i in range(12)]
"""Names of more than 200 letters, as Keras makes them."""


def test_a_name_keeps_its_beginning_and_its_end() -> None:
    """In exactly so many cells; a short one stays."""
    assert cut("conv", 10) == "conv"
    assert cut("abcdefghij", 10) == "abcdefghij"
    assert cut("abcdefghijk", 10) == "abcde…hijk"
    assert cut("abcdefghijk", 1) == GAP
    for width in range(1, 30):
        assert cell_len(cut(LONG[3], width)) == width
        assert cell_len(cut("畳み込み層の名前" * 9, width)) <= width


def test_different_names_stay_different() -> None:
    """By another part of them, or by a number where only the middle differs."""
    assert len(set(cut_apart(LONG, 20).values())) == len(LONG)
    beginnings = [f"{i}{'x' * 50}/kernel" for i in range(9)]
    ends = [f"model/{'x' * 50}{i}" for i in range(9)]
    middles = [f"{'a' * 60}{i}{'b' * 60}" for i in range(12)]
    for names in (beginnings, ends, middles, beginnings + ends + middles):
        for width in (12, 16, 30):
            short = cut_apart(names, width)
            assert len(set(short.values())) == len(names)
            assert all(cell_len(one) <= width for one in short.values())
    random.seed(1)
    for _ in range(200):
        names = ["".join(random.choices("ab", k=random.randrange(1, 60))) for _ in range(20)]
        short = cut_apart(names, random.randrange(10, 40))
        assert len(set(short.values())) == len(set(names))


def network(names: list[str]) -> NetworkReport:
    """Return a report with figures of as many digits as large networks have."""
    cost = Cost(instructions=10, macs=4_089_184_256, load_bytes=1_234_567, stream_bytes=98_765_432)
    lines = [
        OperationLine(
            *(name, "conv", f"CONV_2D + {name}", Target.NPU, "", 0, 3_999_999_999, cost, 0, "mac"),
            ideal=15_973_376,
            cycles=16_777_216 + number,
        )
        for number, name in enumerate(names)
    ]
    host = OperationLine(names[0], "host", "LRN", "host", "no [b]", -1, 0, Cost(), 77, "host", 0)
    segment = SegmentLine(0, cost, Cost(), 15_973_376)
    return NetworkReport("keras/" * 40, Limits(), (*lines, host), (segment,))


@pytest.mark.parametrize("width", WIDTHS)
def test_a_report_fits(width: int) -> None:
    """Every figure whole, every operation to be told from the others, nothing past the edge."""
    text = as_text(report_table(network(LONG)), width)
    assert max(map(cell_len, text.splitlines())) <= width
    for figure in ("4,089,184,256", "99,999,999", "15,973,376"):
        lines = [
            line for line in text.splitlines() if re.search(rf"(?<![\d,]){figure}(?!\d)", line)
        ]
        assert len({line.split()[0] for line in lines}) >= len(LONG), figure
    assert "no [b]" in " ".join(text.split())


@pytest.mark.parametrize("width", WIDTHS)
def test_tables_of_figures_and_of_pairs_fit(width: int) -> None:
    """Columns that do not fit beside one another stand below, behind the first one again."""
    figures = [f"{10**digits:,}" for digits in range(6, 15)]
    table = FitTable(title="t" * 70)
    table.name("operation")
    for head in range(len(figures)):
        table.figure(f"figure {head}")
    for name in LONG:
        table.add_row(escape(name), *figures)
    facts = pairs()
    facts.add_row(escape(f"output {LONG[0]}"), f"float32[8, 32], {figures[0]} to {figures[-1]}")
    for text in (as_text(table, width), as_text(facts, width)):
        assert max(map(cell_len, text.splitlines())) <= width
        words = text.split()
        assert {figures[0], figures[-1]} <= set(words)
    words = as_text(table, width).split()
    assert all(words.count(figure) == len(LONG) for figure in figures)
    assert not any(GAP in word and "," in word for word in words)


def test_every_table_is_one_that_fits() -> None:
    """No other module makes tables of its own."""
    wrong = [
        path
        for home in ("npu", "tessera", "tb", "dev")
        for path in sorted((ROOT / home).rglob("*.py"))
        if "rich.table" in path.read_text(encoding="utf-8")
    ]
    assert wrong == [Path(ROOT / "npu" / "tables.py")]
