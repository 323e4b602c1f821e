# SPDX-License-Identifier: Apache-2.0
"""What ends an instruction early, and what it leaves behind."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class FaultCode(IntEnum):
    """Why an instruction ended early, in the order in which that is looked for."""

    NONE = 0
    LENGTH = 1
    DENIED = 2
    BUS = 3
    TIMEOUT = 4
    RESET = 5


class RefusedError(ValueError):
    """An instruction that the coprocessor does not accept was executed all the same."""


@dataclass(frozen=True, slots=True)
class CopFault:
    """What the fault registers tell.

    Attributes:
        code: why.
        instruction: the instruction word.
        address: byte address of the element that could not be accessed; 0 for LENGTH and RESET.
        index: its number, which is that of completed elements.

    """

    code: FaultCode
    instruction: int
    address: int
    index: int


@dataclass(frozen=True, slots=True)
class Uncertain:
    """Bytes that a failed write leaves open: each is the old one or the new one.

    Writes behind the failed one may be under way already, and memory may have taken what it
    answers with an error. Golden's memory keeps the old bytes.

    Attributes:
        address: of the first byte.
        old: the bytes before the instruction, (n,).
        new: what it would have written, (n,).

    """

    address: int
    old: bytes
    new: bytes

    def permits(self, found: bytes) -> bool:
        """Whether memory may hold these bytes from `address` on."""
        if len(found) != len(self.old):
            raise ValueError(
                f"Uncertain.permits: given {len(found)}, allowed {len(self.old)} bytes"
            )
        return all(
            byte in choice
            for byte, choice in zip(found, zip(self.old, self.new, strict=True), strict=True)
        )
