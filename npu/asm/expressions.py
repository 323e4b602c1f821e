# SPDX-License-Identifier: Apache-2.0
"""Integer expressions of program texts: Python's operators, symbols, up(), min(), max(), int()."""

import ast
import operator
import re
import warnings
from collections.abc import Callable, Mapping

from npu.asm.errors import OperandError
from spec.isa.operands import up

_BINARY: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
}
_UNARY: dict[type[ast.unaryop], Callable[[int], int]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: operator.invert,
    ast.Not: lambda x: int(not x),
}
_COMPARE: dict[type[ast.cmpop], Callable[[int, int], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_FUNCTIONS: dict[str, tuple[Callable[..., int], int, int]] = {
    "up": (up, 1, 2),
    "min": (min, 2, 16),
    "max": (max, 2, 16),
    "int": (int, 1, 1),
    "abs": (abs, 1, 1),
}
_LARGEST = 1 << 64
_PLAIN = re.compile(r"0x[0-9a-fA-F]{1,8}|0|[1-9][0-9]{0,9}")
"""Numbers that need no parser: most of what a compiler writes."""
_SHOWN = 60
"""Characters of an expression that a message shows."""


def evaluate(text: str, symbols: Mapping[str, int]) -> int:
    """Return the value of an expression. Raises OperandError with the column of the mistake."""
    if not text:
        raise OperandError("a value is missing")
    if _PLAIN.fullmatch(text):
        return int(text, 0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)  # what it warns of is refused below
            tree = ast.parse(text, mode="eval")
        return _value(tree.body, symbols)
    except (SyntaxError, ValueError) as error:
        if isinstance(error, OperandError):
            raise
        column = (getattr(error, "offset", None) or 1) - 1
        shown = text if len(text) <= _SHOWN else text[:_SHOWN] + "..."
        raise OperandError(f"{shown!r} is no expression", column) from None
    except (RecursionError, MemoryError):
        raise OperandError("the expression is nested too deeply") from None


def _value(node: ast.expr, symbols: Mapping[str, int]) -> int:
    result = _compute(node, symbols)
    if abs(result) >= _LARGEST:
        raise OperandError(f"the value {result} is too large", node.col_offset)
    return int(result)


def _compute(node: ast.expr, symbols: Mapping[str, int]) -> int:
    match node:
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            return value
        case ast.Name(id=name):
            if name not in symbols:
                raise OperandError(f"symbol {name} is not defined", node.col_offset)
            return symbols[name]
        case ast.UnaryOp(op=op, operand=operand):
            return _UNARY[type(op)](_value(operand, symbols))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            a, b = _value(left, symbols), _value(right, symbols)
            if isinstance(op, (ast.FloorDiv, ast.Mod)) and b == 0:
                raise OperandError("division by zero", right.col_offset)
            if isinstance(op, (ast.LShift, ast.RShift)) and not 0 <= b < 64:
                raise OperandError(f"shift by {b}: allowed are 0 to 63", right.col_offset)
            return _BINARY[type(op)](a, b)
        case ast.BoolOp(op=op, values=values):
            results = [bool(_value(item, symbols)) for item in values]
            return int(all(results) if isinstance(op, ast.And) else any(results))
        case ast.Compare(left=left, ops=ops, comparators=comparators) if all(
            type(op) in _COMPARE for op in ops
        ):
            items = [_value(item, symbols) for item in (left, *comparators)]
            pairs = zip(items, ops, items[1:], strict=False)
            return int(all(_COMPARE[type(op)](a, b) for a, op, b in pairs))
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _FUNCTIONS:
            function, least, most = _FUNCTIONS[name]
            if not least <= len(args) <= most:
                raise OperandError(f"{name}() takes {least} to {most} values", node.col_offset)
            numbers = [_value(item, symbols) for item in args]
            if name == "up" and numbers[1:] and numbers[1] < 1:
                raise OperandError(f"up() to multiples of {numbers[1]}", args[1].col_offset)
            return function(*numbers)
    functions = ", ".join(f"{name}()" for name in _FUNCTIONS)
    raise OperandError(
        "allowed are integers, symbols, + - * // % << >> & | ^ ~, comparisons, and, or, not, "
        + functions,
        node.col_offset,
    )
