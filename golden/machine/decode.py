# SPDX-License-Identifier: Apache-2.0
"""Decoding and legality of every opcode but GEMM (section 2 of the ISA).

Checks are made in the order opcode, fields, dimensions, memory addresses, SRAM ranges, share of the
stream; the first that fails names the error.
"""

from __future__ import annotations

from collections.abc import Callable

from golden.machine.decode_gemm import TABLE_BYTES, decode_gemm
from golden.machine.legal import (
    DYNAMIC,
    Prefix,
    matrix,
    require,
    require_dimension,
    require_memory,
    require_sram,
    require_zero,
    signed16,
)
from golden.machine.operands import Matrix, block, up
from golden.machine.operations import (
    Barrier,
    Dma,
    End,
    LayerNorm,
    Nop,
    Operation,
    SetRegister,
    Softmax,
    Vec,
)
from golden.machine.state import BASE_REGISTERS, WORD, ChipConfig, ProgramError, Registers
from npu.isa import Engine, ErrorCode, Instruction, Opcode, SetReg, VecOp

NORM_HEADER_BYTES = 64
NORM_CHANNEL_BYTES = 4
ADD_FLAG = 1
CAUSAL_FLAG = 0x10
STREAM_GRANULARITY = 64
BARRIER_ENGINES = 6
BARRIER_MOST = 4


def _nop(word: Instruction, prefix: Prefix) -> Nop:
    require_zero(word, "dst", "src0", "src1", "m", "n", "k")
    prefix.require_only()
    return Nop()


def _end(word: Instruction, prefix: Prefix) -> End:
    _nop(word, prefix)
    return End()


def _barrier(word: Instruction, prefix: Prefix) -> Barrier:
    require_zero(word, "dst", "src0", "src1", "k")
    require(word.m >> BARRIER_ENGINES == 0 and word.n <= BARRIER_MOST)
    prefix.require_only()
    mask = word.m or (1 << BARRIER_ENGINES) - 1
    engines = tuple(Engine(e) for e in range(BARRIER_ENGINES) if mask >> e & 1)
    return Barrier(engines, word.n)


def _set(word: Instruction, prefix: Prefix) -> SetRegister:
    require_zero(word, "m", "n", "k", flags=ADD_FLAG)
    prefix.require_only()
    is_base = SetReg.BASE0 <= word.dst < SetReg.BASE0 + BASE_REGISTERS
    require(is_base or word.dst in (SetReg.POS, SetReg.STREAM))
    add = bool(word.flags & ADD_FLAG)
    require(not (add and word.dst == SetReg.STREAM))
    value = word.src0 | word.src1 << 16
    granularity = WORD if is_base else STREAM_GRANULARITY if word.dst == SetReg.STREAM else 1
    if value % granularity:
        raise ProgramError(ErrorCode.BAD_ADDRESS, value)
    return SetRegister(word.dst, value, add)


def _dma(word: Instruction, prefix: Prefix, config: ChipConfig, registers: Registers) -> Dma:
    require_zero(word, imm=0x7)
    prefix.require_only("cp")
    require_dimension(word.m)
    require_dimension(word.n)
    address = registers.bases[word.imm] + (word.src0 | word.src1 << 16)
    memory = Matrix(address, word.k * WORD or up(word.n, WORD), word.m, word.n)
    require_memory(memory)
    sram = matrix(word.dst, prefix.cp, word.m, word.n, 1)
    require_sram(config, sram)
    engine = Engine.LD if word.opcode == Opcode.DMA_LOAD else Engine.ST
    return Dma(engine, memory, sram)


def _vec(word: Instruction, prefix: Prefix, config: ChipConfig) -> Vec:
    require_zero(word, imm=0x3F7F)
    require(word.imm & 0xF <= max(VecOp))
    op = VecOp(word.imm & 0xF)
    a16, c16, stream = word.imm >> 4 & 1, word.imm >> 5 & 1, bool(word.imm >> 6 & 1)
    shift = word.imm >> 8 & 0x3F
    two = op in (VecOp.ADD, VecOp.SUB, VecOp.MUL)
    require(a16 == c16 or op == VecOp.SCALE_SHIFT)
    require(op != VecOp.TABLE or not (a16 or c16))
    require(op == VecOp.TABLE or not stream)
    require(shift == 0 or op in (VecOp.MUL, VecOp.SCALE_SHIFT))
    require(word.src1 == 0 or two or op == VecOp.CLAMP or (op == VecOp.TABLE and not stream))
    require(word.k == 0 or op in (VecOp.SCALE_SHIFT, VecOp.CLAMP))
    prefix.require_only(*(("cp", "ap", "bp") if two else ("cp", "ap")))
    require_dimension(word.m)
    require_dimension(word.n)
    c = matrix(word.dst, prefix.cp, word.m, word.n << c16, 1 + c16)
    a = matrix(word.src0, prefix.ap, word.m, word.n << a16, 1 + a16)
    b = matrix(word.src1, prefix.bp, word.m, word.n << a16, 1 + a16) if two else None
    from_sram = op == VecOp.TABLE and not stream
    table = block(word.src1 * WORD, TABLE_BYTES) if from_sram else None
    require_sram(config, c, a, b, table)
    return Vec(
        op=op,
        a=a,
        b=b,
        c=c,
        table=table,
        low=signed16(word.src1) if op == VecOp.CLAMP else 0,
        k=signed16(word.k),
        shift=shift,
        share=TABLE_BYTES if stream else 0,
    )


