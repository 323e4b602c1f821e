# SPDX-License-Identifier: Apache-2.0
"""Files that are there whole, or not at all: whoever reads them finds no half of one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def unfinished(path: Path) -> Iterator[Path]:
    """Give a file to be written, which takes the place of `path` if nothing was raised."""
    place = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield place
        place.replace(path)
    finally:
        place.unlink(missing_ok=True)
