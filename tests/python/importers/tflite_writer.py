# SPDX-License-Identifier: Apache-2.0
"""Writes TFLite files for tests, field by field, so that damaged ones can be written too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from npu.graph.form import Array
from npu.graph.importers.tflite_names import NUMBERS

TYPES = {
    "float32": 0,
    "float16": 1,
    "int32": 2,
    "uint8": 3,
    "int64": 4,
    "bool": 6,
    "int16": 7,
    "int8": 9,
    "resource": 13,
    "int4": 17,
}
# Options by operator: the name of their table, and of its fields with numbers and forms.
_FUSED = {"fused": (0, "b")}
_REDUCER = ("ReducerOptions", {"keep": (0, "b")})
OPTIONS: dict[str, tuple[str, dict[str, tuple[int, str]]]] = {
    "CONV_2D": (
        "Conv2DOptions",
        {"padding": (0, "b"), "across": (1, "i"), "down": (2, "i"), "fused": (3, "b")}
        | {"dilation_across": (4, "i"), "dilation_down": (5, "i")},
    ),
    "DEPTHWISE_CONV_2D": (
        "DepthwiseConv2DOptions",
        {"padding": (0, "b"), "across": (1, "i"), "down": (2, "i"), "multiplier": (3, "i")}
        | {"fused": (4, "b"), "dilation_across": (5, "i"), "dilation_down": (6, "i")},
    ),
    **dict.fromkeys(
        ("AVERAGE_POOL_2D", "MAX_POOL_2D"),
        (
            "Pool2DOptions",
            {"padding": (0, "b"), "across": (1, "i"), "down": (2, "i"), "width": (3, "i")}
            | {"height": (4, "i"), "fused": (5, "b")},
        ),
    ),
    "FULLY_CONNECTED": ("FullyConnectedOptions", {**_FUSED, "keep": (2, "b")}),
    "ADD": ("AddOptions", _FUSED),
    "SUB": ("SubOptions", _FUSED),
    "MUL": ("MulOptions", _FUSED),
    "DIV": ("DivOptions", _FUSED),
    "SOFTMAX": ("SoftmaxOptions", {"beta": (0, "f")}),
    "CONCATENATION": ("ConcatenationOptions", {"axis": (0, "i"), "fused": (1, "b")}),
    "LEAKY_RELU": ("LeakyReluOptions", {"alpha": (0, "f")}),
    "GELU": ("GeluOptions", {"approximate": (0, "b")}),
    **dict.fromkeys(
        ("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD", "REDUCE_ANY"), _REDUCER
    ),
    "STRIDED_SLICE": (
        "StridedSliceOptions",
        {"begin": (0, "i"), "end": (1, "i"), "ellipsis": (2, "i"), "new": (3, "i")}
        | {"shrink": (4, "i"), "offset": (5, "b")},
    ),
    "SPLIT": ("SplitOptions", {"count": (0, "i")}),
    "SPLIT_V": ("SplitVOptions", {"count": (0, "i")}),
    "BATCH_MATMUL": ("BatchMatMulOptions", {"a": (0, "b"), "b": (1, "b")}),
    "GATHER": ("GatherOptions", {"axis": (0, "i"), "batches": (1, "i")}),
    "ARG_MAX": ("ArgMaxOptions", {"type": (0, "b")}),
    "PACK": ("PackOptions", {"count": (0, "i"), "axis": (1, "i")}),
    "UNPACK": ("UnpackOptions", {"count": (0, "i"), "axis": (1, "i")}),
    "CAST": ("CastOptions", {"from": (0, "b"), "to": (1, "b")}),
    "SPACE_TO_DEPTH": ("SpaceToDepthOptions", {"block": (0, "i")}),
    "DEPTH_TO_SPACE": ("DepthToSpaceOptions", {"block": (0, "i")}),
    "MIRROR_PAD": ("MirrorPadOptions", {"mode": (0, "b")}),
    "RESIZE_BILINEAR": ("ResizeBilinearOptions", {"corners": (2, "b"), "centres": (3, "b")}),
    "RESIZE_NEAREST_NEIGHBOR": (
        "ResizeNearestNeighborOptions",
        {"corners": (0, "b"), "centres": (1, "b")},
    ),
    "SPACE_TO_BATCH_ND": ("SpaceToBatchNDOptions", {}),
    "BATCH_TO_SPACE_ND": ("BatchToSpaceNDOptions", {}),
    "TRANSPOSE_CONV": (
        "TransposeConvOptions",
        {"padding": (0, "b"), "across": (1, "i"), "down": (2, "i"), "fused": (3, "b")},
    ),
    "L2_NORMALIZATION": ("L2NormOptions", _FUSED),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": (
        "UnidirectionalSequenceLSTMOptions",
        {"fused": (0, "b"), "clip": (1, "f"), "time_major": (3, "b")},
    ),
    "SVDF": ("SVDFOptions", {"rank": (0, "i"), "fused": (1, "b")}),
    "VAR_HANDLE": ("VarHandleOptions", {"container": (0, "s"), "shared": (1, "s")}),
    "READ_VARIABLE": ("ReadVariableOptions", {}),
    "ASSIGN_VARIABLE": ("AssignVariableOptions", {}),
    "CALL_ONCE": ("CallOnceOptions", {"subgraph": (0, "i")}),
    "ZEROS_LIKE": ("ZerosLikeOptions", {}),
    "RANK": ("RankOptions", {}),
    "FILL": ("FillOptions", {}),
    "RESHAPE": ("ReshapeOptions", {}),
    "EXP": ("ExpOptions", {}),
    "PAD": ("PadOptions", {}),
    "PADV2": ("PadV2Options", {}),
    "TRANSPOSE": ("TransposeOptions", {}),
    "MAXIMUM": ("MaximumMinimumOptions", {}),
    "MINIMUM": ("MaximumMinimumOptions", {}),
    "SQUEEZE": ("SqueezeOptions", {}),
    "EXPAND_DIMS": ("ExpandDimsOptions", {}),
    "SLICE": ("SliceOptions", {}),
    "SHAPE": ("ShapeOptions", {}),
    "L2_POOL_2D": (
        "Pool2DOptions",
        {"padding": (0, "b"), "across": (1, "i"), "down": (2, "i"), "width": (3, "i")}
        | {"height": (4, "i"), "fused": (5, "b")},
    ),
    "FLOOR_DIV": ("FloorDivOptions", {}),
    "FLOOR_MOD": ("FloorModOptions", {}),
    "ARG_MIN": ("ArgMinOptions", {"type": (0, "b")}),
    "GATHER_ND": ("GatherNdOptions", {}),
    "SCATTER_ND": ("ScatterNdOptions", {}),
    "SEGMENT_SUM": ("SegmentSumOptions", {}),
    **{
        f"UNSORTED_SEGMENT_{name.upper()}": (f"UnsortedSegment{name}Options", {})
        for name in ("Sum", "Prod", "Max", "Min")
    },
    "TOPK_V2": ("TopKV2Options", {}),
    "CUMSUM": ("CumsumOptions", {"exclusive": (0, "b"), "reverse": (1, "b")}),
    "REVERSE_SEQUENCE": ("ReverseSequenceOptions", {"time": (0, "i"), "batch": (1, "i")}),
    "LOCAL_RESPONSE_NORMALIZATION": (
        "LocalResponseNormalizationOptions",
        {"radius": (0, "i"), "bias": (1, "f"), "alpha": (2, "f"), "beta": (3, "f")},
    ),
    "ONE_HOT": ("OneHotOptions", {"axis": (0, "i")}),
    "BUCKETIZE": ("BucketizeOptions", {"boundaries": (0, "F")}),
    "DYNAMIC_UPDATE_SLICE": ("DynamicUpdateSliceOptions", {}),
    "MATRIX_DIAG": ("MatrixDiagOptions", {}),
    "MATRIX_SET_DIAG": ("MatrixSetDiagOptions", {}),
    "RANGE": ("RangeOptions", {}),
    "WHERE": ("WhereOptions", {}),
    "DENSIFY": ("DensifyOptions", {}),
    "CALL": ("CallOptions", {"subgraph": (0, "I")}),
    "IF": ("IfOptions", {"yes": (0, "i"), "no": (1, "i")}),
    "WHILE": ("WhileOptions", {"go": (0, "i"), "body": (1, "i")}),
}
_OTHERS = ("code", "between")
"""What an operator has beside its options."""


@dataclass
class Writer:
    """A model under construction.

    Attributes:
        tensors: fields of each.
        operators: name, inputs, outputs, options.
    """

    tensors: list[dict[str, Any]] = field(default_factory=list)
    operators: list[tuple[str | int, Sequence[int], Sequence[int], Mapping[str, Any]]] = field(
        default_factory=list
    )

    def tensor(
        self,
        name: str,
        shape: Sequence[int],
        dtype: str | int = "float32",
        *,
        data: Array | bytes | None = None,
        scale: float | Sequence[float] | None = None,
        zero: int | Sequence[int] = 0,
        axis: int = 0,
        signature: Sequence[int] | None = None,
        buffer: int | None = None,
        variable: bool = False,
        sparse: Sequence[Any] | None = None,
    ) -> int:
        """Add a tensor; return its number."""
        self.tensors.append(
            {"name": name, "shape": shape, "data": data, "scale": scale, "zero": zero}
            | {"type": TYPES[dtype] if isinstance(dtype, str) else dtype, "axis": axis}
            | {"signature": signature, "buffer": buffer, "variable": variable, "sparse": sparse}
        )
        return len(self.tensors) - 1

    def constant(self, name: str, value: Array, **more: Any) -> int:  # noqa: ANN401
        """Add a constant tensor; return its number."""
        return self.tensor(name, value.shape, value.dtype.name, data=value, **more)

    def operator(
        self,
        name: str | int,
        inputs: Sequence[int],
        outputs: Sequence[int],
        **options: Any,  # noqa: ANN401
    ) -> None:
        """Add an operator with options by the names above."""
        self.operators.append((name, inputs, outputs, options))

    def write(
        self,
        inputs: Sequence[int],
        outputs: Sequence[int],
        *,
        version: int = 3,
        identifier: bytes = b"TFL3",
        subgraphs: int = 1,
        once: Writer | None = None,
        below: Sequence[tuple[Writer, Sequence[int], Sequence[int]]] = (),
    ) -> bytes:
        """Return the file, with so many subgraphs alike, one that is called once, and others.

        Those come with their inputs and outputs.
        """
        import flatbuffers

        b = flatbuffers.Builder(1024)
        # Buffer 0 is the empty one.
        buffers, written = [_table(b, [])], list[int]()
        main = self._subgraph(b, buffers, written, inputs, outputs)
        graphs = [main] * subgraphs
        if once is not None:
            graphs.append(once._subgraph(b, buffers, written, (), ()))
        graphs += [one._subgraph(b, buffers, written, *ends) for one, *ends in below]
        model = _table(
            b,
            [
                (0, "I", version),
                (1, "o", _offsets(b, written)),
                (2, "o", _offsets(b, graphs)),
                (3, "o", b.CreateString("written by a test")),
                (4, "o", _offsets(b, buffers)),
            ],
        )
        b.Finish(model, identifier)
        return bytes(b.Output())

    def _subgraph(
        self,
        b: Any,  # noqa: ANN401
        buffers: list[int],
        codes: list[int],
        inputs: Sequence[int],
        outputs: Sequence[int],
    ) -> int:
        """Write a subgraph, and add its buffers and the codes of its operators."""
        places = []
        for one in self.tensors:
            places.append(0 if one["data"] is None else len(buffers))
            if one["data"] is not None:
                raw = one["data"] if isinstance(one["data"], bytes) else one["data"].tobytes()
                buffers.append(_table(b, [(0, "o", _bytes(b, raw))]))
        tensors = [_tensor(b, one, place) for one, place in zip(self.tensors, places, strict=True)]
        first = len(codes)
        codes += [_code(b, name) for name, *_ in self.operators]
        operators = [_operator(b, index, *one) for index, one in enumerate(self.operators, first)]
        return _table(
            b,
            [
                (0, "o", _offsets(b, tensors)),
                (1, "o", _numbers(b, "i", inputs)),
                (2, "o", _numbers(b, "i", outputs)),
                (3, "o", _offsets(b, operators)),
                (4, "o", b.CreateString("main")),
            ],
        )


def _table(b: Any, fields: Sequence[tuple[int, str, Any]]) -> int:  # noqa: ANN401
    prepend = {
        "b": b.PrependInt8,
        "B": b.PrependUint8,
        "i": b.PrependInt32,
        "I": b.PrependUint32,
        "f": b.PrependFloat32,
        "o": b.PrependUOffsetTRelative,
    }
    b.StartObject(max((index for index, *_ in fields), default=-1) + 1)
    for index, form, value in fields:
        prepend[form](value)
        b.Slot(index)
    return int(b.EndObject())


def _offsets(b: Any, values: Sequence[int]) -> int:  # noqa: ANN401
    b.StartVector(4, len(values), 4)
    for value in reversed(values):
        b.PrependUOffsetTRelative(value)
    return int(b.EndVector())


def _numbers(b: Any, form: str, values: Sequence[int]) -> int:  # noqa: ANN401
    prepend = {"i": b.PrependInt32, "q": b.PrependInt64, "f": b.PrependFloat32}[form]
    size = 8 if form == "q" else 4
    b.StartVector(size, len(values), size)
    for value in reversed(values):
        prepend(value)
    return int(b.EndVector())


def _bytes(b: Any, raw: bytes) -> int:  # noqa: ANN401
    # Values begin at multiples of 16, as the interpreter wants them.
    b.StartVector(1, len(raw), 16)
    b.head = b.head - len(raw)
    b.Bytes[b.head : b.head + len(raw)] = raw
    return int(b.EndVector())


def _tensor(b: Any, one: Mapping[str, Any], place: int) -> int:  # noqa: ANN401
    fields = [
        (0, "o", _numbers(b, "i", one["shape"])),
        (1, "b", one["type"]),
        (2, "I", place if one["buffer"] is None else one["buffer"]),
        (3, "o", b.CreateString(one["name"])),
        (5, "b", int(one["variable"])),
    ]
    if one["scale"] is not None:
        scales = np.atleast_1d(np.asarray(one["scale"], np.float32)).tolist()
        zeros = np.atleast_1d(np.asarray(one["zero"], np.int64))
        if zeros.size == 1:
            zeros = np.repeat(zeros, len(scales))
        inner = [
            (2, "o", _numbers(b, "f", scales)),
            (3, "o", _numbers(b, "q", zeros.tolist())),
            (6, "i", one["axis"]),
        ]
        fields.append((4, "o", _table(b, inner)))
    if one["signature"] is not None:
        fields.append((7, "o", _numbers(b, "i", one["signature"])))
    if one["sparse"] is not None:
        fields.append((6, "o", _sparsity(b, *one["sparse"])))
    return _table(b, fields)


def _sparsity(
    b: Any,  # noqa: ANN401
    order: Sequence[int],
    blocks: Sequence[int],
    levels: Sequence[int | tuple[Sequence[int], Sequence[int]]],
) -> int:
    """Write how a sparse tensor lies: each axis dense with a size, or ends and indices."""
    from tflite.SparseIndexVector import SparseIndexVector

    made = []
    for level in levels:
        if isinstance(level, int):
            made.append(_table(b, [(0, "b", 0), (1, "i", level)]))
            continue
        ends, index = (_table(b, [(0, "o", _numbers(b, "i", one))]) for one in level)
        wide = SparseIndexVector.Int32Vector
        made.append(
            _table(
                b, [(0, "b", 1), (2, "B", wide), (3, "o", ends), (4, "B", wide), (5, "o", index)]
            )
        )
    return _table(
        b,
        [
            (0, "o", _numbers(b, "i", order)),
            (1, "o", _numbers(b, "i", blocks)),
            (2, "o", _offsets(b, made)),
        ],
    )


def _code(b: Any, name: str | int) -> int:  # noqa: ANN401
    number = NUMBERS[name] if isinstance(name, str) else name
    version = 2 if name == "BROADCAST_TO" else 1
    fields = [(0, "b", min(number, 127)), (2, "i", version), (3, "i", number)]
    if number == 32:
        fields.append((1, "o", b.CreateString("MyOperator")))
    return _table(b, fields)


def _operator(
    b: Any,  # noqa: ANN401
    code: int,
    name: str | int,
    inputs: Sequence[int],
    outputs: Sequence[int],
    options: Mapping[str, Any],
) -> int:
    fields: list[tuple[int, str, Any]] = [
        (0, "I", options.get("code", code)),
        (1, "o", _numbers(b, "i", inputs)),
        (2, "o", _numbers(b, "i", outputs)),
    ]
    if "between" in options:
        fields.append((8, "o", _numbers(b, "i", options["between"])))
    if isinstance(name, str) and name in OPTIONS:
        from tflite.BuiltinOptions import BuiltinOptions

        table, known = OPTIONS[name]
        given = [(*known[key], value) for key, value in options.items() if key not in _OTHERS]
        given = [
            (at, "o", b.CreateString(value) if form == "s" else _numbers(b, "f", value))
            if form in "sF"
            else (at, form, value)
            for at, form, value in given
        ]
        fields += [(4, "o", _table(b, given)), (3, "B", getattr(BuiltinOptions, table))]
    return _table(b, fields)
