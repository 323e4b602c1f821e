# SPDX-License-Identifier: Apache-2.0
"""The whole models of the benchmarks: their weights, their caches, their programs in memory."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from golden import decoder
from golden.contribution import check_block
from golden.machine import ChipConfig, Machine
from golden.session import GoldenSession
from npu.compiler import compile_model
from npu.compiler.model import Place
from tb.bench.memory import Memory
from tb.benchmarks import measured_models, model_benchmarks
from tb.benchmarks.benchmark_load import BenchmarkLoad
from tests.python.compiler.compiled_model import ModelChip, check_cache

SHAPE = replace(measured_models.small_shape(layers=2, vocab=64), context=64)
IDS = list(range(3, 27))


def test_random_weights_contribute() -> None:
    """Every stage of every layer of a random model changes its result, and little saturates."""
    model = measured_models.random_gpt2(SHAPE, np.random.default_rng(5))
    streams = decoder.residuals(model, IDS)
    for layer in range(SHAPE.layers):
        findings = check_block(model, layer, streams[layer])
        assert [str(finding) for finding in findings] == []
    assert len(set(decoder.forward(model, IDS).argmax(axis=1).tolist())) > len(IDS) // 2


def test_random_weights_follow_the_generator() -> None:
    """Equal seeds give equal models."""
    shape = replace(SHAPE, layers=1)
    one, two, other = (
        measured_models.random_gpt2(shape, np.random.default_rng(s)) for s in (1, 1, 2)
    )
    assert np.array_equal(one.head.weight, two.head.weight)
    assert not np.array_equal(one.head.weight, other.head.weight)


@pytest.mark.parametrize("place", ["sram", "memory"])
@pytest.mark.parametrize("family", model_benchmarks.FAMILIES)
def test_cache_image(family: str, place: Place) -> None:
    """The staged cache is what the chip itself would have left there."""
    model = measured_models.tiny(family)
    compiled = compile_model(model, cache=place)
    session = GoldenSession(model)
    trace = session.extend(IDS)
    image = measured_models.cache_image(compiled, session.cache, np.random.default_rng(4))
    chip = ModelChip(compiled)
    where = chip.memory if compiled.cache.in_memory else chip.sram
    base = chip.kv_base if compiled.cache.in_memory else compiled.cache.base
    where[base : base + len(image)] = np.frombuffer(image, np.uint8)
    check_cache(chip, trace, len(IDS))


def _execute(load: BenchmarkLoad) -> int:
    """Run all programs of a load on the instruction-level model; return how many words ran."""
    config = ChipConfig()
    random = np.random.default_rng(6)
    memory = Memory(random.integers(0, 256, 16 << 20, np.uint8))
    sram = random.integers(0, 256, config.sram_bytes, np.uint8)
    for address, data in load.pieces:
        memory.stage(address, data)
    executed = 0
    for run in load.runs:
        for address, data in run.pieces:
            memory.stage(address, data)
        result = Machine(config, memory.data, sram).run(run.start)
        assert (result.error, result.races) == (None, [])
        address, expected = run.expected
        assert memory.read(address, len(expected)) == expected
        executed += result.executed
    return executed


def _cache_bytes(family: str, place: Place) -> int:
    return compile_model(measured_models.tiny(family), cache=place).cache.bytes


@pytest.mark.parametrize("place", ["sram", "memory"])
@pytest.mark.parametrize("family", model_benchmarks.FAMILIES)
def test_step_behind_a_staged_cache(family: str, place: Place) -> None:
    """Several steps from a staged cache give the network's tokens, and need its values."""
    load = measured_models.step(
        measured_models.tiny(family), 40, 6, np.random.default_rng(7), place
    )
    assert _execute(load) > 6 * 100
    largest = max(
        (piece for piece in load.pieces if len(piece[1]) == _cache_bytes(family, place)),
        key=lambda piece: piece[0],
    )
    empty = [
        (address, bytes(len(data)) if (address, data) == largest else data)
        for address, data in load.pieces
    ]
    with pytest.raises(AssertionError):
        _execute(BenchmarkLoad(empty, load.runs))


@pytest.mark.parametrize("cached", [True, False])
def test_job(*, cached: bool) -> None:
    """Both ways to do the job give the same tokens."""
    load = measured_models.job(np.random.default_rng(8), cached=cached)
    assert [run.timed for run in load.runs] == [True] * len(load.runs)
    tokens = b"".join(run.expected[1] for run in load.runs)
    assert len(tokens) == 4 * measured_models.TOKENS
    _execute(load)


def test_random_prompt() -> None:
    """A prompt in chunks gives the network's token."""
    load = measured_models.random_prompt(replace(SHAPE, layers=1), 40, 16, np.random.default_rng(9))
    assert _execute(load) > 0


def test_random_step() -> None:
    """A step behind random keys and values gives the network's token."""
    assert _execute(measured_models.random_step(SHAPE, 33, np.random.default_rng(10))) > 0
