# SPDX-License-Identifier: Apache-2.0
"""The tables of docs/formats.md: `python -m dev.formats_page [--check]`.

They hold what is published: sizes as the instruction set has them, cycles of the benchmarks that
have landed (tb/benchmarks/landed.toml), bits per byte of `make quality`
(weights/quality_formats.json). A cell of what was not measured is empty.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import partial

from dev import marked_page
from spec.isa import WeightFormat, WeightGroup, source
from spec.isa.operands import Limits
from spec.isa.weight_formats import GROUP_ROWS, GROUPED, MX, SPARSE, StreamLayout
from spec.paths import DOCS
from tb.benchmarks import bars
from tb.benchmarks.format_benchmarks import TINY
from weights.figures import FormatFigures, read_format_figures
from weights.formats.recipe import parse_recipe

PAGE = DOCS / "formats.md"
ROWS = (64, 768)
"""Inputs of the layers whose bits a weight the page has: of the tiny models, of GPT-2 small."""
INT8 = "int8"

Landed = Mapping[str, int]


def _table(head: str, rows: Iterable[Iterable[str]], column: str = "---:") -> str:
    names = head.split(" | ")
    lines = [head, " | ".join(["---"] + [column] * (len(names) - 1))]
    lines += [" | ".join(row) for row in rows]
    return "\n".join(f"| {line} |" for line in lines)


def _cycles(landed: Landed, name: str, reference: str) -> tuple[str, str]:
    """Return the cycles of a benchmark and their share of another's, empty if it has not landed."""
    if name not in landed or reference not in landed:
        return "", ""
    return f"{landed[name]:,}", f"{landed[name] / landed[reference]:.3f}"


def _side(layout: StreamLayout) -> str:
    """Return what stands in the stream beside the elements."""
    if layout.format in SPARSE:
        return "positions, 4 bits in 4 rows"
    return f"8 bits in {layout.group} rows" if layout.group else ""


def _word(fmt: WeightFormat, group: WeightGroup) -> str:
    return f"{fmt.asm}{group.asm}" if fmt in GROUPED else fmt.asm


def element_rows() -> str:
    """Return the table of what the elements of each format are."""
    return _table(
        "name | elements",
        (
            (f"`{one.asm}{'G' * (one.side == 'FACTOR')}`", one.text)
            for one in source.load().weight_formats
        ),
        column="---",
    )


def format_rows(landed: Landed) -> str:
    """Return the table of all formats: sizes, and cycles of one row times 768 x 3072."""
    edge = Limits().edge
    rows = []
    for fmt in WeightFormat:
        for group in (
            sorted(WeightGroup, key=GROUP_ROWS.__getitem__)
            if fmt in GROUPED
            else (WeightGroup.G32,)
        ):
            layout = StreamLayout.of(fmt, group, edge)
            bits = [f"{512 * layout.lines(k) / (edge * k):.2f}" for k in ROWS]
            whole = "gemm_stream_m1_l40"
            name = f"fmt_stream_m1_{fmt.asm}" if group == WeightGroup.G32 else ""
            name = whole if fmt == WeightFormat.INT8 else name
            element = f"{layout.element_bits}" + (", 2 of 4 rows" if fmt in SPARSE else "")
            block = _side(layout) if fmt not in MX else "8 bits in 32 rows (exponent)"
            cells = f"`{_word(fmt, group)}`", element, block, *bits, *_cycles(landed, name, whole)
            rows.append(cells)
    return _table(
        "format | bits of an element | beside them | bits a weight, K = 64 | K = 768 | "
        "cycles, 1 x 768 x 3,072 | of int8",
        rows,
    )


def step_name(model: str, recipe: str) -> str:
    """Return the benchmark that is a decode step of a model with a recipe, "" if there is none."""
    family = model.removesuffix("-tiny")
    if recipe == INT8:
        return f"tiny_decode_{family}_p64"
    same = [word for word in TINY if str(parse_recipe(f"{word},head={word}")) == recipe]
    return f"fmt_tiny_{family}_{same[0]}" if same else ""


def model_rows(landed: Landed, figures: Iterable[FormatFigures]) -> str:
    """Return the table of models and recipes: sizes, cycles of a token, bits per byte."""
    rows = []
    for one in figures:
        recipe = str(parse_recipe(one.recipe))
        cycles = _cycles(landed, step_name(one.model, recipe), step_name(one.model, INT8))
        sizes = f"{one.weight_bits:.2f}", f"{one.bus_cycles:,}"
        loss = "" if recipe == INT8 else f"{one.loss:+.2%}"
        rows.append((one.model, f"`{one.recipe}`", *sizes, *cycles, f"{one.bits:.4f}", loss))
    return _table(
        "model | recipe | bits a weight | bus cycles a token | cycles a token | of int8 | "
        "bits per byte | over int8",
        rows,
    )


def small_rows(landed: Landed) -> str:
    """Return the table of a token of GPT-2 small's shape in what has been measured."""
    whole, pattern = "small_decode_100", re.compile(r"fmt_small_(\w+)_100")
    found = [(match[1], name) for name in landed if (match := pattern.fullmatch(name))]
    rows = [(f"`{word}`", *_cycles(landed, name, whole)) for word, name in found]
    return _table(
        "weights, head too | cycles a token | of int8",
        [(f"`{INT8}`", *_cycles(landed, whole, whole)), *rows],
    )


def tables() -> dict[str, Callable[[], str]]:
    """Return what makes each table, by the name in its markers."""
    landed = bars.landed()
    return {
        "elements": element_rows,
        "formats": lambda: format_rows(landed),
        "models": lambda: model_rows(landed, read_format_figures()),
        "small": lambda: small_rows(landed),
    }


def filled(page: str) -> str:
    """Return the page with all tables as they are now.

    Raises:
        ValueError: the page lacks the markers of a table, or has unknown ones.
    """
    made = {name: partial(_text, rows) for name, rows in tables().items()}
    return marked_page.fill(page, PAGE, made)


def _text(rows: Callable[[], str]) -> str:
    return f"{rows()}\n"


def write() -> None:
    """Write the tables."""
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


def main(argv: list[str] | None = None) -> int:
    """Write the tables; with --check only compare them."""
    return marked_page.run(argv, "dev.formats_page", __doc__, PAGE, filled)


if __name__ == "__main__":
    sys.exit(main())
