# SPDX-License-Identifier: Apache-2.0
"""The size of each block on its page of docs/rtl: `python -m dev.rtl_sizes [--check]`.

A page has a line `<!-- size: NAME, NAME -->` with names of rows of the table in docs/synthesis.md,
which `npu synth --page` measures and writes, these pages with it; below it stand the figures.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from spec.paths import ROOT

FOLDER = ROOT / "docs" / "rtl"
TABLE = ROOT / "docs" / "synthesis.md"
HEAD = "| block | LUT | FF | DSP | memory bits |\n|---|---:|---:|---:|---:|\n"
PLACE = re.compile(r"^(<!-- size: (.+) -->\n)(?:\|.*\n)*", flags=re.M)


class SizeError(ValueError):
    """A page asks for a block that the table does not have."""


def measured(table: str) -> dict[str, str]:
    """Return the figures of each block, as cells of a table."""
    rows = re.findall(r"^\| ([a-z0-9-]+) \| npu_[^|]*\| (.*) \|$", table, flags=re.M)
    return dict(rows)


def filled(name: str, page: str, figures: Mapping[str, str]) -> str:
    """Return a page with its figures.

    Raises:
        SizeError: it names a block that is not in the table.
    """

    def table(match: re.Match[str]) -> str:
        blocks = [block.strip() for block in match[2].split(",")]
        for block in blocks:
            if block not in figures:
                allowed = ", ".join(figures)
                raise SizeError(f"{name}: given block {block!r}, {TABLE.name} has {allowed}")
        rows = "".join(f"| {block} | {figures[block]} |\n" for block in blocks)
        return f"{match[1]}{HEAD}{rows}"

    return PLACE.sub(table, page)


def stale(folder: Path = FOLDER, table: Path = TABLE) -> dict[Path, str]:
    """Return the pages whose figures are not those of the table, as they ought to be."""
    figures = measured(table.read_text(encoding="utf-8"))
    found = {}
    for path in sorted(folder.glob("*.md")):
        page = path.read_text(encoding="utf-8")
        new = filled(path.name, page, figures)
        if new != page:
            found[path] = new
    return found


def write() -> None:
    """Write the figures of all pages.

    Raises:
        SizeError: a page names a block that is not in the table.
    """
    for path, text in stale().items():
        path.write_text(text, encoding="utf-8")


def main(argv: list[str] | None = None) -> int:
    """Write the pages; with --check only compare them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail if a page is stale")
    args = parser.parse_args(argv)
    try:
        if not args.check:
            write()
        pages = stale()
    except SizeError as error:
        print(error, file=sys.stderr)
        return 1
    for path in pages:
        print(f"docs/rtl/{path.name} is stale: run python -m dev.rtl_sizes", file=sys.stderr)
    return int(bool(pages))


if __name__ == "__main__":
    sys.exit(main())
