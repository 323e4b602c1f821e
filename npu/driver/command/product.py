# SPDX-License-Identifier: Apache-2.0
"""What all matrix products share: checks of operands, how they are submitted, sums, the result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from npu.driver.command import scalars
from npu.driver.command.port import CommandPort
from npu.driver.command.runner import ByDescriptor, ByRegister, Runner
from npu.driver.errors import WORD, RequestError

Integers: TypeAlias = npt.NDArray[np.integer[Any]]
Flags: TypeAlias = npt.NDArray[np.bool_]
Submit: TypeAlias = Literal["register", "descriptor"]
Arena: TypeAlias = tuple[int, int] | None
"""(address, size) of memory for "descriptor"."""


@dataclass(frozen=True, slots=True)
class Product:
    """A matrix product and what it took.

    Attributes:
        values: (M, N) int32.
        operations: operations on the chip, what PERF_OPS has grown by.
        macs: products of tiles, what PERF_MACS has grown by.
    """

    values: npt.NDArray[np.int32]
    operations: int
    macs: int


def check_matrix(name: str, values: Integers) -> None:
    """Raise RequestError unless this is a matrix of integers."""
    if not isinstance(values, np.ndarray) or not np.issubdtype(values.dtype, np.integer):
        given = getattr(values, "dtype", type(values).__name__)
        raise RequestError(name, given, "an array of an integer dtype")
    if values.ndim != 2 or 0 in values.shape:
        raise RequestError(name, f"shape {values.shape}", "two dimensions of at least 1")


def first_wrong(wrong: Flags) -> tuple[int, int] | None:
    """Return row and column of the first true entry of a matrix, None if there is none."""
    if not wrong.any():
        return None
    row, column = np.unravel_index(int(wrong.argmax()), wrong.shape)
    return int(row), int(column)


def check_range(name: str, values: Integers, low: int, high: int, of: str) -> None:
    """Raise RequestError unless this is a matrix of integers from `low` to `high`."""
    check_matrix(name, values)
    if place := first_wrong((values < low) | (values > high)):
        i, j = place
        raise RequestError(f"{name}[{i}, {j}]", int(values[i, j]), f"{low} to {high} for {of}")


def check_shape(name: str, values: Integers, shape: tuple[int, int], why: str) -> None:
    """Raise RequestError unless a matrix has this shape."""
    if values.shape != shape:
        raise RequestError(name, f"shape {values.shape}", f"{shape}: {why}")


async def open_runner(port: CommandPort, name: str, submit: Submit, arena: Arena) -> Runner:
    """Return what carries out the operations of the call `name`.

    Raises:
        RequestError: the ring runs, or `submit` or `arena` does not fit.
    """
    port.check_idle()
    if submit == "register":
        return ByRegister(port)
    if submit == "descriptor":
        return await ByDescriptor.open(port, name, arena)
    raise RequestError(f"{name}.submit", repr(submit), "'register' or 'descriptor'")


async def multiplied(runner: Runner, left: Integers, right: Integers) -> Integers:
    """Return the products of signed numbers that broadcast together, int64.

    MUL_LO takes words without sign; its low word is that of the signed product.
    """
    both = np.broadcast_arrays(left, right)
    pairs = zip(*(one.ravel().tolist() for one in both), strict=True)
    words = await runner.scalars([scalars.mul_lo(x & WORD, y & WORD) for x, y in pairs])
    return np.array(words, np.uint32).view(np.int32).astype(np.int64).reshape(both[0].shape)


async def added(runner: Runner, left: Integers, right: Integers) -> Integers:
    """Return the sums modulo 2^32 of matrices of one shape as words without sign, int64."""
    pairs = zip(left.ravel().tolist(), right.ravel().tolist(), strict=True)
    words = await runner.scalars([scalars.add(x & WORD, y & WORD) for x, y in pairs])
    return np.array(words, np.int64).reshape(left.shape)


def as_signed(words: Integers) -> npt.NDArray[np.int32]:
    """Return numbers modulo 2^32 as int32."""
    low: npt.NDArray[np.int32] = (words & WORD).astype(np.uint32).view(np.int32)
    return low
