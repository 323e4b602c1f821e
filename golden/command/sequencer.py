# SPDX-License-Identifier: Apache-2.0
"""The sequencer's window: the host's registers of microcode programs, on the machine's model."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from golden.command.descriptor import LaunchWords
from golden.command.ring import ProgramEnd
from golden.machine import ChipConfig, ErrorReport, Machine
from spec.regs import SEQ_FIELDS, SeqReg, StartState

WORD_MASK = 0xFFFF_FFFF
_WRITTEN_BY_HARDWARE = (
    SeqReg.ERROR_INSTR,
    SeqReg.ERROR_ADDR,
    SeqReg.OUTCNT,
    SeqReg.LAST_TOKEN,
    SeqReg.LAST_POS,
)
_RESET: dict[SeqReg, int] = {
    **dict.fromkeys((it for it in SeqReg if it not in (SeqReg.CTRL, SeqReg.STATUS)), 0),
    **{SeqReg(register): value for register, value in StartState().writes()},
}
_REGISTERS: dict[int, SeqReg] = {int(register): register for register in SeqReg}


def _mask(register: SeqReg) -> int:
    """Return the bits that a register has."""
    return sum(field.mask for field in SEQ_FIELDS.values() if field.register == register)


@dataclass
class _Status:
    """STATUS."""

    done: bool = False
    error: ErrorReport | None = None

    @property
    def error_bits(self) -> int:
        """ERROR_CODE and ERROR_ENGINE in place."""
        if self.error is None:
            return 0
        code = SEQ_FIELDS["STATUS_ERROR_CODE"].put(self.error.code)
        return code | SEQ_FIELDS["STATUS_ERROR_ENGINE"].put(self.error.engine)


class Sequencer:
    """Window 0x100. A program has ended when the write that starts it returns.

    Args:
        config: the chip's parameters.
        memory: (n,) uint8, n a multiple of 16; changed in place.
        sram: (config.sram_bytes,) uint8; changed in place.
        races: refuse programs whose result on a chip is open.

    Attributes:
        has_ended: a program has ended since the flag was cleared (IRQ_STATUS.SEQ_DONE).

    """

    def __init__(
        self,
        config: ChipConfig,
        memory: npt.NDArray[np.uint8],
        sram: npt.NDArray[np.uint8],
        *,
        races: bool = False,
    ) -> None:
        """Begin as after a reset."""
        self._machine = Machine(config, memory, sram, races=races)
        self._stored = dict(_RESET)
        self._status = _Status()
        self.has_ended = False

    def read(self, offset: int) -> int:
        """Return the word at a byte offset of the window; 0 where there is no register."""
        register = _REGISTERS.get(offset)
        if register != SeqReg.STATUS:
            return 0 if register is None else self._stored.get(register, 0)
        status = SEQ_FIELDS["STATUS_DONE"].put(self._status.done) | self._status.error_bits
        return status | SEQ_FIELDS["STATUS_ERROR"].put(self._status.error is not None)

    def write(self, offset: int, value: int) -> None:
        """Write a word; CTRL.START runs a program.

        SOFT_RESET and ABORT find nothing to do here, since no program is ever under way.
        """
        register = _REGISTERS.get(offset)
        if register == SeqReg.CTRL and value & SEQ_FIELDS["CTRL_START"].mask:
            self._run(self._start_state())
        elif register == SeqReg.STATUS and value & SEQ_FIELDS["STATUS_ERROR"].mask:
            self._report(None)
        elif register in self._stored and register not in _WRITTEN_BY_HARDWARE:
            assert register is not None
            self._stored[register] = value & _mask(register)

    def launch(self, program: LaunchWords) -> ProgramEnd:
        """Run a program; everything that it does not name comes from the registers."""
        start = self._start_state()
        return self._run(
            replace(
                start,
                ucode_base=program.ucode_base,
                ucode_len=program.ucode_len,
                pos=program.pos,
                token=program.token,
                bases=(program.base0, program.base1, *start.bases[2:]),
            )
        )

    def _start_state(self) -> StartState:
        """Return what the registers hold."""
        return StartState.of_registers(lambda offset: self._stored[SeqReg(offset)])

    def _run(self, start: StartState) -> ProgramEnd:
        """Run a program and keep what it leaves.

        Raises:
            ValueError: it has races, and those are refused.

        """
        stored = self._stored
        result = self._machine.run(start)
        if result.races:
            raise ValueError(f"the program has {len(result.races)} races, first: {result.races[0]}")
        stored[SeqReg.OUTCNT] = result.out_count
        stored[SeqReg.LAST_TOKEN] = result.token
        stored[SeqReg.LAST_POS] = result.pos
        self._status.done = self.has_ended = True
        self._report(result.error)
        return ProgramEnd(result.out_count, self._status.error_bits)

    def _report(self, error: ErrorReport | None) -> None:
        """Keep an error report, or clear it."""
        self._status.error = error
        self._stored[SeqReg.ERROR_INSTR] = 0 if error is None else error.instr
        self._stored[SeqReg.ERROR_ADDR] = 0 if error is None else error.address & WORD_MASK
