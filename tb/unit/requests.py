# SPDX-License-Identifier: Apache-2.0
"""Lists of requests that `unit_requests` plays on valid/ready ports, and what it notes of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb.bench.environment import PROGRAM, STREAM
from tb.unit.world import UnitBench, World

OBSERVED = STREAM
"""Where the notes lie."""
SLOT_BYTES = 1 << 16
REQUEST = np.dtype([("payload", "u1", (14,)), ("wait", "<u2")])
"""A request as `unit_requests` reads it; it is offered `wait` cycles after the one before."""
NOTE = np.dtype([("offered", "<u4"), ("accepted", "<u4"), ("zero", "<u8")])
"""The first cycle in which a request is offered, and the one in which it is accepted."""

Records = npt.NDArray[np.void]


@dataclass(frozen=True)
class RequestPort:
    """The requests of a port and when they were accepted.

    Attributes:
        requests: (n,) `REQUEST`.
        notes: (n,) `NOTE`.
    """

    requests: Records
    notes: Records


def slot(unit: UnitBench, index: int, count: int, kind: np.dtype[np.void]) -> Records:
    """Return what a block has left in a slot: (count,) of `kind`."""
    raw = unit.memory.read(OBSERVED + index * SLOT_BYTES, count * kind.itemsize)
    return np.frombuffer(raw, kind)


async def play(
    unit: UnitBench, lists: list[Records], limit: int, world: World | None = None
) -> list[RequestPort]:
    """Play lists of equal length, one on each port; return what was noted."""
    count = lists[0].size
    for index, requests in enumerate(lists):
        if requests.size != count or requests.nbytes > SLOT_BYTES:
            raise ValueError(f"list {index}: given {requests.size} requests, allowed {count}")
        unit.memory.stage(PROGRAM + index * SLOT_BYTES, requests.tobytes())
    await unit.run(world or World(), limit, words=count)
    return [RequestPort(each, slot(unit, index, count, NOTE)) for index, each in enumerate(lists)]
