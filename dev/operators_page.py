# SPDX-License-Identifier: Apache-2.0
"""The table of docs/operators.md: `python -m dev.operators_page [--check]`.

It holds what the library of operators (`npu.graph.library`) says of each.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from npu.graph.library import FROM_ZERO, MOST, OPERATORS, Operator, operator_graph
from npu.graph.library.masks import MASKS
from npu.paths import DOCS, ROOT

PAGE = DOCS / "operators.md"
BEGIN, END = "<!-- begin operators -->\n", "<!-- end operators -->\n"


def _bound(one: Operator) -> str:
    return f"{one.bound:.1%}" if one.bound else "exact"


def _sizes(one: Operator) -> str:
    return ", ".join(f"`{name}` {value}" for name, value in one.sizes.items())


def _stages(one: Operator) -> str:
    return ", ".join(f"`{name}`" for name in operator_graph(one.name, stages=True).outputs)


def rows() -> Iterator[str]:
    """Yield the lines of the table, and of what holds for its sizes."""
    yield "| operator | computes | sizes and their defaults | stages | bound |"
    yield "|---|---|---|---|---|"
    for one in OPERATORS.values():
        cells = f"`{one.name}`", one.summary, _sizes(one), _stages(one), _bound(one)
        yield f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"
    zeros = [f"`{name}`" for name in FROM_ZERO]
    yield ""
    yield f"Sizes are 1 to {MOST:,}, of these also 0:"
    yield f"{', '.join(zeros[:-1])} and {zeros[-1]}."
    yield f"`mask` is one of {', '.join(f'`{mask}`' for mask in MASKS)}."


def filled(page: str) -> str:
    """Return the page with its table as it is now.

    Raises:
        ValueError: the page lacks the markers of the table.
    """
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{PAGE.name}: no table 'operators'")
    text = "\n".join(rows())
    return f"{before}{begin}{text}\n{end}{after}"


def main(argv: list[str] | None = None) -> int:
    """Write the table; with --check only compare it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail if the page is stale")
    check = parser.parse_args(argv).check
    page = PAGE.read_text(encoding="utf-8")
    now = filled(page)
    if check and now != page:
        name = PAGE.relative_to(ROOT)
        print(f"{name} is stale: run python -m dev.operators_page", file=sys.stderr)
        return 1
    if not check:
        PAGE.write_text(now, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
