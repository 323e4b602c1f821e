# SPDX-License-Identifier: Apache-2.0
"""A StableHLO module from what people have: a live module, text, bytecode, an export of jax."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from npu.graph.form import GraphError
from npu.graph.importers.stablehlo_bytecode import checked, context, parsed
from npu.graph.inputs import check_shapes, shape_option

Module = Any
"""`jaxlib.mlir.ir.Module`, which has no types."""
_BYTECODE = b"ML\xefR"
_NO_QUANT = (
    "quantised types (!quant) cannot be read, allowed int8 dot_general or convolution with int32 "
    "result followed by multiply, round_nearest_even and clamp, or the composites "
    "tessera.quantize and tessera.dequantize"
)


def load(source: object, file: str, shapes: Mapping[str, tuple[int, ...]]) -> Module:
    """Return the module of a source, its free dimensions bound.

    Args:
        source: a module, its text, its portable bytecode, a `jax.export.Exported` or its
            serialised form, or the path of a file with one of these.
        file: what messages call it.
        shapes: of inputs by name ("arg0", or the name that the source has), for those with free
            dimensions.

    Raises:
        GraphError: it is none of these, jax is missing, or a dimension stays free.
    """
    ir = _ir()
    if isinstance(source, Path):
        try:
            source = source.read_bytes()
        except OSError as error:
            raise GraphError(f"{file}: {error.strerror}") from None
    if isinstance(source, bytes | bytearray):
        module = _from_bytes(bytes(source), file)
    elif isinstance(source, str):
        module = _from_text(source, file)
    elif isinstance(getattr(source, "mlir_module_serialized", None), bytes):
        module = _from_bytes(source.mlir_module_serialized, file)  # type: ignore[attr-defined]
    elif isinstance(source, ir.Module):
        module = source
    else:
        raise GraphError(
            f"{file}: given {type(source).__name__}, allowed a module, text, bytes or a path"
        )
    if "@main" not in functions(module):
        found = ", ".join(functions(module)) or "none"
        raise GraphError(f"{file}: functions {found}, allowed a module with @main")
    return _bound(module, file, shapes)


def functions(module: Module) -> dict[str, Any]:
    """Return the functions of a module by name, "@" in front."""
    found = {}
    for op in module.body.operations:
        if op.operation.name == "func.func":
            found["@" + op.operation.attributes["sym_name"].value] = op.operation
    return found


def _ir() -> Any:  # noqa: ANN401
    try:
        from jaxlib.mlir import ir
    except ImportError as error:
        raise GraphError(f"{error}: StableHLO needs jax: pip install -e .[graphs]") from None
    return ir


def _from_bytes(data: bytes, file: str) -> Module:
    if not data:
        raise GraphError(f"{file}: empty, allowed StableHLO text or bytecode")
    if data.startswith(_BYTECODE):
        return _from_bytecode(data, file)
    if b"StableHLO_v" in data and _BYTECODE in data:
        return _from_export(data, file)
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise GraphError(
            f"{file}: begins with {data[:4]!r}, allowed text, bytecode (b'ML\\xefR') or the "
            "serialised form of jax.export"
        ) from None
    return _from_text(text, file)


def _from_bytecode(data: bytes, file: str) -> Module:
    _ir()
    good = checked(data, file)
    with _Caught(file, "bytecode of MLIR or portable bytecode of StableHLO"):
        return parsed(good)


def _from_export(data: bytes, file: str) -> Module:
    import jax.export

    with _Caught(file, "the serialised form of jax.export"):
        artifact = jax.export.deserialize(bytearray(data)).mlir_module_serialized
    return _from_bytecode(artifact, file)


def _from_text(text: str, file: str) -> Module:
    if "!quant." in text:
        raise GraphError(f"{file}: {_NO_QUANT}")
    with _Caught(file, "text of a StableHLO module"):
        return _ir().Module.parse(text.removeprefix("\ufeff"), context())


class _Caught:
    """Turns whatever a reader of files raises into a GraphError of one line."""

    def __init__(self, file: str, allowed: str) -> None:
        self._file, self._allowed = file, allowed

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type | None, error: BaseException | None, trace: object) -> None:
        if error is None or not isinstance(error, Exception):
            return
        if isinstance(error, GraphError):
            raise error
        text = str(error)
        if "quant" in text and "uniform" in text:
            raise GraphError(f"{self._file}: {_NO_QUANT}") from None
        reason = " ".join(text.split())[:300] or type(error).__name__
        raise GraphError(f"{self._file}: {reason}; allowed {self._allowed}") from None


def argument_name(argument: Any, index: int) -> str:  # noqa: ANN401
    """Return the name that the source gave an argument of a function, else "arg" and a number."""
    found = re.match(r'loc\("([^"]*)"\)$', str(argument.location))
    return found[1] if found and found[1] not in ("-", "") else f"arg{index}"


def _bound(module: Module, file: str, shapes: Mapping[str, tuple[int, ...]]) -> Module:
    """Bind free dimensions of the inputs, and check that none is left."""
    main = functions(module)["@main"]
    arguments = main.regions[0].blocks[0].arguments
    free, types = False, []
    names = [argument_name(argument, index) for index, argument in enumerate(arguments)]
    numbered = (f"arg{index}" for index in range(len(arguments)))
    check_shapes(shapes, dict.fromkeys((*names, *numbered)), file)
    for index, argument in enumerate(arguments):
        name = names[index]
        text = str(argument.type)
        given = shapes.get(name, shapes.get(f"arg{index}"))
        dimensions = text.removeprefix("tensor<").removesuffix(">").split("x")[:-1]
        if given is not None:
            fits = len(given) == len(dimensions) and all(
                one in ("?", str(size)) for one, size in zip(dimensions, given, strict=True)
            )
            if not fits:
                raise GraphError(
                    f"{file}: input {name}: shape {list(given)}, allowed {'x'.join(dimensions)}"
                )
            element = text.removesuffix(">").rsplit("x", 1)[-1].removeprefix("tensor<")
            text = f"tensor<{''.join(f'{size}x' for size in given)}{element}>"
        elif "?" in dimensions:
            raise GraphError(
                f"{file}: input {name}: free dimensions in {'x'.join(dimensions)}, allowed fixed "
                f"ones: give {shape_option(name, dimensions)}"
            )
        free |= "?" in dimensions
        types.append(text)
    return _refined(module, types, file) if free else module


def _refined(module: Module, types: list[str], file: str) -> Module:
    """Return the module with the types of its inputs fixed and all shapes inferred."""
    from jaxlib.mlir import passmanager
    from jaxlib.mlir.dialects import stablehlo

    ir = _ir()
    stablehlo.register_stablehlo_passes()
    steps = "inline,stablehlo-refine-shapes,func.func(stablehlo-canonicalize-dynamism)"
    with _Caught(file, "shapes from which all others follow"):
        # A module of the caller stays as it is.
        copy = ir.Module.parse(module.operation.get_asm(binary=True), module.context)
        with copy.context:
            manager = passmanager.PassManager.parse(
                "builtin.module(inline,stablehlo-refine-arguments{types="
                + ",".join(types)
                + "},"
                + f"{steps},{steps})"
            )
            manager.run(copy.operation)
        return copy
