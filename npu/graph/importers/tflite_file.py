# SPDX-License-Identifier: Apache-2.0
"""Networks from TFLite files, float or quantised; the file is read with bounds, by itself.

Quantised tensors keep their integers between borders: an operator dequantises what it reads,
computes in floats and quantises its result, so that scales and zero points are those of the file.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from npu.graph.form import Graph, GraphError
from npu.graph.importers import (
    tflite_control,
    tflite_elementwise,
    tflite_images,
    tflite_indices,
    tflite_linear,
    tflite_moves,
    tflite_parts,
    tflite_recurrent,
    tflite_variables,
)
from npu.graph.importers.tflite_model import parse
from npu.graph.importers.tflite_reader import Handler, ModelReader

HANDLERS: dict[str, Handler] = {
    **tflite_linear.HANDLERS,
    **tflite_elementwise.HANDLERS,
    **tflite_moves.HANDLERS,
    **tflite_parts.HANDLERS,
    **tflite_images.HANDLERS,
    **tflite_recurrent.HANDLERS,
    **tflite_variables.HANDLERS,
    **tflite_indices.HANDLERS,
    **tflite_control.HANDLERS,
}
_DAMAGE = (ArithmeticError, LookupError, MemoryError, RecursionError, TypeError, ValueError)


def read(
    source: object,
    *,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    name: str = "",
) -> Graph:
    """Return the graph of a TFLite model, its first subgraph.

    Args:
        source: the bytes of a file, or its path.
        shapes: of inputs with free dimensions, by name.
        name: of the graph, and of the file in messages; that of the path without it.

    Raises:
        GraphError: naming file, operator, what was given and what is allowed.
    """
    if isinstance(source, str):
        source = Path(source)
    file = name or (str(source) if isinstance(source, Path) else "TFLite model")
    label = name or (source.stem if isinstance(source, Path) else "")
    if isinstance(source, Path):
        try:
            source = source.read_bytes()
        except OSError as error:
            raise GraphError(f"{file}: {error.strerror}") from None
    if not isinstance(source, bytes | bytearray | memoryview):
        raise GraphError(f"{file}: given {type(source).__name__}, allowed bytes or a path")
    try:
        model = parse(bytes(source), file)
        reader = ModelReader(model, file, HANDLERS, shapes or {})
        reader.inputs()
        reader.walk()
        reader.build.name = label or model.name or "main"
        return reader.finish()
    except GraphError as error:
        text = str(error)
        raise GraphError(text if text.startswith(file) else f"{file}: {text}") from None
    except _DAMAGE as error:
        # Numbers that each are allowed and together make no sense.
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise GraphError(f"{file}: the model contradicts itself ({reason})") from error
