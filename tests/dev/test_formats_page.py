# SPDX-License-Identifier: Apache-2.0
"""The tables of docs/formats.md are made from what is published, and only from that."""

from __future__ import annotations

import pytest

from dev import formats_page
from spec.isa.weight_formats import GROUPED
from tb.benchmarks import bars
from weights.figures import FormatFigures
from weights.formats.recipe import WORDS

LANDED = {
    "gemm_stream_m1_l40": 1000,
    "fmt_stream_m1_int4": 500,
    "fmt_stream_m1_nf4g": 550,
    "tiny_decode_gpt2_p64": 2000,
    "fmt_tiny_gpt2_int4g32": 1250,
    "small_decode_100": 4000,
    "fmt_small_int4_100": 2100,
}


def test_a_stale_page_is_noticed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Other cycles make another page; a missing marker is an error."""
    assert formats_page.main(["--check"]) == 0
    page = formats_page.PAGE.read_text(encoding="utf-8")
    with pytest.raises(
        ValueError, match=r"formats.md: given parts \['elements', 'formats', 'models'\]"
    ):
        formats_page.filled(page.replace("<!-- end small -->", ""))
    monkeypatch.setattr(bars, "landed", lambda: LANDED)
    assert formats_page.main(["--check"]) == 1
    assert "docs/formats.md is stale" in capsys.readouterr().err


def test_formats() -> None:
    """Every word of recipes has its line, with the bits of the stream and the cycles there are."""
    rows = formats_page.format_rows(LANDED).splitlines()[2:]
    assert {row.split("`")[1] for row in rows} == {
        word for word in WORDS if word != "ternary" and word not in {one.asm for one in GROUPED}
    }
    cells = {row.split("`")[1]: [cell.strip() for cell in row.split("|")[2:-1]] for row in rows}
    assert cells["int8"] == ["8", "", "8.00", "8.00", "1,000", "1.000"]
    assert cells["int4"] == ["4", "", "4.00", "4.00", "500", "0.500"]
    assert cells["nf4g32"] == ["4", "8 bits in 32 rows", "4.50", "4.25", "550", "0.550"]
    assert cells["nf4g16"][-2:] == ["", ""]
    assert cells["int4s"][:4] == ["4, 2 of 4 rows", "positions, 4 bits in 4 rows", "3.00", "3.00"]
    assert cells["mxfp6e2"][1:4] == ["8 bits in 32 rows (exponent)", "6.50", "6.25"]


def test_models() -> None:
    """A recipe that is a benchmark has its cycles, one that is none has not."""
    figures = [
        FormatFigures("gpt2-tiny", recipe, 1000, 2.0, bits, 4.5, 900)
        for recipe, bits in (("int8", 2.0), ("int4g,head=int4g", 2.1), ("int4g32", 2.05))
    ]
    figures.append(FormatFigures("gpt2-tiny-int4g32", "int4g32", 1000, 2.0, 2.02, 4.5, 900))
    rows = formats_page.model_rows(LANDED, figures).splitlines()[2:]
    assert rows == [
        "| gpt2-tiny | `int8` | 4.50 | 900 | 2,000 | 1.000 | 2.0000 |  |",
        "| gpt2-tiny | `int4g,head=int4g` | 4.50 | 900 | 1,250 | 0.625 | 2.1000 | +5.00% |",
        "| gpt2-tiny | `int4g32` | 4.50 | 900 |  |  | 2.0500 | +2.50% |",
        "| gpt2-tiny-int4g32 | `int4g32` | 4.50 | 900 |  |  | 2.0200 | +1.00% |",
    ]


def test_small() -> None:
    """What has landed of GPT-2 small's shape."""
    assert formats_page.small_rows(LANDED).splitlines()[2:] == [
        "| `int8` | 4,000 | 1.000 |",
        "| `int4` | 2,100 | 0.525 |",
    ]
