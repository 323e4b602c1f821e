# SPDX-License-Identifier: Apache-2.0
"""The operations of the command port as plain data, with the checks of the hardware.

`check` raises RequestError for whatever the hardware of that scratchpad size would refuse.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from npu.driver.errors import WORD, RequestError, whole
from spec.regs import CmdOp

PAGE = 64
"""Bytes of the scratchpad that SCRATCH shows, and of a scratchpad without *_WIDE fields."""
SCRATCH_SIZES = (64, 128, 256)
TILES = frozenset({CmdOp.GEMM_S8, CmdOp.GEMM_S4, CmdOp.VRELU_S8})
"""Operations on the scratchpad; all others are scalar."""
NOT_A_NUMBER = (0x7F, 0xFF)
"""FP8 codes that are reserved."""

NARROW_SHAPE, WIDE_SHAPE = (3, 3, 7), (255, 255, 255)
NARROW_BASE, WIDE_BASE = 63, 255
NARROW_STRIDE, WIDE_STRIDE = 15, 255


def _three(low: int, middle: int, high: int) -> int:
    """Return three fields as the registers of a tile have them."""
    return low | middle << 8 | high << 16


@dataclass(frozen=True, slots=True)
class Scalar:
    """An operation on words.

    Attributes:
        op: not a tile operation.
        a, b, acc: operands, 32 bits without sign.
        ternary: DOT16_S2 takes its lanes as ternary; False for every other operation.
    """

    op: CmdOp
    a: int
    b: int = 0
    acc: int = 0
    ternary: bool = False

    def check(self, scratch_bytes: int) -> None:
        """Raise RequestError unless the hardware executes this."""
        del scratch_bytes
        if not isinstance(self.op, CmdOp) or self.op in TILES:
            raise RequestError("Scalar.op", repr(self.op), "a CmdOp other than GEMM and VRELU")
        name = self.op.name
        for field in ("a", "b", "acc"):
            whole(f"{name}.{field}", getattr(self, field), 0, WORD)
        if self.ternary and self.op != CmdOp.DOT16_S2:
            raise RequestError(f"{name}.ternary", True, "False but for DOT16_S2")
        for field in ("a", "b"):
            word = getattr(self, field)
            if self.ternary:
                for lane in range(16):
                    if word >> 2 * lane & 3 == 3:
                        raise RequestError(f"{name}.{field}[{lane}]", "code 3", "codes 0 to 2")
            if self.op == CmdOp.DOT4_FP8_E4M3:
                for lane in range(4):
                    check_fp8(f"{name}.{field}[{lane}]", word >> 8 * lane & 0xFF)


@dataclass(frozen=True, slots=True)
class Gemm:
    """C (m, n) = A (m, k) * B (k, n) in the scratchpad.

    Attributes:
        op: GEMM_S8 or GEMM_S4.
        m, n, k: shape.
        a, b, c: where the matrices begin: A and B in elements, C in bytes.
        stride_a, stride_b, stride_c: from row to row: A and B in elements, C in bytes.
    """

    op: CmdOp
    m: int
    n: int
    k: int
    a: int
    b: int
    c: int
    stride_a: int
    stride_b: int
    stride_c: int

    @classmethod
    def packed(cls, op: CmdOp, m: int, n: int, k: int) -> Gemm:
        """Return a tile without gaps: A at 0, B right behind it, C at the next multiple of 4."""
        inputs = cls(op, m, n, k, 0, m * k, 0, k, n, 4 * n)
        return cls(op, m, n, k, 0, m * k, -(-inputs.input_bytes // 4) * 4, k, n, 4 * n)

    @property
    def input_bytes(self) -> int:
        """Bytes of A and B of a packed tile, the last one perhaps half full."""
        elements = (self.m + self.n) * self.k
        return elements if self.op == CmdOp.GEMM_S8 else -(-elements // 2)

    @property
    def output_bytes(self) -> int:
        """Bytes of C without gaps."""
        return 4 * self.m * self.n

    @property
    def output_span(self) -> tuple[int, int]:
        """First and last byte of C."""
        return self.c, self.c + (self.m - 1) * self.stride_c + 4 * self.n - 1

    def words(self) -> tuple[int, int, int]:
        """Return GEMM_CFG, GEMM_BASE and GEMM_STRIDE."""
        return (
            _three(self.m, self.n, self.k),
            _three(self.a, self.b, self.c),
            _three(self.stride_a, self.stride_b, self.stride_c),
        )

    def check(self, scratch_bytes: int) -> None:
        """Raise RequestError unless the hardware executes this."""
        if self.op not in (CmdOp.GEMM_S8, CmdOp.GEMM_S4):
            raise RequestError("Gemm.op", repr(self.op), "GEMM_S8 or GEMM_S4")
        name = self.op.name
        narrow = scratch_bytes <= PAGE
        for field, most in zip("mnk", NARROW_SHAPE if narrow else WIDE_SHAPE, strict=True):
            whole(f"{name}.{field}", getattr(self, field), 1, most)
        most = NARROW_BASE if narrow else WIDE_BASE
        for field in ("a", "b"):
            whole(f"{name}.{field}", getattr(self, field), 0, most)
        whole(f"{name}.c", self.c, 0, most, 4)
        most = NARROW_STRIDE if narrow else WIDE_STRIDE
        for field in ("stride_a", "stride_b"):
            whole(f"{name}.{field}", getattr(self, field), 0, most)
        whole(f"{name}.stride_c", self.stride_c, 0, most, 4 if self.m > 1 else 1)
        self._check_places(scratch_bytes)

    def _check_places(self, scratch_bytes: int) -> None:
        per_byte = 1 if self.op == CmdOp.GEMM_S8 else 2
        last_a = self.a + (self.m - 1) * self.stride_a + self.k - 1
        last_b = self.b + (self.k - 1) * self.stride_b + self.n - 1
        spans = {
            "a": (self.a // per_byte, last_a // per_byte),
            "b": (self.b // per_byte, last_b // per_byte),
            "c": self.output_span,
        }
        for field, (first, last) in spans.items():
            if last >= scratch_bytes:
                raise RequestError(
                    f"{self.op.name}.{field}",
                    f"bytes {first} to {last} of the scratchpad",
                    f"bytes 0 to {scratch_bytes - 1}",
                )
        c_first, c_last = spans["c"]
        for field in ("a", "b"):
            first, last = spans[field]
            if first <= c_last and c_first <= last:
                raise RequestError(
                    f"{self.op.name}.c",
                    f"bytes {c_first} to {c_last} of the scratchpad",
                    f"none of bytes {first} to {last}, where {field} lies",
                )


@dataclass(frozen=True, slots=True)
class Vrelu:
    """VRELU_S8: bytes of the scratchpad from `source` to `destination`, negative ones become 0."""

    length: int
    source: int
    destination: int

    @property
    def op(self) -> CmdOp:
        """The operation."""
        return CmdOp.VRELU_S8

    @property
    def output_bytes(self) -> int:
        """Bytes of the result."""
        return self.length

    def words(self) -> tuple[int, int, int]:
        """Return GEMM_CFG, GEMM_BASE and GEMM_STRIDE."""
        return self.length, _three(self.source, self.destination, 0), 0

    def check(self, scratch_bytes: int) -> None:
        """Raise RequestError unless the hardware executes this."""
        whole("VRELU_S8.length", self.length, 1, scratch_bytes)
        for field in ("source", "destination"):
            whole(f"VRELU_S8.{field}", getattr(self, field), 0, scratch_bytes - self.length)


Operation: TypeAlias = Scalar | Gemm | Vrelu


def check_fp8(field: str, code: object) -> int:
    """Return an FP8 code, or raise RequestError."""
    if whole(field, code, 0, 0xFF) in NOT_A_NUMBER:
        raise RequestError(field, f"FP8 code {code:#04x} (not a number)", "0x00-0x7e, 0x80-0xfe")
    assert isinstance(code, int)
    return code


def check_operation(operation: object, scratch_bytes: int) -> None:
    """Raise RequestError unless `operation` is one that the hardware executes."""
    if not isinstance(operation, Scalar | Gemm | Vrelu):
        raise RequestError("operation", type(operation).__name__, "Scalar, Gemm or Vrelu")
    operation.check(scratch_bytes)
