# SPDX-License-Identifier: Apache-2.0
"""Lists of register accesses: what the bench gets to play, and what it must not get."""

from __future__ import annotations

import pytest

from tb.bench.accesses import MOST, NO_ANSWER, PortAccess, records


def test_each_access_becomes_a_record_without_an_answer() -> None:
    """Address, data, strobe, kind and company of each, in order."""
    rows = records([PortAccess(0x104, 7, 0x3, with_next=True), PortAccess(0x10C)])
    assert rows.dtype.itemsize == 12
    assert rows.tolist() == [(0x104, 7, 3, 1, 1, NO_ANSWER), (0x10C, 0, 0xF, 0, 0, NO_ANSWER)]


@pytest.mark.parametrize("count", [0, MOST + 1])
def test_a_list_has_room_for_so_many(count: int) -> None:
    """An empty list would never be answered, a longer one would not fit into the file."""
    with pytest.raises(ValueError, match=f"given {count}, allowed 1..{MOST}"):
        records([PortAccess(0)] * count)


@pytest.mark.parametrize(
    "several",
    [
        [PortAccess(0, with_next=True)],
        [PortAccess(0, with_next=True), PortAccess(4)],
        [PortAccess(0, 1, with_next=True), PortAccess(4, 1)],
        [PortAccess(0, with_next=True), PortAccess(4, 1, with_next=True), PortAccess(8)],
    ],
)
def test_only_a_read_and_a_write_go_side_by_side(several: list[PortAccess]) -> None:
    """The port has channels for one of each."""
    with pytest.raises(ValueError, match="allowed a read and a write"):
        records(several)
