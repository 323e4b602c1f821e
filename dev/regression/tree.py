# SPDX-License-Identifier: Apache-2.0
"""Which sources a regression runs: their digest, and the commit that they are nearest to."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from spec.paths import PACKAGES, ROOT

HOMES = ("rtl", *PACKAGES, "tests", "firmware")
"""Folders whose files decide what a test does."""
DESIGN = ("rtl", "golden", "npu", "spec", "tb", "weights")
"""Folders that decide what a test of the chip does."""
FILES = ("pyproject.toml", "constraints.txt", "Makefile")


@dataclass(frozen=True)
class Tree:
    """The sources.

    Attributes:
        digest: of all files that decide what a test does, 16 hexadecimal digits.
        revision: the commit that is checked out, "" outside of git.
        dirty: whether something differs from it.
    """

    digest: str
    revision: str
    dirty: bool


def _git(*words: str) -> bytes | None:
    try:
        run = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, check=False)
    except OSError:
        return None
    return run.stdout if run.returncode == 0 else None


def _files(homes: Sequence[str]) -> list[str]:
    listed = _git("ls-files", "-z", "-co", "--exclude-standard", *homes, *FILES)
    if listed is not None:
        return sorted(filter(None, listed.decode().split("\0")))
    paths = [path for home in homes for path in (ROOT / home).rglob("*") if path.is_file()]
    names = [str(path.relative_to(ROOT)) for path in paths if "__pycache__" not in path.parts]
    return sorted([*names, *FILES])


def read(homes: Sequence[str] = HOMES) -> Tree:
    """Return the sources as they are now, with the digest of what is in some folders."""
    digest = hashlib.sha256()
    for name in _files(homes):
        path = ROOT / name
        if path.is_file():
            digest.update(name.encode())
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    revision = (_git("rev-parse", "HEAD") or b"").decode().strip()
    return Tree(digest.hexdigest()[:16], revision, bool(_git("status", "--porcelain")))
