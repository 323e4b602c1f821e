# SPDX-License-Identifier: Apache-2.0
"""Opens an ONNX file and checks it before anything is made of it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import checker, defs, inliner, numpy_helper

from npu.graph.build import CALLED
from npu.graph.form import Array, GraphError

FIRST, LAST = 1, 28
_DEEPEST = 64
"""How deep functions may call one another."""


def load(source: Any) -> tuple[onnx.ModelProto, str]:  # noqa: ANN401
    """Return a checked model with its weights inside and its functions inlined, and its name.

    Args:
        source: a path, bytes or a `ModelProto`.

    Raises:
        GraphError: it is no model, its version is unknown, weights are missing, or its nodes
            are in no order.
    """
    folder: Path | None = None
    if isinstance(source, onnx.ModelProto):
        model, file = onnx.ModelProto(), "<ModelProto>"
        model.CopyFrom(source)
    elif isinstance(source, bytes | bytearray):
        model, file = _parsed(bytes(source), "<bytes>"), "<bytes>"
    else:
        path = Path(source)
        file, folder = str(path), path.parent
        try:
            model = _parsed(path.read_bytes(), file)
        except OSError as error:
            raise GraphError(f"{file}: {error.strerror or error}") from None
    try:
        _check_version(model)
        inside = [node for function in model.functions for node in function.node]
        for tensor in tensors_of([*model.graph.node, *inside], model.graph):
            _inside(tensor, folder)
        _call_it_one_name(model)
        if model.functions:
            _give_defaults(model)
            _count_calls(model)
            _give_versions(model)
            model = inliner.inline_local_functions(model)
        _sort(model.graph)
        _check(model)
    except GraphError as error:
        raise GraphError(f"{file}: {error}") from None
    return model, file


def _parsed(data: bytes, file: str) -> onnx.ModelProto:
    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except Exception as error:  # DecodeError of protobuf, which has no types
        raise GraphError(f"{file}: no ONNX model, or cut off: {error}") from None
    if not model.HasField("graph"):
        raise GraphError(f"{file}: {len(data)} bytes without a graph, allowed an ONNX model")
    return model


def _call_it_one_name(model: onnx.ModelProto) -> None:
    """Give the standard the one of its two names that all of onnx knows.

    Raises:
        GraphError: a domain is no text.
    """
    inside = [node for function in model.functions for node in function.node]
    imports = [one for function in model.functions for one in function.opset_import]
    for one in (*nodes_of(*model.graph.node, *inside), *model.opset_import, *imports):
        if not isinstance(one.domain, str):  # what protobuf makes of bytes that are no text
            raise GraphError(f"domain {one.domain!r}, allowed text in UTF-8")
        if one.domain == "ai.onnx":
            one.domain = ""


def _give_defaults(model: onnx.ModelProto) -> None:
    """Give calls of functions the attributes that they leave to defaults: onnx inlines none."""
    defaults = {
        (one.domain, one.name, one.overload): one.attribute_proto for one in model.functions
    }
    inside = [node for function in model.functions for node in function.node]
    for node in nodes_of(*model.graph.node, *inside):
        given = {one.name for one in node.attribute}
        known = defaults.get((node.domain, node.op_type, node.overload), ())
        node.attribute.extend(one for one in known if one.name not in given)


def _give_versions(model: onnx.ModelProto) -> None:
    """Give functions the model's version of the standard operators: onnx inlines no other.

    The standard allows another version where it means the same for every node inside.
    """
    wanted = opset(model)
    for function in model.functions:
        version = opset(function)
        for node in nodes_of(*function.node) if version != wanted else ():
            if not node.domain and _schema(node, version) != _schema(node, wanted):
                raise GraphError(
                    f"function {function.name!r} of domain {function.domain!r}: {node.op_type} of "
                    f"version {version}, allowed one that means the same in {wanted}, the model's"
                )
        for one in function.opset_import:
            if not one.domain:
                one.version = wanted


def _schema(node: onnx.NodeProto, version: int) -> int | None:
    """Return since when an operator is as it is in a version, None where there is none yet."""
    try:
        return _since(defs.get_schema(node.op_type, version))
    except defs.SchemaError:
        return None


def _count_calls(model: onnx.ModelProto) -> None:
    """Raise GraphError if functions call themselves, or stand for too many nodes."""
    functions = {(one.domain, one.name, one.overload): one for one in model.functions}
    sizes: dict[tuple[str, str, str], int] = {}
    open_ones: dict[tuple[str, str, str], None] = {}

    def size(nodes: Iterable[onnx.NodeProto]) -> int:
        total = 0
        for node in nodes_of(*nodes):
            key = node.domain, node.op_type, node.overload
            if key in open_ones or (key in functions and len(open_ones) == _DEEPEST):
                raise GraphError(
                    f"function {node.op_type!r} of domain {node.domain!r}: it calls itself, or is "
                    f"more than {_DEEPEST} deep"
                )
            if key in functions and key not in sizes:
                open_ones[key] = None
                sizes[key] = size(functions[key].node)
                del open_ones[key]
            total += sizes.get(key, 0) + 1
        return total

    within = size(model.graph.node) - sum(1 for _ in nodes_of(*model.graph.node))
    if within > CALLED:
        raise GraphError(
            f"calls of functions stand for {within:,} operations, allowed up to {CALLED:,}"
        )


def opset(model: onnx.ModelProto | onnx.FunctionProto) -> int:
    """Return the version of the standard operators in a model or function, 0 if it names none."""
    return max(
        (one.version for one in model.opset_import if one.domain in ("", "ai.onnx")), default=0
    )


def _check_version(model: onnx.ModelProto) -> None:
    if not 1 <= model.ir_version <= onnx.IR_VERSION:
        raise GraphError(f"IR version {model.ir_version}, allowed 1..{onnx.IR_VERSION}")
    version = opset(model)
    standard = version or any(node.domain in ("", "ai.onnx") for node in model.graph.node)
    if standard and not FIRST <= version <= LAST:
        raise GraphError(f"operator set version {version}, allowed {FIRST}..{LAST}")


def nodes_of(*nodes: onnx.NodeProto) -> Iterator[onnx.NodeProto]:
    """Yield nodes and those of graphs inside them."""
    for node in nodes:
        yield node
        for graph in _graphs(node):
            yield from nodes_of(*graph.node)


def _graphs(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    for attribute in node.attribute:
        yield from attribute.graphs
        if attribute.HasField("g"):
            yield attribute.g


def tensors_of(
    nodes: Iterable[onnx.NodeProto], graph: onnx.GraphProto | None = None
) -> Iterator[onnx.TensorProto]:
    """Yield all constants of nodes, of graphs inside them, and of the graph around them."""
    around = [] if graph is None else [graph]
    for node in nodes_of(*nodes):
        around += _graphs(node)
        for attribute in node.attribute:
            sparse = [*attribute.sparse_tensors, attribute.sparse_tensor]
            yield from (attribute.t, *attribute.tensors)
            yield from (part for one in sparse for part in (one.values, one.indices))
    for one in around:
        yield from one.initializer
        for each in one.sparse_initializer:
            yield from (each.values, each.indices)


def _inside(tensor: onnx.TensorProto, folder: Path | None) -> None:
    """Read data that lies in another file; only one inside the folder of the model is opened."""
    if tensor.data_location != onnx.TensorProto.EXTERNAL:
        return
    given = {entry.key: entry.value for entry in tensor.external_data}
    where = f"weight {tensor.name!r} in {given.get('location', '')!r}"
    if folder is None:
        raise GraphError(f"{where}: data outside the model, allowed only for a path")
    location = Path(given.get("location", ""))
    path = (folder / location).resolve()
    if not location.parts or location.is_absolute() or not path.is_relative_to(folder.resolve()):
        raise GraphError(f"{where}: allowed only files inside {str(folder)!r}")
    try:
        offset, length = int(given.get("offset", 0)), int(given.get("length", -1))
    except ValueError:
        raise GraphError(f"{where}: offset and length must be numbers") from None
    try:
        size = path.stat().st_size if path.is_file() else -1
        length = size - offset if length == -1 else length
        if size < 0:
            raise GraphError(f"{where}: there is no such file")
        if not 0 <= offset <= offset + length <= size:
            raise GraphError(f"{where}: bytes {offset}..{offset + length}, the file has {size}")
        with path.open("rb") as file:
            file.seek(offset)
            tensor.raw_data = file.read(length)
    except OSError as error:
        raise GraphError(f"{where}: {error.strerror or error}") from None
    tensor.data_location = onnx.TensorProto.DEFAULT
    del tensor.external_data[:]


def array(tensor: onnx.TensorProto) -> Array:
    """Return a constant. Raises GraphError if its bytes do not fit its shape."""
    try:
        data: Array = numpy_helper.to_array(tensor)
    except (ValueError, TypeError, KeyError, NotImplementedError) as error:
        raise GraphError(f"weight {tensor.name!r}: {error}") from None
    return data


def dense(sparse: onnx.SparseTensorProto) -> Array:
    """Return a constant of which a file has what is not 0. Raises GraphError if it does not fit."""
    values, indices, shape = array(sparse.values), array(sparse.indices), tuple(sparse.dims)
    found = np.zeros(math.prod(shape), values.dtype)
    if indices.ndim == 2:
        indices = np.ravel_multi_index(tuple(indices.T), shape)
    found[indices] = values
    return found.reshape(shape)


def node_name(node: onnx.NodeProto) -> str:
    """Return the name of a node, made from its first result if it has none."""
    return node.name or next((name for name in node.output if name), "") or node.op_type


def needs(node: onnx.NodeProto) -> list[str]:
    """Return what a node reads, what graphs inside it read from outside included."""
    found = [name for name in node.input if name]
    for attribute in node.attribute:
        for graph in (*attribute.graphs, *([attribute.g] if attribute.HasField("g") else [])):
            own = {one.name for one in (*graph.input, *graph.initializer)}
            own |= {one.values.name for one in graph.sparse_initializer}
            for inner in graph.node:
                found += [name for name in needs(inner) if name not in own]
                own |= set(inner.output)
            found += [one.name for one in graph.output if one.name and one.name not in own]
    return list(dict.fromkeys(found))


def _sort(graph: onnx.GraphProto) -> None:
    """Put nodes behind what they read. Raises GraphError for cycles and names of nothing."""
    known = {one.name for one in (*graph.input, *graph.initializer)}
    known |= {one.values.name for one in graph.sparse_initializer}
    made = _made_once(graph, known)
    ordered: list[onnx.NodeProto] = []
    waiting = list(graph.node)
    while waiting:
        rest = []
        for node in waiting:
            if all(name in known for name in needs(node)):
                ordered.append(node)
                known.update(node.output)
            else:
                rest.append(node)
        if len(rest) == len(waiting):
            _refuse(rest[0], known, made)
        waiting = rest
    if [id(node) for node in ordered] != [id(node) for node in graph.node]:
        kept = [onnx.NodeProto() for _ in ordered]
        for one, node in zip(kept, ordered, strict=True):
            one.CopyFrom(node)
        del graph.node[:]
        graph.node.extend(kept)
    for one in graph.output:
        if one.name not in known:
            raise GraphError(f"output {one.name!r} of the graph: nothing assigns it")


def _made_once(graph: onnx.GraphProto, known: set[str]) -> dict[str, str]:
    made: dict[str, str] = {}
    for node in graph.node:
        for name in node.output:
            if name and (name in made or name in known):
                raise GraphError(
                    f"operation {node_name(node)!r} ({node.op_type}): tensor {name!r} is "
                    "assigned twice"
                )
            made[name] = node_name(node)
    return made


def _refuse(node: onnx.NodeProto, known: set[str], made: dict[str, str]) -> None:
    """Raise for a node that waits for ever: a name of nothing comes before a cycle."""
    missing = [name for name in needs(node) if name not in known]
    name = next((one for one in missing if one not in made), missing[0])
    where = f"operation {node_name(node)!r} ({node.op_type}): tensor {name!r}"
    if name in made:
        raise GraphError(f"{where} comes from {made[name]!r}, which waits for it: a cycle")
    raise GraphError(f"{where}: nothing assigns it, allowed an input, a weight or a result")


def standard(domain: str) -> str:
    """Return "" for both names of the standard's domain, others as they are."""
    return "" if domain == "ai.onnx" else domain


