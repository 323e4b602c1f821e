# SPDX-License-Identifier: Apache-2.0
"""StableHLO operations that nobody maps: a module of one function that jax compiles."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from npu.graph.evaluate import HOST_EVALUATORS
from npu.graph.form import Array, GraphError, Operation
from npu.graph.importers.stablehlo_bytecode import context
from npu.graph.importers.stablehlo_module import functions
from npu.graph.importers.stablehlo_reader import Step

_OUTSIDE = frozenset({
    *("stablehlo.infeed", "stablehlo.outfeed", "stablehlo.send", "stablehlo.recv"),
    *("stablehlo.all_reduce", "stablehlo.all_gather", "stablehlo.all_to_all"),
    *("stablehlo.collective_permute", "stablehlo.reduce_scatter", "stablehlo.partition_id"),
    *("stablehlo.replica_id", "stablehlo.after_all", "stablehlo.create_token"),
})  # fmt: skip


def opaque(step: Step) -> tuple[str, ...]:
    """Make an operation `host` of one of StableHLO, with all that its regions use."""
    if step.source in _OUTSIDE or not step.source.startswith(("stablehlo.", "chlo.")):
        raise step.error("allowed operations of StableHLO without effects and other devices")
    if not step.results:
        raise step.error("no result, allowed operations with results")
    outer = captured(step.operation)
    inputs = (*step.inputs, *(step.reader.name_of(value) for value in outer))
    results = [(step.wish, found) for found in step.results]
    return step.build.emit(
        "host",
        inputs,
        results,
        {
            "evaluator": "stablehlo",
            "operator": step.source,
            "payload": payload(step, outer),
            "reason": f"{step.source} has no counterpart among the operations of a graph",
        },
        source=step.source,
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


def payload(step: Step, outer: Sequence[Any]) -> bytes:
    """Return the text of a module with the operation as its function @main."""
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import func

    operation = step.operation
    given = [*operation.operands, *outer]
    with operation.context, ir.Location.unknown():
        module = ir.Module.create()
        types = [value.type for value in given]
        results = [value.type for value in operation.results]
        with ir.InsertionPoint(module.body):
            main = func.FuncOp("main", ir.FunctionType.get(types, results))
            for name, function in functions(step.reader.module).items():
                if name != "@main" and _calls(operation):
                    function.clone()
            with ir.InsertionPoint(main.add_entry_block()):
                arguments = list(main.body.blocks[0].arguments)
                copy = operation.clone().operation
                for index in range(len(operation.operands)):
                    copy.operands[index] = arguments[index]
                fresh = dict(zip(outer, arguments[len(operation.operands) :], strict=True))
                _exchange(copy, fresh)
                func.ReturnOp(list(copy.results))
        return str(module).encode()


def _calls(operation: Any) -> bool:  # noqa: ANN401
    for region in operation.regions:
        for block in region.blocks:
            for one in block.operations:
                if one.operation.name == "func.call" or _calls(one.operation):
                    return True
    return False


def _exchange(operation: Any, fresh: dict[Any, Any]) -> None:  # noqa: ANN401
    for region in operation.regions:
        for block in region.blocks:
            for one in block.operations:
                for index, value in enumerate(one.operation.operands):
                    if value in fresh:
                        one.operation.operands[index] = fresh[value]
                _exchange(one.operation, fresh)


@lru_cache(maxsize=256)
def _compiled(text: str) -> Any:  # noqa: ANN401
    import jax
    from jax.extend import backend
    from jaxlib.mlir import ir

    module = ir.Module.parse(text, context())
    client = backend.get_backend("cpu")
    return client.compile_and_load(str(module), jax.devices("cpu")[:1])


def evaluate_host(operation: Operation, values: Sequence[Array | None]) -> list[Array]:
    """Evaluate an operation `host` with the compiler of jax for the processor it runs on.

    Args:
        operation: with the text of a module as payload.
        values: one per input.

    Returns:
        One array per result.
    """
    import jax

    try:
        run = _compiled(operation["payload"].decode())
        device = jax.devices("cpu")[0]
        # Without this, arrays of 64 bits become such of 32.
        with jax.enable_x64(True):
            given = [jax.device_put(np.asarray(value), device) for value in values]
            return [np.asarray(one) for one in run.execute(given)]
    except (ValueError, RuntimeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise GraphError(f"jax cannot evaluate {operation['operator']}: {reason}") from None


HOST_EVALUATORS["stablehlo"] = evaluate_host
