# SPDX-License-Identifier: Apache-2.0
"""The text of a graph parses back to the same graph, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from npu.graph.form import (
    Element,
    Graph,
    GraphError,
    Operation,
    OperationPlace,
    Quantisation,
    Target,
    Tensor,
    TensorType,
)
from npu.graph.text import equal, parse, write

NUMBERS = some.one_of(
    some.booleans(),
    some.integers(-(2**63), 2**64 - 1),
    some.floats(allow_nan=False),
    some.text(),
    some.binary(max_size=9),
    some.lists(some.integers(-(2**63), 2**63 - 1), max_size=3).map(tuple),
    some.lists(some.floats(allow_nan=False), max_size=3).map(tuple),
    some.lists(some.text(), max_size=3).map(tuple),
)
WORDS = some.from_regex(r"[a-z_][a-z0-9_]*", fullmatch=True).filter(bool)


def array(kind: TensorType, seed: int) -> np.ndarray[Any, Any]:
    """Return random bytes as elements; floats may be anything."""
    random = np.random.default_rng(seed)
    if kind.element == Element.BOOL:
        return random.integers(0, 2, kind.shape).astype(bool)
    data = random.bytes(kind.size * kind.element.dtype.itemsize)
    return np.frombuffer(data, kind.element.dtype).reshape(kind.shape)


@some.composite
def types(draw: some.DrawFn) -> TensorType:
    """Draw a type with or without quantisation."""
    shape = tuple(draw(some.lists(some.integers(0, 5), max_size=3)))
    scales = some.floats(1e-30, 1e30)
    quantisation = draw(
        some.one_of(
            some.none(),
            some.builds(Quantisation, some.tuples(scales), some.integers(-9, 9)),
            some.builds(Quantisation, some.lists(scales).map(tuple), axis=some.integers(0, 3)),
        )
    )
    return TensorType(shape, draw(some.sampled_from(Element)), quantisation)


@some.composite
def graphs(draw: some.DrawFn) -> Graph:
    """Draw a graph; the text form does not ask whether it is a right one."""
    names = draw(some.lists(some.text(min_size=1), min_size=4, max_size=8, unique=True))
    tensors = {}
    for index, name in enumerate(names):
        kind = draw(types())
        data = array(kind, draw(some.integers(0, 99))) if index >= 3 else None
        tensors[name] = Tensor(name, kind, data)
    place = some.builds(OperationPlace, some.sampled_from(Target), some.text())
    kind = draw(types())
    operation = Operation(
        draw(some.text()),
        draw(WORDS),
        tuple(draw(some.lists(some.sampled_from([*names, ""])))),
        (names[1], names[2]),
        draw(some.dictionaries(WORDS, NUMBERS, max_size=4)),
        draw(some.text()),
        draw(some.one_of(some.none(), place)),
        {"mult": array(TensorType(kind.shape, kind.element), 1)} if draw(some.booleans()) else {},
    )
    return Graph(draw(some.text()), (names[0],), (names[2],), tensors, (operation,))


def same_bits(one: np.ndarray[Any, Any] | None, other: np.ndarray[Any, Any] | None) -> bool:
    """Compare arrays as bytes."""
    if one is None or other is None:
        return one is other
    return (one.shape, one.dtype, one.tobytes()) == (other.shape, other.dtype, other.tobytes())


@settings(max_examples=150, deadline=None)
@given(graphs())
def test_text_parses_back_to_the_same_graph(graph: Graph) -> None:
    """Any names, numbers, types and constants survive."""
    found = parse(write(graph))
    assert (found.name, found.inputs, found.outputs) == (graph.name, graph.inputs, graph.outputs)
    assert set(found.tensors) == set(graph.tensors)
    for name, tensor in graph.tensors.items():
        assert found[name].type == tensor.type
        assert same_bits(found[name].data, tensor.data)
    (one,), (other,) = found.operations, graph.operations
    for part in ("name", "kind", "inputs", "outputs", "source", "place"):
        assert getattr(one, part) == getattr(other, part)
    assert dict(one.attributes) == dict(other.attributes)
    assert [type(value) for value in one.attributes.values()] == [
        type(value) for value in other.attributes.values()
    ]
    assert set(one.integers) == set(other.integers)
    assert all(same_bits(one.integers[key], other.integers[key]) for key in one.integers)
    assert write(found) == write(graph)
    assert equal(found, graph)


def test_graphs_that_differ_in_one_bit_are_not_equal() -> None:
    """The last bit of a constant counts."""
    data = np.ones(40, np.float32)
    other = data.copy()
    other[-1] = np.nextafter(np.float32(1), np.float32(2))
    graphs = [
        Graph("g", (), ("w",), {"w": Tensor("w", TensorType((40,)), one)}, ())
        for one in (data, other)
    ]
    assert equal(graphs[0], graphs[0])
    assert not equal(graphs[0], graphs[1])


def test_large_constants_are_bytes() -> None:
    """A few numbers stand as numbers, many as base64."""
    for size, form in ((16, "= [0.0"), (17, 'base64"')):
        data = np.zeros(size, np.float32)
        graph = Graph("g", (), ("w",), {"w": Tensor("w", TensorType((size,)), data)}, ())
        assert form in write(graph)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("input %x : float33[1]", "3: element type 'float33', allowed float32"),
        ("input x : float32[1]", "3: 'x', allowed a tensor"),
        ("const %w : int8[2] = [1]", "1 numbers, allowed 2"),
        ("const %w : int8[2] = [1, 300]", "no int8"),
        ('const %w : int8[2] = base64"AAAA"', "3 bytes, allowed 2"),
        ('const %w : int8[2] = base64"A"', "no base64"),
        ("%y : float32[1] = relu(%x", "'the end', allowed ','"),
        (
            '%y : float32[1] = relu(%x) name "r" place moon ""',
            "place 'moon', allowed npu, port, host",
        ),
        ('%y : float32[1] = relu(%x) name "r" ?', "no part of a graph"),
        ('%y : float32[1] = relu(%x) name "r" %z', "behind the end"),
        ("input %y : int8[1]\ninput %y : int8[1]", "4: tensor 'y' is declared twice"),
    ],
)
def test_wrong_text_is_named_by_its_line(text: str, message: str) -> None:
    """An error names file and line, what stands there and what is allowed."""
    with pytest.raises(GraphError, match=f"a.txt:.*{message}"):
        parse(f'graph "g"\n\n{text}\n', file="a.txt")
