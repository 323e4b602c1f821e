# SPDX-License-Identifier: Apache-2.0
"""What each engine computes: operands out of SRAM or the stream, a reference function, a result."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from golden import gelu, gemm, layernorm, softmax, vec
from golden.fixed import IntArray
from golden.machine.decode_gemm import CHANNEL_BYTES, TABLE_BYTES, TENSOR_BYTES
from golden.machine.operands import Tiles, up
from golden.machine.operations import (
    AType,
    Dma,
    EngineOperation,
    Gemm,
    LayerNorm,
    QForm,
    Softmax,
    Vec,
)
from golden.machine.state import WORD, Bytes, ProgramError
from npu.isa import Engine, ErrorCode, VecOp

SHIFT_MASK = 0x3F
"""Shifts in stream records are 6-bit numbers in a byte."""
_A_DTYPE: dict[AType, type[np.integer[Any]]] = {
    AType.INT8: np.int8,
    AType.UINT8: np.uint8,
    AType.INT16: np.int16,
    AType.UINT16: np.uint16,
}


def _dma(operation: Dma, memory: Bytes, sram: Bytes) -> None:
    """Copy rows; a load fills its last words with zeros, a store writes the row's bytes only."""
    source = operation.memory
    load = operation.engine == Engine.LD
    if source.end > memory.size:
        words = source.words() * WORD
        outside = int(words[words >= memory.size][0])
        code = ErrorCode.READ_ERROR if load else ErrorCode.WRITE_ERROR
        raise ProgramError(code, outside, operation.engine)
    if load:
        operation.sram.write(sram, source.read(memory))
        return
    rows = operation.sram.read(sram)
    if source.overlaps_itself:
        for index, row in enumerate(rows):
            start = source.address + index * source.pitch
            memory[start : start + source.row_bytes] = row
        return
    view = np.lib.stride_tricks.as_strided(
        memory[source.address :], rows.shape, (source.pitch, 1), writeable=True
    )
    view[...] = rows


def _stream_weights(
    share: Bytes, operation: Gemm, edge: int
) -> tuple[npt.NDArray[np.int8] | None, Bytes]:
    """Split a share behind table and tensor record: weights (K, N) int8, records (N, 8)."""
    columns, inner = up(operation.n, edge) // edge, up(operation.k, edge) // edge
    record = edge * CHANNEL_BYTES if operation.q is QForm.CHANNEL else 0
    pieces = share.reshape(columns, -1)
    records = pieces[:, :record].reshape(-1, CHANNEL_BYTES)[: operation.n]
    if operation.b is not None:
        return None, records
    tiles = pieces[:, record:].reshape(columns, inner, edge, edge)
    matrix = tiles.transpose(1, 2, 0, 3).reshape(inner * edge, columns * edge)
    return matrix[: operation.k, : operation.n].view(np.int8), records


def _requant(operation: Gemm, tensor: Bytes, records: Bytes, sram: Bytes) -> gemm.Requant | None:
    """Return the factors of a GEMM from the prefix, its share, or the softmax sums."""
    match operation.q:
        case QForm.NONE:
            return None
        case QForm.PREFIX | QForm.SCALE:
            return gemm.per_tensor(operation.scale, operation.shift)
        case QForm.TENSOR:
            return gemm.per_tensor(int(tensor[:2].view("<u2")[0]), int(tensor[2]) & SHIFT_MASK)
        case QForm.CHANNEL:
            table = np.ascontiguousarray(records)
            bias = table[:, :4].copy().view("<i4")[:, 0] if operation.bias else None
            mult = table[:, 4:6].copy().view("<u2")[:, 0]
            return gemm.per_channel(mult, table[:, 6] & SHIFT_MASK, bias)
        case QForm.ROW:
            assert operation.sums is not None
            words = operation.sums.read(sram).reshape(-1, WORD)
            return gemm.per_row(words[:, :4].copy().view("<u4")[:, 0])


def _gemm_b(operation: Gemm, sram: Bytes) -> npt.NDArray[np.int8]:
    """Return B (K, N) int8 from SRAM."""
    if isinstance(operation.b, Tiles):
        stored = operation.b.read(sram)
    else:
        assert operation.b is not None
        stored = operation.b.read(sram, np.int8)
    return stored.T if operation.transpose else stored