def _gelu(word: Instruction, prefix: Prefix, config: ChipConfig) -> Vec:
    require_zero(word, "k", imm=0x1)
    stream = bool(word.imm)
    require(not stream or word.src1 == 0)
    prefix.require_only("cp", "ap")
    require_dimension(word.m)
    require_dimension(word.n)
    c = matrix(word.dst, prefix.cp, word.m, word.n, 1)
    a = matrix(word.src0, prefix.ap, word.m, word.n, 1)
    table = None if stream else block(word.src1 * WORD, TABLE_BYTES)
    require_sram(config, c, a, table)
    return Vec(VecOp.TABLE, a, None, c, table, 0, 0, 0, TABLE_BYTES if stream else 0)


def _softmax(word: Instruction, prefix: Prefix, config: ChipConfig, pos: int) -> Softmax:
    require_zero(word, flags=CAUSAL_FLAG, imm=0x7)
    out, int8 = word.imm & 3, bool(word.imm >> 2 & 1)
    require(out != 3 and (out != 0 or word.src1 == 0))
    prefix.require_only("cp", "ap")
    require_dimension(word.m)
    require_dimension(word.n)
    if word.k and word.m % word.k:
        raise ProgramError(ErrorCode.BAD_DIMENSION)
    size, score_size = (2 if out == 2 else 1), (1 if int8 else 2)
    numerators = matrix(word.dst, prefix.cp, word.m, up(word.n, 16) * size, size)
    scores = matrix(word.src0, prefix.ap, word.m, word.n * score_size, score_size)
    sums = block(word.src1 * WORD, word.m * WORD) if out else None
    require_sram(config, numerators, scores, sums)
    return Softmax(
        n=word.n,
        scores=scores,
        numerators=numerators,
        sums=sums,
        out=out,
        causal=bool(word.flags),
        rows_per_head=word.k,
        pos=pos,
    )


def _layernorm(word: Instruction, prefix: Prefix, config: ChipConfig) -> LayerNorm:
    require_zero(word, "k", imm=0x3)
    stream, size = bool(word.imm & 1), 2 if word.imm & 2 else 1
    require(not stream or word.src1 == 0)
    prefix.require_only("cp", "ap")
    require_dimension(word.m)
    require_dimension(word.n, min(config.norm_max, DYNAMIC - 1))
    share = NORM_HEADER_BYTES + NORM_CHANNEL_BYTES * up(word.n, 16)
    c = matrix(word.dst, prefix.cp, word.m, word.n * size, size)
    x = matrix(word.src0, prefix.ap, word.m, word.n * 2, 2)
    params = None if stream else block(word.src1 * WORD, share)
    require_sram(config, c, x, params)
    return LayerNorm(x, c, params, word.n, share if stream else 0)


_CONTROL: dict[int, Callable[[Instruction, Prefix], Operation]] = {
    Opcode.NOP: _nop,
    Opcode.BARRIER: _barrier,
    Opcode.SET: _set,
    Opcode.END: _end,
}
_ENGINE: dict[int, Callable[[Instruction, Prefix, ChipConfig], Operation]] = {
    Opcode.GEMM: decode_gemm,
    Opcode.VEC: _vec,
    Opcode.GELU: _gelu,
    Opcode.LAYERNORM: _layernorm,
}


def decode_word(
    word: Instruction, prefix: Prefix, config: ChipConfig, registers: Registers
) -> Operation:
    """Return the operation of an instruction word and its prefix.

    Args:
        word: any word but PFX (a PFX here follows another PFX and is refused).
        prefix: the pending prefix.
        config: the chip.
        registers: bases and position that travel with the instruction, and the stream's offset.

    Raises:
        ProgramError: with the first failing check; nothing has changed.

    """
    operation: Operation
    if word.opcode in _CONTROL:
        operation = _CONTROL[word.opcode](word, prefix)
    elif word.opcode in _ENGINE:
        operation = _ENGINE[word.opcode](word, prefix, config)
    elif word.opcode in (Opcode.DMA_LOAD, Opcode.DMA_STORE):
        operation = _dma(word, prefix, config, registers)
    elif word.opcode == Opcode.SOFTMAX:
        operation = _softmax(word, prefix, config, registers.pos)
    elif word.opcode == Opcode.PFX:
        raise ProgramError(ErrorCode.ILLEGAL_FIELD)
    else:
        raise ProgramError(ErrorCode.ILLEGAL_OPCODE)
    if registers.stream_offset + operation.share > registers.stream_len and operation.share:
        raise ProgramError(ErrorCode.STREAM_END)
    if isinstance(operation, End) and registers.stream_offset not in (0, registers.stream_len):
        raise ProgramError(ErrorCode.STREAM_LEFT)
    return operation
