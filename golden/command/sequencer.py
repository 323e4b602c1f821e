# SPDX-License-Identifier: Apache-2.0
"""The sequencer's window: the host's registers of microcode programs, on the machine's model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from golden.command.descriptor import Program
from golden.command.ring import ProgramEnd
from golden.machine import ChipConfig, ErrorReport, Machine, StartState
from npu.regs import SEQ_FIELDS, SeqReg

NO_TOKEN = 0xFFFF_FFFF
_WRITTEN_BY_HARDWARE = (
    SeqReg.ERROR_INSTR,
    SeqReg.ERROR_ADDR,
    SeqReg.OUTCNT,
    SeqReg.LAST_TOKEN,
    SeqReg.LAST_POS,
)
_RESET: dict[SeqReg, int] = {
    **dict.fromkeys((it for it in SeqReg if it not in (SeqReg.CTRL, SeqReg.STATUS)), 0),
    SeqReg.EOS: NO_TOKEN,
    SeqReg.KV_CTRL: 1,
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

    Attributes:
        has_ended: a program has ended since the flag was cleared (IRQ_STATUS.SEQ_DONE).

    """

    def __init__(
        self, config: ChipConfig, memory: npt.NDArray[np.uint8], sram: npt.NDArray[np.uint8]
    ) -> None:
        """Begin as after a reset."""
        self._machine = Machine(config, memory, sram, races=False)
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
            stored = self._stored
            self.launch(
                Program(
                    ucode_base=stored[SeqReg.UCODE_BASE],
                    ucode_len=stored[SeqReg.UCODE_LEN],
                    pos=stored[SeqReg.POS],
                    token=stored[SeqReg.TOKEN],
                    base0=stored[SeqReg.DDR_BASE_ACT],
                    base1=stored[SeqReg.DDR_BASE_OUT],
                )
            )
        elif register == SeqReg.STATUS and value & SEQ_FIELDS["STATUS_ERROR"].mask:
            self._report(None)
        elif register in self._stored and register not in _WRITTEN_BY_HARDWARE:
            assert register is not None
            self._stored[register] = value & _mask(register)

    def launch(self, program: Program) -> ProgramEnd:
        """Run a program; everything that it does not name comes from the registers."""
        stored = self._stored
        later = (stored[SeqReg[f"BASE{index}"]] for index in range(2, 8))
        result = self._machine.run(
            StartState(
                ucode_base=program.ucode_base,
                ucode_len=program.ucode_len,
                stream_base=stored[SeqReg.DDR_BASE_WGT],
                stream_len=stored[SeqReg.STREAM_LEN],
                bases=(program.base0, program.base1, *later),
                pos=program.pos,
                token=program.token,
                window=stored[SeqReg.WINDOW],
                loop_left=stored[SeqReg.LOOPLEFT],
                eos=stored[SeqReg.EOS],
                kv_base=stored[SeqReg.DDR_BASE_KV],
                kv_layer=stored[SeqReg.KVLAYER],
                kv_head=stored[SeqReg.KVHEAD],
                kv_voff=stored[SeqReg.KVVOFF],
                kv_cap=stored[SeqReg.KVCAP],
                kv_in_memory=bool(stored[SeqReg.KV_CTRL]),
            )
        )
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
        self._stored[SeqReg.ERROR_ADDR] = 0 if error is None else error.address & NO_TOKEN