@cache
def _history() -> Mapping[str, list[onnx.defs.OpSchema]]:
    """Return the schemas of the operators of the standard, oldest first."""
    found: dict[str, list[onnx.defs.OpSchema]] = {}
    for one in onnx.defs.get_all_schemas_with_history():
        if standard(one.domain) == "":
            found.setdefault(one.name, []).append(one)
    return {name: sorted(all_, key=_since) for name, all_ in found.items()}


def _since(schema: onnx.defs.OpSchema) -> int:
    return int(schema.since_version)


def version_of(node: onnx.NodeProto, version: int) -> int | None:
    """Return the first operator set from a version on that has a node's operator and attributes.

    Whoever writes files may use what a later set has, and runtimes take it. None if no set has it.
    """
    if standard(node.domain):
        return None
    said = {one.name for one in node.attribute}
    history = _history().get(node.op_type, [])
    for index, one in enumerate(history):
        last = all(_since(after) > version for after in history[index + 1 :])
        if last and one.deprecated:  # what comes behind it means something else
            return None
        if last and said <= {*one.attributes}:
            return max(version, _since(one))
    return None


_HIDDEN = "a.dialect"
_WEIGHTS_ARE_INPUTS = 3
"""The last IR version whose weights are inputs as well; runtimes take those that are not."""


