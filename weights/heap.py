# SPDX-License-Identifier: Apache-2.0
"""The heap of a process that allocates and frees many large arrays.

The allocator of glibc gives the top of its heap back to the system when arrays are freed, and has
it filled with zeros again for the next ones: a sixth of the time of a calibration. Elsewhere
nothing is changed.
"""

from __future__ import annotations

import ctypes

M_TOP_PAD = -2
"""mallopt's number for the bytes that stay at the top of the heap."""
KEPT = 1 << 28


def keep_freed_memory() -> None:
    """Let the heap keep KEPT bytes that are free."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_TOP_PAD, KEPT)


def give_back_free_memory() -> None:
    """Give the system what is free anywhere in the heap, between arrays that stay."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
