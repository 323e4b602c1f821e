# SPDX-License-Identifier: Apache-2.0
"""What each engine computes: operands out of SRAM or the stream, a reference function, a result."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from golden import formats, gemm, layernorm, rope, softmax, vec
from golden.fixed import IntArray
from golden.machine.decode import EngineOperation
from golden.machine.decode_gemm import CHANNEL_BYTES, TENSOR_BYTES
from golden.machine.move import move
from golden.machine.operands import Lines, Tiles, up
from golden.machine.operations import (
    GemmOperation,
    NormOperation,
    QForm,
    Rope,
    Softmax,
    Vec,
    element_bytes,
)
from golden.machine.state import Bytes
from spec.isa import LINE, SHIFT_MAX, TABLE_BYTES, WORD, GemmA, SmxOut

_A_DTYPE: dict[GemmA, type[np.integer[Any]]] = {
    GemmA.INT8: np.int8,
    GemmA.UINT8: np.uint8,
    GemmA.INT16: np.int16,
    GemmA.UINT16: np.uint16,
}


def _stream_weights(
    share: Bytes, operation: GemmOperation, edge: int
) -> tuple[npt.NDArray[np.int8] | None, Bytes]:
    """Split a share behind table and tensor record: weights (K, N) int8, records (N, 8)."""
    columns = up(operation.n, edge) // edge
    record = edge * CHANNEL_BYTES if operation.q is QForm.CHANNEL else 0
    pieces = share.reshape(columns, -1)
    records = pieces[:, :record].reshape(-1, CHANNEL_BYTES)[: operation.n]
    if operation.b is not None:
        return None, records
    weights = pieces[:, record:].tobytes()
    shape = operation.k, operation.n, edge, operation.group
    return formats.expand(operation.fmt, weights, *shape), records


def _requant(
    operation: GemmOperation, tensor: Bytes, records: Bytes, sram: Bytes
) -> gemm.Requant | None:
    """Return the factors of a GEMM from the prefix, its share, or the softmax sums."""
    match operation.q:
        case QForm.NONE:
            return None
        case QForm.PREFIX | QForm.SCALE:
            return gemm.per_tensor(operation.scale, operation.shift)
        case QForm.TENSOR:
            return gemm.per_tensor(int(tensor[:2].view("<u2")[0]), int(tensor[2]) & SHIFT_MAX)
        case QForm.CHANNEL:
            table = np.ascontiguousarray(records)
            bias = table[:, :4].copy().view("<i4")[:, 0] if operation.bias else None
            mult = table[:, 4:6].copy().view("<u2")[:, 0]
            return gemm.per_channel(mult, table[:, 6] & SHIFT_MAX, bias)
        case QForm.ROW:
            assert operation.sums is not None
            words = operation.sums.read(sram).reshape(-1, WORD)
            return gemm.per_row(words[:, :4].copy().view("<u4")[:, 0])


def _gemm_b(operation: GemmOperation, sram: Bytes) -> npt.NDArray[np.int8]:
    """Return B (K, N) int8 from SRAM."""
    if isinstance(operation.b, Tiles):
        stored: npt.NDArray[np.int8] = operation.b.read(sram)[0]
    else:
        assert operation.b is not None
        stored = operation.b.read(sram, np.int8)
    return stored.T if operation.transpose else stored


def _gemm_a(operation: GemmOperation, sram: Bytes) -> IntArray:
    """Return A (M, K), of a depthwise GEMM (lines, M + 3, N)."""
    a: IntArray = operation.a.read(sram, _A_DTYPE[operation.a_type])
    if isinstance(operation.a, Lines) and not operation.depthwise:
        return np.concatenate(a, axis=1)[:, : operation.k]
    return a


def _gemm(operation: GemmOperation, sram: Bytes, share: Bytes, edge: int) -> IntArray | None:
    """Multiply, accumulate, post-process and write C; return what argmax looks at."""
    table = share[:TABLE_BYTES].view(np.int8) if operation.table else None
    rest = share[TABLE_BYTES:] if operation.table else share
    tensor = rest[:TENSOR_BYTES]
    rest = rest[TENSOR_BYTES:] if operation.q is QForm.TENSOR else rest
    weights, records = _stream_weights(rest, operation, edge)
    requant = _requant(operation, tensor, records, sram)
    b = weights if weights is not None else _gemm_b(operation, sram)
    a = _gemm_a(operation, sram)
    passes = element_bytes(operation.a_type)
    partial, d = None, None
    if operation.d is not None and operation.accumulate:
        partial = operation.d.read(sram, np.int32).reshape(passes, operation.m, operation.n)
    elif operation.d is not None:
        d = operation.d.read(sram, np.int8 if operation.d.element == 1 else np.int16)
    sums = gemm.depthwise if operation.depthwise else gemm.accumulate
    planes = sums(a, b, partial)
    if requant is None:
        assert operation.c is not None
        operation.c.write(sram, planes.reshape(-1, operation.n))
        return None
    post = gemm.Post(
        operation.out_bits,
        operation.relu,
        table,
        operation.combine,
        d,
        operation.scale,
        operation.shift,
    )
    result = gemm.postprocess(gemm.combined(planes), requant, post)
    if operation.c is not None:
        operation.c.write(sram, result)
    return result if operation.argmax else None


def _vec(operation: Vec, sram: Bytes, share: Bytes) -> None:
    """Apply one elementwise operation."""
    dtype = np.int8 if operation.a.element == 1 else np.int16
    a = operation.a.read(sram, dtype)
    inputs = vec.Inputs(
        a=a,
        b=a if operation.b is None else operation.b.read(sram, dtype),
        low=operation.low,
        k=operation.k,
        shift=operation.shift,
        out_bits=8 * operation.c.element,
        table=(share if operation.table is None else operation.table.read(sram)[0]).view(np.int8),
    )
    operation.c.write(sram, vec.OPERATIONS[operation.op].result(inputs))


def _softmax(operation: Softmax, sram: Bytes) -> None:
    """Write numerators (or probabilities) with zero columns up to whole words, and sums."""
    dtype = np.int8 if operation.scores.element == 1 else np.int16
    scores = operation.scores.read(sram, dtype)
    rule = operation.rule
    values: IntArray
    totals: npt.NDArray[np.uint32] | None = None
    if operation.out is SmxOut.PROB8:
        values = softmax.probabilities(scores, **rule)
    elif operation.out is SmxOut.NUMER8:
        values, totals = softmax.numerators8(scores, **rule)
    else:
        values, totals = softmax.numerators16(scores, **rule)
    padded = np.zeros((values.shape[0], up(operation.n, 16)), values.dtype)
    padded[:, : operation.n] = values
    operation.numerators.write(sram, padded)
    if operation.sums is not None and totals is not None:
        words = np.zeros((totals.size, 4), np.uint32)
        words[:, 0] = totals
        operation.sums.write(sram, words.reshape(1, -1))


def _norm(operation: NormOperation, sram: Bytes, share: Bytes) -> None:
    """Normalise rows with the parameters of a norm share."""
    params = share if operation.params is None else operation.params.read(sram)[0]
    eps_term = int.from_bytes(params[:8].tobytes(), "little")
    records = params[LINE:].reshape(-1, 4)[: operation.n]
    gain = records[:, :2].copy().view("<u2")[:, 0]
    shift = records[:, 2] & SHIFT_MAX
    bias = records[:, 3].copy().view(np.int8)
    x = operation.x.read(sram, np.int16)
    norm = layernorm.norm8 if operation.c.element == 1 else layernorm.norm16
    operation.c.write(sram, norm(x, eps_term, gain, shift, bias, rms=operation.rms))


def _rope(operation: Rope, sram: Bytes) -> None:
    """Rotate every head of every row and write zeros to the lanes past a head's end."""
    n, width = operation.n, up(operation.n, 16)
    x = operation.a.read(sram, np.int8).reshape(-1, operation.heads, width)
    angles = operation.angles.read(sram, np.int16).reshape(-1, 1, n // 2, 2)
    result = np.zeros(x.shape, np.int8)
    cos, sin = angles[..., 0], angles[..., 1]
    result[:, :, :n] = rope.rotate(x[:, :, :n], cos, sin, pairs=operation.pairs)
    operation.c.write(sram, result.reshape(x.shape[0], -1))


def execute(
    operation: EngineOperation, memory: Bytes, sram: Bytes, share: Bytes, edge: int
) -> IntArray | None:
    """Run one operation on memory and SRAM, in place.

    Args:
        operation: decoded and legal; a gather located.
        memory: uint8, changed in place.
        sram: uint8, changed in place.
        share: the operation's part of the stream, (operation.share,) uint8.
        edge: E, the edge of a weight tile.

    Returns:
        the outputs (1, N) that the running argmax goes on with, None for every other operation.

    Raises:
        ProgramError: READ_ERROR or WRITE_ERROR if a memory operand leaves the given memory;
            nothing has been written then.

    """
    match operation:
        case GemmOperation():
            return _gemm(operation, sram, share, edge)
        case Vec():
            _vec(operation, sram, share)
        case Softmax():
            _softmax(operation, sram)
        case NormOperation():
            _norm(operation, sram, share)
        case Rope():
            _rope(operation, sram)
        case _:
            move(operation, memory, sram)
    return None