def _check(model: onnx.ModelProto) -> None:
    """Let the checker of onnx look at a model; its own messages name the node.

    What is not of the version of the standard that the model names is the importer's affair, but
    for operators of later versions, which are looked at one by one. So are inputs and outputs
    without a shape, a graph without a name, and weights of IR version 3 that are no inputs.
    """
    version, nameless = opset(model), model.graph.name == ""
    written = model.ir_version
    if written == _WEIGHTS_ARE_INPUTS:
        model.ir_version = written + 1
    strange = [one for one in nodes_of(*model.graph.node) if version_of(one, version) != version]
    for one in strange:
        _check_later(one, version_of(one, version), model)
    domains = [one.domain for one in strange]
    borders = [one for one in (*model.graph.input, *model.graph.output) if _is_bare(one.type)]
    types = [one.type.SerializeToString() for one in borders]
    model.opset_import.add(domain=_HIDDEN, version=1)
    for one in strange:
        one.domain = _HIDDEN
    if nameless:
        model.graph.name = _HIDDEN
    for one in borders:
        tensor = one.type.tensor_type
        tensor.elem_type = tensor.elem_type or onnx.TensorProto.FLOAT
        tensor.shape.SetInParent()
    try:
        _checked(model)
    finally:
        model.ir_version = written
        if nameless:
            model.graph.ClearField("name")
        for one, domain in zip(strange, domains, strict=True):
            one.domain = domain
        for one, kind in zip(borders, types, strict=True):
            one.type.ParseFromString(kind)
        model.opset_import.pop()


def _check_later(node: onnx.NodeProto, version: int | None, model: onnx.ModelProto) -> None:
    """Let the checker look at a node of a later version; None is one that no version has."""
    if version is None:
        return
    context = checker.C.CheckerContext()
    context.ir_version = model.ir_version
    context.opset_imports = {"": version}
    try:
        checker.check_node(node, context)
    except checker.ValidationError as error:
        text = " ".join(str(error).split())
        raise GraphError(f"the checker of onnx refuses it: {text}") from None


def _is_bare(kind: onnx.TypeProto) -> bool:
    """Say whether a type is not given, or is a tensor of a shape that is not given."""
    if not kind.WhichOneof("value"):
        return True
    return kind.HasField("tensor_type") and not kind.tensor_type.HasField("shape")


def _checked(model: onnx.ModelProto) -> None:
    try:
        checker.check_model(model)
    except (checker.ValidationError, ValueError, RuntimeError, TypeError) as error:
        text = " ".join(str(error).split())
        # Above two GiB there is nothing that it could look at.
        if "2GB" not in text and "2GiB" not in text:
            raise GraphError(f"the checker of onnx refuses it: {text}") from None
