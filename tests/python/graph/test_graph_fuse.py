# SPDX-License-Identifier: Apache-2.0
"""The integer form of graphs, in the integer meaning of golden."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from golden.fixed import rs
from golden.graph import run
from npu.graph.evaluate import evaluate
from npu.graph.form import Element, Graph, GraphError
from npu.graph.operations import Trait, with_trait
from npu.graph.passes.factors import factor, factors, signed_factor
from npu.graph.prepare import PASSES, prepare
from npu.graph.text import equal
from tests.needs import needs
from tests.python.compiler.small_networks import (
    NETWORKS,
    PLAIN,
    POINT,
    SAME,
    Net,
    first,
    grown,
    integer_weights,
    integers,
    network,
    quantised,
    quantised_input,
    samples,
)
from tests.python.importers.graph_node_cases import INTEGER, run_case


def kinds(graph: Graph) -> list[str]:
    """Return the kinds of operations."""
    return [one.kind for one in graph.operations if one.on_chip]


def one_of(graph: Graph, kind: str) -> Any:  # noqa: ANN401
    """Return the first operation of a kind on the chip."""
    return next(one for one in graph.operations if one.kind == kind and one.on_chip)


@pytest.mark.parametrize("bits", [15, 16])
@pytest.mark.parametrize("seed", range(4))
def test_factors_are_near_and_use_all_bits(bits: int, seed: int) -> None:
    """Multipliers have their top bit set, and half a step of it is the largest error."""
    rng = np.random.default_rng(seed)
    for real in 2.0 ** rng.uniform(-40, bits - 1, 200):
        mult, shift = factor(float(real), bits)
        assert 2 ** (bits - 1) <= mult < 2**bits, f"seed {seed}"
        assert 0 <= shift <= 63
        assert abs(mult / 2**shift / real - 1) <= 2.0**-bits, f"seed {seed}, {real}"


@pytest.mark.parametrize("count", [1, 2, 4, 6, 9, 30, 64, 169])
def test_a_factor_above_rounds_halves_away_from_zero(count: int) -> None:
    """Means of bytes, whole multiples of 1 / count, come out as TFLite rounds them."""
    mult, shift = factor(1 / count, 16, above=True)
    sums = np.arange(-128 * count, 127 * count + 1)
    found = (sums * mult + (1 << (shift - 1))) >> shift
    wanted = np.sign(sums) * ((np.abs(sums) + count // 2) // count)
    np.testing.assert_array_equal(found, wanted)


def test_a_factor_just_below_a_power_of_two_does_not_leave_its_bits() -> None:
    """A factor just below a power of two does not leave its bits."""
    assert factor(np.nextafter(1.0, 0.0)) == (1 << 14, 14)
    assert factor(2.0**-60)[1] == 63


@pytest.mark.parametrize("real", [0.0, -1.0, np.inf, np.nan, 2.0**16])
def test_factors_that_no_instruction_takes_are_refused(real: float) -> None:
    """Factors that no instruction takes are refused."""
    with pytest.raises(GraphError, match="a factor of"):
        factor(real)


def test_powers_of_two_are_exact_and_short() -> None:
    """Powers of two are exact and short."""
    assert signed_factor(256.0) == (256, 0)
    assert signed_factor(-1 / 256) == (-1, 8)
    mult, shift = factors(np.array([0.0, 1.0]))
    assert (mult.tolist(), shift.tolist()) == ([0, 1 << 15], [0, 15])


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_networks_stay_near_their_float_results(name: str, seed: int) -> None:
    """Networks stay near their float results."""
    graph = network(name, seed)
    given = samples(graph, seed)
    (wanted,) = evaluate(graph, first(given)).values()
    (found,) = run(prepare(graph, samples=given), first(given)).values()
    assert np.abs(found - wanted).max() <= 0.06 * np.abs(wanted).max(), f"seed {seed}"


def _pair(kind: str) -> Callable[[Net], str]:
    return lambda net: net.build.add(kind, [net.input("x", 4, 16), net.input("y", 4, 16)])


def _pool(kind: str, **more: Any) -> Callable[[Net], str]:  # noqa: ANN401
    return lambda net: net.build.add(
        kind,
        [net.input("x", 1, 7, 7, 16)],
        window=(3, 3),
        strides=(2, 2),
        pads=(1, 1, 1, 1),
        **more,
    )


def _attend(**sight: Any) -> Callable[[Net], str]:  # noqa: ANN401
    given = {"causal": False, "offset": 0, "window": 0, "softcap": 0.0, **sight}

    def make(net: Net) -> str:
        q, k, v = net.input("q", 1, 4, 8, 16), net.input("k", 1, 2, 8, 16), ""
        v = net.input("v", 1, 2, 8, 12)
        return net.build.add("attention", [q, k, v], scale=0.25, **given)

    return make


SINGLE: dict[str, Callable[[Net], str]] = {
    **{kind: _pair(kind) for kind in sorted(with_trait(Trait.PAIR))},
    "clip": lambda net: net.build.add("clip", [net.input("x", 4, 16)], low=-0.5, high=1.0),
    "table": lambda net: net.table(net.input("x", 4, 16), "gelu"),
    "matmul": lambda net: net.linear(net.input("x", 4, 16), 8),
    "two activations": lambda net: net.build.add(
        "matmul",
        [net.input("x", 2, 4, 16), net.input("y", 2, 8, 16)],
        transpose_a=False,
        transpose_b=True,
    ),
    "conv": lambda net: net.conv(net.input("x", 1, 6, 6, 8), 16),
    "depthwise": lambda net: net.conv(net.input("x", 1, 6, 6, 16), 16, groups=16),
    "groups": lambda net: net.conv(net.input("x", 1, 6, 6, 8), 16, groups=2, stride=2),
    "softmax": lambda net: net.build.add("softmax", [net.input("x", 4, 16)], axis=1),
    "layernorm": lambda net: net.norm(net.input("x", 4, 16)),
    "rmsnorm": lambda net: net.build.add(
        "rmsnorm", [net.input("x", 4, 2, 16), net.floats(2, 16)], axes=2, epsilon=1e-5
    ),
    "maxpool": _pool("maxpool", dilations=(1, 1)),
    "avgpool": _pool("avgpool", count_pads=False),
    "avgpool of pads": _pool("avgpool", count_pads=True),
    "mean": lambda net: net.build.add(
        "mean", [net.input("x", 2, 5, 5, 16)], axes=(1, 2), keep=True
    ),
    "mean of rows": lambda net: net.build.add(
        "mean", [net.input("x", 4, 16)], axes=(1,), keep=False
    ),
    "attention": _attend(),
    "causal": _attend(causal=True),
    "window": _attend(causal=True, window=3),
    "shifted": _attend(causal=True, offset=-3),
}


@pytest.mark.parametrize("name", SINGLE)
@pytest.mark.parametrize("seed", [0, 1])
def test_each_operation_stays_within_two_percent(name: str, seed: int) -> None:
    """Each operation stays within two percent."""
    graph = grown(SINGLE[name], seed)
    given = samples(graph, seed, 1)
    fused = prepare(graph, samples=given)
    assert kinds(fused), "nothing is on the chip"
    (wanted,) = evaluate(graph, first(given)).values()
    (found,) = run(fused, first(given)).values()
    share = 0.03 if "attention" in kinds(fused) else 0.02
    assert np.abs(found - wanted).max() <= share * np.abs(wanted).max(), f"seed {seed}"


def test_a_given_product_has_the_integers_of_the_formula() -> None:
    """The bias holds the zero points of both sides, and nothing else changes the sums."""
    sx, sw, sy, zx, zy = 0.03, 0.005, 0.08, 7, -11

    def make(net: Net) -> str:
        x = quantised_input(net, "x", (4, 32), sx, zx)
        w = integer_weights(net, (32, 8), (sw,))
        bias = net.build.constant(np.linspace(-1, 1, 8, dtype=np.float32))
        return quantised(net, net.build.add("matmul", [x, w, bias], **PLAIN), sy, zy)

    graph = grown(make)
    fused = prepare(graph)
    assert kinds(fused) == ["matmul"]
    one, inputs = one_of(fused, "matmul"), integers(graph)
    stored = next(tensor.data for tensor in graph.tensors.values() if tensor.name == "w")
    assert stored is not None
    w = stored.astype(np.int64)
    mult, shift = (one.integers[part].astype(np.int64) for part in ("mult", "shift"))
    bias = np.rint(np.linspace(-1, 1, 8, dtype=np.float32).astype(np.float64) / (sx * sw))
    bias = bias - zx * w.sum(axis=0) + np.rint(zy * 2.0**shift / mult)
    assert np.array_equal(one.integers["bias"], bias.astype(np.int64))
    sums = inputs["x"].astype(np.int64) @ w + bias.astype(np.int64)
    wanted = np.clip(rs(sums * mult, np.broadcast_to(shift, sums.shape)), -128, 127)
    (found,) = run(fused, inputs).values()
    assert np.array_equal(found, wanted)


def test_int32_results_are_the_sums() -> None:
    """Int32 results are the sums."""

    def make(net: Net) -> str:
        x = quantised_input(net, "x", (4, 32), 1.0, 100, Element.U8)
        y = quantised_input(net, "y", (32, 8), 1.0, 3)
        return quantised(net, net.build.add("matmul", [x, y], **PLAIN), 1.0, 0, Element.I32)

    graph = grown(make)
    inputs = integers(graph)
    (found,) = run(prepare(graph), inputs).values()
    wanted = (inputs["x"].astype(np.int64) - 100) @ (inputs["y"].astype(np.int64) - 3)
    assert np.array_equal(found, wanted)


def _two(
    kind: str, zeros: tuple[int, int, int], coarse: tuple[float, float] = (1, 1)
) -> Callable[[Net], str]:
    def make(net: Net) -> str:
        x = quantised_input(net, "x", (8, 64), 0.0317 * coarse[0], zeros[0])
        y = quantised_input(net, "y", (8, 64), 0.0713 * coarse[1], zeros[1])
        return quantised(net, net.build.add(kind, [x, y]), 0.0837, zeros[2])

    return make


def _given_pool(count_pads: bool) -> Callable[[Net], str]:
    def make(net: Net) -> str:
        x = quantised_input(net, "x", (1, 7, 7, 16), 0.0317, 5)
        y = net.build.add(
            "avgpool",
            [x],
            window=(3, 3),
            strides=(2, 2),
            pads=(1, 1, 1, 1),
            count_pads=count_pads,
        )
        return quantised(net, y, 0.0213, -8)

    return make


GIVEN: dict[str, tuple[Callable[[Net], str], float]] = {
    "add": (_two("add", (0, 0, 0)), 0.03),
    "add of zero points": (_two("add", (4, -9, 11)), 0.03),
    "sub of zero points": (_two("sub", (4, -9, 11)), 0.03),
    "mul of zero points": (_two("mul", (4, -9, 11)), 0.03),
    "max of zero points": (_two("max", (4, -9, 11)), 0.03),
    **{
        f"{kind} of {zeros}, steps {coarse}": (_two(kind, zeros, coarse), 0.03)
        for kind in ("add", "sub", "max", "min")
        for zeros in ((0, 0, 0), (4, -9, 11))
        for coarse in ((20, 1), (1, 20), (400, 1), (1, 3_000))
    },
    "mean over pixels of padded windows": (_given_pool(True), 0.12),
    "mean over pixels of the image": (_given_pool(False), 0.12),
    "relu": (
        lambda net: quantised(
            net,
            net.table(
                net.build.add(
                    "conv",
                    [
                        quantised_input(net, "x", (1, 6, 6, 16), 0.03, 5),
                        integer_weights(net, (3, 3, 16, 8), (0.003,)),
                    ],
                    **SAME,
                ),
                "relu",
            ),
            0.05,
            -128,
        ),
        0.005,
    ),
    "sigmoid": (
        lambda net: quantised(
            net, net.table(quantised_input(net, "x", (4, 16), 0.05, 4), "sigmoid"), 1 / 256, -128
        ),
        0.0,
    ),
    "residual": (
        lambda net: quantised(
            net,
            net.table(
                net.build.add(
                    "add",
                    [
                        (x := quantised_input(net, "x", (1, 6, 6, 16), 0.03, 5)),
                        net.build.add(
                            "conv", [x, integer_weights(net, (1, 1, 16, 16), (0.004,))], **POINT
                        ),
                    ],
                ),
                "relu",
            ),
            0.1,
            -128,
        ),
        0.03,
    ),
    "softmax": (
        lambda net: quantised(
            net,
            net.build.add("softmax", [quantised_input(net, "x", (8, 32), 0.05, 4)], axis=1),
            1 / 256,
            -128,
        ),
        0.05,
    ),
}


@pytest.mark.parametrize("name", GIVEN)
@pytest.mark.parametrize("seed", [0, 1])
def test_given_quantisation_is_kept_to_a_step(name: str, seed: int) -> None:
    """Given quantisation is kept to a step."""
    make, share = GIVEN[name]
    graph = grown(make, seed)
    inputs = integers(graph, seed)
    fused = prepare(graph)
    # No bias holds a zero point of such steps.
    beyond = "3000" in name and name.startswith(("add of (4", "sub of (4"))
    assert all(one.on_chip for one in fused.operations) != beyond
    (wanted,) = evaluate(graph, inputs).values()
    (found,) = run(fused, inputs).values()
    apart = np.abs(found.astype(int) - wanted.astype(int))
    assert apart.max() <= 1, f"seed {seed}"
    assert (apart > 0).mean() <= share, f"seed {seed}"


def test_relu_is_a_flag_of_the_product() -> None:
    """Relu is a flag of the product."""
    graph = grown(lambda net: net.table(net.conv(net.input("x", 1, 6, 6, 8), 16), "relu"))
    fused = prepare(graph, samples=samples(graph))
    assert kinds(fused) == ["conv"]
    assert one_of(fused, "conv")["relu"] is True


def test_a_function_is_a_table_of_the_product() -> None:
    """A function is a table of the product."""
    graph = grown(
        lambda net: net.linear(net.table(net.linear(net.input("x", 4, 16), 16), "gelu"), 8)
    )
    fused = prepare(graph, samples=samples(graph))
    assert kinds(fused) == ["matmul", "matmul"]
    assert one_of(fused, "matmul").integers["table"].shape == (256,)


def test_a_factor_behind_a_product_changes_its_multiplier() -> None:
    """A factor behind a product changes its multiplier."""
    graph = grown(
        lambda net: net.build.add(
            "table",
            [net.build.add("matmul", [net.input("x", 4, 16), net.input("y", 16, 8)], **PLAIN)],
            functions=("scale",),
            parameters=(0.25,),
        )
    )
    assert kinds(prepare(graph, samples=samples(graph))) == ["matmul"]


def test_sums_and_gates_become_part_of_the_product_before_them() -> None:
    """Sums and gates become part of the product before them."""

    def make(net: Net) -> str:
        x = net.linear(net.input("x", 4, 16), 16)
        gate = net.build.add("mul", [net.table(net.linear(x, 16), "silu"), net.linear(x, 16)])
        return net.build.add("add", [net.linear(gate, 16), x])

    graph = grown(make)
    given = samples(graph)
    fused = prepare(graph, samples=given)
    combined = [one["combine"] for one in fused.operations if one.kind == "matmul"]
    assert sorted(filter(None, combined)) == ["add", "mul"]
    assert "mul" not in kinds(fused)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("scale", [1, 1e-2, 1e-3, 1e-4, 1e-6])
@pytest.mark.parametrize("kind", ["add", "sub", "max", "min"])
def test_a_dead_operand_takes_no_steps_of_small_ones(kind: str, scale: float, wide: bool) -> None:
    """What is 0 in all samples has a scale that may be far above that of the result."""

    def make(net: Net) -> str:
        x = net.input("x", 4, 16)
        small = net.build.add("matmul", [x, net.floats(16, 16, scale=scale)], **PLAIN)
        low = net.build.add("add", [x, net.build.constant(np.full(16, -100, np.float32))])
        dead = net.build.add("clip", [low], low=0.0, high=6.0)
        both = net.build.add(kind, [small, dead])
        return net.build.add("matmul", [both, net.floats(16, 8, scale=1 / scale)], **PLAIN)

    graph = grown(make)
    given = samples(graph)
    fused = prepare(graph, samples=given, wide=[kind] if wide else [])
    assert all(one.on_chip for one in fused.operations if one.kind in (kind, "matmul"))
    (wanted,) = evaluate(graph, first(given)).values()
    (found,) = run(fused, first(given)).values()
    assert np.abs(found - wanted).max() <= 0.03 * np.abs(wanted).max()


def test_what_leaves_the_numbers_of_the_chip_goes_to_the_host() -> None:
    """One operation with its reason, all others stay; where the user wants it, it is refused."""

    def make(net: Net) -> str:
        x = net.linear(net.input("x", 4, 16), 16)
        tiny = net.build.add("matmul", [x, net.floats(16, 16, scale=1e-25)], **PLAIN)
        return net.build.add("matmul", [net.norm(tiny), net.floats(16, 8, scale=1e22)], **PLAIN)

    graph = grown(make)
    given = samples(graph)
    fused = prepare(graph, samples=given)
    (norm,) = (one for one in fused.operations if one.kind == "layernorm")
    assert norm.place is not None
    assert (norm.on_chip, norm.place.reason.split(" of ")[0]) == (False, "a factor")
    assert kinds(fused)
    (wanted,) = evaluate(graph, first(given)).values()
    (found,) = run(fused, first(given)).values()
    assert np.abs(found - wanted).max() <= 0.02 * np.abs(wanted).max()
    with pytest.raises(GraphError, match=r"--npu layernorm: .* cannot be executed .* a factor of"):
        prepare(graph, samples=given, npu=["layernorm"])


def test_bias_that_no_accumulator_holds_goes_to_the_host() -> None:
    """With the reason, unless it alone decides the result."""

    def make(net: Net) -> str:
        x = quantised_input(net, "x", (4, 16), 1e-3)
        w = integer_weights(net, (16, 8), (1e-3,))
        bias = net.build.constant(np.full(8, 2.5e3, np.float32))
        y = net.build.add("matmul", [x, w, bias], **PLAIN)
        return quantised(net, y, 0.1, 0, Element.I16)

    (product,) = (one for one in prepare(grown(make)).operations if one.kind == "matmul")
    assert product.place is not None
    assert re.search(
        r"^its sums reach 2\.5.* the accumulators hold 2147483647$", product.place.reason
    )


def test_the_passes_are_kept_by_name_and_repeat_to_the_bit() -> None:
    """The passes are kept by name and repeat to the bit."""
    graph = network("residual_images")
    kept: list[tuple[str, Graph]] = []
    one = prepare(graph, samples="random:4", keep=lambda name, made: kept.append((name, made)))
    assert tuple(name for name, _ in kept) == PASSES
    other = prepare(network("residual_images"), samples="random:4")
    assert equal(one, other)
    for operation in one.operations:
        twin = next(each for each in other.operations if each.name == operation.name)
        for part, values in operation.integers.items():
            assert np.array_equal(values, twin.integers[part])


def test_errors_name_the_file() -> None:
    """Errors name the file."""
    with pytest.raises(GraphError, match=r"^net\.onnx: tensor"):
        prepare(network("transformer"), file="net.onnx")


NODE_CASES = (
    "test_qlinearmatmul_3D_uint8_float32",
    "test_qlinearconv",
    "test_convinteger_with_padding",
    "test_attention_3d_gqa_causal",
    "test_attention_causal_boolmask_nan_robustness",
    "test_layer_normalization_4d_axis1",
    "test_rotary_embedding_interleaved",
    "test_softmax_axis_0",
    "test_gemm_all_attributes",
    "test_averagepool_2d_pads",
    "test_maxpool_2d_uint8",
    "test_batchnorm_example",
    "test_swiglu",
)


@pytest.mark.parametrize("name", NODE_CASES)
def test_cases_of_the_onnx_suite_stay_within_two_percent(name: str) -> None:
    """Cases of the onnx suite stay within two percent."""
    needs("graphs")
    found = run_case(name, run)
    assert found.on_chip
    if found.operator in INTEGER:
        assert found.steps <= 1
    else:
        assert found.error <= 0.02
