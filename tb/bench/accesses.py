# SPDX-License-Identifier: Apache-2.0
"""Register accesses as Python leaves them for the bench to play, in a file of the run's folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from npu.driver.bus import RegisterAccess

FILE = "accesses.bin"
MOST = 256
"""So many accesses are in a list at most."""
RECORD: np.dtype[Any] = np.dtype(
    [
        *(("address", "<u4"), ("data", "<u4")),
        *(("strobe", "u1"), ("writes", "u1"), ("with_next", "u1"), ("resp", "u1")),
    ]
)
"""An access as `memory_dpi.cpp` knows it; `resp`, and `data` of a read, is the answer."""
NO_ANSWER = 0xFF
"""`resp` before the answer."""
RESP = {0: "OKAY", 1: "EXOKAY", 2: "SLVERR", 3: "DECERR"}


@dataclass(frozen=True)
class PortAccess(RegisterAccess):
    """An access with what only the bench does.

    Attributes:
        strobe: one bit per byte of a write.
        with_next: it is made side by side with the next in the list, which is of the other kind.
    """

    strobe: int = 0xF
    with_next: bool = False


def _of_port(one: RegisterAccess) -> PortAccess:
    return one if isinstance(one, PortAccess) else PortAccess(one.address, one.value)


def records(accesses: Sequence[RegisterAccess]) -> npt.NDArray[np.void]:
    """Return accesses as the file holds them, (accesses,) of RECORD.

    Raises:
        ValueError: they are too many, or cannot go side by side.
    """
    if not 1 <= len(accesses) <= MOST:
        raise ValueError(f"register accesses: given {len(accesses)}, allowed 1..{MOST} in a list")
    several = [_of_port(one) for one in accesses]
    for first, second in zip(several, [*several[1:], None], strict=True):
        if first.with_next and (
            second is None or second.with_next or (first.value is None) == (second.value is None)
        ):
            raise ValueError(f"{first} side by side with {second}, allowed a read and a write")
    rows = [
        (one.address, one.value or 0, one.strobe, one.value is not None, one.with_next, NO_ANSWER)
        for one in several
    ]
    return np.array(rows, RECORD)
