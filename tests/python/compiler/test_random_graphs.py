# SPDX-License-Identifier: Apache-2.0
"""Random quantised graphs of the benches: legal, repeatable, and within the limits of the chip."""

from __future__ import annotations

import numpy as np

from npu.graph.form import Array, Element, Graph, Operation
from npu.graph.operations import TABLE
from npu.graph.text import write
from npu.graph.verify import verify
from tb.stimulus.random_graphs import random_graph

SEEDS = 100
LARGEST = 60_000
"""Elements of a tensor: a graph must stay quick on the RTL."""
READS_BYTES = frozenset(
    {"matmul", "reshape", "transpose", "slice", "pad", "expand", "concat", "identity", "table"}
)
"""What may read the uint8 of a softmax on the chip."""


def drawn(seeds: int = SEEDS) -> list[tuple[int, Graph, dict[str, Array]]]:
    """Return seeds with their graphs and inputs."""
    return [(seed, *random_graph(seed)) for seed in range(seeds)]


def within(values: Array, low: int, high: int) -> bool:
    """Say whether all values lie in low..high."""
    return bool(np.all((values >= low) & (values <= high)))


def factors_legal(one: Operation) -> bool:
    """Say whether the factors and shifts of an operation fit the fields of its instruction."""
    if one.kind in ("matmul", "conv"):
        if one["combine"] == "mul" and not 1 <= one["product_mult"] <= 32767:
            return False
        if "mult" in one.integers and not within(one.integers["mult"], 1 << 14, (1 << 15) - 1):
            return False
    if one.kind == "attention" and not within(one.integers["mult"], 1, 32767):
        return False
    if one.kind == "requantise" and not -32768 <= one["mult"] <= 32767:
        return False
    shifts = one.integers.get("shift", np.zeros(1, np.uint8))
    alone = one["shift"] if "shift" in one.attributes else 0
    return within(shifts, 0, 63) and 0 <= alone <= 63


def test_hundred_seeds_are_legal_and_complete() -> None:
    """Each graph verifies; each operation has a reason and all attributes of the table."""
    for seed, graph, inputs in drawn():
        verify(graph, file=f"seed {seed}", placed=True)
        assert set(inputs) == set(graph.inputs), seed
        for one in graph.operations:
            entry = TABLE[one.kind]
            full = {*entry.attributes, *(entry.fused if one.on_chip else ())}
            assert set(one.attributes) == full, (seed, one.name)
            assert one.place is not None and one.place.reason, (seed, one.name)


def test_factors_and_types_fit_the_chip() -> None:
    """Factors fit their fields, sums leave the chip, bytes go where they are understood."""
    for seed, graph, _ in drawn():
        readers = graph.consumers()
        for one in graph.operations:
            if not one.on_chip:
                continue
            assert factors_legal(one), (seed, one.name)
            for name in one.outputs:
                element, after = graph.type(name).element, readers[name]
                assert element is not Element.I32 or not after, (seed, name)
                if element is Element.U8:
                    kinds = {reader.kind for reader in after if reader.on_chip}
                    assert kinds <= READS_BYTES, (seed, name, kinds)
        assert max(tensor.type.size for tensor in graph.tensors.values()) <= LARGEST, seed


def test_what_nothing_reads_is_an_output() -> None:
    """Nothing is computed in vain; now and then an inner tensor is an output as well."""
    inner = 0
    for seed, graph, _ in drawn():
        readers = graph.consumers()
        ends = {name for one in graph.operations for name in one.outputs if not readers[name]}
        assert ends <= set(graph.outputs), seed
        inner += bool(set(graph.outputs) - ends)
    assert inner >= SEEDS // 10


def test_a_seed_gives_one_graph() -> None:
    """The same text and inputs twice, others for another seed."""
    texts = set()
    for seed, graph, inputs in drawn(20):
        again, others = random_graph(seed)
        assert write(graph) == write(again), seed
        assert all(np.array_equal(inputs[name], others[name]) for name in inputs), seed
        texts.add(write(graph))
    assert len(texts) == 20
