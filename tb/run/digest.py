# SPDX-License-Identifier: Apache-2.0
"""The digest of what a model is built from: equal digests, equal models."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

_SOURCES = (".sv", ".svh", ".vlt", ".cpp", ".h")


def of(words: Iterable[str], homes: Iterable[Path], files: Iterable[Path] = ()) -> str:
    """Return the digest of a build, 32 hexadecimal digits.

    Args:
        words: the tool's version, its arguments, and whatever else decides.
        homes: folders of sources; all of them count, for Verilator finds some by itself.
        files: more sources.
    """
    digest = hashlib.sha256("\n".join(words).encode())
    for home in homes:
        for path in sorted(home.rglob("*")):
            if path.suffix in _SOURCES:
                digest.update(f"\n{path.relative_to(home)}\n".encode())
                digest.update(path.read_bytes())
    for path in files:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:32]
