# SPDX-License-Identifier: Apache-2.0
"""The coprocessor as its core sees it: offered words, results, memory, and a register window."""

from __future__ import annotations

from dataclasses import dataclass, field

from golden.coprocessor import decode, operations
from golden.coprocessor.decode import REFUSED, OfferAnswer
from golden.coprocessor.faults import CopFault, FaultCode, RefusedError, Uncertain
from golden.coprocessor.floats import NAN32
from golden.coprocessor.memory import CoprocessorMemory
from golden.coprocessor.operations import COUNT_IN_RD, COUNT_IN_RS2
from golden.coprocessor.state import MASK32, CopState
from golden.coprocessor.work import CopInstruction, Work
from spec.isa.cop_generated import CopOp
from spec.regs import COP_FIELDS, CopReg

WHOLE_LIMIT = 1 << 20
"""Bytes that LIMIT = 0 stands for."""
VERSION = 1
"""Version of the instructions, in CONFIG."""


@dataclass(frozen=True, slots=True)
class CopResult:
    """What an executed instruction hands back.

    Attributes:
        we: whether rd is written.
        rd: number of the register.
        data: what is written, 0 without `we`.
        fault: why the instruction ended early, None if it did not.
        uncertain: bytes that a failed write leaves open.

    """

    we: bool
    rd: int
    data: int
    fault: CopFault | None = None
    uncertain: Uncertain | None = None


