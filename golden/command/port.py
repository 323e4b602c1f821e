# SPDX-License-Identifier: Apache-2.0
"""The command port as the host sees it: its window of registers."""

from __future__ import annotations

from collections.abc import Iterator

from golden.command.descriptor import LaunchWords
from golden.command.memory import PortMemory
from golden.command.ring import Launch, ProgramEnd, Ring
from golden.command.scalar import ReservedLaneError
from golden.command.state import DESC_COUNTERS, PERF_COUNTERS, STORED, PortState
from golden.command.tiles import SCRATCH_SIZES, TilesRefusedError
from spec.regs import CMD_FIELDS, CmdOp, CmdReg

WINDOW_BYTES = 0x100
PAGE_BYTES = 64
_REGISTERS: dict[int, CmdReg] = {int(register): register for register in CmdReg}
_FIXED_WHILE_BUSY = {CmdReg.DESC_TAIL, CmdReg.CQ_BASE, CmdReg.CQ_CTRL}


def lanes(strobe: int) -> int:
    """Return the bits of the bytes that a strobe names."""
    return sum(0xFF << 8 * byte for byte in range(4) if strobe >> byte & 1)


def _no_sequencer(program: LaunchWords) -> ProgramEnd:
    raise NotImplementedError(f"this CommandPort was made without launch=; asked for {program}")


