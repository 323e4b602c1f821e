# SPDX-License-Identifier: Apache-2.0
"""Counts how often the simulator enters Python: the cost of a bench that does not sleep."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cocotb._gpi_triggers import GPITrigger

_count = 0


def _install() -> None:
    original: Callable[[Any], None] = GPITrigger._react

    def counted(self: GPITrigger) -> None:
        global _count
        _count += 1
        original(self)

    GPITrigger._react = counted  # type: ignore[method-assign]


_install()


def count() -> int:
    """Return the number of entries into Python since this module was imported."""
    return _count
