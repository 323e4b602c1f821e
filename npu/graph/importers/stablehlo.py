# SPDX-License-Identifier: Apache-2.0
"""Networks from StableHLO: what jax lowers, as live module, text, bytecode or export."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from npu.graph.form import Graph, GraphError
from npu.graph.importers import (
    stablehlo_composites,
    stablehlo_elementwise,
    stablehlo_host,
    stablehlo_linear,
    stablehlo_moves,
    stablehlo_reduce,
)
from npu.graph.importers.stablehlo_bfloat import widened
from npu.graph.importers.stablehlo_module import load
from npu.graph.importers.stablehlo_reader import ModuleReader, result_names
from npu.graph.importers.stablehlo_step import Handler

HANDLERS: dict[str, Handler] = {
    **stablehlo_elementwise.HANDLERS,
    **stablehlo_moves.HANDLERS,
    **stablehlo_linear.HANDLERS,
    **stablehlo_reduce.HANDLERS,
    **stablehlo_composites.HANDLERS,
}
DAMAGE = (
    *(ArithmeticError, AttributeError, LookupError, MemoryError, NotImplementedError),
    *(RecursionError, TypeError, ValueError),
)
"""What numbers that make no sense may raise."""


def read(
    source: object,
    *,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    name: str = "",
) -> Graph:
    """Return the graph of a StableHLO module.

    Args:
        source: a live module (`jax.jit(f).lower(...).compiler_ir("stablehlo")`), its text or
            portable bytecode, the serialised form of `jax.export`, or a `Path` of such a file.
        shapes: of inputs with free dimensions, by name.
        name: of the graph, and of the file in messages; that of the path without it.

    Returns:
        Inputs and results in the order of the function @main. Operations without counterpart
        are `host`, evaluated by jax.

    Raises:
        GraphError: naming file, operation, what was given and what is allowed.
    """
    if isinstance(source, str) and source and not set(source) & set("\n{"):
        source = Path(source)
    file = name or (str(source) if isinstance(source, Path) else "StableHLO module")
    try:
        module = widened(load(source, file, shapes or {}), file)
        reader = ModuleReader(module, file, HANDLERS, stablehlo_host.opaque)
        inputs = reader.inputs()
        main = reader.functions["@main"]
        outputs = reader.call(main, inputs)
        reader.build.name = name or (
            source.stem if isinstance(source, Path) else _module_name(module)
        )
        return reader.build.finish(outputs, result_names(main))
    except GraphError as error:
        text = str(error)
        raise GraphError(text if text.startswith(file) else f"{file}: {text}") from None
    except DAMAGE as error:
        # A module that passes the verifier of MLIR and still says nothing sensible.
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise GraphError(f"{file}: the module contradicts itself ({reason})") from error


def _module_name(module: Any) -> str:  # noqa: ANN401
    attributes = module.operation.attributes
    found = attributes["sym_name"].value if "sym_name" in attributes else "main"
    return str(found).removeprefix("jit_").strip("_<>") or "main"


def from_jax(
    function: Callable[..., Any],
    example_args: Sequence[Any],
    *,
    constants: Sequence[int] = (),
    name: str = "",
) -> Graph:
    """Return the graph of a function of jax.

    Args:
        function: of arrays or trees of arrays.
        example_args: its arguments, of which shapes and types count (`jax.ShapeDtypeStruct` will
            do), and the values of those in `constants`.
        constants: places of arguments that are parameters: their values become weights. What the
            function closes over does so too.
        name: of the graph; the function's without it.

    Returns:
        The graph; its inputs are the leaves of the other arguments in their order.

    Raises:
        GraphError: jax is missing or cannot lower the function, or as `read`.
    """
    try:
        import jax
    except ImportError as error:
        raise GraphError(f"{error}: functions of jax need it: pip install -e .[graphs]") from None
    label = name or getattr(function, "__name__", "function").strip("<>")
    if not isinstance(example_args, list | tuple):
        given = type(example_args).__name__
        raise GraphError(f"{label}: example_args: given {given}, allowed a list of arguments")
    bad = [index for index in constants if not 0 <= index < len(example_args)]
    if bad:
        raise GraphError(f"{label}: constant {bad[0]}, allowed 0..{len(example_args) - 1}")
    fixed = {index: example_args[index] for index in constants}
    free = [argument for index, argument in enumerate(example_args) if index not in fixed]

    def closed(*given: Any) -> Any:  # noqa: ANN401
        rest = iter(given)
        places = range(len(example_args))
        return function(*(fixed[index] if index in fixed else next(rest) for index in places))

    target = closed if fixed else function
    try:
        module = jax.jit(target).lower(*free).compiler_ir("stablehlo")
    except Exception as error:
        # Whatever the user's function raises while jax traces it is about the function.
        reason = " ".join(str(error).split())[:300]
        raise GraphError(f"{label}: jax cannot lower it: {reason}") from error
    return read(module, name=label)
