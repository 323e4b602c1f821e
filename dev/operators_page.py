# SPDX-License-Identifier: Apache-2.0
"""The table of docs/operators.md: `python -m dev.operators_page [--check]`.

It holds what the library of operators (`npu.graph.library`) says of each.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from dev import marked_page
from npu.graph.library import FROM_ZERO, MOST, OPERATORS, Operator, operator_graph
from npu.graph.library.masks import MASKS
from spec.paths import DOCS

PAGE = DOCS / "operators.md"


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
    """Return the page with its table as it is now. Raises ValueError without its markers."""
    return marked_page.fill(page, PAGE, {"operators": lambda: "\n".join([*rows(), ""])})


def main(argv: list[str] | None = None) -> int:
    """Write the table; with --check only compare it."""
    return marked_page.run(argv, "dev.operators_page", __doc__, PAGE, filled)


if __name__ == "__main__":
    sys.exit(main())
