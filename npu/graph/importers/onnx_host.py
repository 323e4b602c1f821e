# SPDX-License-Identifier: Apache-2.0
"""Executes single ONNX nodes: what no mapping knows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, lru_cache

import numpy as np
import onnx
from onnx import helper, numpy_helper, shape_inference

from npu.graph.form import Array, Element, Graph, GraphError, Operation, TensorType
from npu.graph.host_evaluators import EVALUATORS, Run
from npu.graph.importers.onnx_load import LAST, needs, nodes_of, tensors_of
from npu.graph.importers.onnx_node import element_of
from npu.graph.importers.onnx_run import Runner, arrays, runner

_MISJUDGED = ("STFT", "MeanVarianceNormalization")
"""Whose results have other shapes than the inference of onnx says, which forgets a default, or
that have none there."""


def payload(
    node: onnx.NodeProto,
    imports: Sequence[onnx.OperatorSetIdProto],
    types: Mapping[str, TensorType],
    outputs: Sequence[str],
) -> bytes:
    """Return a model with one node: what it reads is its inputs, `outputs` are what it gives."""
    data: bytes = _model(node, imports, types, outputs).SerializeToString()
    return data


def _model(
    node: onnx.NodeProto,
    imports: Sequence[onnx.OperatorSetIdProto],
    types: Mapping[str, TensorType],
    outputs: Sequence[str],
) -> onnx.ModelProto:
    graph = helper.make_graph(
        [node],
        "node",
        [_described(name, kind) for name, kind in types.items()],
        [onnx.ValueInfoProto(name=name) for name in outputs],
    )
    return helper.make_model(graph, opset_imports=imports)


def _standard(domain: str) -> str:
    """Return a domain by the one of the standard's two names that onnx knows."""
    return "" if domain == "ai.onnx" else domain


def model_of(graph: Graph, operation: Operation) -> onnx.ModelProto:
    """Return the model that evaluates an operation, made anew from operator and attributes.

    Of a payload nothing else is taken: it must be the one that is made of its node and of the
    types that the graph has.

    Raises:
        GraphError: it is another one; or its node is another operator, or one that onnx does not
            have, here or in a graph inside it; or refers to data elsewhere.
    """
    found = onnx.ModelProto()
    try:
        found.ParseFromString(operation["payload"])
    except Exception as error:  # DecodeError of protobuf, which has no types
        raise GraphError(f"a payload that is no ONNX model: {error}") from None
    if [one.op_type for one in found.graph.node] != [operation["operator"]]:
        given = ", ".join(one.op_type for one in found.graph.node[:4]) or "none"
        raise GraphError(f"a payload with nodes {given}, allowed one {operation['operator']}")
    (node,) = found.graph.node
    versions = {_standard(one.domain): one.version for one in found.opset_import}
    for one in nodes_of(node):
        domain = _standard(one.domain)
        version = versions.get(domain, 0)
        known = version <= LAST or domain != ""
        if not (known and onnx.defs.has(one.op_type, version, domain)):
            raise GraphError(
                f"operator {one.domain}.{one.op_type} of operator set {version}, "
                "allowed those of onnx"
            )
    for tensor in tensors_of([node]):
        if tensor.data_location != onnx.TensorProto.DEFAULT or tensor.external_data:
            raise GraphError(f"tensor {tensor.name!r} with data elsewhere, allowed inside")
    read = needs(node)
    if len(read) != len(operation.inputs):
        raise GraphError(f"{len(operation.inputs)} inputs, {operation['operator']} has {len(read)}")
    types = {name: graph.type(at) for name, at in zip(read, operation.inputs, strict=True)}
    outputs = [one.name for one in found.graph.output]
    if len(outputs) != len(operation.outputs) or not {*outputs} <= {*node.output}:
        raise GraphError(f"results {outputs}, allowed {len(operation.outputs)} of the node")
    made = _model(node, found.opset_import, types, outputs)
    if made != found:
        raise GraphError("another payload than is made of its node and the types of its tensors")
    return made


def _described(name: str, kind: TensorType) -> onnx.ValueInfoProto:
    element = helper.np_dtype_to_tensor_dtype(kind.element.dtype)
    return helper.make_tensor_value_info(name, element, kind.shape)


