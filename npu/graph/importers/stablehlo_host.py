# SPDX-License-Identifier: Apache-2.0
"""StableHLO operations that nobody maps: a module of one function that jax compiles."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np

from npu.graph.form import Array, Graph, GraphError, Operation
from npu.graph.host_evaluators import EVALUATORS, Run
from npu.graph.importers.stablehlo_bytecode import context
from npu.graph.importers.stablehlo_module import functions
from npu.graph.importers.stablehlo_reader import ELEMENTS
from npu.graph.importers.stablehlo_step import Step

_STABLEHLO = """
    abs add and atan2 batch_norm_grad batch_norm_inference batch_norm_training bitcast_convert
    broadcast broadcast_in_dim case cbrt ceil cholesky clamp compare complex concatenate constant
    convert convolution cosine count_leading_zeros divide dot dot_general dynamic_slice
    dynamic_update_slice einsum exponential exponential_minus_one fft floor gather if imag iota
    is_finite log log_plus_one logistic map maximum minimum multiply negate not
    optimization_barrier or pad popcnt power real reduce reduce_precision reduce_window remainder
    reshape return reverse rng rng_bit_generator round_nearest_afz round_nearest_even rsqrt scatter
    select select_and_scatter shift_left shift_right_arithmetic shift_right_logical sign sine slice
    sort sqrt subtract tan tanh torch_index_select transpose triangular_solve unary_einsum while xor
"""
_CHLO = """
    acos acosh asin asinh atan atanh bessel_i1e conj constant constant_like cosh digamma erf erf_inv
    erfc is_inf is_neg_inf is_pos_inf lgamma next_after polygamma ragged_dot sinh square tan top_k
    zeta
