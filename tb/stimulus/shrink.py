# SPDX-License-Identifier: Apache-2.0
"""Makes a failing program shorter: drops one case after the other while the failure stays."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from tb.stimulus.dependent_programs import Dependent, Draft

Fails = Callable[[Dependent], Awaitable[str | None]]
"""Runs a program; returns what is wrong, None if nothing is."""
Complete = Callable[[Draft], Dependent]


async def shrink(failing: Dependent, reason: str, complete: Complete, fails: Fails) -> str:
    """Return the shortest program found that still fails, as assembly, with its failure."""
    at = len(failing.draft.cases) - 1
    while at >= 0:
        shorter = complete(failing.draft.without(at))
        found = await fails(shorter)
        if found is not None:
            failing, reason = shorter, found
        at = min(at, len(failing.draft.cases)) - 1
    count = len(failing.draft.cases)
    return f"{reason}\nshrunk to {count} cases:\n{failing.text()}"
