# SPDX-License-Identifier: Apache-2.0
"""Pages with generated parts, each between `<!-- begin NAME -->` and `<!-- end NAME -->`."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from spec.paths import ROOT

_PART = re.compile(r"^(<!-- begin (\w+) -->\n).*?^(<!-- end \2 -->\n)", re.M | re.S)


def fill(page: str, file: Path, parts: Mapping[str, Callable[[], str]]) -> str:
    """Return a page with its generated parts as they are now.

    Args:
        page: its text.
        file: named in errors.
        parts: what makes each part, lines that end with a line feed, by its name in the markers.

    Raises:
        ValueError: the page lacks the markers of a part, or has unknown ones.
    """
    found = [match[2] for match in _PART.finditer(page)]
    if sorted(found) != sorted(parts):
        raise ValueError(f"{file.name}: given parts {found}, allowed each of {[*parts]} once")
    return _PART.sub(lambda match: f"{match[1]}{parts[match[2]]()}{match[3]}", page)


def run(
    argv: list[str] | None, module: str, text: str, file: Path, filled: Callable[[str], str]
) -> int:
    """Write the generated parts of a page; with --check only compare them.

    Args:
        argv: arguments of the command line.
        module: that is run.
        text: what it is for.
        file: of the page.
        filled: makes the page of the one that is there.

    Returns:
        The exit status, 1 if a page that is only compared is stale.
    """
    parser = argparse.ArgumentParser(description=text)
    parser.add_argument("--check", action="store_true", help="fail if the page is stale")
    check = parser.parse_args(argv).check
    page = file.read_text(encoding="utf-8")
    now = filled(page)
    if check and now != page:
        print(f"{file.relative_to(ROOT)} is stale: run python -m {module}", file=sys.stderr)
        return 1
    if not check:
        file.write_text(now, encoding="utf-8")
    return 0
