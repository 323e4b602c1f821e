# SPDX-License-Identifier: Apache-2.0
"""A command port on a small memory, and descriptors for it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from golden.command import FaultyMemory, Launch, PortModel
from spec.regs import CMD_FIELDS, CmdOp, CmdReg

MEMORY_BYTES = 0x4000
RING, SOURCE, TARGET, RECORDS = 0x400, 0x1000, 0x2000, 0x3000
"""Where the ring, what streams read, results, and completion records are."""
OWNER, WRITEBACK, STREAM, LAUNCH, EXTENDED = 1 << 31, 1 << 30, 1 << 8, 1 << 5, 1 << 4
START, CLEAR = 1, 2
EMPTY_COUNTERS = {
    register: 0
    for register in CmdReg
    if register.name.startswith(("PERF_", "DESC_BYTES", "DESC_READ", "DESC_WRITE"))
}


def pack(*words: int) -> bytes:
    """Return words as they lie in memory."""
    return np.array(words, "<u4").tobytes()


def scalar(op: CmdOp, a: int, b: int, acc: int = 0, flags: int = 0) -> bytes:
    """Return a plain descriptor."""
    return pack(OWNER | flags | op, a, b, acc)


def stream(offset: int, size: int) -> int:
    """Return the bits of word 0 that ask for a stream."""
    return STREAM | offset << 16 | size << 24


def extended(
    op: CmdOp,
    a: int = 0,
    b: int = 0,
    acc: int = 0,
    *,
    flags: int = 0,
    to: int = 0,
    shape: Sequence[int] = (0, 0, 0),
    tag: int = 0,
) -> bytes:
    """Return an extended descriptor; `shape` as GEMM_CFG, GEMM_BASE, GEMM_STRIDE."""
    first, second, third = shape
    words = OWNER | EXTENDED | flags | op, a, b, acc, to, first, second, third | tag << 24
    return pack(*words)


def launch(
    base: int, length: int, *, pos: int = 0, token: int = 0, bases: tuple[int, int] = (0, 0),
    tag: int = 0,
) -> bytes:  # fmt: skip
    """Return a descriptor that launches a program."""
    return pack(OWNER | EXTENDED | LAUNCH, token, *bases, base, length, pos, tag << 24)


def tile(m: int, n: int, k: int, a: int, b: int, c: int, *strides: int) -> tuple[int, int, int]:
    """Return GEMM_CFG, GEMM_BASE and GEMM_STRIDE."""
    places = a | b << 8 | c << 16
    return m | n << 8 | k << 16, places, strides[0] | strides[1] << 8 | strides[2] << 16


class CommandBench:
    """A port with its memory; `next` is the ring entry that `put` fills next."""

    def __init__(
        self, *, scratch_bytes: int = 64, launch: Launch | None = None, base: int = RING
    ) -> None:
        """Fill the memory with full-range bytes."""
        data = np.random.default_rng(5).integers(0, 256, MEMORY_BYTES, np.uint8)
        self.memory = FaultyMemory(data)
        if launch is None:
            self.port = PortModel(self.memory, scratch_bytes=scratch_bytes)
        else:
            self.port = PortModel(self.memory, scratch_bytes=scratch_bytes, launch=launch)
        self.base = base
        self.next = 0
        self.write(CmdReg.DESC_BASE, base)

    def write(self, register: CmdReg, value: int, strobe: int = 0xF) -> None:
        """Write a register."""
        self.port.write(register, value, strobe)

    def read(self, register: CmdReg) -> int:
        """Return a register."""
        return self.port.read(register)

    def field(self, name: str) -> int:
        """Return a field by its name in CMD_FIELDS."""
        field = CMD_FIELDS[name]
        return field.get(self.port.read(field.register))

    def operate(self, op: CmdOp, a: int = 0, b: int = 0, acc: int = 0) -> tuple[int, int]:
        """Start an operation by register; return RESULT and RESULT_HI."""
        values = {CmdReg.OP_A: a, CmdReg.OP_B: b, CmdReg.ACC: acc, CmdReg.OPCODE: op}
        for register, value in values.items():
            self.write(register, value)
        self.write(CmdReg.CTRL_STATUS, START)
        return self.read(CmdReg.RESULT), self.read(CmdReg.RESULT_HI)

    def shape(self, words: tuple[int, int, int]) -> None:
        """Write GEMM_CFG, GEMM_BASE and GEMM_STRIDE."""
        for register, word in zip(
            (CmdReg.GEMM_CFG, CmdReg.GEMM_BASE, CmdReg.GEMM_STRIDE), words, strict=True
        ):
            self.write(register, word)

    def scratch(self, data: bytes | None = None) -> bytes:
        """Fill the first page of the scratchpad if `data` is given, and return the page."""
        registers = [CmdReg[f"SCRATCH{index}"] for index in range(16)]
        if data is not None:
            for register, word in zip(registers, np.frombuffer(data, "<u4"), strict=True):
                self.write(register, int(word))
        return pack(*(self.read(register) for register in registers))

    def put(self, *descriptors: bytes) -> None:
        """Put descriptors into the ring and move DESC_HEAD behind them."""
        for descriptor in descriptors:
            for at in range(0, len(descriptor), 16):
                entry = np.frombuffer(descriptor[at : at + 16], np.uint8)
                self.memory.data[self.base + 16 * self.next :][:16] = entry
                self.next = (self.next + 1) % 8
        self.write(CmdReg.DESC_HEAD, self.next)

    def run(self, *descriptors: bytes) -> int:
        """Put descriptors and start the ring; return DESC_STATUS[7:0]."""
        self.put(*descriptors)
        self.write(CmdReg.CMD_PARAM, self.read(CmdReg.CMD_PARAM) | 1)
        self.write(CmdReg.CTRL_STATUS, START)
        return self.read(CmdReg.DESC_STATUS) & 0xFF

    def counters(self) -> dict[str, int]:
        """Return the counters that are not 0, by name without prefix."""
        values = {register.name: self.read(register) for register in EMPTY_COUNTERS}
        return {name.removeprefix("PERF_"): value for name, value in values.items() if value}

    def target(self, size: int, at: int = TARGET) -> bytes:
        """Return memory."""
        return self.memory.data[at : at + size].tobytes()

    def record(self, place: int) -> tuple[int, ...]:
        """Return the words of a completion record."""
        words = np.frombuffer(self.target(16, RECORDS + 16 * place), "<u4")
        return tuple(int(word) for word in words)

    def record_to(self, log2_size: int) -> None:
        """Enable the completion ring."""
        self.write(CmdReg.CQ_BASE, RECORDS)
        self.write(CmdReg.CQ_CTRL, 1 | log2_size << 8)
