# SPDX-License-Identifier: Apache-2.0
"""From an instruction word to an operation: control opcodes here, the others by table.

Checks are made in the order opcode, fields, dimensions, CONTEXT_FULL, memory addresses, SRAM
ranges, share of the stream; the first that fails names the error.
"""

from __future__ import annotations

from collections.abc import Callable

from golden.machine.decode_gemm import decode_gemm
from golden.machine.decode_rows import decode_norm, decode_rope, decode_softmax
from golden.machine.decode_transfers import (
    decode_argmax,
    decode_dma,
    decode_embed,
    decode_kv_append,
    decode_kv_read,
)
from golden.machine.decode_vec import decode_lookup, decode_vec
from golden.machine.legal import Dispatch, HeldPrefix, require, require_room
from golden.machine.operations import (
    Barrier,
    ControlOperation,
    End,
    GemmOperation,
    Loop,
    Nop,
    NormOperation,
    Rope,
    SetRegister,
    Softmax,
    Vec,
)
from golden.machine.registers import GRANULARITY, Registers
from golden.machine.state import ChipConfig, ProgramError
from golden.machine.transfers import Transfer
from spec.isa import BARRIER_MOST, Engine, ErrorCode, Flag, Instruction, Opcode, SetReg
from spec.regs import NO_TOKEN

ADD_FLAG = 1 << Flag.ADD
BARRIER_ENGINES = 6

EngineOperation = GemmOperation | Vec | Softmax | NormOperation | Rope | Transfer
Operation = EngineOperation | ControlOperation


def _nop(at: Dispatch) -> Nop:
    at.require_zero("dst", "src0", "src1", "m", "n", "k")
    at.require_prefix()
    return Nop()


def _end(at: Dispatch) -> End:
    _nop(at)
    return End()


def _barrier(at: Dispatch) -> Barrier:
    at.require_zero("dst", "src0", "src1", "k")
    at.require_prefix()
    word = at.word
    require(word.m >> BARRIER_ENGINES == 0 and word.n <= BARRIER_MOST)
    mask = word.m or (1 << BARRIER_ENGINES) - 1
    engines = tuple(Engine(e) for e in range(BARRIER_ENGINES) if mask >> e & 1)
    return Barrier(engines, word.n)


def _set(at: Dispatch) -> SetRegister:
    at.require_zero("m", "n", "k", flags=ADD_FLAG)
    at.require_prefix()
    word = at.word
    require(word.dst in GRANULARITY)
    register, add = SetReg(word.dst), bool(word.flags & ADD_FLAG)
    require(not (add and register == SetReg.STREAM))
    value = word.src0 | word.src1 << 16
    if value % GRANULARITY[register]:
        raise ProgramError(ErrorCode.BAD_ADDRESS, value)
    return SetRegister(register, value, add)


def _loop(at: Dispatch) -> Loop:
    at.require_zero("dst", "m", "n", "k")
    at.require_prefix()
    registers, target = at.registers, at.word.src0 | at.word.src1 << 16
    require(target < registers.start.ucode_len)
    eos = registers[SetReg.EOS]
    ended = eos != NO_TOKEN and registers[SetReg.TOKEN] == eos
    if registers[SetReg.LOOPLEFT] == 0 or ended:
        return Loop(None)
    require_room(registers[SetReg.POS] + 1 < registers[SetReg.KVCAP])
    return Loop(target)


_DECODERS: dict[int, Callable[[Dispatch], Operation]] = {
    Opcode.NOP: _nop,
    Opcode.DMA_LOAD: decode_dma,
    Opcode.DMA_STORE: decode_dma,
    Opcode.GEMM: decode_gemm,
    Opcode.VEC: decode_vec,
    Opcode.SOFTMAX: decode_softmax,
    Opcode.LAYERNORM: decode_norm,
    Opcode.GELU: decode_lookup,
    Opcode.KV_APPEND: decode_kv_append,
    Opcode.KV_READ: decode_kv_read,
    Opcode.BARRIER: _barrier,
    Opcode.RMSNORM: decode_norm,
    Opcode.ROPE: decode_rope,
    Opcode.SILU: decode_lookup,
    Opcode.SET: _set,
    Opcode.EMBED: decode_embed,
    Opcode.ARGMAX: decode_argmax,
    Opcode.LOOP: _loop,
    Opcode.END: _end,
}


def decode_word(
    word: Instruction, prefix: HeldPrefix, config: ChipConfig, registers: Registers
) -> Operation:
    """Return the operation of an instruction word and its prefix.

    Args:
        word: any word but PFX (a PFX here follows another PFX and is refused).
        prefix: the pending prefix.
        config: the chip.
        registers: what travels with the instruction, the stream's offset and the running argmax.

    Raises:
        ProgramError: with the first failing check; nothing has changed.

    """
    if word.opcode == Opcode.PFX:
        raise ProgramError(ErrorCode.ILLEGAL_FIELD)
    if word.opcode not in _DECODERS:
        raise ProgramError(ErrorCode.ILLEGAL_OPCODE)
    operation = _DECODERS[word.opcode](Dispatch(word, prefix, config, registers))
    if registers.stream_offset + operation.share > registers.start.stream_len and operation.share:
        raise ProgramError(ErrorCode.STREAM_END)
    if isinstance(operation, End) and registers.stream_offset not in (
        0,
        registers.start.stream_len,
    ):
        raise ProgramError(ErrorCode.STREAM_LEFT)
    return operation
