# SPDX-License-Identifier: Apache-2.0
"""What a TFLite file holds: tensors with types and values, operators with options."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from npu.graph.form import LARGEST, RANK, Array, Element, GraphError, Quantisation
from npu.graph.importers.tflite_flatbuffer import FileBytes, FileTable, Options
from npu.graph.importers.tflite_names import CUSTOM, PLACEHOLDER, operator_name

_ELEMENTS = {
    0: Element.F32,
    1: Element.F16,
    2: Element.I32,
    3: Element.U8,
    4: Element.I64,
    6: Element.BOOL,
    7: Element.I16,
    9: Element.I8,
    10: Element.F64,
    12: Element.U64,
    15: Element.U32,
    16: Element.U16,
}
_OTHERS = {5: "string", 8: "complex64", 11: "complex128", 13: "resource", 14: "variant", 17: "int4"}
_INT4 = 17
_VERSION = 3


@dataclass(frozen=True, eq=False)
class FileTensor:
    """A tensor of the file.

    Attributes:
        name: in the file, maybe empty or not the only one.
        shape: with -1 for a free dimension.
        usual: the same as the file has it for who binds nothing.
        element: its type; None where it is none that a graph can hold, `kind` says which.
        kind: name of the type.
        quantisation: what its integers stand for, None if nothing is said.
        data: its value if it is constant.
        trouble: why it cannot be used, "" if it can.
    """

    name: str
    shape: tuple[int, ...]
    usual: tuple[int, ...]
    element: Element | None
    kind: str
    quantisation: Quantisation | None
    data: Array | None
    trouble: str


@dataclass(frozen=True, eq=False)
class FileOperator:
    """An operator of the file: name, places of its tensors (-1: not given) and options."""

    name: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: Options | None


@dataclass(frozen=True, eq=False)
class FileModel:
    """A subgraph of a file; `subgraph` reads another one, by its number."""

    name: str
    tensors: tuple[FileTensor, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    operators: tuple[FileOperator, ...]
    subgraph: Callable[[int], FileModel]


def parse(data: bytes, file: str) -> FileModel:
    """Return the first subgraph of a file.

    Raises:
        GraphError: it is no TFLite file, of another version, or damaged.
    """
    if len(data) < 8 or data[4:8] != b"TFL3":
        raise GraphError(
            f"{file}: {len(data)} bytes with identifier {bytes(data[4:8])!r}, allowed a model of "
            "TFLite with b'TFL3' at offset 4"
        )
    model = FileBytes(data, file).root()
    version = model.number(0, "I")
    if version != _VERSION:
        raise GraphError(f"{file}: version {version} of the format, allowed {_VERSION}")
    graphs = model.tables(2, "subgraph")
    if not graphs:
        raise GraphError(f"{file}: no subgraph, allowed at least one")
    names = [_operator_name(code) for code in model.tables(1, "operator code")]
    buffers = model.tables(4, "buffer")

    @cache
    def subgraph(number: int) -> FileModel:
        if not 0 <= number < len(graphs):
            raise GraphError(f"{file}: subgraph {number}, allowed 0..{len(graphs) - 1}")
        graph = graphs[number]
        found = FileModel(
            graph.text(4),
            tuple(_tensor(one, buffers, data, file) for one in graph.tables(0, "tensor")),
            tuple(int(one) for one in graph.vector(1, np.int32)),
            tuple(int(one) for one in graph.vector(2, np.int32)),
            tuple(_operator(one, names, file) for one in graph.tables(3, "operator")),
            subgraph,
        )
        _check_places(found, file)
        return found

    first = subgraph(0)
    if not first.outputs:
        raise GraphError(f"{file}: no outputs, allowed at least one")
    return first


def _operator_name(code: FileTable) -> str:
    # Old files have the code in a byte, newer ones there a mark and the code in an int32.
    number = max(code.number(0, "b"), code.number(3, "i"))
    if number == CUSTOM:
        return f"custom operator {code.text(1)!r}"
    return operator_name(number if number != PLACEHOLDER else code.number(3, "i"))


def _operator(given: FileTable, names: list[str], file: str) -> FileOperator:
    index = given.number(0, "I")
    if index >= len(names):
        raise GraphError(
            f"{file}: {given.what}: operator code {index}, allowed 0..{len(names) - 1}"
        )
    options = given.table(4, f"{given.what} ({names[index]}): options")
    return FileOperator(
        names[index],
        tuple(int(one) for one in given.vector(1, np.int32)),
        tuple(int(one) for one in given.vector(2, np.int32)),
        None if options is None else Options(options),
    )


def _check_places(model: FileModel, file: str) -> None:
    """Check that every operator and the graph name tensors that exist."""
    allowed = f"allowed 0..{len(model.tensors) - 1}"
    for what, places in (("input", model.inputs), ("output", model.outputs)):
        for place in places:
            if not 0 <= place < len(model.tensors):
                raise GraphError(f"{file}: {what} of the graph is tensor {place}, {allowed}")
    for number, one in enumerate(model.operators):
        for what, places in (("input", one.inputs), ("output", one.outputs)):
            lowest = -1 if what == "input" else 0
            for place in places:
                if not lowest <= place < len(model.tensors):
                    raise GraphError(
                        f"{file}: operator {number} ({one.name}): {what} is tensor {place}, "
                        f"{allowed}"
                    )


def _tensor(given: FileTable, buffers: list[FileTable], data: bytes, file: str) -> FileTensor:
    name = given.text(3)
    where = f"{file}: {given.what} {name!r}"
    shape = tuple(int(one) for one in given.vector(0, np.int32))
    signature = tuple(int(one) for one in given.vector(7, np.int32))
    if signature and len(signature) != len(shape):
        raise GraphError(f"{where}: shape {list(shape)} with signature {list(signature)}")
    kind = given.number(1, "b")
    # Constants of four bits are the same numbers in bytes.
    held = _held(given, buffers, data, where)
    packed = kind == _INT4 and len(held) > 0
    element = Element.I8 if packed else _ELEMENTS.get(kind)
    free = tuple(
        -1 if sign < 0 else size for size, sign in zip(shape, signature or shape, strict=True)
    )
    if (
        len(shape) > RANK
        or math.prod(abs(one) for one in shape) > LARGEST
        or min((*shape, *signature), default=0) < -1
    ):
        raise GraphError(
            f"{where}: shape {list(shape)[:20]}, allowed up to {RANK} axes and {LARGEST:,} elements"
        )
    trouble = ""
    if element is None:
        trouble = f"type {_OTHERS.get(kind, kind)}, allowed {', '.join(_ELEMENTS.values())}"
    elif given.number(5, "b"):
        trouble = "a variable, allowed inputs, constants and results"
    value = None
    if not trouble and element is not None:
        sparse = given.table(6, f"{given.what}: sparsity")
        if sparse is None or not len(held):
            value = _value(held, shape, element, packed, where)
        else:
            value = _dense(held, shape, element, packed, sparse, where)
    quantisation = _quantisation(given, shape, element, where)
    named = element or _OTHERS.get(kind, str(kind))
    return FileTensor(name, free, shape, element, named, quantisation, value, trouble)


def _held(given: FileTable, buffers: list[FileTable], data: bytes, where: str) -> Any:  # noqa: ANN401
    """Return the bytes of a tensor's buffer, none if it is no constant."""
    index = given.number(2, "I")
    if index >= len(buffers):
        raise GraphError(f"{where}: buffer {index}, allowed 0..{len(buffers) - 1}")
    outside, size = buffers[index].number(1, "Q"), buffers[index].number(2, "Q")
    if outside <= 1:
        return buffers[index].bytes(0)
    buffers[index].buffer.within(outside, size, f"{where}: value outside of the tables")
    return memoryview(data)[outside : outside + size]