@lru_cache(maxsize=256)
def _runner(data: bytes) -> tuple[Runner, list[str]]:
    model = onnx.load_model_from_string(data)
    return runner(model), [one.name for one in model.graph.input]


def run_payload(data: bytes, values: Sequence[Array | None]) -> list[Array]:
    """Execute a payload of this process's own making.

    Args:
        data: as `payload` makes it.
        values: one per input, in its order.

    Returns:
        One array per output.

    Raises:
        GraphError: nobody here can execute it, or the values are refused.
    """
    run, names = _runner(data)
    return arrays(run(dict(zip(names, values, strict=True))))


def _prepared(graph: Graph, operation: Operation) -> Run:
    model = model_of(graph, operation)
    names = [one.name for one in model.graph.input]
    run = cache(lambda: runner(model))
    return lambda values: arrays(run()(dict(zip(names, values, strict=True))))


EVALUATORS["onnx"] = _prepared


def infer_outputs(
    node: onnx.NodeProto,
    imports: Sequence[onnx.OperatorSetIdProto],
    types: Mapping[str, TensorType],
    constants: Mapping[str, Array],
    outputs: Sequence[str],
    declared: Mapping[str, onnx.TypeProto],
) -> list[TensorType]:
    """Return the types of a node's outputs by the shape inference of onnx.

    Args:
        node: to look at.
        imports: of the model.
        types: of what it reads.
        constants: what of that is known.
        outputs: names.
        declared: what the file says of results, taken where inference does not know a shape; when
            it runs they are compared.

    Raises:
        GraphError: a shape is not static.
    """
    inputs = [_described(name, kind) for name, kind in types.items()]
    weights = [numpy_helper.from_array(data, name) for name, data in constants.items()]
    graph = helper.make_graph(
        [node], "node", inputs, [onnx.ValueInfoProto(name=name) for name in outputs], weights
    )
    model = helper.make_model(graph, opset_imports=imports)
    try:
        model = shape_inference.infer_shapes(model, data_prop=True)
    except (shape_inference.InferenceError, RuntimeError, ValueError) as error:
        raise GraphError(" ".join(str(error).split())) from None
    found = {one.name: one.type for one in model.graph.output}
    for name, kind in found.items():
        unknown = kind.HasField("tensor_type") and not _is_static(kind)
        if unknown and name in declared and _is_static(declared[name]):
            found[name] = declared[name]
    if node.op_type in _MISJUDGED or not any(one.WhichOneof("value") for one in found.values()):
        return _tried(payload(node, imports, types, outputs), types, constants)
    return [_static(name, found[name]) for name in outputs]


def _tried(
    data: bytes, types: Mapping[str, TensorType], constants: Mapping[str, Array]
) -> list[TensorType]:
    """Return the types of results that a node without inference has for two different inputs."""
    tries = []
    for value in (0, 1):
        values = [
            constants.get(name, np.full(kind.shape, value, kind.element.dtype))
            for name, kind in types.items()
        ]
        results = run_payload(data, values)
        tries.append([(one.shape, Element.of(one.dtype)) for one in results])
    if tries[0] != tries[1]:
        raise GraphError("the shape of a result depends on values, allowed static shapes")
    return [TensorType(shape, element) for shape, element in tries[0]]


def _is_static(kind: onnx.TypeProto) -> bool:
    tensor = kind.tensor_type
    return (
        kind.HasField("tensor_type")
        and tensor.HasField("shape")
        and all(one.HasField("dim_value") for one in tensor.shape.dim)
    )


def _static(name: str, kind: onnx.TypeProto) -> TensorType:
    if not kind.HasField("tensor_type"):
        what = kind.WhichOneof("value") or "nothing known"
        raise GraphError(f"result {name!r} is {what}, allowed tensors of static shape")
    tensor = kind.tensor_type
    if not _is_static(kind):
        raise GraphError(
            f"the shape of result {name!r} depends on values, allowed static shapes; "
            "inputs that decide it must be constant"
        )
    shape = tuple(one.dim_value for one in tensor.shape.dim)
    return TensorType(shape, element_of(tensor.elem_type))
