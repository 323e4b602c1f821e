# SPDX-License-Identifier: Apache-2.0
"""Single instructions with operands and results that were worked out by hand."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spec.isa.coprocessor import COP_INSTRUCTIONS, CopOp, encode
from tb.bench.offers import Offer

A, B, D = 0x0060_0103, 0x0060_0241, 0x0060_0385
"""Where sources and destinations lie; not aligned."""
_FORMATS = {1: np.int8, 4: np.int32}
Before = tuple[CopOp, int, int]


@dataclass(frozen=True)
class NamedCase:
    """An instruction and what must come of it.

    Attributes:
        name: as in the table of `make regress`.
        op: the instruction.
        a, b: elements at rs1 and rs2, or values of registers for instructions without memory;
            floats stand for float32.
        result: what is written to rd.
        written: elements at the destination afterwards.
        before: instructions that set the accumulators, as (op, rs1, rs2).
        acc, facc: the accumulators afterwards, facc as a number; None: what golden says.
    """

    name: str
    op: CopOp
    a: tuple[float, ...] = ()
    b: tuple[float, ...] = ()
    result: float | None = None
    written: tuple[float, ...] | None = None
    before: tuple[Before, ...] = ()
    acc: int | None = None
    facc: float | None = None

    @property
    def floating(self) -> bool:
        """Whether its elements are float32."""
        return COP_INSTRUCTIONS[self.op].opcode == COP_INSTRUCTIONS[CopOp.FMACC].opcode

    def image(self, numbers: tuple[float, ...]) -> bytes:
        """Return numbers as they lie in memory."""
        if self.floating:
            return np.array(numbers, np.float32).tobytes()
        return np.array(numbers, _FORMATS[COP_INSTRUCTIONS[self.op].element or 4]).tobytes()

    def register(self, number: float) -> int:
        """Return a number as it stands in a register."""
        if self.floating:
            return int(np.array(number, np.float32).view(np.uint32))
        return int(number) & 0xFFFF_FFFF

    @property
    def destination(self) -> int:
        """Where it writes."""
        if COP_INSTRUCTIONS[self.op].rs2 == "both":
            return B
        return A if COP_INSTRUCTIONS[self.op].rs1 == "destination" else D

    def offers(self) -> list[Offer]:
        """Return the list, its last instruction being that of the case."""
        info, count = COP_INSTRUCTIONS[self.op], len(self.a)
        made = [Offer(encode(op, 0, 1, 2), (rs1, rs2, 0)) for op, rs1, rs2 in self.before]
        if not info.element:
            operands = [self.register(number) for number in (*self.a, *self.b)]
            rs = (*operands, 0, 0, 0)[:3]
        elif info.rs2 == "count":
            rs = (A, count, 0)
        else:
            rs = (A, D if info.rs2 == "destination" else B, count)
        return [*made, Offer(encode(self.op, 10, 11, 12), (rs[0], rs[1], rs[2]))]


def _one(value: float) -> int:
    return int(np.array(value, np.float32).view(np.uint32))


def _scale(factor: int) -> tuple[Before, ...]:
    return (CopOp.RSTACC, 0, 0), (CopOp.MACC, factor & 0xFFFF_FFFF, 1)


def _scalar(value: float) -> tuple[Before, ...]:
    return (CopOp.FRSTACC, 0, 0), (CopOp.FMACC, _one(value), _one(1.0))


_NEW = _scale(0)
_EMPTY = _scalar(0.0)
_INF, _NAN = float("inf"), float("nan")
LOWEST = -(1 << 31)

INTEGER_CASES = (
    NamedCase("macc accumulates", CopOp.MACC, (7,), (6,), before=_scale(100), acc=142),
    NamedCase("macc of negatives", CopOp.MACC, (-5,), (3,), before=_NEW, acc=-15),
    NamedCase("macc of the largest", CopOp.MACC, (LOWEST,), (LOWEST,), before=_NEW, acc=1 << 62),
    NamedCase("vmac basic", CopOp.VMAC, (1, 2, 3), (4, 5, 6), before=_NEW, acc=32),
    NamedCase("vmac of negatives", CopOp.VMAC, (-128, 127), (-128, -1), before=_NEW, acc=16257),
    NamedCase("vmac accumulates", CopOp.VMAC, (2,) * 20, (3,) * 20, before=_scale(5), acc=125),
    NamedCase("vmac zero count", CopOp.VMAC, before=_scale(5), acc=5),
    NamedCase("rstacc returns and clears", CopOp.RSTACC, result=77, before=_scale(77), acc=0),
    NamedCase("relu positive", CopOp.RELU, (9,), result=9),
    NamedCase("relu negative", CopOp.RELU, (-9,), result=0),
    NamedCase("relu lowest", CopOp.RELU, (LOWEST,), result=0),
    NamedCase("qmul basic", CopOp.QMUL, (512,), (3,), result=6),
    NamedCase("qmul floors", CopOp.QMUL, (-1,), (1,), result=-1),
    NamedCase("clamp inside", CopOp.CLAMP, (-128,), result=-128),
    NamedCase("clamp keeps", CopOp.CLAMP, (100,), result=100),
    NamedCase("clamp above", CopOp.CLAMP, (128,), result=127),
    NamedCase("clamp below", CopOp.CLAMP, (-129,), result=-128),
    NamedCase("gelu zero", CopOp.GELU, (0,), result=0),
    NamedCase("gelu one", CopOp.GELU, (32,), result=27),
    NamedCase("gelu of the lowest byte", CopOp.GELU, (0x1234_5620,), result=27),
    NamedCase("vexp zero", CopOp.VEXP, (0,), written=(65536,)),
    NamedCase("vexp negative", CopOp.VEXP, (-65536,), written=(24109,)),
    NamedCase("vexp large negative", CopOp.VEXP, (-524288,), written=(22,)),
    NamedCase(
        "vexp multiple elements",
        CopOp.VEXP,
        (0, -65536, -131072, 65536),
        written=(65536, 24109, 8869, 178145),
    ),
    NamedCase("vexp zero count", CopOp.VEXP, written=()),
    NamedCase("vexp saturates", CopOp.VEXP, (681391, 681392), written=(2147470397, 0x7FFF_FFFF)),
    NamedCase("vexp underflows", CopOp.VEXP, (-772243, -772244), written=(1, 0)),
    NamedCase("vrsqrt one", CopOp.VRSQRT, (65536,), result=65536),
    NamedCase("vrsqrt four", CopOp.VRSQRT, (262144,), result=32768),
    NamedCase("vrsqrt quarter", CopOp.VRSQRT, (16384,), result=131072),
    NamedCase("vrsqrt large", CopOp.VRSQRT, (6553600,), result=6554),
    NamedCase("vrsqrt smallest", CopOp.VRSQRT, (1,), result=16777216),
    NamedCase("vrsqrt zero", CopOp.VRSQRT, (0,), result=0x7FFF_FFFF),
    NamedCase("vrsqrt negative", CopOp.VRSQRT, (-1,), result=0x7FFF_FFFF),
    NamedCase("vmul identity", CopOp.VMUL, (1, -2, 127), (), None, (1, -2, 127), _scale(65536)),
    NamedCase("vmul half", CopOp.VMUL, (10, -10, 7, -7), (), None, (5, -5, 3, -4), _scale(32768)),
    NamedCase("vmul negative scale", CopOp.VMUL, (5, -6), (), None, (-5, 6), _scale(-65536)),
    NamedCase("vmul clamps", CopOp.VMUL, (100, -100), (), None, (127, -128), _scale(131072)),
    NamedCase("vmul zero count", CopOp.VMUL, written=(), before=_scale(65536), acc=65536),
    NamedCase("vreduce basic", CopOp.VREDUCE, (1, 2, 3, 4), result=10),
    NamedCase("vreduce negative", CopOp.VREDUCE, (-5, 3, -2), result=-4),
    NamedCase("vreduce single", CopOp.VREDUCE, (42,), result=42),
    NamedCase("vreduce zero count", CopOp.VREDUCE, result=0),
    NamedCase("vreduce wraps", CopOp.VREDUCE, (LOWEST, LOWEST, 1), result=1),
    NamedCase("vmax basic", CopOp.VMAX, (1, 5, 3, 2), result=5),
    NamedCase("vmax all negative", CopOp.VMAX, (-3, -1, -5), result=-1),
    NamedCase("vmax single", CopOp.VMAX, (-7,), result=-7),
    NamedCase("vmax zero count", CopOp.VMAX, result=LOWEST),
)
FLOAT_CASES = (
    NamedCase("fmacc accumulates", CopOp.FMACC, (1.5,), (2.0,), before=_scalar(1.0), facc=4.0),
    NamedCase("fmacc exact product", CopOp.FMACC, (1e30,), (1e-30,), before=_EMPTY),
    NamedCase("fvmac basic", CopOp.FVMAC, (1.0, 2.0), (3.0, 4.0), before=_EMPTY, facc=11.0),
    NamedCase("fvmac zero count", CopOp.FVMAC, before=_scalar(2.5), facc=2.5),
    NamedCase(
        "fvmac of opposite infinities", CopOp.FVMAC, (_INF, -_INF), (1.0, 1.0), before=_EMPTY
    ),
    NamedCase(
        "frstacc returns and clears", CopOp.FRSTACC, (), (), 2.5, None, _scalar(2.5), facc=0.0
    ),
    NamedCase("frelu positive", CopOp.FRELU, (1.25,), result=1.25),
    NamedCase("frelu negative", CopOp.FRELU, (-1.25,), result=0.0),
    NamedCase("frelu negative zero", CopOp.FRELU, (-0.0,), result=0.0),
    NamedCase("fgelu zero", CopOp.FGELU, (0.0,), result=0.0),
    NamedCase("fgelu large", CopOp.FGELU, (16.0,), result=16.0),
    NamedCase("fgelu negative infinity", CopOp.FGELU, (-_INF,), result=-0.0),
    NamedCase("frsqrt four", CopOp.FRSQRT, (4.0,), result=0.5),
    NamedCase("frsqrt zeros", CopOp.FRSQRT, (-0.0,), result=_INF),
    NamedCase("frsqrt negative", CopOp.FRSQRT, (-4.0,), result=_NAN),
    NamedCase("fvexp zero", CopOp.FVEXP, (0.0, -0.0), written=(1.0, 1.0)),
    NamedCase("fvexp infinities", CopOp.FVEXP, (_INF, -_INF), written=(_INF, 0.0)),
    NamedCase("fvexp multiple elements", CopOp.FVEXP, (1.0, -1.0), written=(2.7182817, 0.36787945)),
    NamedCase("fvexp zero count", CopOp.FVEXP, written=()),
    NamedCase("fvrsqrt one", CopOp.FVRSQRT, (1.0,), result=1.0),
    NamedCase("fvrsqrt four", CopOp.FVRSQRT, (4.0,), result=0.5),
    NamedCase("fvrsqrt quarter", CopOp.FVRSQRT, (0.25,), result=2.0),
    NamedCase("fvrsqrt large", CopOp.FVRSQRT, (100.0,), result=0.1),
    NamedCase("fvrsqrt zero", CopOp.FVRSQRT, (0.0,), result=_INF),
    NamedCase("fvrsqrt negative", CopOp.FVRSQRT, (-1.0,), result=_NAN),
    NamedCase("fvrsqrt infinity", CopOp.FVRSQRT, (_INF,), result=0.0),
    NamedCase("fvmul basic", CopOp.FVMUL, (1.5, -2.0), (), None, (3.0, -4.0), _scalar(2.0)),
    NamedCase("fvmul zero count", CopOp.FVMUL, written=(), before=_scalar(2.0), facc=2.0),
    NamedCase("fvmul zero by infinity", CopOp.FVMUL, (0.0,), (), None, (_NAN,), _scalar(_INF)),
    NamedCase("fvreduce basic", CopOp.FVREDUCE, (1.0, 2.0, 3.5), result=6.5),
    NamedCase("fvreduce cancels", CopOp.FVREDUCE, (1e30, 1.0, -1e30), result=0.0),
    NamedCase("fvreduce zero count", CopOp.FVREDUCE, result=0.0),
    NamedCase("fvmax basic", CopOp.FVMAX, (1.0, 5.0, 3.0), result=5.0),
    NamedCase("fvmax all negative", CopOp.FVMAX, (-3.0, -1.0), result=-1.0),
    NamedCase("fvmax of zeros", CopOp.FVMAX, (-0.0, 0.0, -0.0), result=0.0),
    NamedCase("fvmax of a nan", CopOp.FVMAX, (1.0, _NAN, 3.0), result=_NAN),
    NamedCase("fvmax zero count", CopOp.FVMAX, result=-_INF),
    NamedCase("fvadd in place", CopOp.FVADD, (1.0, 2.0), (10.0, 20.0), None, (11.0, 22.0)),
    NamedCase("fvsub in place", CopOp.FVSUB, (1.0, 2.0), (10.0, 0.5), None, (-9.0, 1.5)),
    NamedCase("fvadd of infinities", CopOp.FVADD, (_INF,), (-_INF,), None, (_NAN,)),
    NamedCase("fvrelu basic", CopOp.FVRELU, (1.0, -1.0, -0.0), written=(1.0, 0.0, 0.0)),
    NamedCase("fvgelu basic", CopOp.FVGELU, (0.0, 16.0, -0.0), written=(0.0, 16.0, -0.0)),
    NamedCase("fvdiv basic", CopOp.FVDIV, (1.0, -3.0), (), None, (0.5, -1.5), _scalar(2.0)),
    NamedCase("fvdiv by zero", CopOp.FVDIV, (1.0, 0.0), (), None, (_INF, _NAN), _scalar(0.0)),
    NamedCase("fvsub scalar basic", CopOp.FVSUB_SCALAR, (5.0,), (), None, (3.0,), _scalar(2.0)),
)
