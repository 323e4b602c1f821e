# SPDX-License-Identifier: Apache-2.0
"""Operators that the standard of ONNX does not have: in a table of dialects, or refused by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tessera
from npu.graph.evaluate import evaluate
from npu.graph.form import Array, Element, Graph, GraphError
from npu.graph.importers import read
from spec.paths import DOCS
from tests.needs import needs

needs("graphs")

import onnx
from onnx import helper, numpy_helper

from npu.graph.importers.onnx_dialects import DIALECTS
from tests.python.importers.onnx_forms import real

GENERAL = ("qonnx.custom_op.general", "onnx.brevitas", "finn.custom_op.general")
LAST = "qonnx.custom_op.channels_last"


def model(
    operator: str,
    inputs: dict[str, Array],
    weights: dict[str, Array] | None = None,
    domain: str = "",
    version: int = 13,
    results: int = 1,
    **attributes: Any,  # noqa: ANN401
) -> Any:  # noqa: ANN401
    """Return a model of one node that takes its inputs, then its weights, "-" for none."""
    weights = weights or {}
    names = [*inputs, *("" if name.startswith("-") else name for name in weights)]
    node = helper.make_node(
        operator,
        names,
        [f"y{index}" for index in range(results)],
        "it",
        domain=domain,
        **attributes,
    )
    graph = helper.make_graph(
        [node],
        "net",
        [
            helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape
            )
            for name, value in inputs.items()
        ],
        [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ()) for name in node.output],
        [numpy_helper.from_array(one, name) for name, one in weights.items() if name[0] != "-"],
    )
    sets = [helper.make_opsetid("", version), *([helper.make_opsetid(domain, 1)] if domain else [])]
    return helper.make_model(graph, opset_imports=sets, ir_version=8)


def computed(source: Any, inputs: dict[str, Array]) -> tuple[Graph, list[Array]]:  # noqa: ANN401
    """Return the graph of a model and its results."""
    graph = read(source)
    found = evaluate(graph, inputs)
    return graph, [found[name] for name in graph.outputs]


def kinds(graph: Graph) -> set[str]:
    """Return the kinds of operations of a graph."""
    return {one.kind for one in graph.operations}


def scalar(value: float) -> Array:
    """Return a tensor without axes."""
    return np.array(value, np.float32)


def _norm(x: Array, gain: Array, mean: bool) -> Array:
    left = x - x.mean(-1, keepdims=True) if mean else x
    found: Array = left / np.sqrt((left**2).mean(-1, keepdims=True) + 1e-5) * gain
    return found


@pytest.mark.parametrize(
    ("operator", "mean"),
    [
        ("LayerNormalization", True),
        ("RMSNormalization", False),
        ("SimplifiedLayerNormalization", False),
    ],
)
@pytest.mark.parametrize("version", [11, 13, 16])
def test_a_norm_of_a_later_set(operator: str, mean: bool, version: int) -> None:
    """Runtimes take it in earlier sets too."""
    x, gain = real(3, 16), real(16, seed=2)
    source = model(operator, {"x": x}, {"g": gain}, version=version, epsilon=1e-5)
    graph, (found,) = computed(source, {"x": x})
    assert kinds(graph) == {"layernorm" if mean else "rmsnorm"}
    np.testing.assert_allclose(found, _norm(x, gain, mean), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("version", [18, 20])
def test_groups_of_channels_with_a_gain_each(version: int) -> None:
    """As versions 18 to 20 have it; from 21 on each channel has one."""
    x, gain, bias = real(2, 6, 4), real(3, seed=2), real(3, seed=3)
    weights = {"g": gain, "b": bias}
    source = model("GroupNormalization", {"x": x}, weights, version=version, num_groups=3)
    _, (found,) = computed(source, {"x": x})
    groups = x.reshape(2, 3, 8)
    left = groups - groups.mean(-1, keepdims=True)
    wanted = left / np.sqrt((left**2).mean(-1, keepdims=True) + 1e-5)
    wanted = wanted * gain[:, None] + bias[:, None]
    np.testing.assert_allclose(found, wanted.reshape(x.shape), rtol=1e-4, atol=1e-5)
    with pytest.raises(GraphError, match="num_groups 4, allowed a divisor of 6 channels"):
        read(model("GroupNormalization", {"x": x}, weights, version=version, num_groups=4))


def test_an_operator_of_a_later_set_is_one_of_that_set() -> None:
    """What is only called like one, as other tools have them, is refused by name."""
    with pytest.raises(GraphError, match=r"LinearAttention:27. has input size 1 not in range"):
        read(model("LinearAttention", {"x": real(1, 8, 16)}))


def test_side_results_of_a_norm_of_a_later_set() -> None:
    """The host makes them, with the set that has them."""
    x, gain = real(3, 16), real(16, seed=2)
    source = model("LayerNormalization", {"x": x}, {"g": gain}, version=13, results=2)
    _, (_, mean) = computed(source, {"x": x})
    np.testing.assert_allclose(mean, x.mean(-1, keepdims=True), rtol=1e-4, atol=1e-5)


def test_an_attribute_of_a_later_set() -> None:
    """Scales along an axis, in the first set that has integers."""
    q = np.arange(12, dtype=np.int8).reshape(3, 4)
    scales = np.array([1.0, 0.5, 0.25], np.float32)
    source = model("DequantizeLinear", {"x": q}, {"s": scales}, version=10, axis=0)
    _, (found,) = computed(source, {"x": q})
    np.testing.assert_array_equal(found, q * scales[:, None])


@pytest.mark.parametrize("version", [10, 13, 16, 18, 19])
def test_integers_dequantised_in_any_set(version: int) -> None:
    """On the host too: a constant that another operator of the host takes."""
    q, s, z = np.arange(12, dtype=np.uint8).reshape(3, 4), scalar(0.5), np.array(3, np.uint8)
    source = model("DequantizeLinear", {"x": q}, {"s": s, "z": z}, version=version)
    _, (found,) = computed(source, {"x": q})
    np.testing.assert_array_equal(found, (q - 3.0) * 0.5)


@pytest.mark.parametrize("domain", GENERAL)
@pytest.mark.parametrize("bits", [2, 4, 8, 16])
@pytest.mark.parametrize("signed", [0, 1])
@pytest.mark.parametrize("narrow", [0, 1])
def test_quant(domain: str, bits: int, signed: int, narrow: int) -> None:
    """(clip(round(x / scale + zero)) - zero) * scale."""
    x = real(4, 8, scale=3 if bits < 16 else 900)
    weights = {"s": scalar(0.25), "z": scalar(0 if signed else 1), "b": scalar(bits)}
    source = model("Quant", {"x": x}, weights, domain, signed=signed, narrow=narrow)
    _, (found,) = computed(source, {"x": x})
    low = -(1 << bits - 1) + narrow if signed else 0
    high = (1 << bits - 1) - 1 if signed else (1 << bits) - 1 - narrow
    zero = float(weights["z"])
    wanted = (np.clip(np.round(x / 0.25 + zero), low, high) - zero) * 0.25
    np.testing.assert_array_equal(found, wanted.astype(np.float32))


def test_quant_of_one_bit_and_of_many() -> None:
    """Without a sign one bit is enough; more than 16 are those of int32."""
    x = real(4, 8, scale=900)
    for bits, high in ((1, 1), (24, (1 << 24) - 1)):
        weights = {"s": scalar(0.25), "z": scalar(0), "b": scalar(bits)}
        source = model("Quant", {"x": x}, weights, GENERAL[0], signed=0)
        wanted = np.clip(np.round(x / 0.25), 0, high) * 0.25
        session = tessera.load(source, calibrate={"x": x[None]})
        np.testing.assert_array_equal(session.run({"x": x})["y0"], wanted)


def test_quant_of_channels_is_exact_on_the_chip() -> None:
    """A scale for each, with zero points and bits that are as many equal numbers."""
    x, shape = real(2, 4, 8, scale=3), (1, 4, 1)
    scale = np.linspace(0.1, 1.4, 4, dtype=np.float32).reshape(shape)
    weights = {"s": scale, "z": np.zeros(shape, np.float32), "b": np.full(shape, 4, np.float32)}
    source = model("Quant", {"x": x}, weights, GENERAL[0])
    session = tessera.load(source, calibrate={"x": x[None]})
    wanted = np.clip(np.round(x / scale), -8, 7) * scale
    np.testing.assert_array_equal(session.run({"x": x})["y0"], wanted)


ROUNDED = {
    "half_even": [-3, -2, -2, 0, 0, 2, 2, 3],
    "CEIL": [-2, -2, -1, 0, 1, 2, 2, 3],
    "FLOOR": [-3, -3, -2, -1, 0, 1, 2, 2],
    "UP": [-3, -3, -2, -1, 1, 2, 2, 3],
    "DOWN": [-2, -2, -1, 0, 0, 1, 2, 2],
    "ROUND_TO_ZERO": [-2, -2, -1, 0, 0, 1, 2, 2],
    "HALF_UP": [-3, -3, -2, -1, 1, 2, 2, 3],
    "HALF_DOWN": [-3, -2, -1, 0, 0, 1, 2, 3],
}
"""What -2.75, -2.5, -1.5, -0.5, 0.5, 1.5, 2 and 2.75 become."""


@pytest.mark.parametrize("fixed", [False, True])
@pytest.mark.parametrize("mode", ROUNDED)
def test_quant_rounds_as_it_says(mode: str, fixed: bool) -> None:
    """What is given and what is constant, ties included; compiled too."""
    x = np.array([-2.75, -2.5, -1.5, -0.5, 0.5, 1.5, 2, 2.75], np.float32) * 0.5
    weights = {"s": scalar(0.5), "z": scalar(0), "b": scalar(8)}
    source = model("Quant", {"x": x}, weights, GENERAL[0], rounding_mode=mode)
    if fixed:
        source.graph.initializer.append(numpy_helper.from_array(x, "x"))
    given = {} if fixed else {"x": x}
    wanted = np.array(ROUNDED[mode]) * 0.5
    np.testing.assert_array_equal(computed(source, given)[1][0], wanted)
    if not fixed:
        session = tessera.load(source, calibrate={"x": x[None]})
        np.testing.assert_array_equal(session.run({"x": x})["y0"], wanted)


@pytest.mark.parametrize("mode", ["ROUND", "CEIL", "FLOOR"])
@pytest.mark.parametrize("bits", [1.5, 2.5, 6.5])
@pytest.mark.parametrize("signed", [0, 1])
@pytest.mark.parametrize("narrow", [0, 1])
def test_quant_of_part_of_a_bit(narrow: int, signed: int, bits: float, mode: str) -> None:
    """What is clipped to edges that are not whole is rounded afterwards."""
    x = real(4, 8, scale=9)
    weights = {"s": scalar(0.25), "z": scalar(0), "b": scalar(bits)}
    said: dict[str, Any] = {"signed": signed, "narrow": narrow, "rounding_mode": mode}
    source = model("Quant", {"x": x}, weights, GENERAL[0], **said)
    low = -(2 ** (bits - 1)) + narrow if signed else 0
    high = 2 ** (bits - 1) - 1 if signed else 2**bits - 1 - narrow
    rounds: dict[str, Any] = {"ROUND": np.round, "CEIL": np.ceil, "FLOOR": np.floor}
    wanted = rounds[mode](np.clip(x / 0.25, low, high)) * 0.25
    np.testing.assert_array_equal(computed(source, {"x": x})[1][0], wanted)


@pytest.mark.parametrize(
    ("scale", "zero"),
    [
        (np.linspace(0.1, 0.4, 24, dtype=np.float32).reshape(3, 8), scalar(0)),
        (scalar(0.25), np.arange(8, dtype=np.float32)),
        (scalar(0.25), scalar(2.5)),
    ],
)
def test_quant_of_what_no_integers_with_scales_are(scale: Array, zero: Array) -> None:
    """Constants are those real numbers, and with one zero point that is not whole all else."""
    w = real(3, 8)
    weights = {"w": w, "s": scale, "z": zero, "b": scalar(4)}
    source = model("Quant", {}, weights, GENERAL[0])
    wanted = (np.round(np.clip(w / scale + zero, -8, 7)) - zero) * scale
    np.testing.assert_allclose(computed(source, {})[1][0], wanted, rtol=1e-6)


@pytest.mark.parametrize(("mode", "wanted"), [("FLOOR", 2), ("CEIL", 3), ("ROUND", 2)])
def test_trunc_rounds_as_it_says(mode: str, wanted: int) -> None:
    """Of 37 as 8 bits the upper 4."""
    bits = {"s": scalar(1), "z": scalar(0), "i": scalar(8), "o": scalar(4)}
    x = np.array([[37.0]], np.float32)
    source = model("Trunc", {"x": x}, bits, GENERAL[0], rounding_mode=mode)
    assert computed(source, {"x": x})[1][0] == wanted


def test_quant_of_weights_keeps_their_integers() -> None:
    """With a scale per channel, so that the chip has the very integers that were trained."""
    w, scale = real(6, 8), np.linspace(0.1, 0.4, 6, dtype=np.float32).reshape(6, 1)
    nodes = [
        helper.make_node("Quant", ["w", "s", "z", "b"], ["wq"], domain=GENERAL[0]),
        helper.make_node("Gemm", ["x", "wq"], ["y"], transB=1),
    ]
    weights = {"w": w, "s": scale, "z": scalar(0), "b": scalar(4)}
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, (3, 8))],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, (3, 6))],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    sets = [helper.make_opsetid("", 13), helper.make_opsetid(GENERAL[0], 1)]
    x = real(3, 8, seed=2)
    found, (y,) = computed(helper.make_model(graph, opset_imports=sets), {"x": x})
    wanted = x @ (np.clip(np.round(w / scale), -8, 7) * scale).T
    np.testing.assert_allclose(y, wanted, rtol=1e-4, atol=1e-5)
    assert Element.I8 in {one.type.element for one in found.tensors.values()}


def test_bipolar_quant_and_trunc() -> None:
    """The sign, that of 0 being positive; and an accumulator without its lower bits."""
    x = np.array([[-2.0, 0.0, 3.0, 0.1]], np.float32)
    source = model("BipolarQuant", {"x": x}, {"s": scalar(0.5)}, GENERAL[0])
    np.testing.assert_array_equal(computed(source, {"x": x})[1][0], [[-0.5, 0.5, 0.5, 0.5]])
    x = np.array([[37.0, -5.0, 16.0]], np.float32)
    weights = {"s": scalar(1), "z": scalar(0), "from": scalar(8), "to": scalar(4)}
    source = model("Trunc", {"x": x}, weights, GENERAL[0], rounding_mode="FLOOR")
    np.testing.assert_array_equal(computed(source, {"x": x})[1][0], [[2, -1, 1]])


def test_channels_last() -> None:
    """Filters stay as they are, the image has its channels behind."""
    x, w = real(1, 6, 7, 3), real(4, 3, 3, 3, seed=2)
    source = model("Conv", {"x": x}, {"w": w}, LAST, pads=[1, 1, 1, 1], strides=[2, 2])
    graph, (found,) = computed(source, {"x": x})
    turned = np.ascontiguousarray(x.transpose(0, 3, 1, 2))
    plain = model("Conv", {"x": turned}, {"w": w}, pads=[1, 1, 1, 1], strides=[2, 2])
    wanted = computed(plain, {"x": turned})[1][0]
    np.testing.assert_allclose(found, wanted.transpose(0, 2, 3, 1), rtol=1e-5, atol=1e-5)
    assert "host" not in kinds(graph)
    source = model("MaxPool", {"x": x}, {}, LAST, kernel_shape=[2, 2])
    found = computed(source, {"x": x})[1][0]
    wanted = np.maximum(x[:, :-1], x[:, 1:])
    np.testing.assert_array_equal(found, np.maximum(wanted[:, :, :-1], wanted[:, :, 1:]))


@pytest.mark.parametrize("domain", ["PACTOps", ""])
@pytest.mark.parametrize("signed", [0, 1])
@pytest.mark.parametrize("attribute", ["n_levels", "n_levels_out"])
def test_requant_shift(domain: str, signed: int, attribute: str) -> None:
    """Exact, ties included: they go up."""
    random = np.random.default_rng(1)
    x = random.integers(-4000, 4000, (50, 6)).astype(np.float32)
    mul = random.integers(300, 900, 6).astype(np.float32)
    add = random.integers(-9000, 9000, 6).astype(np.float32)
    div, levels = 1 << 14, 256
    mul[0], add[0] = 1 << 13, 0
    said = {attribute: scalar(levels), "div": scalar(div), "signed": scalar(signed)}
    attributes = {name: numpy_helper.from_array(value) for name, value in said.items()}
    source = model("RequantShift", {"x": x}, {"mul": mul, "add": add}, domain, 10, **attributes)
    _, (found,) = computed(source, {"x": x})
    numerators = x.astype(int) * mul.astype(int) + add.astype(int)
    wanted = (2 * numerators + div) // (2 * div)
    low = -levels // 2 if signed else 0
    np.testing.assert_array_equal(found, np.clip(wanted, low, low + levels - 1))
    assert (2 * numerators % (2 * div) == div).any()


@pytest.mark.parametrize(
    ("operator", "domain", "message"),
    [
        ("RequantShift2", "PACTOps", "operation 'it' .*'PACTOps' that is known, allowed Requ"),
        ("Foo", "me", "operation 'it' .Foo.: domain 'me', allowed that of the standard, "),
        (
            "Foo",
            "",
            "operation 'it' .Foo.: no operator of version 13 .*, allowed of those Group.*Shift",
        ),
        ("EPContext", "com.microsoft", "no operator of domain 'com.microsoft' that is known"),
        ("FusedConv2", "com.microsoft", "allowed BiasGelu, "),
    ],
)
def test_what_no_dialect_has_is_refused_by_name(operator: str, domain: str, message: str) -> None:
    """With the operators and domains that are known."""
    with pytest.raises(GraphError, match=message):
        read(model(operator, {"x": real(2, 3)}, {}, domain))


@pytest.mark.parametrize(
    ("weights", "attributes", "message"),
    [
        ({"b": np.array([4, 5], np.float32)}, {}, r"the number of bits \[4.0, 5.0\], allowed one"),
        ({"b": scalar(64)}, {}, "64 bits, allowed 2 to 32"),
        ({"b": scalar(0.5)}, {}, "0.5 bits, allowed 1 to 32"),
        ({}, {"rounding_mode": "NEAR"}, "rounding_mode NEAR, allowed ROUND, HALF_EVEN, CEIL"),
        ({}, {"mood": 3}, "attribute mood = 3 is not known"),
        ({"s": np.ones((2, 3), np.float32)}, {}, r"scales of shape \[2, 3\], .*, allowed scales"),
        ({"z": np.arange(3.0, dtype=np.float32)}, {}, r"zero points of shape \[3\] .* of 'x'"),
        (
            {"s": np.ones((1, 3), np.float32)},
            {"rounding_mode": "CEIL"},
            "and rounding_mode CEIL of 'x', which is not constant",
        ),
    ],
)
def test_what_an_operator_of_a_dialect_cannot_say(
    weights: dict[str, Array], attributes: dict[str, Any], message: str
) -> None:
    """Each of its inputs and attributes is read or refused."""
    given = {"s": scalar(1), "z": scalar(0), "b": scalar(8), **weights}
    with pytest.raises(GraphError, match=message):
        read(model("Quant", {"x": real(2, 3)}, given, GENERAL[0], **attributes))


def test_users_add_their_own() -> None:
    """With operators of the standard, as the shipped dialects do."""

    @tessera.operator("Twice", domain="mine")
    def twice(node: Any) -> None:  # noqa: ANN401
        x = node.input(0)
        node.give("Add", [x, x])

    try:
        x = real(2, 3)
        _, (found,) = computed(model("Twice", {"x": x}, {}, "mine"), {"x": x})
    finally:
        DIALECTS.pop(("mine", "Twice"), None)
    np.testing.assert_allclose(found, 2 * x)
    with pytest.raises(ValueError, match="domain 'tessera' is ours"):
        tessera.operator("PortMatMul", domain="tessera")(twice)


def test_the_page_has_the_table() -> None:
    """Every domain and every operator of this project; other tests add some of their own."""
    page = (DOCS / "graphs.md").read_text(encoding="utf-8")
    section = page[page.index("## Dialects of ONNX") : page.index("## The suite of ONNX")]
    for (domain, operator), entry in DIALECTS.items():
        if not entry.__module__.startswith("npu."):
            continue
        assert any(operator in row and domain in row for row in section.splitlines()), operator
