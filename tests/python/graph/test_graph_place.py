# SPDX-License-Identifier: Apache-2.0
"""Who executes an operation, why, and in which form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dev import graphs_page
from npu.graph.evaluate import evaluate
from npu.graph.form import Element, Graph, GraphError, Quantisation, TensorType
from npu.graph.operations import TABLE
from npu.graph.operations.composites import visible
from npu.graph.operations.constraints import Constraint
from npu.graph.passes.canonical.canonicalise import canonicalise
from npu.graph.passes.placing.cut import CHEAP, MOVES_ALONE
from npu.graph.passes.placing.place import place
from npu.graph.verify import verify
from tests.python.compiler.small_networks import (
    NETWORKS,
    PLAIN,
    SAME,
    Net,
    first,
    grown,
    network,
    quantised,
    quantised_input,
    samples,
)


def placed(graph: Graph, **wishes: Any) -> Graph:  # noqa: ANN401
    """Return a network after the pass."""
    result = place(canonicalise(graph), **wishes)
    verify(result, placed=True)
    return result


def kinds(graph: Graph, chip: bool) -> list[str]:
    """Return the kinds of operations."""
    return [one.kind for one in graph.operations if one.on_chip == chip]


def why(graph: Graph, kind: str) -> str:
    """Return the reason of the first operation of a kind."""
    found = [one.place.reason for one in graph.operations if one.kind == kind and one.place]
    return found[0]


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_of_known_operations_go_to_the_chip_as_a_whole(name: str) -> None:
    """Networks of known operations go to the chip as a whole."""
    graph = placed(network(name))
    assert kinds(graph, chip=False) == []
    assert all(one.place and one.place.reason for one in graph.operations)


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("seed", [1, 2])
def test_the_forms_of_the_chip_compute_what_the_network_does(name: str, seed: int) -> None:
    """The forms of the chip compute what the network does."""
    graph = network(name, seed)
    inputs = first(samples(graph, seed))
    (wanted,) = evaluate(graph, inputs).values()
    (found,) = evaluate(placed(graph), inputs).values()
    assert np.abs(found - wanted).max() <= 1e-5 * np.abs(wanted).max(), f"seed {seed}"


def _attention(net: Net, mask: np.ndarray | None, **sight: int) -> str:
    q, k, v = (net.input(name, 2, 2, 5, 8) for name in "qkv")
    inputs = [q, k, v] if mask is None else [q, k, v, net.build.constant(mask)]
    given: dict[str, Any] = {"causal": False, "offset": 0, "window": 0, **sight}
    return net.build.add("attention", inputs, scale=0.3, softcap=0.0, **given)


@pytest.mark.parametrize(
    "sight",
    [
        {"causal": True, "offset": -2},
        {"causal": True, "offset": 1, "window": 2},
        {"window": 3},
        {"window": 2, "offset": -1},
    ],
)
@pytest.mark.parametrize("masked", ["", "bool", "float", "blind", "batches"])
def test_what_the_causal_flag_cannot_say_becomes_a_mask(sight: dict[str, int], masked: str) -> None:
    """What the causal flag cannot say becomes a mask."""
    rng = np.random.default_rng(7)
    shape = (2, 1, 5, 5) if masked == "batches" else (5, 5)
    shown = rng.random(shape) < 0.6
    if masked == "blind":
        shown[1] = False
    mask = None if not masked else shown
    if masked == "float":
        mask = np.where(shown, rng.standard_normal(shape), -np.inf).astype(np.float32)
    graph = grown(lambda net: _attention(net, mask, **sight), 3)
    inputs = first(samples(graph))
    result = placed(graph)
    (wanted,) = evaluate(graph, inputs).values()
    (found,) = evaluate(result, inputs).values()
    assert np.abs(found - wanted).max() <= 1e-5
    for one in result.operations:
        if one.kind == "attention":
            assert one["offset"] >= 0
            assert one["causal"] or not one["window"]
            assert _every_query_sees(result, one.inputs[3:], one.attributes)


def _every_query_sees(graph: Graph, mask: tuple[str, ...], sight: Mapping[str, Any]) -> bool:
    if not mask:
        return True
    data = graph.constant(mask[0])
    assert data is not None
    shown = np.asarray(data if data.dtype == np.bool_ else data > -500, np.bool_)
    seen = visible(sight, data.shape[-2], data.shape[-1])
    return bool(np.logical_and(shown, seen).any(axis=-1).all())


def test_what_the_chip_has_not_goes_to_the_host_with_a_sentence() -> None:
    """What the chip has not goes to the host with a sentence."""

    def make(net: Net) -> str:
        x = net.linear(net.input("x", 4, 16), 16)
        y = net.build.add("div", [x, net.input("y", 4, 16)])
        return net.linear(y, 8)

    graph = placed(grown(make))
    assert kinds(graph, chip=False) == ["div"]
    assert why(graph, "div") == "the chip has no div"


def test_placement_and_the_page_ask_the_entry_of_a_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule that an entry has besides decides, and its sentence is printed."""

    def make(net: Net) -> str:
        weights = net.build.constant(np.ones((16, 8), np.float32), "w")
        return net.build.add("matmul", [net.input("x", 4, 16), weights], **PLAIN)

    graph = grown(make)
    assert kinds(placed(graph), chip=False) == []
    never = Constraint("it is never so", lambda known, op: f"{op.kind} is not allowed here")
    entry = TABLE["matmul"]
    monkeypatch.setitem(TABLE, "matmul", replace(entry, constraints=(*entry.constraints, never)))
    assert why(placed(graph), "matmul") == "matmul is not allowed here"
    assert any("it is never so" in line for line in graphs_page.chip_rows())


