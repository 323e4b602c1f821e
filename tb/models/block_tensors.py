# SPDX-License-Identifier: Apache-2.0
"""Finds the tensors of a compiled block in the log of SRAM writes, and names places in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.decoder import ModelTrace
from golden.softmax import visible
from npu.compiler import TensorRef, collect
from tb.bench.scoreboard import Locate, MismatchError, Writes, describe
from weights.model import QuantizedModel


@dataclass(frozen=True)
class _Write:
    """A run of consecutive words that one instruction wrote; `npu.compiler.collect` reads it."""

    instr: int
    address: int
    data: npt.NDArray[np.uint8]


def _runs(writes: Writes) -> Iterator[_Write]:
    breaks = np.flatnonzero(np.diff(writes.keys) != 1) + 1
    for part in np.split(np.arange(writes.keys.size), breaks):
        if part.size:
            first = part[0]
            yield _Write(int(writes.instrs[first]), int(writes.words[first]), writes.data[part])


def gather(
    refs: Sequence[TensorRef], writes: Writes, sram_bytes: int
) -> dict[str, npt.NDArray[Any]]:
    """Return the tensors of one block by name, as the chip wrote them."""
    return {name: array for (_, name), array in collect(refs, _runs(writes), sram_bytes).items()}


def locator(refs: Sequence[TensorRef]) -> Locate:
    """Return a function that names the tensor and index behind an SRAM byte of an instruction."""

    def locate(instr: int, byte: int) -> str:
        for ref in refs:
            size = np.dtype(ref.dtype).itemsize
            row, rest = divmod(byte - ref.address, ref.pitch)
            columns = ref.shape[1] if len(ref.shape) == 2 else 1
            if ref.instr == instr and 0 <= row < ref.shape[0] and rest // size < columns:
                index = f"{ref.row + row}"
                if len(ref.shape) == 2:
                    index += f", {ref.column + rest // size}"
                return f"layer {ref.layer} {ref.name}[{index}] ({ref.dtype})"
        return "no tensor"

    return locate


def compare_tensor(
    name: str,
    layer: int,
    expected: npt.NDArray[Any],
    actual: npt.NDArray[Any],
    instr: int,
    program: Sequence[Any],
) -> int:
    """Compare one tensor with the network's; return the number of bytes that were compared.

    Raises:
        MismatchError: naming layer, tensor, index, both values and the instruction.
    """
    if expected.shape != actual.shape or expected.dtype != actual.dtype:
        raise MismatchError(
            f"layer {layer} {name}: expected {expected.dtype}{expected.shape}, "
            f"actual {actual.dtype}{actual.shape}"
        )
    if not np.array_equal(expected, actual):
        wrong = np.argwhere(expected != actual)
        first = tuple(int(i) for i in wrong[0])
        raise MismatchError(
            f"layer {layer} {name}{list(first)}: expected {int(expected[first])} (plain integer "
            f"network), actual {int(actual[first])}; {len(wrong)} of {expected.size} differ; "
            f"written by {describe(program, instr)}"
        )
    return int(expected.nbytes)


def compare_trace(
    model: QuantizedModel,
    refs: Sequence[TensorRef],
    writes: Writes,
    trace: ModelTrace,
    program: Sequence[Any],
    sram_bytes: int,
) -> set[tuple[int, str]]:
    """Compare all tensors of a pass through a model with the network's, in the program's order.

    Of scores and numerators only what a row looks at counts.

    Args:
        model: the network.
        refs: the tensors of the pass.
        writes: of the chip.
        trace: the pass on the network, S rows behind T - S earlier positions.
        program: the words, for messages.
        sram_bytes: size of the SRAM.

    Returns:
        layer and name of each tensor, heads together; the logits have the number of layers.

    Raises:
        MismatchError: naming the first tensor that differs, layer, index and instruction.
    """
    writers = {(ref.layer, ref.name): ref.instr for ref in refs}
    found = set()
    for (layer, name), have in collect(refs, _runs(writes), sram_bytes).items():
        base, _, head = name.partition("_h")
        found.add((layer, base))
        if layer == model.shape.layers:
            want: npt.NDArray[Any] = trace.logits[-1:]
        else:
            want = getattr(trace.blocks[layer], base)
            want = want[int(head)] if head else want
        actual = have
        if base in ("scores", "numer"):
            rows, keys = want.shape
            window = model.shape.window_of(layer)
            seen = visible(rows, keys, causal=True, pos=keys - rows, window=window)
            actual = np.zeros(want.shape, have.dtype)
            actual[:, : have.shape[1]] = have
            want, actual = np.where(seen, want, 0), np.where(seen, actual, 0)
        compare_tensor(name, layer, want, actual, writers[layer, name], program)
    return found