def _value(
    held: Any,  # noqa: ANN401
    shape: tuple[int, ...],
    element: Element,
    packed: bool,
    where: str,
) -> Array | None:
    """Return the value of a tensor, None if its buffer is empty."""
    if not len(held):
        return None
    count = math.prod(shape)
    wanted = -(-count // 2) if packed else count * element.dtype.itemsize
    if min(shape, default=0) < 0 or len(held) != wanted:
        raise GraphError(f"{where}: value of {len(held)} bytes, allowed {wanted} for {list(shape)}")
    if packed:
        raw = np.frombuffer(held, np.uint8)
        both = np.stack([raw << 4, raw & 0xF0], -1).reshape(-1)[:count]
        return (both.view(np.int8) >> 4).reshape(shape)
    little = element.dtype.newbyteorder("<")
    return np.frombuffer(held, little).reshape(shape).astype(element.dtype)


def _dense(
    held: Any,  # noqa: ANN401
    shape: tuple[int, ...],
    element: Element,
    packed: bool,
    sparse: FileTable,
    where: str,
) -> Array:
    """Return the value of a sparse tensor with its zeros.

    Its axes, and those of blocks behind them, are walked through in an order of the file's; at
    each a part stands for every index, or for those that a list names.
    """
    order = [int(one) for one in sparse.vector(0, np.int32)]
    blocks = [int(one) for one in sparse.vector(1, np.int32)]
    levels = sparse.tables(2, "axis of a sparse tensor")
    rank = len(shape)
    if sorted(order) != list(range(rank + len(blocks))) or len(levels) != len(order):
        raise GraphError(f"{where}: sparse along axes {order} of {list(shape)}, blocks {blocks}")
    if any(not 0 <= axis < rank for axis in blocks):
        raise GraphError(f"{where}: blocks along axes {blocks} of {list(shape)}")
    # Of each part so far its index along each axis walked through.
    places = np.zeros((1, 0), np.int64)
    sizes = dict.fromkeys(range(len(order)), 0)
    for axis, level in zip(order, levels, strict=True):
        count = len(places)
        if level.number(0, "b"):
            ends = _listed(level, 2, 3)
            index = _listed(level, 4, 5)
            if len(ends) != count + 1 or ends[0] or ends[-1] != len(index):
                raise GraphError(f"{where}: {len(ends)} ends of {count} parts, allowed one more")
            repeats = np.diff(ends)
            if repeats.min(initial=0) < 0:
                raise GraphError(f"{where}: ends that go down")
            sizes[axis] = int(index.max(initial=-1)) + 1
        else:
            sizes[axis] = level.number(1, "i")
            if sizes[axis] < 1 or count * sizes[axis] > LARGEST:
                raise GraphError(f"{where}: {sizes[axis]} elements of an axis of {list(shape)}")
            repeats, index = np.full(count, sizes[axis]), np.tile(np.arange(sizes[axis]), count)
        places = np.column_stack([np.repeat(places, repeats, 0), index])
    at = dict(zip(order, places.T, strict=True))
    found = [at[axis] for axis in range(rank)]
    for number, axis in enumerate(blocks):
        found[axis] = found[axis] * sizes[rank + number] + at[rank + number]
    fits = all(
        one.min(initial=0) >= 0 and one.max(initial=0) < size
        for one, size in zip(found, shape, strict=True)
    )
    if not fits:
        raise GraphError(f"{where}: sparse elements outside of {list(shape)}")
    value = np.zeros(shape, element.dtype)
    given = _value(held, (len(places),), element, packed, where)
    value[tuple(found)] = 0 if given is None else given
    return value


def _listed(level: FileTable, kind: int, field: int) -> Array:
    """Return a list of indices, of one of three widths."""
    table = level.table(field, f"{level.what}: list")
    types = {1: np.int32, 2: np.uint16, 3: np.uint8}
    width = level.number(kind, "B")
    if table is None or width not in types:
        raise GraphError(f"{level.buffer.file}: {level.what}: a list of kind {width}, allowed 1..3")
    return table.vector(0, types[width]).astype(np.int64)


def _quantisation(
    given: FileTable, shape: tuple[int, ...], element: Element | None, where: str
) -> Quantisation | None:
    table = given.table(4, f"{given.what}: quantisation")
    if table is None or element is None or element.dtype.kind not in "iu":
        return None
    scales = table.vector(2, np.float32)
    zeros = table.vector(3, np.int64)
    if not scales.size:
        return None
    if table.number(4, "B"):
        raise GraphError(f"{where}: custom quantisation, allowed scales and zero points")
    if not np.all(np.isfinite(scales)) or scales.min() <= 0:
        raise GraphError(f"{where}: scale {scales.min()}, allowed finite numbers above 0")
    edge = np.iinfo(element.dtype)
    zero = int(zeros[0]) if zeros.size else 0
    if zeros.size not in (0, 1, scales.size) or np.any(zeros != zero):
        raise GraphError(
            f"{where}: {zeros.size} zero points {sorted({int(one) for one in zeros})[:4]} for "
            f"{scales.size} scales, allowed one value for all"
        )
    if not edge.min <= zero <= edge.max:
        raise GraphError(f"{where}: zero point {zero}, allowed {edge.min}..{edge.max}")
    kept = tuple(float(one) for one in scales)
    if scales.size == 1:
        return Quantisation(kept, zero)
    # Of one axis it is that one, whatever axis the weights have theirs along.
    axis = table.number(6, "i") if len(shape) > 1 else 0
    if not 0 <= axis < len(shape) or shape[axis] != scales.size:
        raise GraphError(
            f"{where}: {scales.size} scales along axis {axis} of {list(shape)}, allowed one per "
            "index of an axis"
        )
    return Quantisation(kept, zero, axis)
