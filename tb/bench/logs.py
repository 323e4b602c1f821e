# SPDX-License-Identifier: Apache-2.0
"""Reads the logs that the bench writes: SRAM writes, engine events and the trace, as records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Records = npt.NDArray[np.void]

SRAM_WRITES_FILE, EVENTS_FILE, TRACE_FILE = "sram_writes.bin", "events.bin", "trace.bin"
"""Names of the logs in a run's folder."""

SRAM_WRITE: np.dtype[Any] = np.dtype(
    [("cycle", "<u8"), ("instr", "<u4"), ("port", "<u2"), ("word", "<u2"), ("data", "u1", (16,))]
)
"""One accepted write of 16 bytes; `word` is the SRAM word address."""

EVENT: np.dtype[Any] = np.dtype(
    [("cycle", "<u8"), ("kind", "<u2"), ("engine", "<u2"), ("instr", "<u4"), ("word", "u1", (16,))]
)
"""One dispatched word (`kind` DISPATCH) or finished instruction (`kind` DONE, its engine)."""

DISPATCH, DONE = 1, 2

START, INTERRUPT, TAKE, STATE, SAMPLE = 1, 2, 3, 4, 5
CMD_START, CMD_INTERRUPT, FINISH = 6, 7, 8
"""Kinds of record in the trace, which has the layout of `EVENT`.

START and INTERRUPT: of the program. TAKE: `engine` takes the operation of `instr`. STATE (with the
knob `trace`): `engine`, or SEQUENCER, is from this cycle on in state `word[0]` on `instr`. SAMPLE
(with the knob): see `Sample`. CMD_START, CMD_INTERRUPT: strobe of a start of the command port, rise
of its interrupt. FINISH: the end of a program.
"""
SEQUENCER = 6
WINDOW = 16
"""Cycles of a sample."""

STATES = (
    "idle",
    "work",
    "pipeline fills or drains",
    "SRAM read port",
    "SRAM write port",
    "parameter stream",
    "bus: read data",
    "bus: write channel",
    "bus: write response",
    "free accumulator bank",
    "parameters of the tile before in use",
    "barrier",
    "queue full",
    "stream ticket",
    "microcode",
    "END: engines",
)
"""What the states of the trace (`state_e` of tb_pkg) mean; from the fourth on: waits for that."""
IDLE, WORK, PIPELINE, FETCH = 0, 1, 2, 14

SAMPLE_WORD: np.dtype[Any] = np.dtype(
    [("fifo", "<u4"), ("read", "<u4"), ("stream", "<u4"), ("write", "<u4")]
)
"""`word` of a SAMPLE: 16-byte words in the parameter FIFO; beats on the bus in the last WINDOW
cycles: read, those of them for the stream, written."""


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
