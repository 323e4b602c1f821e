# SPDX-License-Identifier: Apache-2.0
"""Keeps the objects of Verilator's own library: compiled once, they serve every model."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterable
from pathlib import Path

from spec.paths import BUILD


def folder(recipe: Iterable[str]) -> Path:
    """Return where the objects lie that are compiled in a certain way.

    Args:
        recipe: the tool's version and the variables of make: what the objects depend on.
    """
    digest = hashlib.sha256("\n".join(recipe).encode()).hexdigest()
    return BUILD / "sim" / f"library-{digest[:16]}"


def copy(source: Path, target: Path) -> None:
    """Give `target` those of the library's objects in `source` that it lacks."""
    target.mkdir(parents=True, exist_ok=True)
    for path in source.glob("verilated*.o"):
        if not (target / path.name).exists():
            shutil.copy2(path, target / path.name)
