# SPDX-License-Identifier: Apache-2.0
"""Figures, reasons and pages of coverage, from points that are made up on files of the design."""

from __future__ import annotations

import html.parser
import json
from pathlib import Path

import numpy as np
import pytest

from dev.coverage import pages, reasons
from dev.coverage.figures import figures, read_sources
from dev.coverage.points import CoverageError, Point, Points, Table
from dev.coverage.reasons import Reason
from spec.paths import ROOT

RECIP = "rtl/cells/npu_recip.sv"
FIFO = "rtl/cells/npu_flush_fifo.sv"
CONDITIONS = pages.Conditions(("cov-a16",), ("test_a<b>",), (1, 2), 2, "1234567")


def _line(file: str, text: str) -> int:
    source = (ROOT / file).read_text(encoding="utf-8").splitlines()
    return next(number for number, line in enumerate(source, 1) if text in line)


def _points() -> Points:
    """A table that is made at elaboration, a flush that never came, and what was executed."""
    table, loop = _line(RECIP, "function automatic"), _line(RECIP, "for (int unsigned i")
    push, flush = _line(FIFO, "if (push) mem_q"), _line(FIFO, "else if (flush_i)")
    found = [
        (Point(FIFO, push, 5, "branch", "npu_flush_fifo", "if"), 7),
        (Point(FIFO, push, 6, "branch", "npu_flush_fifo", "else"), 8),
        (Point(FIFO, flush, 14, "line", "npu_flush_fifo", "if"), 0),
        (Point(FIFO, flush, 15, "line", "npu_flush_fifo", "else"), 1234),
        (Point(RECIP, table, 30, "line", "npu_recip", "block"), 0),
        (Point(RECIP, loop, 5, "line", "npu_recip", "block"), 0),
    ]
    spans = tuple((point.line,) for point, _ in found)
    counts = np.array([count for _, count in found], np.int64)
    return Points(Table(tuple(point for point, _ in found), spans), counts)


def _problems(*entries: Reason) -> tuple[str, ...]:
    points = _points()
    return figures(points, entries, read_sources(points)).problems


def test_figures_count_by_module_and_in_all() -> None:
    """Lines and branches apart, what has a reason in its own column."""
    points = _points()
    coverage = figures(
        points, [Reason("npu_recip", "A table.", function="recip_table")], read_sources(points)
    )
    fifo, recip = coverage.modules
    assert (str(fifo.line), str(fifo.branch)) == ("50.0 % (1 of 2)", "100.0 % (2 of 2)")
    assert (recip.line.hit, recip.line.explained, recip.line.open) == (0, 2, 0)
    assert (coverage.line.hit, coverage.line.all, coverage.line.open) == (1, 4, 1)
    assert [each.source for each in fifo.open] == ["end else if (flush_i) begin"]
    assert [each.name for each in coverage.low] == ["npu_recip", "npu_flush_fifo"]
    assert coverage.problems == ()
    assert "rtl/npu_top.sv" in coverage.without
    assert "rtl/cells/npu_fixed_pkg.sv" in coverage.uncounted


def test_an_entry_that_explains_nothing_is_a_problem() -> None:
    """Its text is gone, or the whole module."""
    (gone,) = _problems(Reason("npu_recip", "?", source="no such text"))
    assert gone == (
        f"reasons.toml: npu_recip: 'no such text': no point of {RECIP} is there; correct or remove "
        "the entry"
    )
    (nobody,) = _problems(Reason("npu_nothing", "?", source="x"))
    assert "no module of rtl/ has this name" in nobody
    assert _problems(Reason("npu_vec", "In other models only.", source="x")) == ()


def test_an_entry_for_something_covered_is_a_problem() -> None:
    """With the arm it is about, it is none."""
    flush = Reason("npu_flush_fifo", "?", source="else if (flush_i)")
    (problem,) = _problems(flush)
    assert f"{FIFO}:{_line(FIFO, 'else if (flush_i)')} (else) is covered" in problem
    assert _problems(Reason(flush.module, "?", source=flush.source, arm="if")) == ()


def test_a_text_that_stands_twice_is_told_by_what_is_before_it() -> None:
    """Only the first line behind each line with the other text is meant."""
    source = ["case (a)", "default: ;", "case (b)", "x: y", "default: ;", "default: ;"]
    assert reasons.lines_of(Reason("m", "?", source="default"), source) == {2, 5, 6}
    assert reasons.lines_of(Reason("m", "?", source="default", after="(b)"), source) == {5}


def test_a_function_is_meant_whole() -> None:
    """From its head to its end, not others with a longer name."""
    source = [
        "function int ab(int x);",
        "endfunction",
        "function int a();",
        "b",
        "endfunction",
        "c",
    ]
    assert reasons.lines_of(Reason("m", "?", function="a"), source) == {3, 4, 5}


