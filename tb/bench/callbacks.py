# SPDX-License-Identifier: Apache-2.0
"""Counts how often the simulator enters Python: the cost of a bench that does not sleep.

The only module that reaches into what cocotb keeps to itself: it offers no such figure. A cocotb
without that place is refused by name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cocotb

try:
    from cocotb._gpi_triggers import GPITrigger

    _REACT: Callable[[Any], None] = GPITrigger._react
except (ImportError, AttributeError) as error:
    raise ImportError(
        f"cocotb {cocotb.__version__}: given one without GPITrigger._react, where entries into "
        "Python are counted; allowed is the version that pyproject.toml pins"
    ) from error

_count = 0


def _counted(self: GPITrigger) -> None:
    global _count
    _count += 1
    _REACT(self)


GPITrigger._react = _counted  # type: ignore[method-assign]


def count() -> int:
    """Return the number of entries into Python since this module was imported."""
    return _count
