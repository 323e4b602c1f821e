# SPDX-License-Identifier: Apache-2.0
"""Small programs for the instruction-level model: instruction builders, shares, a memory layout."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.machine import ChipConfig, Machine, RunResult, StartState
from spec.isa import (
    DYNAMIC,
    Flag,
    GemmA,
    GemmB,
    GemmOp,
    GemmOut,
    GemmQ,
    Instruction,
    Opcode,
    SmxOut,
)
from spec.isa.operands import up
from weights.model import AnyLinear, Block, Norm

UCODE_BASE = 0x0
STREAM_BASE = 0x4000
MEMORY_BYTES = 1 << 18
GUARD = 0xA5

TRANSPOSE, BIAS, REQUANT, RELU, CAUSAL, ACCUMULATE, MODE = (1 << bit for bit in range(7))
V, STAGE = 1 << Flag.V, 1 << Flag.STAGE
A_INT8, A_UINT8, A_INT16, A_UINT16 = GemmA
B_ROWS, B_TILES, B_STREAM, B_STREAM_MX = (form << 2 for form in GemmB)
Q_PREFIX, Q_TENSOR, Q_CHANNEL, Q_ROW = (form << 7 for form in GemmQ)
TABLE = 1 << 9
OUT_INT8, OUT_INT16, OUT_INT32, OUT_NONE = (out << 10 for out in GemmOut)
OP_ADD, OP_MUL = GemmOp.ADD << 12, GemmOp.MUL << 12
ARGMAX, DEPTHWISE = 1 << 14, 1 << 15

END = Instruction(Opcode.END)


def barrier(mask: int = 0, pending: int = 0) -> Instruction:
    """Return a BARRIER."""
    return Instruction(Opcode.BARRIER, m=mask, n=pending)


def pfx(
    cp: int = 0,
    ap: int = 0,
    bp: int = 0,
    d: int = 0,
    dp: int = 0,
    base: int = 0,
    imm: int = 0,
    sh: int = 0,
) -> Instruction:
    """Return a PFX word; pitches and addresses in words, as in the fields."""
    return Instruction(Opcode.PFX, flags=sh, dst=cp, src0=ap, src1=bp, m=d, n=dp, k=base, imm=imm)


def gemm(
    dst: int, a: int, b: int, m: int, n: int, k: int, mode: int | None = None, flags: int = 0
) -> Instruction:
    """Return a GEMM; addresses in words, `mode` the mode word (None: MODE clear)."""
    flags |= 0 if mode is None else MODE
    return Instruction(Opcode.GEMM, flags, dst, a, b, m, n, k, mode or 0)


def length(cap: int, v: int = 0) -> int:
    """Return the field of a dynamic dimension of at most `cap` (16..32768, a multiple of 16)."""
    return DYNAMIC | v << 11 | cap // 16 % 2048


def set_register(register: int, value: int, add: bool = False) -> Instruction:
    """Return a SET."""
    return Instruction(Opcode.SET, int(add), register, value & 0xFFFF, value >> 16)


def weight_tiles(weight: npt.NDArray[np.int8], edge: int = 16) -> list[list[bytes]]:
    """Return INT8 tiles [n-tile][k-tile]; byte edge*k + n = W[edge*i + k][edge*j + n]."""
    inner, columns = weight.shape
    padded = np.zeros((up(inner, edge), up(columns, edge)), np.int8)
    padded[:inner, :columns] = weight
    return [
        [padded[i : i + edge, j : j + edge].tobytes() for i in range(0, padded.shape[0], edge)]
        for j in range(0, padded.shape[1], edge)
    ]


def channel_records(layer: AnyLinear, edge: int = 16) -> list[bytes]:
    """Return the Q = 2 records of each n-tile."""
    columns = layer.outputs
    records = np.zeros((up(columns, edge), 8), np.uint8)
    records[:columns, :4] = layer.bias.astype("<i4").reshape(-1, 1).view(np.uint8)
    records[:columns, 4:6] = layer.mult.astype("<u2").reshape(-1, 1).view(np.uint8)
    records[:columns, 6] = layer.shift
    return [records[j : j + edge].tobytes() for j in range(0, records.shape[0], edge)]


def linear_share(
    layer: AnyLinear, table: npt.NDArray[np.int8] | None = None, edge: int = 16
) -> bytes:
    """Return the share of a Q = 2 GEMM with B from the stream."""
    share = b"" if table is None else table.tobytes()
    for record, tiles in zip(
        channel_records(layer, edge), weight_tiles(layer.weight, edge), strict=True
    ):
        share += record + b"".join(tiles)
    return share


def norm_share(norm: Norm) -> bytes:
    """Return the share of a LAYERNORM."""
    records = np.zeros((up(norm.size, 16), 4), np.uint8)
    records[: norm.size, :2] = norm.gain.astype("<u2").reshape(-1, 1).view(np.uint8)
    records[: norm.size, 2] = norm.shift
    records[: norm.size, 3] = norm.bias.view(np.uint8)
    return norm.eps_term.to_bytes(8, "little") + bytes(56) + records.tobytes()


@dataclass
class ProgramBench:
    """A machine with a program, a stream and memory; `registers` are fields of the start state."""

    program: list[Instruction]
    stream: bytes = b""
    config: ChipConfig = field(default_factory=ChipConfig)
    bases: tuple[int, ...] = (0x20000, 0x30000, 0, 0, 0, 0, 0, 0)
    pos: int = 0
    registers: dict[str, Any] = field(default_factory=dict)
    memory: npt.NDArray[np.uint8] = field(default_factory=lambda: np.zeros(MEMORY_BYTES, np.uint8))

    def __post_init__(self) -> None:
        """Fill the SRAM with a pattern that no engine writes by accident."""
        self.sram = np.full(self.config.sram_bytes, GUARD, np.uint8)

    def put(self, address: int, values: npt.NDArray[Any], pitch: int | None = None) -> None:
        """Place the rows of a matrix in SRAM, each at a pitch in bytes (natural by default).

        The rest of a row's last word becomes zero.
        """
        rows = np.ascontiguousarray(np.atleast_2d(values))
        raw = rows.view(np.uint8).reshape(rows.shape[0], -1)
        step = up(raw.shape[1], 16) if pitch is None else pitch
        for index, row in enumerate(raw):
            place = self.sram[address + index * step :]
            place[: up(row.size, 16)] = 0
            place[: row.size] = row

    def get(
        self, address: int, shape: tuple[int, int], dtype: type[Any], pitch: int | None = None
    ) -> npt.NDArray[Any]:
        """Return a matrix from SRAM."""
        size = shape[1] * np.dtype(dtype).itemsize
        step = up(size, 16) if pitch is None else pitch
        rows = [self.sram[address + i * step :][:size].view(dtype) for i in range(shape[0])]
        return np.stack(rows)

    def run(self, races: bool = True) -> RunResult:
        """Load program and stream into memory and run."""
        image = b"".join(word.encode() for word in self.program)
        self.memory[UCODE_BASE : UCODE_BASE + len(image)] = np.frombuffer(image, np.uint8)
        end = STREAM_BASE + len(self.stream)
        self.memory[STREAM_BASE:end] = np.frombuffer(self.stream, np.uint8)
        start = StartState(
            UCODE_BASE,
            len(self.program),
            STREAM_BASE,
            len(self.stream),
            bases=self.bases,
            pos=self.pos,
            **self.registers,
        )
        return Machine(self.config, self.memory, self.sram, races=races).run(start)


X, N1, CT, QK, SC, SU, FF = 0x0, 0x4000, 0x6000, 0x8000, 0xE000, 0x1E000, 0x1F000
"""Byte addresses of the tensors of `block_program`: residual, norm, context, q|k|v, two score
buffers, two sums buffers, feed-forward."""


def block_program(rows: int, params: Block) -> list[Instruction]:
    """Return one GPT-2 block of hidden 64, 4 heads of 16, feed-forward 256, rows <= 128."""
    w = 16
    pitch = 2 * up(rows, 16)
    pieces = [(r, min(64, rows - r)) for r in range(0, rows, 64)]
    nrm, gem, smx = 16, 4, 8

    def scores(h: int) -> list[Instruction]:
        prefix = pfx(cp=pitch // w, ap=12, bp=12, imm=params.score_mult, sh=params.score_shift)
        at = SC + h % 2 * 0x8000
        mode = A_INT8 | B_ROWS | Q_PREFIX | OUT_INT16
        flags = TRANSPOSE | REQUANT
        word = gemm(at // w, QK // w + h, QK // w + 4 + h, rows, rows, 16, mode, flags)
        return [prefix, word]

    def context(h: int) -> list[Instruction]:
        words = []
        for first, count in pieces:
            buffer = h % 2
            sums = (SU + buffer * 0x800 + 16 * first) // w
            words.append(pfx(cp=4, ap=pitch // w, bp=12, imm=sums))
            mode = A_UINT16 | B_ROWS | Q_ROW | OUT_INT8
            a = (SC + buffer * 0x8000 + first * pitch) // w
            c = (CT + 16 * h + 64 * first) // w
            words.append(gemm(c, a, QK // w + 8 + h, count, 16, rows, mode, REQUANT))
        return words

    def stream_gemm(dst: int, a: int, n: int, k: int, mode: int, d: int = 0) -> Instruction:
        mode |= B_STREAM | Q_CHANNEL
        return gemm(dst // w, a // w, d // w, rows, n, k, mode, BIAS | REQUANT)

    norm = Instruction(Opcode.LAYERNORM, dst=N1 // w, src0=X // w, m=rows, n=64, imm=1)
    words = [norm, barrier(nrm), stream_gemm(QK, N1, 192, 64, OUT_INT8), barrier(gem)]
    words += scores(0) + scores(1)
    for h in range(4):
        words.append(barrier(gem, int(h == 0)))
        at = (SC + h % 2 * 0x8000) // w
        words.append(pfx(cp=pitch // w, ap=pitch // w))
        sums = (SU + h % 2 * 0x800) // w
        words.append(
            Instruction(Opcode.SOFTMAX, CAUSAL, at, at, sums, rows, rows, rows, imm=SmxOut.NUMER16)
        )
        if h > 0:
            words.append(barrier(smx, 1))
            words += context(h - 1)
            if h < 3:
                words += scores(h + 1)
    words += [barrier(smx), *context(3), barrier(gem)]
    words += [stream_gemm(X, CT, 64, 64, OUT_INT16 | OP_ADD, X), barrier(gem)]
    words += [norm, barrier(nrm), stream_gemm(FF, N1, 256, 64, OUT_INT8 | TABLE), barrier(gem)]
    words += [stream_gemm(X, FF, 64, 256, OUT_INT16 | OP_ADD, X), barrier(gem)]
    return [*words, END]


def block_stream(params: Block) -> bytes:
    """Return the parameter stream of `block_program`."""
    assert isinstance(params.norm1, Norm)
    assert isinstance(params.norm2, Norm)
    return (
        norm_share(params.norm1)
        + linear_share(params.qkv)
        + linear_share(params.proj)
        + norm_share(params.norm2)
        + linear_share(params.up, params.table)
        + linear_share(params.down)
    )


def ran(word: Instruction, operands: dict[int, npt.NDArray[Any]], pos: int = 0) -> ProgramBench:
    """Run one instruction on operands, by byte address."""
    made = ProgramBench([word, END], pos=pos)
    for address, rows in operands.items():
        made.put(address, rows)
    result = made.run()
    assert result.error is None
    return made
