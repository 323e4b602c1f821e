# SPDX-License-Identifier: Apache-2.0
"""Reads the logs that the bench writes: SRAM writes and engine events, as numpy records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Records = npt.NDArray[np.void]

SRAM_WRITE: np.dtype[Any] = np.dtype(
    [("cycle", "<u8"), ("instr", "<u4"), ("port", "<u2"), ("word", "<u2"), ("data", "u1", (16,))]
)
"""One accepted write of 16 bytes; `word` is the SRAM word address."""

EVENT: np.dtype[Any] = np.dtype(
    [("cycle", "<u8"), ("kind", "<u2"), ("engine", "<u2"), ("instr", "<u4"), ("word", "u1", (16,))]
)
"""One dispatched word (`kind` DISPATCH) or finished instruction (`kind` DONE, its engine)."""

DISPATCH, DONE = 1, 2
PORTS = ("ld", "gemm", "smx", "nrm", "vec")


class Log:
    """A growing log file; each `take` returns the records since the last one."""

    def __init__(self, path: Path, dtype: np.dtype[Any]) -> None:
        self._path = path
        self._dtype = dtype
        self._taken = 0

    def take(self) -> Records:
        """Return the new records, in order of time."""
        with self._path.open("rb") as file:
            file.seek(self._taken)
            data = file.read()
        whole = len(data) - len(data) % self._dtype.itemsize
        self._taken += whole
        return np.frombuffer(data[:whole], dtype=self._dtype)
