# SPDX-License-Identifier: Apache-2.0
"""The table of proofs in docs/formal.md: `python -m dev.formal_page [--check]`."""

from __future__ import annotations

import sys

from dev import formal
from dev.marked_page import fill
from dev.marked_page import run as run_page
from spec.paths import DOCS

PAGE = DOCS / "formal.md"


def table() -> str:
    """Return a row for each proof."""
    rows = [
        f"| `{proof.name}` | {proof.says} | `rtl/{proof.file}` |\n" for proof in formal.all_proofs()
    ]
    return "".join(["| proof | what holds | its fault |\n|---|---|---|\n", *rows])


def filled(page: str) -> str:
    """Return the page with the table as it is now."""
    return fill(page, PAGE, {"proofs": table})


def main(argv: list[str] | None = None) -> int:
    """Write the page; with --check only compare it."""
    text = "The table of proofs in docs/formal.md."
    return run_page(argv, "dev.formal_page", text, PAGE, filled)


if __name__ == "__main__":
    sys.exit(main())
