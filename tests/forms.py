# SPDX-License-Identifier: Apache-2.0
"""Long and short forms of tests: `make regress` runs all of a test, `make test` a sample of it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

Item = TypeVar("Item")

FULL = bool(os.environ.get("FULL"))
"""Whether the long form is wanted: under `make regress`, or with FULL=1."""


def sample(items: Sequence[Item], count: int) -> list[Item]:
    """Return all items in the long form, the first `count` of them in the short one."""
    return list(items) if FULL else list(items[:count])