@pytest.mark.parametrize(
    "text",
    [
        '[[reason]]\nmodule = "m"\nreason = "r"\n',
        '[[reason]]\nmodule = "m"\nreason = "r"\nsource = "s"\nfunction = "f"\n',
        '[[reason]]\nmodule = "m"\nsource = "s"\n',
        '[[reason]]\nmodule = "m"\nreason = "r"\nsource = "s"\nline = "5"\n',
        '[[reason]]\nmodule = "m"\nreason = "r"\nsource = 5\n',
        "[[reason]\n",
    ],
)
def test_a_wrong_entry_is_refused(text: str, tmp_path: Path) -> None:
    """In one line, with what an entry has."""
    path = tmp_path / "reasons.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(CoverageError) as caught:
        reasons.load(path)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


def test_the_shipped_entries_are_of_the_shipped_sources() -> None:
    """Every entry names lines that are there; whether they are covered shows in a run."""
    for entry in reasons.load():
        (path,) = (ROOT / "rtl").rglob(f"{entry.module}.sv")
        assert reasons.lines_of(entry, path.read_text(encoding="utf-8").splitlines()), str(entry)


def test_points_of_other_sources_are_refused() -> None:
    """A line behind the end of the file, and a file that is no more."""
    point = Point(FIFO, 100_000, 1, "line", "npu_flush_fifo", "block")
    with pytest.raises(CoverageError, match="a point is in line 100000"):
        read_sources(Points(Table((point,), ((1,),)), np.zeros(1, np.int64)))
    point = Point("rtl/none.sv", 1, 1, "line", "none", "block")
    with pytest.raises(CoverageError, match=r"rtl/none\.sv: No such file"):
        read_sources(Points(Table((point,), ((1,),)), np.zeros(1, np.int64)))


class _Page(html.parser.HTMLParser):
    """The links, places and tags of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.places: set[str] = set()
        self.tags: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a tag."""
        self.tags.add(tag)
        for name, value in attrs:
            if name in ("href", "src"):
                self.links.append(value or "")
            if name == "id":
                self.places.add(value or "")


def test_the_report_names_what_is_missed(tmp_path: Path) -> None:
    """In the file for programs, under the conditions that it was measured in."""
    entries = [Reason("npu_recip", "A table.", function="recip_table")]
    pages.write_report(_points(), CONDITIONS, tmp_path, entries)
    report = json.loads((tmp_path / "coverage.json").read_text(encoding="utf-8"))
    assert report["conditions"]["models"] == ["cov-a16"]
    assert report["conditions"]["seeds"] == [1, 2]
    assert report["line"] == {"hit": 1, "all": 4, "explained": 2, "open": 1, "percent": 25.0}
    flush = _line(FIFO, "else if (flush_i)")
    first = report["uncovered"][0]
    assert (first["file"], first["line"], first["reason"]) == (FIFO, flush, "")
    assert report["low"][0] == {
        "module": "npu_recip",
        "percent": 0.0,
        "reasons": ["A table."],
        "open": 0,
    }


def test_pages_are_static_and_their_links_lead_somewhere(tmp_path: Path) -> None:
    """No script, nothing from elsewhere; every link is a file and a place that is there."""
    pages.write_report(_points(), CONDITIONS, tmp_path, [])
    folder = tmp_path / "coverage"
    found = {path.name: _Page(path) for path in folder.glob("*.html")}
    assert set(found) == {"index.html", "npu_recip.html", "npu_flush_fifo.html"}
    for name, page in found.items():
        assert "script" not in page.tags
        for link in page.links:
            file, _, place = link.partition("#")
            assert (folder / (file or name)).is_file(), link
            assert not place or place in found[file or name].places, link


def test_a_page_shows_counts_and_marks_what_is_missed(tmp_path: Path) -> None:
    """Beside each line how often; a line of which one way is missing is marked, with its name."""
    points = _points()
    coverage = pages.write_report(points, CONDITIONS, tmp_path, [])
    fifo = coverage.modules[0]
    rows = pages.annotate(fifo, points, read_sources(points)[FIFO])
    flush = rows[_line(FIFO, "else if (flush_i)") - 1]
    assert (flush.state, flush.count, [each.told for each in flush.missed]) == (
        "part",
        1234,
        ["condition never true"],
    )
    push = rows[_line(FIFO, "if (push) mem_q") - 1]
    assert (push.state, push.count) == ("hit", 8)
    assert (rows[0].state, rows[0].count) == ("", None)
    text = (tmp_path / "coverage" / "npu_flush_fifo.html").read_text(encoding="utf-8")
    assert 'class="part"' in text
    assert "1,234" in text
    assert "<= data_i;" not in text  # what the source says is text, not tags


def test_known_reasons_are_marked_apart() -> None:
    """A line that is missed for a known reason does not ask for attention."""
    points = _points()
    sources = read_sources(points)
    entries = [Reason("npu_recip", "A table.", function="recip_table")]
    recip = figures(points, entries, sources).modules[1]
    states = {row.state for row in pages.annotate(recip, points, sources[RECIP])}
    assert states == {"", "known"}
