# SPDX-License-Identifier: Apache-2.0
"""What the command port remembers, and one operation on it."""

from __future__ import annotations

from dataclasses import dataclass, field

from golden.command import scalar, tiles
from golden.command.scalar import WORD_MASK
from golden.command.tiles import ON_SCRATCHPAD, ScratchTile, field_mask
from spec.regs import CMD_FIELDS, CmdOp, CmdReg

STORED = {
    **dict.fromkeys((CmdReg.OP_A, CmdReg.OP_B, CmdReg.ACC, CmdReg.OPCODE, CmdReg.CMD_PARAM), 0),
    **dict.fromkeys((CmdReg.GEMM_CFG, CmdReg.GEMM_BASE, CmdReg.GEMM_STRIDE), 0),
    **dict.fromkeys((CmdReg.DESC_BASE, CmdReg.DESC_HEAD, CmdReg.DESC_TAIL), 0),
    **dict.fromkeys((CmdReg.CQ_BASE, CmdReg.CQ_CTRL, CmdReg.CQ_TAIL, CmdReg.SCRATCH_PAGE), 0),
    CmdReg.DESC_TIMEOUT: 0x1000,
}
"""Registers that keep what is written, with their reset values."""
PERF_COUNTERS = (
    CmdReg.PERF_UNSUPPORTED_OPS,
    CmdReg.PERF_CYCLES,
    CmdReg.PERF_MACS,
    CmdReg.PERF_OPS,
    CmdReg.PERF_ERRORS,
    CmdReg.PERF_STALL_CYCLES,
    CmdReg.PERF_SCRATCH_BYTES,
    CmdReg.PERF_THERMAL_THROTTLE,
)
DESC_COUNTERS = (
    CmdReg.DESC_TIMEOUT_COUNT,
    CmdReg.DESC_BYTES_READ,
    CmdReg.DESC_BYTES_WRITTEN,
    CmdReg.DESC_READ_BEATS,
    CmdReg.DESC_WRITE_BEATS,
)
CYCLE_REGISTERS = frozenset(
    {CmdReg.PERF_CYCLES, CmdReg.PERF_STALL_CYCLES, CmdReg.DESC_TIMEOUT_COUNT}
)
"""Registers that count cycles, which this model does not have: they read 0. DEBUG.BUSY_COUNT and
word 3 of a completion record are 0 for the same reason."""
EMPTY_STATUS = 0x01


@dataclass(frozen=True, slots=True)
class PortCommand:
    """One operation with everything that decides what it does.

    Attributes:
        op: the operation.
        operands: OP_A, OP_B, ACC.
        shape: GEMM_CFG, GEMM_BASE, GEMM_STRIDE.
        is_ternary: CMD_PARAM.TERNARY.

    """

    op: CmdOp
    operands: tuple[int, int, int]
    shape: tuple[int, int, int]
    is_ternary: bool


@dataclass
class PortState:
    """The registers, counters and scratchpad.

    Attributes:
        scratch: the scratchpad, 64, 128 or 256 bytes.
        stored: registers that keep what is written.
        counters: PERF_* and DESC_* counters, modulo 2^32.
        result, result_hi: of the last scalar operation.
        last_op: DEBUG.OPCODE.
        busy, done, error: CTRL_STATUS.
        status, index: bits 7:0 and INDEX of DESC_STATUS.
        per_entry, entry: CMD_IRQ.
        cq_head: CQ_HEAD.
        undefined: (address, size) of the memory that failed writebacks and records leave undefined.

    """

    scratch: bytearray
    stored: dict[CmdReg, int] = field(default_factory=lambda: dict(STORED))
    counters: dict[CmdReg, int] = field(
        default_factory=lambda: dict.fromkeys((*PERF_COUNTERS, *DESC_COUNTERS), 0)
    )
    result: int = 0
    result_hi: int = 0
    last_op: int = 0
    busy: bool = False
    done: bool = False
    error: bool = False
    status: int = EMPTY_STATUS
    index: int = 0
    per_entry: bool = False
    entry: bool = False
    cq_head: int = 0
    undefined: list[tuple[int, int]] = field(default_factory=list)

    def mask(self, register: CmdReg) -> int:
        """Return the bits of a register that this chip has."""
        if register == CmdReg.SCRATCH_PAGE:
            return len(self.scratch) // 64 - 1
        return field_mask(register, len(self.scratch))

    def latched(self, op: CmdOp) -> PortCommand:
        """Return an operation on what a start latches."""
        a, b, acc = (self.stored[register] for register in (CmdReg.OP_A, CmdReg.OP_B, CmdReg.ACC))
        is_ternary = bool(self.get("CMD_PARAM_TERNARY"))
        return PortCommand(op, (a, b, acc), self.shape, is_ternary)

    @property
    def shape(self) -> tuple[int, int, int]:
        """GEMM_CFG, GEMM_BASE, GEMM_STRIDE."""
        stored = self.stored
        return stored[CmdReg.GEMM_CFG], stored[CmdReg.GEMM_BASE], stored[CmdReg.GEMM_STRIDE]

    def get(self, name: str) -> int:
        """Return a field of a stored register by its name in CMD_FIELDS."""
        found = CMD_FIELDS[name]
        return found.get(self.stored[CmdReg(found.register)])

    def count(self, register: CmdReg, amount: int = 1) -> None:
        """Add to a counter."""
        self.counters[register] = (self.counters[register] + amount) & WORD_MASK

    def count_bytes(self, which: str, size: int) -> None:
        """Add to DESC_BYTES_* and DESC_*_BEATS; `which` is "READ" or "WRITTEN"."""
        beats = CmdReg.DESC_READ_BEATS if which == "READ" else CmdReg.DESC_WRITE_BEATS
        self.count(CmdReg[f"DESC_BYTES_{which}"], size)
        self.count(beats, size // 4)

    def tile(self, work: PortCommand) -> ScratchTile:
        """Return the shape of an operation on the scratchpad."""
        return ScratchTile.decode(*work.shape, len(self.scratch))

    def execute(self, work: PortCommand) -> None:
        """Carry out one operation.

        Raises:
            RefusedError: it was not begun.
            ReservedLaneError: it was begun and met a reserved lane; RESULT stays.

        """
        self.last_op = work.op
        if work.op not in ON_SCRATCHPAD:
            self.count(CmdReg.PERF_OPS)
            self.result, self.result_hi = scalar.compute(
                work.op, *work.operands, is_ternary=work.is_ternary
            )
            return
        tile = self.tile(work)
        tiles.check(work.op, tile, len(self.scratch))
        self.count(CmdReg.PERF_OPS)
        tiles.run(work.op, tile, self.scratch)
        self.count(CmdReg.PERF_MACS, tiles.macs(work.op, tile))
        self.count(CmdReg.PERF_SCRATCH_BYTES, tiles.moved_bytes(work.op, tile))

    def fail(self, *, unsupported: bool = True) -> None:
        """Note an error; `unsupported` unless it was a reserved lane met by register."""
        self.error = True
        self.count(CmdReg.PERF_ERRORS)
        if unsupported:
            self.count(CmdReg.PERF_UNSUPPORTED_OPS)
