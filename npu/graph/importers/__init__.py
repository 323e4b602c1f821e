# SPDX-License-Identifier: Apache-2.0
"""Reads networks of other frameworks into graphs.

Each importer is a module of its own that is imported only when such a file is read, because what
it reads with is an optional package.
"""

from __future__ import annotations

import codecs
import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from npu.graph.build import bind
from npu.graph.form import Array, Graph, GraphError
from weights.checkpoint import Checkpoint

_SUFFIXES = {
    ".onnx": "onnx",
    ".mlir": "stablehlo",
    ".mlirbc": "stablehlo",
    ".tflite": "tflite",
    ".gguf": "checkpoint",
}
_MODULES = {
    "onnx": "onnx_file",
    "stablehlo": "stablehlo",
    "tflite": "tflite_file",
    "checkpoint": "any_checkpoint",
}
_GROUPS = {"checkpoint": "checkpoints"}
"""What to install for a kind of source, where it is not "graphs"."""
NO_OPERATION = {
    "onnx": ("Shape", "Size"),
    "stablehlo": ("constant", "composite", "custom_call"),
    "tflite": (
        "SHAPE",
        "RANK",
        "ZEROS_LIKE",
        "RANGE",
        "BROADCAST_ARGS",
        "WHERE",
        "DENSIFY",
        "CALL",
        "WHILE",
        "CALL_ONCE",
        "VAR_HANDLE",
        "READ_VARIABLE",
        "ASSIGN_VARIABLE",
    ),
}
"""Operators that become a constant, what they consist of, a state or nothing: docs/graphs.md."""
_TEXT = (b"module", b"#", b"//", b"func")


def read(
    source: Any,  # noqa: ANN401
    *,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    constants: Mapping[str, Array] | None = None,
) -> Graph:
    """Read a network.

    Args:
        source: a path, of a file or of the folder of a checkpoint, the bytes of a file but of
            GGUF, the text of an MLIR module, or a live object: `onnx.ModelProto`, a module of
            jaxlib's MLIR, `jax.export.Exported`, `weights.checkpoint.Checkpoint`.
        shapes: of inputs with free dimensions, by name.
        constants: values of inputs that are to be constants of the graph, by name.

    Returns:
        The graph in float or as quantised there, with the names of the source.

    Raises:
        GraphError: there is no such file, or it is none that can be read; a package is missing.
    """
    kind = kind_of(source)
    if kind != "checkpoint" and isinstance(source, str | Path) and named(source) == str(source):
        _require_file(Path(source))
    module = _module(kind, source)
    if kind == "onnx":
        graph: Graph = module.read(source, shapes=shapes, constants=constants)
        return graph
    graph = module.read(source, shapes=shapes) if shapes else module.read(source)
    return bind(graph, constants) if constants else graph


def opened(source: Any) -> Any:  # noqa: ANN401
    """Return the checkpoint of a path that is one, and any other source. Raises GraphError."""
    if isinstance(source, str | Path) and kind_of(source) == "checkpoint":
        return _module("checkpoint", source).checkpoint_of(source)
    return source


def usual_samples(source: Any, graph: Graph) -> Mapping[str, Array] | None:  # noqa: ANN401
    """Return what a network is calibrated with where nobody says it; None if nothing is known.

    Raises:
        GraphError: there is no text for a checkpoint.
    """
    kind = kind_of(source)
    if kind != "checkpoint":
        return None
    samples: Mapping[str, Array] = _module(kind, source).usual_samples(source, graph)
    return samples


def usual_wide(source: Any) -> tuple[str, ...]:  # noqa: ANN401
    """Return the operations of a network whose values have 16 bits though nobody says it."""
    if kind_of(source) != "checkpoint":
        return ()
    names: tuple[str, ...] = _module("checkpoint", source).usual_wide(source)
    return names


def _module(kind: str, source: Any) -> Any:  # noqa: ANN401
    """Return the importer of a kind of source. Raises GraphError where a package is missing."""
    try:
        return importlib.import_module(f"npu.graph.importers.{_MODULES[kind]}")
    except ImportError as error:
        group = _GROUPS.get(kind, "graphs")
        raise GraphError(
            f"{named(source)}: reading {kind} needs a package: {error}: pip install -e .[{group}]"
        ) from None


def _require_file(path: Path) -> None:
    """Raise GraphError unless a file can be read, which needs no package to be said."""
    try:
        path.open("rb").close()
    except OSError as error:
        raise GraphError(f"{path}: {error.strerror}") from None


def named(source: Any) -> str:  # noqa: ANN401
    """Return how errors call a source: its path, or what it is."""
    if isinstance(source, Path) or (isinstance(source, str) and "\n" not in source):
        return str(source)
    return source.source if isinstance(source, Checkpoint) else f"<{type(source).__name__}>"


def kind_of(source: Any) -> str:  # noqa: ANN401
    """Return onnx, stablehlo, tflite or checkpoint, by suffix, content or type of object."""
    if isinstance(source, Checkpoint):
        return "checkpoint"
    if isinstance(source, str) and "\n" in source:
        return "stablehlo"
    if isinstance(source, str | Path):
        path = Path(source)
        if path.suffix in _SUFFIXES:
            return _SUFFIXES[path.suffix]
        if path.is_dir():
            return "checkpoint"
        try:
            with path.open("rb") as file:
                head = file.read(16)
            return "checkpoint" if head.startswith(b"GGUF") else _by_content(head)
        except OSError as error:
            raise GraphError(f"{path}: {error.strerror or error}") from None
    if isinstance(source, bytes | bytearray):
        return _by_content(bytes(source[:16]))
    return "onnx" if type(source).__module__.startswith("onnx") else "stablehlo"


def _by_content(head: bytes) -> str:
    if head[4:8] == b"TFL3":
        return "tflite"
    if head.startswith(b"ML\xefR") or head.removeprefix(codecs.BOM_UTF8).lstrip().startswith(_TEXT):
        return "stablehlo"
    return "onnx"
