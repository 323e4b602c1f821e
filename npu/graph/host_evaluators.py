# SPDX-License-Identifier: Apache-2.0
"""Who evaluates an operation `host`: each importer registers itself under its evaluator's name."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import TypeAlias

from npu.graph.form import Array, Graph, GraphError, Operation

Run: TypeAlias = Callable[[Sequence[Array | None]], Sequence[Array]]
"""Takes one value per input, gives one per output."""
Evaluator: TypeAlias = Callable[[Graph, Operation], Run]
"""Checks an operation against its graph. Raises GraphError unless an importer makes it so."""

EVALUATORS: dict[str, Evaluator] = {}
_MODULES = {
    "onnx": ("npu.graph.importers.onnx_host",),
    "stablehlo": ("npu.graph.importers.stablehlo_host", "jax"),
}
"""What registers an evaluator, and what it takes besides."""


class MissingError(GraphError):
    """The framework is not installed."""


def evaluator_of(operation: Operation) -> Evaluator:
    """Return who evaluates an operation `host`.

    Raises:
        GraphError: nobody does.
        MissingError: the framework is not installed.
    """
    name = operation["evaluator"]
    if name not in _MODULES:
        raise GraphError(f"evaluator {name!r}, allowed {', '.join(_MODULES)}")
    try:
        for module in _MODULES[name]:
            importlib.import_module(module)
    except ImportError as error:
        raise MissingError(f"{error}: pip install -e .[graphs]") from None
    return EVALUATORS[name]
