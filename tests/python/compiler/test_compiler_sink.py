# SPDX-License-Identifier: Apache-2.0
"""Models whose first position is constant: programs on the instruction-level model = golden."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from golden.decoder import beginning, forward
from golden.session import GoldenSession, generate
from npu.compiler import CompiledModel, compile_model
from npu.compiler.model import Place
from spec.isa.operands import Limits
from tests.python.compiler.compiled_model import ModelChip
from weights.model import QuantizedModel
from weights.synthetic import random_model, shape_of

SINK = 7
CASES = {
    "gpt2": shape_of("gpt2", hidden=48, heads=3, ffn=64, context=40),
    "llama": shape_of("llama", hidden=64, heads=4, kv_heads=2, head_dim=24, context=40),
    "mistral": shape_of("mistral", hidden=64, heads=4, kv_heads=1, context=40, window=9),
}
IDS = [3, 70, 1, 22, 9, 41, 60, 33, 18]


@pytest.fixture(scope="module", params=CASES)
def model(request: pytest.FixtureRequest) -> QuantizedModel:
    """Return a random model."""
    return random_model(CASES[request.param], 5, SINK)


@pytest.mark.parametrize("place", ["sram", "memory"])
def test_a_text_goes_on_as_golden_does(model: QuantizedModel, place: Place) -> None:
    """In one program, and step by step with every logit; the prompt in chunks as well."""
    compiled = compile_model(model, Limits(), cache=place)
    chip = ModelChip(compiled)
    chip.run(compiled.generate(len(IDS), chunk=4), IDS, loop_left=9)
    assert chip.tokens(10) == generate(model, IDS, 10)

    chip, session = ModelChip(compiled), GoldenSession(model)
    chip.run(compiled.prefill(len(IDS), logits=True), IDS)
    np.testing.assert_array_equal(chip.logits(), session.prefill(IDS)[-1])
    chip.run(compiled.decode(logits=True), pos=session.length, token=11)
    np.testing.assert_array_equal(chip.logits(), session.step(11))
    for layer, past in enumerate(session.cache):
        for v, rows in ((False, past.k), (True, past.v)):
            np.testing.assert_array_equal(chip.cached(layer, v, session.length), rows)


def test_the_constant_position_is_seen() -> None:
    """Without it, or with other values, the same text has other logits."""
    model = random_model(CASES["llama"], 5, SINK)
    assert model.sink is not None
    other = replace(model, sink=replace(model.sink, v=-model.sink.v))
    assert not np.array_equal(forward(model, IDS), forward(other, IDS))
    assert not np.array_equal(forward(model, IDS), forward(replace(model, sink=None), IDS))
    assert [past.k.shape[0] for past in beginning(model)] == [1] * model.shape.layers


def test_a_packed_model_keeps_it(model: QuantizedModel) -> None:
    """And makes the same programs."""
    compiled = compile_model(model)
    again = CompiledModel.load(compiled.packed())
    assert (again.sink, again.first) == (SINK, 1)
    assert again.generate(4).program.image() == compiled.generate(4).program.image()
    assert again.sections == compiled.sections
