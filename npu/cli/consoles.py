# SPDX-License-Identifier: Apache-2.0
"""Where a command writes: what it was asked for, and how far it is."""

from __future__ import annotations

import sys

from rich.console import Console

WIDTH = 100
"""Columns of a table where there is no terminal."""


def watched() -> Console:
    """Return where progress and figures beside the output go."""
    return Console(stderr=True, width=None if sys.stderr.isatty() else WIDTH)


def printed(width: int = WIDTH) -> Console:
    """Return where tables that are the output go, so many columns where there is no terminal."""
    return Console(width=None if sys.stdout.isatty() else width)
