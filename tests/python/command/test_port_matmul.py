# SPDX-License-Identifier: Apache-2.0
"""Products in formats of the command port: their meaning, their place, their way through files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest

import tessera
from golden.graph import run
from npu.compiler.network import compile_network
from npu.graph.evaluate import run as run_on_host
from npu.graph.form import (
    Array,
    Element,
    Graph,
    GraphError,
    Operation,
    OperationPlace,
    Target,
    Tensor,
    TensorType,
)
from npu.graph.operations.port import FORMATS, GROUPED
from npu.graph.prepare import prepare
from npu.graph.verify import verify
from tb.stimulus.port_operands import port_operands
from tessera.golden_chip import run_on_golden
from tests.needs import needs

PORT = OperationPlace(Target.PORT, "test")


def port_graph(
    values: list[Array],
    name: str,
    *,
    place: OperationPlace | None = PORT,
    **attributes: Any,  # noqa: ANN401
) -> Graph:
    """Return a graph with one product whose first matrix is an input."""
    names = ("a", "b", "scales")[: len(values)]
    tensors = [
        Tensor(key, TensorType(value.shape, Element.of(value.dtype)), value if key != "a" else None)
        for key, value in zip(names, values, strict=True)
    ]
    shape = values[0].shape[0], values[1].shape[1]
    tensors.append(Tensor("y", TensorType(shape, Element.I32)))
    given = {"format": name, "group": 0, "exact": False, **attributes}
    product = Operation("product", "portmatmul", names, ("y",), given, "test", place)
    return Graph("product", ("a",), ("y",), {one.name: one for one in tensors}, (product,))


def _cases() -> list[tuple[str, dict[str, Any]]]:
    plain: list[tuple[str, dict[str, Any]]] = [(name, {}) for name in FORMATS if name != GROUPED]
    exact = [(name, {"exact": True}) for name in ("fp16", "bf16")]
    return [*plain, *exact, *((GROUPED, {"group": size}) for size in (1, 5, 64))]


@pytest.mark.parametrize(("name", "attributes"), _cases())
@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 7, 2), (4, 33, 5)])
def test_host_and_golden_multiply_alike(
    name: str, attributes: dict[str, Any], shape: tuple[int, int, int]
) -> None:
    """Two meanings written apart; whoever executes it, the bits are the same."""
    random = np.random.default_rng(sum(shape))
    values = port_operands(random, name, shape, attributes.get("group", 0))
    graph = port_graph(values, name, **attributes)
    verify(graph)
    (on_host,) = run_on_host(graph, graph.operations[0], values)
    golden = run(graph, {"a": values[0]})["y"]
    np.testing.assert_array_equal(on_host, golden)
    assert golden.dtype == np.int32
    if shape != (1, 1, 1):
        assert np.unique(golden).size > 3


def test_integer_formats_are_products_of_integers() -> None:
    """An outside oracle: numpy."""
    random = np.random.default_rng(5)
    for name in ("int8", "int4", "int2", "ternary", "sparse_int4"):
        a, b = port_operands(random, name, (6, 29, 4))
        found = run(port_graph([a, b], name), {"a": a})["y"]
        np.testing.assert_array_equal(found, a.astype(np.int64) @ b.astype(np.int64))


def test_float_formats_stay_near_the_real_product() -> None:
    """FP16 and BF16 of numbers up to 128: half a unit of Q8.8 per factor and one per product."""
    random = np.random.default_rng(6)
    kinds = {"fp16": np.float16, "bf16": ml_dtypes.bfloat16, "fp8": ml_dtypes.float8_e4m3fn}
    for name, kind in kinds.items():
        a, b = port_operands(random, name, (5, 24, 4))
        real_a, real_b = (one.view(kind).astype(np.float64) for one in (a, b))
        found = run(port_graph([a, b], name), {"a": a})["y"] / 256
        unit = 1 / 256 if name == "fp8" else 0.5 / 256
        bound = unit * (np.abs(real_a).sum(1)[:, None] + np.abs(real_b).sum(0)[None]) + 24 / 128
        assert (np.abs(found - real_a @ real_b) <= bound).all()


def test_the_port_takes_what_is_meant_for_it() -> None:
    """Unless the user wants it on the host; nowhere else, and nothing else."""
    a, b = port_operands(np.random.default_rng(1), "int4", (2, 3, 4))
    graph = port_graph([a, b], "int4", place=None)
    (placed,) = prepare(graph).operations
    assert placed.place == OperationPlace(Target.PORT, "the command port multiplies int4")
    (placed,) = prepare(graph, port=["product"]).operations
    assert placed.on_port
    (placed,) = prepare(graph, host=["portmatmul"]).operations
    assert placed.place == OperationPlace(Target.HOST, "the user wants it on the host")
    with pytest.raises(GraphError, match="its array multiplies int8, int4 is a format of the"):
        prepare(graph, npu=["product"])
    with pytest.raises(GraphError, match="--port product: it is named for host too"):
        prepare(graph, host=["product"], port=["product"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "int5"}, "format 'int5', allowed int8, int4"),
        ({"format": "fp8"}, "a is int8, allowed uint8 with format 'fp8'"),
        ({"group": 4}, "groups with format 'int4', allowed with group_int4"),
        ({"format": GROUPED, "group": 0}, "groups of 0, allowed 1 and more"),
        ({"format": GROUPED, "group": 2}, "no scales, format 'group_int4' needs them"),
        ({"exact": True}, "exact with format 'int4', allowed with fp16 and bf16"),
    ],
)
def test_a_product_that_is_none_is_refused(change: Mapping[str, Any], message: str) -> None:
    """By the verifier, naming the operation."""
    a, b = port_operands(np.random.default_rng(1), "int4", (2, 3, 4))
    graph = port_graph(
        [a, b], **{"name": "int4", **{k: v for k, v in change.items() if k != "format"}}
    )
    (one,) = graph.operations
    changed = Operation(
        one.name, one.kind, one.inputs, one.outputs, {**one.attributes, **change}, "", PORT
    )
    with pytest.raises(GraphError, match=message) as caught:
        verify(graph.with_operations([changed]))
    assert "product" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "wrong", "message"),
    [
        ("int4", 8, r"a\[1, 2\]: given 8, allowed -8 to 7"),
        ("ternary", -2, r"a\[1, 2\]: given -2, allowed -1 to 1"),
        ("fp8", 0xFF, r"a\[1, 2\]: given (255|0xff), allowed"),
    ],
)
def test_elements_outside_of_a_format_are_refused(name: str, wrong: int, message: str) -> None:
    """On the chip and on the host, with their place."""
    values = port_operands(np.random.default_rng(2), name, (3, 4, 2))
    values[0][1, 2] = np.array(wrong).astype(values[0].dtype)
    for place in (PORT, OperationPlace(Target.HOST, "test")):
        graph = port_graph(values, name, place=place)
        with pytest.raises(GraphError, match=message) as caught:
            run_on_golden(compile_network(graph), {"a": values[0]})
        assert "operation 'product' (portmatmul, test)" in str(caught.value)


@pytest.mark.parametrize(("name", "attributes"), _cases())
def test_files_of_onnx_and_jax_carry_products_of_the_port(
    name: str, attributes: dict[str, Any]
) -> None:
    """The operator tessera.PortMatMul and tessera.jax.port_matmul, alike to the bit."""
    needs("graphs")
    from tessera.jax import port_matmul

    values = port_operands(np.random.default_rng(9), name, (3, 20, 4), attributes.get("group", 0))
    helper = onnx.helper
    kinds = [helper.np_dtype_to_tensor_dtype(one.dtype) for one in values]
    names = ["a", "b", "scales"][: len(values)]
    given = {key: int(value) for key, value in attributes.items()}
    node = helper.make_node("PortMatMul", names, ["y"], domain="tessera", format=name, **given)
    weights = [
        onnx.numpy_helper.from_array(one, key)
        for key, one in zip(names[1:], values[1:], strict=True)
    ]
    model = helper.make_model(
        helper.make_graph(
            [node],
            "product",
            [helper.make_tensor_value_info("a", kinds[0], values[0].shape)],
            [helper.make_tensor_value_info("y", onnx.TensorProto.INT32, (3, 4))],
            weights,
        ),
        opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid("tessera", 1)],
    )
    session = tessera.load(model)
    (product,) = session.plan.graph.operations
    assert product.on_port
    (found,) = session.run(None, {"a": values[0]})

    def function(a: Any) -> Any:  # noqa: ANN401
        return port_matmul(a, *values[1:], format=name, **attributes)

    expected = np.asarray(function(values[0]))
    np.testing.assert_array_equal(found, expected)
    again = tessera.from_jax(function, [values[0]])
    assert [one.on_port for one in again.plan.graph.operations] == [True]
    np.testing.assert_array_equal(again.run({again.inputs[0]: values[0]})[again.outputs[0]], found)
    assert np.unique(found).size > 3