def test_a_filter_that_is_not_constant_is_refused() -> None:
    """A filter that is not constant is refused."""
    graph = placed(
        grown(
            lambda net: net.build.add(
                "conv", [net.input("x", 1, 6, 6, 4), net.input("w", 3, 3, 4, 8)], **SAME
            )
        )
    )
    assert why(graph, "conv") == "its filter is not constant"


@pytest.mark.parametrize(
    ("length", "reason"), [(8192, ""), (8193, "a row has 8193 elements, the chip takes 8192")]
)
def test_rows_longer_than_the_chip_takes_are_refused(length: int, reason: str) -> None:
    """Rows longer than the chip takes are refused."""
    graph = placed(grown(lambda net: net.build.add("softmax", [net.input("x", 1, length)], axis=1)))
    assert why(graph, "softmax") == (reason or "SOFTMAX has the rows")


def test_moves_alone_stay_on_the_host() -> None:
    """Moves alone stay on the host."""

    def make(net: Net) -> str:
        x = net.build.add("transpose", [net.input("x", 4, 16)], order=(1, 0))
        return net.build.add("concat", [x, x], axis=0)

    graph = placed(grown(make))
    assert kinds(graph, chip=True) == []
    assert why(graph, "concat") == MOVES_ALONE


def _sum_of_quotients(net: Net) -> str:
    x, y = net.input("x", 4, 16), net.input("y", 4, 16)
    return net.build.add("add", [net.build.add("div", [x, y]), net.build.add("div", [y, x])])


def test_one_cheap_operation_between_operations_of_the_host_stays_there() -> None:
    """One cheap operation between operations of the host stays there."""
    graph = placed(grown(_sum_of_quotients))
    assert why(graph, "add") == CHEAP


def test_the_user_can_have_an_island_on_the_chip() -> None:
    """The user can have an island on the chip."""
    graph = placed(grown(_sum_of_quotients), npu=("add",))
    assert why(graph, "add") == "the user wants it on the chip"
    assert kinds(graph, chip=True) == ["add"]


def test_one_cheap_operation_alone_goes_to_the_chip() -> None:
    """One cheap operation alone goes to the chip."""
    graph = placed(
        grown(lambda net: net.build.add("add", [net.input("x", 4, 16), net.input("y", 4, 16)]))
    )
    assert kinds(graph, chip=True) == ["add"]


def test_the_user_can_send_an_operation_to_the_host() -> None:
    """The user can send an operation to the host."""
    graph = network("residual_images")
    name = next(one.name for one in canonicalise(graph).operations if one.kind == "maxpool")
    result = placed(graph, host=(name,))
    assert kinds(result, chip=False) == ["maxpool"]
    assert why(result, "maxpool") == "the user wants it on the host"


def test_an_impossible_wish_says_why() -> None:
    """An impossible wish says why."""
    graph = grown(_sum_of_quotients)
    with pytest.raises(GraphError, match=r"--npu div: .* cannot be executed .* has no div"):
        placed(graph, npu=("div",))


def test_a_wish_for_an_unknown_name_names_others() -> None:
    """A wish for an unknown name names others."""
    with pytest.raises(GraphError, match=r"--host maxpol: there is no such operation.*maxpool"):
        placed(network("residual_images"), host=("maxpol",))


def test_two_wishes_for_one_operation_are_refused() -> None:
    """Two wishes for one operation are refused."""
    with pytest.raises(GraphError, match="named for host too"):
        placed(network("residual_images"), host=("maxpool",), npu=("maxpool",))


def test_given_int16_stays_on_the_host_where_the_chip_has_bytes() -> None:
    """Given int16 stays on the host where the chip has bytes."""

    def make(net: Net) -> str:
        x = quantised_input(net, "x", (4, 16), 1e-4, element=Element.I16)
        return quantised(net, net.table(x, "tanh"), 2.0**-15, element=Element.I16)

    graph = placed(grown(make))
    assert "is given as int16, the chip takes int8 here" in why(graph, "table")


def test_integers_of_a_pool_count_as_they_are() -> None:
    """Integers of a pool count as they are."""

    def make(net: Net) -> str:
        x = net.build.input("x", TensorType((1, 4, 4, 16), Element.U8))
        return net.build.add(
            "maxpool", [x], window=(2, 2), strides=(2, 2), pads=(0,) * 4, dilations=(1, 1)
        )

    graph = placed(grown(make))
    assert kinds(graph, chip=True) == ["maxpool"]
    assert graph.type("x").quantisation == Quantisation((1.0,))


def test_int32_sums_are_moved_by_the_host() -> None:
    """Int32 sums are moved by the host."""

    def make(net: Net) -> str:
        x = quantised_input(net, "x", (4, 16), 1.0)
        y = net.build.add(
            "matmul",
            [x, quantised_input(net, "y", (16, 8), 1.0)],
            **PLAIN,
        )
        y = net.build.add("transpose", [y], order=(1, 0))
        return quantised(net, y, 1.0, element=Element.I32)

    graph = placed(grown(make))
    assert kinds(graph, chip=True) == ["matmul"]
    assert "transpose" in kinds(graph, chip=False)


@pytest.mark.parametrize("name", ["floor", "sign"])
def test_functions_that_jump_stay_on_the_host(name: str) -> None:
    """Rounding to int8 in front of them would make them jump elsewhere."""
    graph = placed(
        grown(lambda net: net.linear(net.table(net.linear(net.input("x", 4, 16), 16), name), 8))
    )
    assert why(graph, "table") == f"{name} jumps, with int8 in front of it in other places"
