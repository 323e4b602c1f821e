# SPDX-License-Identifier: Apache-2.0
"""What goes wrong before the hardware is touched, and what the hardware reports."""

from __future__ import annotations

from collections.abc import Sequence

from spec.isa import ErrorReport

WORD = 0xFFFF_FFFF
"""Largest value of a register or an address."""


class RequestError(ValueError):
    """A request that the chip would refuse, or that makes no sense; nothing was changed.

    Attributes:
        field: what is wrong, such as "GEMM_S8.k" or "dot4_s8.a[2]".
        given, allowed: its value and what it may be, in words.
    """

    def __init__(self, field: str, given: object, allowed: str) -> None:
        super().__init__(f"{field}: given {given}, allowed {allowed}")
        self.field = field
        self.given = str(given)
        self.allowed = allowed


class DeviceError(RuntimeError):
    """The request was fine, carrying it out was not: the chip did not do what a host may expect."""


class BusError(DeviceError):
    """The register port answered with an error."""


class ProgramFailed(DeviceError):  # noqa: N818  the request was fine, carrying it out was not
    """A program ended with an error: bus error, time-out, region, refused instruction, abort.

    Attributes:
        report: code, engine, instruction and address.
    """

    def __init__(self, report: ErrorReport) -> None:
        super().__init__(report.text)
        self.report = report


class CommandFailed(DeviceError):  # noqa: N818  the request was fine, carrying it out was not
    """The hardware ended an operation or the descriptor ring with an error.

    Attributes:
        code: DESC_STATUS[7:0] of a failed ring, None after an operation by register.
        index: ring index of the entry that failed, None after an operation by register.
    """

    def __init__(self, text: str, code: int | None = None, index: int | None = None) -> None:
        super().__init__(text)
        self.code = code
        self.index = index


def whole(field: str, value: object, low: int, high: int, step: int = 1) -> int:
    """Return `value` if it is an integer from `low` to `high`, a multiple of `step`.

    Raises:
        RequestError: otherwise.
    """
    if (
        isinstance(value, bool)
        or not isinstance(value, int)
        or not low <= value <= high
        or value % step
    ):
        multiples = f"multiples of {step} " if step > 1 else ""
        raise RequestError(field, repr(value), f"{multiples}{low} to {high}")
    return value


def lanes(field: str, values: Sequence[int], count: int, low: int, high: int) -> list[int]:
    """Return `values` if they are `count` integers from `low` to `high`.

    Raises:
        RequestError: otherwise.
    """
    if isinstance(values, str | bytes) or not isinstance(values, Sequence):
        raise RequestError(field, type(values).__name__, f"a sequence of {count} lanes")
    if len(values) != count:
        raise RequestError(field, f"{len(values)} lanes", f"{count}")
    return [whole(f"{field}[{i}]", value, low, high) for i, value in enumerate(values)]