@dataclass
class Coprocessor:
    """State, memory and faults of the coprocessor; instructions happen one after the other.

    Attributes:
        memory: what its vector instructions work on.
        num_rs: registers that the core hands over; with 2, counts in rd are refused.
        state: accumulators and vector registers.
        limit: LIMIT, in bytes below WHOLE_LIMIT; 0 stands for that.
        trap: CTRL.TRAP, whether everything is refused while a fault stands.
        fault: the first one since the last CLEAR.
        instructions: INSTRS, modulo 2^32.

    """

    memory: CoprocessorMemory
    num_rs: int = 3
    state: CopState = field(default_factory=CopState)
    limit: int = 256
    trap: bool = True
    fault: CopFault | None = None
    instructions: int = 0

    @property
    def has_fault(self) -> bool:
        """STATUS.FAULT, which is the coprocessor's interrupt as well."""
        return self.fault is not None

    def offer(self, word: int) -> OfferAnswer:
        """Return the answer to a word that the core does not know."""
        op = decode.decode(word)
        if op is None or (self.has_fault and self.trap):
            return REFUSED
        return REFUSED if op in COUNT_IN_RD and self.num_rs < 3 else decode.answer(op)

    def execute(self, word: int, rs1: int = 0, rs2: int = 0, rs3: int = 0) -> CopResult:
        """Execute an instruction that was accepted and committed, and whose result is taken.

        Args:
            word: the instruction.
            rs1: x[rs1] or f[rs1], as bit pattern.
            rs2: x[rs2] or f[rs2].
            rs3: x[rd], a count.

        Raises:
            RefusedError: the coprocessor does not accept it.

        """
        op = self._accepted(word)
        self.instructions = (self.instructions + 1) & MASK32
        if op in operations.SCALARS:
            return self._result(op, word, operations.SCALARS[op](self.state, rs1, rs2))
        work = Work.of(op, CopInstruction(word, rs1, rs2, rs3), self.memory, self.state)
        if self._is_too_long(op, work):
            return self._faulted(op, CopFault(FaultCode.LENGTH, word, 0, 0))
        failure, end = work.arrays.first_failure()
        if failure is None:
            return self._result(op, word, work.finish())
        uncertain = work.stop(failure.index, end)
        fault = CopFault(failure.code, word, failure.address, failure.index)
        return self._faulted(op, fault, uncertain)

    def soft_reset(
        self, running: CopInstruction | None = None, completed: int = 0
    ) -> CopResult | None:
        """Clear accumulators and vector registers; what the window sets up is kept.

        Args:
            running: the accepted instruction that the reset ends, if one runs.
            completed: how many of its elements were complete by then, which no model can know.

        Returns:
            The result of the running instruction.

        Raises:
            ValueError: no instruction of that kind can have completed so many elements.

        """
        result = None
        if running is not None:
            op = self._accepted(running.word)
            self.instructions = (self.instructions + 1) & MASK32
            self._complete(op, running, completed)
            result = self._faulted(op, CopFault(FaultCode.RESET, running.word, 0, completed))
        self.state = CopState()
        return result

    def read(self, offset: int) -> int:
        """Return a register of the window; 0 where there is none.

        CYCLES and BEATS count what this model does not have: they read 0, as STATUS.BUSY does.
        """
        state, fault = self.state, self.fault or CopFault(FaultCode.NONE, 0, 0, 0)
        contents: dict[int, int] = {
            CopReg.ACC_LO: state.acc & MASK32,
            CopReg.ACC_HI: state.acc >> 32,
            CopReg.FACC_LO: state.facc & MASK32,
            CopReg.FACC_HI: state.facc >> 32,
            CopReg.STATUS: _put(STATUS_FAULT=self.has_fault, STATUS_CODE=fault.code),
            CopReg.CTRL: _put(CTRL_TRAP=self.trap),
            CopReg.FAULT_INSTR: fault.instruction,
            CopReg.FAULT_ADDR: fault.address,
            CopReg.FAULT_INDEX: fault.index,
            CopReg.LIMIT: self.limit,
            CopReg.INSTRS: self.instructions,
            CopReg.CONFIG: _put(
                CONFIG_PRESENT=1, CONFIG_VERSION=VERSION, CONFIG_NUM_RS=self.num_rs
            ),
        }
        contents |= {CopReg.VREG0 + 4 * place: held for place, held in enumerate(state.vreg)}
        return contents.get(offset, 0)

    def write(self, offset: int, value: int) -> None:
        """Write a register of the window; without effect where there is none to write."""
        if offset == CopReg.ACC_LO:
            self.state.acc = 0
        elif offset == CopReg.FACC_LO:
            self.state.facc = 0
        elif offset == CopReg.LIMIT:
            self.limit = COP_FIELDS["LIMIT_BYTES"].get(value)
        elif offset == CopReg.INSTRS:
            self.instructions = 0
        elif offset == CopReg.CTRL:
            self.trap = bool(COP_FIELDS["CTRL_TRAP"].get(value))
            if COP_FIELDS["CTRL_CLEAR"].get(value):
                self.fault = None

    def _accepted(self, word: int) -> CopOp:
        """Return the instruction of a word that is accepted now."""
        op = decode.decode(word)
        if op is None or not self.offer(word).accept:
            raise RefusedError(f"Coprocessor: given {word:#010x}, allowed what offer() accepts")
        return op

    def _is_too_long(self, op: CopOp, work: Work) -> bool:
        """Whether LIMIT forbids an instruction."""
        return op in COUNT_IN_RD | COUNT_IN_RS2 and work.bytes > (self.limit or WHOLE_LIMIT)

    def _complete(self, op: CopOp, running: CopInstruction, completed: int) -> None:
        """Write the elements that were complete when a reset came."""
        most = 0
        if op not in operations.SCALARS:
            work = Work.of(op, running, self.memory, self.state)
            if not self._is_too_long(op, work):
                failure, _ = work.arrays.first_failure()
                most = failure.index if failure else work.arrays.count
        if not 0 <= completed <= most:
            raise ValueError(f"Coprocessor.soft_reset: given {completed}, allowed 0..{most}")
        if completed:
            work.stop(completed, completed)

    def _result(self, op: CopOp, word: int, data: int | None) -> CopResult:
        """Return the result of an instruction that did not fault."""
        return CopResult(data is not None, decode.fields(op, word).rd, data or 0)

    def _faulted(self, op: CopOp, fault: CopFault, uncertain: Uncertain | None = None) -> CopResult:
        """Note a fault and return the result of its instruction."""
        if self.fault is None:
            self.fault = fault
        data = NAN32 if op in decode.FLOAT_RESULTS else 0
        we = decode.answer(op).writeback
        rd = decode.fields(op, fault.instruction).rd
        return CopResult(we, rd, data, fault, uncertain)


def _put(**contents: int) -> int:
    """Return a register of named fields."""
    return sum(COP_FIELDS[name].put(int(content)) for name, content in contents.items())
