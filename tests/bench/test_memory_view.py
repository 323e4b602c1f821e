# SPDX-License-Identifier: Apache-2.0
"""The test's view of memory: bytes, arrays, limits, comparison."""

from __future__ import annotations

import numpy as np
import pytest

from tb.bench.memory import Memory, MemoryMismatchError


def test_stage_and_read_back() -> None:
    """Arrays of any type are staged little-endian, row by row."""
    memory = Memory(np.zeros(256, np.uint8))
    end = memory.stage(16, np.array([[1, -2], [3, 4]], ">i2"))
    assert end == 24
    assert memory.read(16, 4) == b"\x01\x00\xfe\xff"
    assert memory.array(16, (2, 2), np.int16).tolist() == [[1, -2], [3, 4]]
    memory.view(16, 1)[0] = 9
    assert memory.read(16, 1) == b"\x09"


def test_outside_is_refused() -> None:
    """The message says what was given and what there is."""
    memory = Memory(np.zeros(64, np.uint8))
    with pytest.raises(IndexError, match=r"given 0x38\.\.0x47, allowed 0\.\.0x3f"):
        memory.stage(56, bytes(16))


def test_compare_names_the_first_difference() -> None:
    """A snapshot is private; the comparison covers every byte."""
    memory = Memory(np.zeros(64, np.uint8))
    before = memory.snapshot()
    memory.compare(before)
    memory.stage(33, b"\x05")
    with pytest.raises(MemoryMismatchError, match="1 of 64 bytes, first at 0x21"):
        memory.compare(before)
