# SPDX-License-Identifier: Apache-2.0
"""The tables of docs/graphs.md: `python -m dev.graphs_page [--check]`.

They hold what the table of operations (`npu.graph.operations`) says of each kind.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial

from dev import marked_page
from npu.graph.importers import NO_OPERATION
from npu.graph.operations import TABLE
from npu.graph.operations.base import Kind
from spec.paths import DOCS

PAGE = DOCS / "graphs.md"
GROUPS = {
    "linear": "Products",
    "elementwise": "Single elements",
    "rows": "Rows",
    "windows": "Windows",
    "moves": "Moves",
    "borders": "Borders",
    "composites": "Composites",
    "port": "Products on the command port",
}
"""Groups of operations that the chip executes, with their headings."""
ORIGINS = {"onnx": "ONNX", "stablehlo": "StableHLO", "tflite": "TFLite"}


def _sources(kind: Kind) -> str:
    return "; ".join(
        f"{heading}: {', '.join(names)}"
        for origin, heading in ORIGINS.items()
        if (names := kind.operators(origin))
    )


def chip_rows() -> Iterator[str]:
    """Yield the lines of the operations of the chip, a table for each group."""
    for group, heading in GROUPS.items():
        yield from (f"### {heading}", "", "| operation | becomes | must hold | comes from |")
        yield "|---|---|---|---|"
        for kind in TABLE.values():
            if kind.group == group and (not kind.host_only or group == "port"):
                must = "; ".join(one.sentence for one in kind.constraints)
                cells = f"`{kind.name}`: {kind.summary}", kind.lowering, must, _sources(kind)
                yield f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"
        yield ""


def host_rows() -> Iterator[str]:
    """Yield the lines of the table of operations that the host alone executes."""
    yield from ("| operation | comes from |", "|---|---|")
    for kind in TABLE.values():
        if kind.host_only and kind.group != "port":
            yield f"| `{kind.name}`: {kind.summary} | {_sources(kind)} |"


def other_rows() -> Iterator[str]:
    """Yield the lines of the table of operators that become no operation."""
    yield from (
        "| file | a constant, what it consists of, a [state](#states) or nothing is left of |",
        "|---|---|",
    )
    for origin, heading in ORIGINS.items():
        yield f"| {heading} | {', '.join(NO_OPERATION[origin])} |"


def filled(page: str) -> str:
    """Return the page with its tables as they are now. Raises ValueError without their markers."""
    parts = {"chip": chip_rows, "host": host_rows, "other": other_rows}
    made = {name: partial(_text, rows) for name, rows in parts.items()}
    return marked_page.fill(page, PAGE, made)


def _text(rows: Callable[[], Iterator[str]]) -> str:
    return "\n".join(rows()).rstrip("\n") + "\n"


def main(argv: list[str] | None = None) -> int:
    """Write the tables; with --check only compare them."""
    return marked_page.run(argv, "dev.graphs_page", __doc__, PAGE, filled)


if __name__ == "__main__":
    sys.exit(main())
