# SPDX-License-Identifier: Apache-2.0
"""The tables of docs/graphs.md: `python -m dev.graphs_page [--check]`.

They hold what the table of operations (`npu.graph.operations`) says of each kind.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from npu.graph.operations import TABLE
from npu.graph.operations.base import Kind
from npu.paths import DOCS, ROOT

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
        f"{ORIGINS[origin]}: {', '.join(names)}" for origin, names in kind.sources.items() if names
    )


def chip_rows() -> Iterator[str]:
    """Yield the lines of the operations of the chip, a table for each group."""
    for group, heading in GROUPS.items():
        yield from (f"### {heading}", "", "| operation | becomes | must hold | comes from |")
        yield "|---|---|---|---|"
        for kind in TABLE.values():
            if kind.group == group and (not kind.host_only or group == "port"):
                must = "; ".join(kind.constraints)
                cells = f"`{kind.name}`: {kind.summary}", kind.lowering, must, _sources(kind)
                yield f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"
        yield ""


def host_rows() -> Iterator[str]:
    """Yield the lines of the table of operations that the host alone executes."""
    yield from ("| operation | comes from |", "|---|---|")
    for kind in TABLE.values():
        if kind.host_only and kind.group != "port":
            yield f"| `{kind.name}`: {kind.summary} | {_sources(kind)} |"


def filled(page: str) -> str:
    """Return the page with its tables as they are now.

    Raises:
        ValueError: the page lacks the markers of a table.
    """
    for name, rows in (("chip", chip_rows()), ("host", host_rows())):
        before, begin, rest = page.partition(f"<!-- begin {name} -->\n")
        _, end, after = rest.partition(f"<!-- end {name} -->\n")
        if not begin or not end:
            raise ValueError(f"{PAGE.name}: no table {name!r}")
        text = "\n".join(rows).rstrip("\n")
        page = f"{before}{begin}{text}\n{end}{after}"
    return page


def main(argv: list[str] | None = None) -> int:
    """Write the tables; with --check only compare them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail if the page is stale")
    check = parser.parse_args(argv).check
    page = PAGE.read_text(encoding="utf-8")
    now = filled(page)
    if check and now != page:
        print(f"{PAGE.relative_to(ROOT)} is stale: run python -m dev.graphs_page", file=sys.stderr)
        return 1
    if not check:
        PAGE.write_text(now, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
