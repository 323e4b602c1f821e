# SPDX-License-Identifier: Apache-2.0
"""A field of a register, as the generated tables name it."""

from typing import NamedTuple


class RegField(NamedTuple):
    """Some bits of a register."""

    register: int
    lsb: int
    width: int

    @property
    def mask(self) -> int:
        """Return the bits of the field, in place."""
        return ((1 << self.width) - 1) << self.lsb

    def get(self, value: int) -> int:
        """Return the content of the field in a register value."""
        return (value & self.mask) >> self.lsb

    def put(self, content: int) -> int:
        """Return `content` moved into place; bits that do not fit are dropped."""
        return (content << self.lsb) & self.mask