class PortModel:
    """The command port with its scratchpad.

    Everything that a write starts has happened when the write returns, except that a run of the
    ring that finds its completion ring full stays busy until CQ_TAIL makes room.

    Args:
        memory: what the descriptors are read from.
        scratch_bytes: 64, 128 or 256.
        launch: runs a program to its end.

    """

    def __init__(
        self, memory: PortMemory, *, scratch_bytes: int = 64, launch: Launch = _no_sequencer
    ) -> None:
        """Begin as after a reset."""
        if scratch_bytes not in SCRATCH_SIZES:
            raise ValueError(
                f"CommandPort.scratch_bytes: given {scratch_bytes}, allowed {SCRATCH_SIZES}"
            )
        self._memory = memory
        self._launch = launch
        self._run: Iterator[None] = iter(())
        self.state = PortState(bytearray(scratch_bytes))

    @property
    def irq(self) -> bool:
        """Whether the port asks for an interrupt."""
        return self.state.done or (self.state.entry and self.state.per_entry)

    @property
    def busy(self) -> bool:
        """Whether the ring waits for room in the completion ring."""
        return self.state.busy

    @property
    def undefined(self) -> list[tuple[int, int]]:
        """The (address, size) in memory that failed writebacks and records leave undefined."""
        return self.state.undefined

    def soft_reset(self) -> None:
        """Stop what is under way: nothing is reported, registers and scratchpad stay."""
        self.state.busy = False

    def read(self, offset: int) -> int:
        """Return the word at a byte offset of the window; 0 where there is no register.

        Raises:
            ValueError: the offset is not a multiple of 4 below 0x100.

        """
        register = _register(offset)
        if register is None:
            return 0
        state = self.state
        if register in STORED:
            return state.stored[register]
        if register in state.counters:
            return state.counters[register]
        if CmdReg.SCRATCH0 <= register <= CmdReg.SCRATCH15:
            at = self._scratch_at(register)
            return int.from_bytes(state.scratch[at : at + 4], "little")
        return self._status(register)

    def _status(self, register: CmdReg) -> int:
        """Return a register that is made of the port's state."""
        state = self.state
        running = state.busy
        contents: dict[CmdReg, dict[str, int]] = {
            CmdReg.RESULT: {"RESULT": state.result},
            CmdReg.RESULT_HI: {"RESULT_HI": state.result_hi},
            CmdReg.CTRL_STATUS: {"BUSY": running, "DONE": state.done, "ERROR": state.error},
            CmdReg.DEBUG: {"OPCODE": state.last_op},
            CmdReg.DESC_STATUS: {"BUSY": running, "INDEX": state.index, "PENDING": self._pending},
            CmdReg.CQ_HEAD: {"CQ_HEAD": state.cq_head},
            CmdReg.CMD_IRQ: {"PER_ENTRY": state.per_entry, "ENTRY": state.entry},
            CmdReg.CMD_CONFIG: {"SCRATCH_BYTES": len(state.scratch)},
        }
        value = state.status if register == CmdReg.DESC_STATUS else 0
        for name, content in contents[register].items():
            key = name if name == register.name else f"{register.name}_{name}"
            value |= CMD_FIELDS[key].put(content)
        return value

    @property
    def _pending(self) -> int:
        stored = self.state.stored
        return (stored[CmdReg.DESC_HEAD] - stored[CmdReg.DESC_TAIL]) % 8

    def _scratch_at(self, register: CmdReg) -> int:
        """Return the byte of the scratchpad that a SCRATCH register shows."""
        page = self.state.stored[CmdReg.SCRATCH_PAGE]
        return PAGE_BYTES * page + register - CmdReg.SCRATCH0

    def write(self, offset: int, value: int, strobe: int = 0xF) -> None:
        """Write the bytes in `strobe` of a word; without effect where there is no register.

        Raises:
            ValueError: the offset is not a multiple of 4 below 0x100, or the value no word.

        """
        register = _register(offset)
        if not 0 <= value < 1 << 32:
            raise ValueError(f"CommandPort.write: given {value:#x}, allowed 0 to 2^32-1")
        enabled = lanes(strobe)
        if register is None or not enabled:
            return
        state, bits = self.state, value & enabled
        if register in STORED:
            self._store(register, bits, enabled)
        elif CmdReg.SCRATCH0 <= register <= CmdReg.SCRATCH15:
            if not state.busy:
                at = self._scratch_at(register)
                merged = self.read(offset) & ~enabled | bits
                state.scratch[at : at + 4] = merged.to_bytes(4, "little")
        elif register == CmdReg.CTRL_STATUS:
            if bits & CMD_FIELDS["CTRL_STATUS_CLEAR"].mask:
                self._clear()
            if bits & CMD_FIELDS["CTRL_STATUS_START"].mask and not state.busy:
                self._start()
        elif register == CmdReg.PERF_ERRORS:
            if bits & CMD_FIELDS["PERF_ERRORS_CLEAR"].mask:
                state.counters.update(dict.fromkeys(PERF_COUNTERS, 0))
        elif register == CmdReg.PERF_THERMAL_THROTTLE:
            state.count(register)
        elif register == CmdReg.CMD_IRQ and enabled & 1:
            state.per_entry = bool(bits & CMD_FIELDS["CMD_IRQ_PER_ENTRY"].mask)
            state.entry &= not bits & CMD_FIELDS["CMD_IRQ_ENTRY"].mask

    def _store(self, register: CmdReg, bits: int, enabled: int) -> None:
        """Write a register that keeps its value, and do what follows from it."""
        state = self.state
        if state.busy and register in _FIXED_WHILE_BUSY:
            return
        merged = state.stored[register] & ~enabled | bits
        state.stored[register] = merged & state.mask(register)
        if register == CmdReg.CQ_CTRL and not state.get("CQ_CTRL_ENABLE"):
            state.cq_head = 0
        if register == CmdReg.CQ_TAIL and state.busy:
            self._continue()

    def _clear(self) -> None:
        """Do what CTRL_STATUS.CLEAR does."""
        state = self.state
        state.done = state.error = state.entry = False
        state.status = state.index = 0
        state.counters.update(dict.fromkeys(DESC_COUNTERS, 0))

    def _start(self) -> None:
        """Do what CTRL_STATUS.START does."""
        state = self.state
        state.done = state.error = state.entry = False
        if state.get("CMD_PARAM_DESCRIPTOR"):
            self._run = Ring(state, self._memory, self._launch).run()
            state.busy = True
            self._continue()
            return
        try:
            state.execute(state.latched(CmdOp(state.stored[CmdReg.OPCODE])))
        except TilesRefusedError:
            state.fail()
        except ReservedLaneError:
            state.fail(unsupported=False)
        state.done = True

    def _continue(self) -> None:
        """Run the ring to its end, or until it waits for room in the completion ring."""
        for _ in self._run:
            return
        self.state.busy = False


def _register(offset: int) -> CmdReg | None:
    """Return the register at a byte offset, None if there is none."""
    if offset % 4 or not 0 <= offset < WINDOW_BYTES:
        raise ValueError(f"CommandPort: given offset {offset:#x}, allowed multiples of 4 < 0x100")
    return _REGISTERS.get(offset)
