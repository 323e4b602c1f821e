# SPDX-License-Identifier: Apache-2.0
"""The machine's own copies of the registers, and what is derived from them."""

from __future__ import annotations

from dataclasses import dataclass

from golden.gemm import Argmax
from golden.machine.state import (
    ADDRESS_LIMIT,
    BASE_REGISTERS,
    CACHE_GRANULE,
    ChipConfig,
)
from spec.isa import LINE, WORD, SetReg
from spec.regs import StartState

_START = {
    SetReg.POS: "pos",
    SetReg.TOKEN: "token",
    SetReg.WINDOW: "window",
    SetReg.LOOPLEFT: "loop_left",
    SetReg.EOS: "eos",
    SetReg.KVBASE: "kv_base",
    SetReg.KVLAYER: "kv_layer",
    SetReg.KVHEAD: "kv_head",
    SetReg.KVVOFF: "kv_voff",
    SetReg.KVCAP: "kv_cap",
}
"""Register -> field of the start state."""
_BASES = [SetReg(SetReg.BASE0 + index) for index in range(BASE_REGISTERS)]

GRANULARITY: dict[SetReg, int] = {
    **dict.fromkeys((*_START, SetReg.OUTCNT), 1),
    **dict.fromkeys((SetReg.KVBASE, SetReg.KVLAYER, SetReg.KVHEAD, SetReg.KVVOFF), CACHE_GRANULE),
    **dict.fromkeys(_BASES, WORD),
    SetReg.STREAM: LINE,
}
"""What the value of a SET must be a multiple of; a register that is not here does not exist."""


@dataclass(slots=True)
class Registers:
    """Everything that one run changes besides memory and SRAM.

    Attributes:
        values: every register of SET but STREAM, 0..2^32-1.
        tile: E.
        start: what the host has written, for all that no instruction changes.
        stream_offset: where the next share is taken.
        argmax: the running argmax, None if no value was seen.

    """

    values: dict[SetReg, int]
    tile: int
    start: StartState
    stream_offset: int = 0
    argmax: Argmax | None = None

    @classmethod
    def at_start(cls, start: StartState, config: ChipConfig) -> Registers:
        """Return the registers as a start loads them from the host's."""
        values = {register: int(getattr(start, name)) for register, name in _START.items()}
        values |= dict(zip(_BASES, start.bases, strict=True))
        values[SetReg.OUTCNT] = 0
        return cls(values, config.tile, start)

    def __getitem__(self, register: SetReg) -> int:
        return self.values[register]

    def base(self, index: int) -> int:
        """Return BASE0..BASE7."""
        return self.values[_BASES[index]]

    def set(self, register: SetReg, value: int, *, add: bool = False) -> None:
        """Store a value, or add it modulo 2^32; STREAM names the next share."""
        if register == SetReg.STREAM:
            self.stream_offset = value
        else:
            old = self.values[register] if add else 0
            self.values[register] = (old + value) % ADDRESS_LIMIT

    @property
    def window_start(self) -> int:
        """WSTART: the tile boundary at or before the first key that row 0 may look at."""
        window = self.values[SetReg.WINDOW]
        if not window:
            return 0
        first = max(0, self.values[SetReg.POS] + 1 - window)
        return first - first % self.tile

    @property
    def length(self) -> int:
        """LEN: the keys from WSTART to POS."""
        return self.values[SetReg.POS] + 1 - self.window_start
