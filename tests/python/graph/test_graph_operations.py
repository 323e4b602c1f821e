# SPDX-License-Identifier: Apache-2.0
"""The table of operations is complete, and its float meanings are those of plain loops."""

from __future__ import annotations

import itertools
import math
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from npu.graph.build import Builder
from npu.graph.evaluate import evaluate
from npu.graph.form import Array, Element, GraphError, TensorType
from npu.graph.operations import TABLE, infer, register
from npu.graph.operations.functions import FUNCTIONS, apply
from npu.graph.operations.linear import convolve
from npu.graph.verify import verify

SEEDS = range(4)


def result(kind: str, *arrays: Array, **attributes: Any) -> Array:  # noqa: ANN401
    """Evaluate one operation over inputs."""
    build = Builder()
    names = [
        build.input(f"x{index}", TensorType(one.shape, Element.of(one.dtype)))
        for index, one in enumerate(arrays)
    ]
    kinds = infer(kind, attributes, [build.type(name) for name in names])
    kept = TensorType(tuple(kinds[0].shape or ()), kinds[0].element or Element.I32)
    graph = build.finish([build.add(kind, names, output="y", result=kept, **attributes)])
    verify(graph)
    return evaluate(graph, dict(zip(names, arrays, strict=True)))["y"]


def floats(seed: int, *shape: int) -> Array:
    """Return seeded normal numbers as float32."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("kind", sorted(TABLE))
def test_an_entry_that_lacks_something_cannot_be_made(kind: str) -> None:
    """Whatever text, rule or meaning is taken away, construction fails."""
    entry = replace(TABLE[kind], direct=("", "", ""), sources={"onnx": ("Add",)})
    empty: dict[str, Any] = {"sources": {}, "constraints": (), "rule": None, "meaning": None}
    for part in ("name", "group", "summary", "integer", "lowering", *empty):
        assert part in {one.name for one in fields(entry)}
        with pytest.raises(ValueError, match="operation"):
            replace(entry, **{part: empty.get(part, "")})
    with pytest.raises(ValueError, match="twice"):
        register([TABLE[kind]])


@pytest.mark.parametrize("seed", SEEDS)
def test_convolution_is_the_sum_over_its_taps(seed: int) -> None:
    """Groups, strides, pads and dilations, against six nested loops."""
    random = np.random.default_rng(seed)
    groups = [1, 2, 3, 6][seed]
    channels, filters = 6, groups * int(random.integers(1, 3))
    x = floats(seed, 2, 7, 6, channels)
    w = floats(seed + 9, 3, 2, channels // groups, filters)
    strides, dilations = random.integers(1, 3, 2).tolist(), random.integers(1, 3, 2).tolist()
    pads = random.integers(0, 3, 4).tolist()
    found = convolve(x, w, strides, pads, dilations, groups)
    top, left, bottom, right = pads
    image = np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)))
    expected = np.zeros_like(found)
    for b, i, j, o in np.ndindex(found.shape):
        group = o // (filters // groups)
        for ky, kx, c in np.ndindex(*w.shape[:3]):
            row, column = i * strides[0] + ky * dilations[0], j * strides[1] + kx * dilations[1]
            value = image[b, row, column, group * (channels // groups) + c]
            expected[b, i, j, o] += float(value) * float(w[ky, kx, c, o])
    assert found.shape[1] == (7 + top + bottom - 2 * dilations[0] - 1) // strides[0] + 1
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_pools_look_only_at_the_image(seed: int) -> None:
    """Pads never win a maximum, and count in a mean only if asked."""
    x, window, pads = floats(seed, 1, 5, 6, 2) - 3, (3, 2), (1, 1, 2, 0)
    largest = result("maxpool", x, window=window, strides=(2, 1), pads=pads, dilations=(1, 1))
    inside = result("avgpool", x, window=window, strides=(2, 1), pads=pads, count_pads=False)
    every = result("avgpool", x, window=window, strides=(2, 1), pads=pads, count_pads=True)
    for b, i, j, c in np.ndindex(largest.shape):
        rows = [row for row in range(i * 2 - 1, i * 2 + 2) if 0 <= row < 5]
        columns = [column for column in range(j - 1, j + 1) if 0 <= column < 6]
        seen = [float(x[b, row, column, c]) for row, column in itertools.product(rows, columns)]
        assert largest[b, i, j, c] == max(seen)
        assert inside[b, i, j, c] == pytest.approx(sum(seen) / len(seen), rel=1e-6)
        assert every[b, i, j, c] == pytest.approx(sum(seen) / 6, rel=1e-6)


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_functions_keep_float64_and_take_their_parameters(name: str) -> None:
    """Every function works on an array, and refuses a parameter too many."""
    entry = FUNCTIONS[name]
    values = [0.3 + index for index in range(len(entry.parameters))]
    x = np.linspace(0.1, 3.0, 7)
    found = apply([name], values, x)
    assert found.shape == x.shape
    assert found.dtype == np.float64
    assert np.isfinite(found).all()
    with pytest.raises(GraphError, match="parameters"):
        apply([name], [*values, 1.0], x)


@pytest.mark.parametrize(
    ("functions", "parameters", "at", "value"),
    [
        (["gelu"], [], 1.0, 0.8413447460685429),
        (["gelu_tanh"], [], 1.0, 0.8411919906082768),
        (["silu"], [], 1.0, 1 / (1 + math.exp(-1))),
        (["celu"], [2.0], -1.0, 2 * math.expm1(-0.5)),
        (["selu"], [2.0, 3.0], -1.0, 6 * math.expm1(-1)),
        (["hard_swish"], [], 1.0, 4 / 6),
        (["mish"], [], 1.0, math.tanh(math.log1p(math.e))),
        (["round"], [], 2.5, 2.0),
        (["thresholded_relu"], [1.0], 1.0, 0.0),
        (["scale", "shift", "square"], [2.0, 1.0], 3.0, 49.0),
        (["clip", "neg"], [-1.0, math.inf], -3.0, 1.0),
    ],
)
def test_functions_have_known_values(
    functions: list[str], parameters: list[float], at: float, value: float
) -> None:
    """Values from their definitions; chains apply the first function first."""
    assert float(apply(functions, parameters, np.array(at))) == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("interleaved", [False, True])
def test_rope_turns_pairs(seed: int, interleaved: bool) -> None:
    """As a product of complex numbers, for both places of the heads."""
    x, angles = floats(seed, 2, 3, 5, 8), floats(seed + 1, 5, 4)
    cos, sin = np.cos(angles), np.sin(angles)
    wide = x.astype(np.float64)
    parts = (wide[..., ::2], wide[..., 1::2]) if interleaved else (wide[..., :4], wide[..., 4:])
    turned = (parts[0] + 1j * parts[1]) * np.exp(1j * angles.astype(np.float64))
    expected = np.empty_like(wide)
    pairs = (slice(0, 8, 2), slice(1, 8, 2)) if interleaved else (slice(0, 4), slice(4, 8))
    expected[..., pairs[0]], expected[..., pairs[1]] = turned.real, turned.imag
    found = result("rope", x, cos, sin, interleaved=interleaved, heads_axis=1)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    swapped = np.ascontiguousarray(x.transpose(0, 2, 1, 3))
    found = result("rope", swapped, cos, sin, interleaved=interleaved, heads_axis=2)
    np.testing.assert_allclose(found.transpose(0, 2, 1, 3), expected, atol=1e-6)


@pytest.mark.parametrize("seed", SEEDS)
def test_attention_sees_what_it_may(seed: int) -> None:
    """Grouped heads, causal with offset, window and softcap, against loops."""
    q, k, v = floats(seed, 1, 4, 3, 5), floats(seed + 1, 1, 2, 6, 5), floats(seed + 2, 1, 2, 6, 7)
    window, cap, offset = [0, 2, 0, 3][seed], [0.0, 0.0, 1.5, 2.0][seed], [3, 2, -1, 0][seed]
    found = result(
        "attention", q, k, v, scale=0.4, causal=True, offset=offset, window=window, softcap=cap
    )
    for h, i in np.ndindex(4, 3):
        keys = [j for j in range(6) if j <= i + offset and (not window or j > i + offset - window)]
        scores = [0.4 * float(q[0, h, i].astype(float) @ k[0, h // 2, j]) for j in keys]
        if cap:
            scores = [cap * math.tanh(score / cap) for score in scores]
        weights = [math.exp(score) for score in scores]
        total = sum(weights) or 1.0
        expected = sum(
            (one / total * v[0, h // 2, j] for one, j in zip(weights, keys, strict=True)),
            np.zeros(7),
        )
        np.testing.assert_allclose(found[0, h, i], expected, atol=1e-6)


def test_integers_divide_towards_zero_and_remainders_follow_the_dividend() -> None:
    """As in C; a divisor of 0 raises nothing."""
    a, b = np.array([7, -7, 7, -7, 5], np.int32), np.array([2, 2, -2, -2, 0], np.int32)
    assert result("div", a, b).tolist()[:4] == [3, -3, -3, 3]
    assert result("mod", a, b).tolist()[:4] == [1, -1, 1, -1]


@pytest.mark.parametrize(
    ("kind", "shapes", "attributes", "message"),
    [
        ("add", [(2, 3), (4,)], {}, "do not broadcast"),
        ("matmul", [(3,), (3, 2)], {"transpose_a": False, "transpose_b": False}, "rank 2"),
        (
            "conv",
            [(1, 5, 5, 4), (3, 3, 3, 8)],
            {"strides": (1, 1), "pads": (0,) * 4, "dilations": (1, 1), "groups": 1},
            "4 channels",
        ),
        (
            "maxpool",
            [(1, 2, 2, 1)],
            {"window": (3, 3), "strides": (1, 1), "pads": (0,) * 4, "dilations": (1, 1)},
            "fits nowhere",
        ),
        ("reshape", [(2, 3)], {"shape": (5,)}, "allowed as many"),
        ("transpose", [(2, 3)], {"order": (0, 0)}, "each axis"),
        ("concat", [(2, 3), (3, 2)], {"axis": 0}, "equal ones but for axis 0"),
        ("slice", [(4,)], {"starts": (0,), "stops": (5,), "steps": (1,)}, "allowed 0..4"),
        ("slice", [(4,)], {"starts": (0,), "stops": (4,), "steps": (0,)}, "other than 0"),
        ("pad", [(4,)], {"before": (-1,), "after": (0,), "value": 0.0}, "from 0"),
        ("softmax", [(4,)], {"axis": 1}, "axis 1, allowed 0..0"),
        ("layernorm", [(4, 3), (4,)], {"axes": 1, "epsilon": 0.0}, "gain has shape"),
        ("mean", [(4, 3)], {"axes": (0, 0), "keep": True}, "each once"),
        ("expand", [(4, 3)], {"shape": (4, 2)}, "do not broadcast"),
        ("cast", [(4,)], {"element": "float8"}, "element 'float8'"),
        ("compare", [(4,), (4,)], {"direction": "EG"}, "direction 'EG'"),
    ],
)
def test_wrong_shapes_are_refused(
    kind: str, shapes: list[tuple[int, ...]], attributes: dict[str, Any], message: str
) -> None:
    """The type rule says what was given and what is allowed."""
    with pytest.raises(GraphError, match=message):
        infer(kind, attributes, [TensorType(shape) for shape in shapes])


def test_indices_outside_are_refused() -> None:
    """Gather counts negative indices from behind and names a range it cannot read."""
    x = np.arange(4, dtype=np.float32)
    assert result("gather", x, np.array([-1, 0]), axis=0).tolist() == [3.0, 0.0]
    with pytest.raises(GraphError, match=r"operation 'gather'.*-1\.\.4, allowed -4\.\.3"):
        result("gather", x, np.array([-1, 4]), axis=0)
