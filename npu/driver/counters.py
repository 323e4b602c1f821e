# SPDX-License-Identifier: Apache-2.0
"""The chip's performance counters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from spec.isa import Engine
from spec.regs import ChipReg

REGISTERS = [register for register in ChipReg if ChipReg.CYCLES_LO <= register <= ChipReg.STALL5]
"""Those that hold the counters."""


@dataclass(frozen=True)
class ChipCounters:
    """The chip's performance counters after a program; the page of registers defines them.

    Attributes:
        cycles: clock cycles with STATUS.BUSY.
        macs: useful 8x8-bit multiplications.
        instrs: dispatched words.
        read_beats, write_beats, stream_beats: 16-byte beats; the stream's are part of the reads.
        busy, stall: cycles per engine (ld, st, gemm, smx, nrm, vec).
    """

    cycles: int
    macs: int
    instrs: int
    read_beats: int
    write_beats: int
    stream_beats: int
    busy: tuple[int, ...]
    stall: tuple[int, ...]

    @classmethod
    def of_registers(cls, values: Mapping[ChipReg, int]) -> ChipCounters:
        """From the values of `REGISTERS`."""
        return cls(
            cycles=values[ChipReg.CYCLES_HI] << 32 | values[ChipReg.CYCLES_LO],
            macs=values[ChipReg.MACS_HI] << 32 | values[ChipReg.MACS_LO],
            instrs=values[ChipReg.INSTRS],
            read_beats=values[ChipReg.READ_BEATS],
            write_beats=values[ChipReg.WRITE_BEATS],
            stream_beats=values[ChipReg.STREAM_BEATS],
            busy=tuple(values[ChipReg[f"BUSY{engine}"]] for engine in range(6)),
            stall=tuple(values[ChipReg[f"STALL{engine}"]] for engine in range(6)),
        )

    def named(self) -> dict[str, int]:
        """Return every figure under the name of its counter, such as `STALL of gemm`."""
        single = [field.name for field in fields(self) if field.name not in ("busy", "stall")]
        figures = {name.upper(): int(getattr(self, name)) for name in single}
        for name in ("busy", "stall"):
            for engine, cycles in enumerate(getattr(self, name)):
                figures[f"{name.upper()} of {Engine(engine).name.lower()}"] = cycles
        return figures