def _gemm(operation: Gemm, sram: Bytes, share: Bytes, edge: int) -> None:
    """Multiply, accumulate, post-process and write C."""
    table = share[:TABLE_BYTES].view(np.int8) if operation.table else None
    rest = share[TABLE_BYTES:] if operation.table else share
    tensor = rest[:TENSOR_BYTES]
    rest = rest[TENSOR_BYTES:] if operation.q is QForm.TENSOR else rest
    weights, records = _stream_weights(rest, operation, edge)
    requant = _requant(operation, tensor, records, sram)
    b = weights if weights is not None else _gemm_b(operation, sram)
    a = operation.a.read(sram, _A_DTYPE[operation.a_type])
    passes = operation.a_type.bytes
    partial, d = None, None
    if operation.d is not None and operation.accumulate:
        partial = operation.d.read(sram, np.int32).reshape(passes, operation.m, operation.n)
    elif operation.d is not None:
        d = operation.d.read(sram, np.int8 if operation.d.element == 1 else np.int16)
    if requant is None:
        planes = gemm.gemm(a, b, partial=partial)
        operation.c.write(sram, planes.reshape(-1, operation.n))
        return
    post = gemm.Post(
        operation.out_bits,
        operation.relu,
        table,
        operation.combine,
        d,
        operation.scale,
        operation.shift,
    )
    operation.c.write(sram, gemm.gemm(a, b, requant, post, partial))


def _vec(operation: Vec, sram: Bytes, share: Bytes) -> None:
    """Apply one elementwise operation."""
    dtype = np.int8 if operation.a.element == 1 else np.int16
    a = operation.a.read(sram, dtype)
    b = a if operation.b is None else operation.b.read(sram, dtype)
    result: IntArray
    match operation.op:
        case VecOp.ADD:
            result = vec.add(a, b)
        case VecOp.SUB:
            result = vec.sub(a, b)
        case VecOp.MUL:
            result = vec.mul(a, b, operation.shift)
        case VecOp.SCALE_SHIFT:
            bits = 8 * operation.c.element
            result = vec.scale_shift(a, operation.k, operation.shift, bits)
        case VecOp.CLAMP:
            result = vec.clamp(a, operation.low, operation.k)
        case VecOp.RELU:
            result = vec.relu(a)
        case VecOp.COPY2D:
            result = vec.copy(a)
        case VecOp.TABLE:
            stored = share if operation.table is None else operation.table.read(sram)[0]
            result = gelu.apply_table(a, stored.view(np.int8))
    operation.c.write(sram, result)


def _softmax(operation: Softmax, sram: Bytes) -> None:
    """Write numerators (or probabilities) with zero columns up to whole words, and sums."""
    dtype = np.int8 if operation.scores.element == 1 else np.int16
    scores = operation.scores.read(sram, dtype)
    causal, pos, rows = operation.causal, operation.pos, operation.rows_per_head
    values: IntArray
    totals: npt.NDArray[np.uint32] | None = None
    if operation.out == 0:
        values = softmax.probabilities(scores, causal=causal, pos=pos, rows_per_head=rows)
    elif operation.out == 1:
        values, totals = softmax.numerators8(scores, causal=causal, pos=pos, rows_per_head=rows)
    else:
        values, totals = softmax.numerators16(scores, causal=causal, pos=pos, rows_per_head=rows)
    padded = np.zeros((values.shape[0], up(operation.n, 16)), values.dtype)
    padded[:, : operation.n] = values
    operation.numerators.write(sram, padded)
    if operation.sums is not None and totals is not None:
        words = np.zeros((totals.size, 4), np.uint32)
        words[:, 0] = totals
        operation.sums.write(sram, words.reshape(1, -1))


def _layernorm(operation: LayerNorm, sram: Bytes, share: Bytes) -> None:
    """Normalise rows with the parameters of a norm share."""
    params = share if operation.params is None else operation.params.read(sram)[0]
    eps_term = int.from_bytes(params[:8].tobytes(), "little")
    records = params[64:].reshape(-1, 4)[: operation.n]
    gain = records[:, :2].copy().view("<u2")[:, 0]
    shift = records[:, 2] & SHIFT_MASK
    bias = records[:, 3].copy().view(np.int8)
    x = operation.x.read(sram, np.int16)
    norm = layernorm.norm8 if operation.c.element == 1 else layernorm.norm16
    operation.c.write(sram, norm(x, eps_term, gain, shift, bias))


def execute(
    operation: EngineOperation, memory: Bytes, sram: Bytes, share: Bytes, edge: int
) -> None:
    """Run one operation on memory and SRAM, in place.

    Args:
        operation: decoded and legal.
        memory: uint8, changed in place.
        sram: uint8, changed in place.
        share: the operation's part of the stream, (operation.share,) uint8.
        edge: E, the edge of a weight tile.

    Raises:
        ProgramError: READ_ERROR or WRITE_ERROR if a memory operand leaves the given memory;
            nothing has been written then.

    """
    match operation:
        case Dma():
            _dma(operation, memory, sram)
        case Gemm():
            _gemm(operation, sram, share, edge)
        case Vec():
            _vec(operation, sram, share)
        case Softmax():
            _softmax(operation, sram)
        case LayerNorm():
            _layernorm(operation, sram, share)