"""
_ALLOWED = frozenset(f"stablehlo.{name}" for name in _STABLEHLO.split()) | frozenset(
    f"chlo.{name}" for name in _CHLO.split()
)
"""Operations without effects, calls, other devices and shapes that depend on values."""
_CALL = "stablehlo.custom_call"
_DEEP, _LONG = 32, 1 << 24
"""Brackets in brackets, and letters, of the text of an operation."""
_CALLS = 1 << 12
"""Of functions inside an operation."""
_INNER, _MANY = 64, 1 << 22
"""Elements that an operation may make inside: so many times its own, and as many besides."""
_OPEN = frozenset({"stablehlo.while", "stablehlo.case", "stablehlo.if"})
"""Operations whose regions may read values from outside."""
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_TYPE = re.compile(r"tensor<((?:[0-9]+x)*)([a-z0-9]+|complex<f(?:32|64)>)>")


def opaque(step: Step, reason: str) -> tuple[str, ...]:
    """Make an operation `host` of one of StableHLO, with all that its regions use."""
    if not step.results:
        raise step.error("no result, allowed operations with results")
    inside = _constants(step.operation)
    outer = [value for value in captured(step.operation) if value not in inside]
    given = [*step.operation.operands, *outer]
    try:
        module = _module(step.operation, given, functions(step.reader.module))
        _check(module, step.source)
    except GraphError as error:
        raise step.error(str(error)) from None
    inputs = (*step.inputs, *(step.reader.name_of(value) for value in outer))
    return step.build.add_many(
        "host",
        inputs,
        [""] * len(step.results),
        step.results,
        wish=step.wish,
        source=step.source,
        evaluator="stablehlo",
        operator=step.source,
        payload=str(module).encode(),
        reason=reason,
    )


def captured(operation: Any) -> list[Any]:  # noqa: ANN401
    """Return the values from outside that the regions of an operation use."""
    inside: set[Any] = set()
    found: list[Any] = []

    def visit(one: Any) -> None:  # noqa: ANN401
        for region in one.regions:
            for block in region.blocks:
                inside.update(block.arguments)
                for inner in block.operations:
                    for value in inner.operation.operands:
                        if value not in inside and value not in found:
                            found.append(value)
                    visit(inner.operation)
                    inside.update(inner.operation.results)

    visit(operation)
    return found


def _constants(operation: Any) -> list[Any]:  # noqa: ANN401
    """Return the constants of `captured` that have to stand in the regions: XLA takes no others."""
    if operation.name in _OPEN:
        return []
    owners = ((value, value.owner) for value in captured(operation))
    return [v for v, one in owners if getattr(one, "name", "") == "stablehlo.constant"]


def _module(
    operation: Any,  # noqa: ANN401
    given: Sequence[Any],
    called: dict[str, Any] | None = None,
) -> Any:  # noqa: ANN401
    """Return a module with a copy of an operation as its function @main.

    Args:
        operation: of StableHLO.
        given: what it takes from outside: operands, then what its regions use.
        called: functions by name, of which those that it calls are put in their places.
    """
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import func

    with operation.context, ir.Location.unknown():
        module = ir.Module.create()
        types = [value.type for value in given]
        results = [value.type for value in operation.results]
        with ir.InsertionPoint(module.body):
            main = func.FuncOp("main", ir.FunctionType.get(types, results))
            with ir.InsertionPoint(main.add_entry_block()):
                arguments, count = list(main.arguments), len(operation.operands)
                outer = zip(given[count:], arguments[count:], strict=True)
                copy = _copied(operation, dict(outer))
                _enclose(copy, _constants(operation))
                for index in range(count):
                    copy.operands[index] = arguments[index]
                func.ReturnOp(list(copy.results))
        _inline(copy, called or {})
        for one in (copy, *_inner(copy)):
            # What other dialects note about an operation is no part of it.
            for name in [each for each in one.attributes if "." in each]:
                del one.attributes[name]
        return module


def _copied(operation: Any, fresh: dict[Any, Any]) -> Any:  # noqa: ANN401
    """Copy an operation to the place of insertion, with other values from outside."""
    copy = operation.clone().operation
    for one in (copy, *_inner(copy)):
        for index, value in enumerate(one.operands):
            if value in fresh:
                one.operands[index] = fresh[value]
    return copy


def _enclose(operation: Any, constants: Sequence[Any]) -> None:  # noqa: ANN401
    """Put constants from outside into the regions that use them."""
    from jaxlib.mlir import ir

    for region in operation.regions:
        for block in region.blocks:
            inner = [op.operation for op in block.operations]
            inner += [each for one in inner for each in _inner(one)]
            for value in constants:
                uses = [(o, i) for o in inner for i, v in enumerate(o.operands) if v == value]
                if uses:
                    with ir.InsertionPoint.at_block_begin(block):
                        made = value.owner.clone().results[0]
                    for one, index in uses:
                        one.operands[index] = made


def _inline(operation: Any, called: dict[str, Any]) -> None:  # noqa: ANN401
    """Put functions in the places of their calls: MLIR itself does not inside an operation."""
    from jaxlib.mlir import ir

    for _ in range(_CALLS):
        call = next((one for one in _inner(operation) if one.name == "func.call"), None)
        if call is None:
            return
        (body,) = called[str(call.attributes["callee"]).replace('"', "")].regions[0].blocks
        fresh = dict(zip(body.arguments, call.operands, strict=True))
        *steps, end = [op.operation for op in body.operations]
        with ir.InsertionPoint(call):
            for one in steps:
                fresh |= zip(one.results, _copied(one, fresh).results, strict=True)
        for old, value in zip(call.results, end.operands, strict=True):
            old.replace_all_uses_with(fresh[value])
        call.erase()
    raise GraphError(f"more than {_CALLS:,} calls inside, allowed fewer")


def _inner(operation: Any) -> Iterator[Any]:  # noqa: ANN401
    """Yield the operations inside one, at any depth."""
    for region in operation.regions:
        for block in region.blocks:
            for op in block.operations:
                yield op.operation
                yield from _inner(op.operation)


def _check(module: Any, operator: str) -> Any:  # noqa: ANN401
    """Return the one operation of a module, once nothing in it does more than compute."""
    found = list(module.body.operations)
    if [str(one.operation.name) for one in found] != ["func.func"]:
        names = ", ".join(str(one.operation.name) for one in found[:4])
        raise GraphError(f"a module of {names or 'nothing'}, allowed one function")
    (block,) = found[0].regions[0].blocks
    operations = [op.operation for op in block.operations]
    if [str(one.name) for one in operations] != [operator, "func.return"]:
        names = ", ".join(str(one.name) for one in operations[:4])
        raise GraphError(f"a function of {names}, allowed {operator} and its return")
    values = [*block.arguments, *operations[0].results]
    own = sum(_elements(value) for value in values)
    made = 0
    for one in (operations[0], *_inner(operations[0])):
        if one.name not in _ALLOWED:
            target = one.attributes["call_target_name"] if one.name == _CALL else ""
            raise GraphError(
                f"{one.name} {target}".strip()
                + ", allowed operations of StableHLO without effects, calls and other devices"
            )
        made += sum(_elements(value) for value in one.results)
        blocks = [block for region in one.regions for block in region.blocks]
        made += sum(_elements(value) for block in blocks for value in block.arguments)
    if made > _INNER * own + _MANY:
        raise GraphError(f"{made:,} elements inside, allowed {_INNER * own + _MANY:,}")
    return operations[0]


def _elements(value: Any) -> int:  # noqa: ANN401
    """Return how many elements a value has. Raises GraphError for one that is no fixed tensor."""
    found = _TYPE.fullmatch(str(value.type))
    if found is None:
        raise GraphError(f"type {str(value.type)[:80]}, allowed tensors of fixed shapes")
    return math.prod(int(size) for size in found[1].split("x")[:-1])


def _parsed(text: str) -> Any:  # noqa: ANN401
    """Return the module of a text. Its reader goes as deep as the text does, and trusts it."""
    from jaxlib.mlir import ir

    if len(text) > _LONG:
        raise GraphError(f"a payload of {len(text):,} letters, allowed {_LONG:,}")
    plain = _STRING.sub("", text)
    if "//" in plain or '"' in plain:
        raise GraphError("a payload with a comment, or a string that does not end")
    depth = 0
    for sign in re.findall(r"[][(){}<>]", plain.replace("->", "")):
        depth += 1 if sign in "[({<" else -1
        if depth > _DEEP:
            raise GraphError(f"brackets more than {_DEEP} deep, allowed up to {_DEEP}")
    return ir.Module.parse(text, context())


def _checked(graph: Graph, operation: Operation) -> str:
    """Return the module that evaluates an operation, made anew from the operation in its payload.

    Raises:
        GraphError: the payload is another module than is made of that operation, holds what is
            not allowed, or has other types than the graph.
    """
    text = operation["payload"].decode("utf-8", "replace")
    module = _parsed(text)
    inner = _check(module, operation["operator"])
    made = str(_module(inner, [*inner.operands, *captured(inner)]))
    if made != text:
        raise GraphError("another payload than is made of its operation")
    arguments = module.body.operations[0].regions[0].blocks[0].arguments
    for what, values, names in (
        ("inputs", list(arguments), operation.inputs),
        ("results", list(inner.results), operation.outputs),
    ):
        kinds = [graph.type(name) for name in names]
        wanted = [
            f"tensor<{''.join(f'{size}x' for size in one.shape)}{_NAMES[one.element]}>"
            for one in kinds
        ]
        given = [str(value.type) for value in values]
        if given != wanted:
            raise GraphError(
                f"{what} {', '.join(given)[:80]}, those of the graph are {', '.join(wanted)[:80]}"
            )
    return made


_NAMES = {element: name for name, element in ELEMENTS.items()}


def _prepared(graph: Graph, operation: Operation) -> Run:
    import jax
    from jax.extend import backend

    text = _checked(graph, operation)
    device = jax.devices("cpu")[0]
    compiled = cache(lambda: backend.get_backend("cpu").compile_and_load(text, [device]))

    def run(values: Sequence[Array | None]) -> list[Array]:
        try:
            # Without this, arrays of 64 bits become such of 32.
            with jax.enable_x64(True):
                given = [jax.device_put(np.asarray(value), device) for value in values]
                return [np.asarray(one) for one in compiled().execute(given)]
        except (ValueError, RuntimeError) as error:
            reason = " ".join(str(error).split())[:200]
            raise GraphError(f"jax cannot evaluate {operation['operator']}: {reason}") from None

    return run


EVALUATORS["stablehlo"] = _prepared
