# SPDX-License-Identifier: Apache-2.0
"""Where a command writes: what it was asked for, and how far it is."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.segment import Segment

from npu.commands.last_resort import harmless

WIDTH = 100
"""Columns of a table where there is no terminal."""


class Screen(Console):
    """A console on which names out of files show and do nothing."""

    def render(self, *arguments: Any, **options: Any) -> Iterable[Segment]:  # noqa: ANN401
        """Yield what rich makes of something, without what a terminal would obey."""
        for one in super().render(*arguments, **options):
            yield one if one.control else one._replace(text=harmless(one.text))


def watched() -> Console:
    """Return where progress and figures beside the output go."""
    return Screen(stderr=True, width=None if sys.stderr.isatty() else WIDTH)


def printed(width: int = WIDTH) -> Console:
    """Return where tables that are the output go, so many columns where there is no terminal."""
    return Screen(width=None if sys.stdout.isatty() else width)
