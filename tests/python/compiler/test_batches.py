# SPDX-License-Identifier: Apache-2.0
"""A batch: each of its sequences gets the logits, keys and values that it gets alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from golden.session import GoldenSession
from npu.compiler import CompileError, compile_model
from npu.compiler.kv_staging import Form
from npu.compiler.model_plan import SEQUENCES, plan_model
from npu.compiler.pass_layout import LayoutChoice
from spec.isa.operands import Limits, up
from tb.benchmarks import measured_models
from tb.benchmarks.measured_models import random_gpt2, small_shape
from tb.models.decoder_kinds import KINDS, limited, model_of_kind
from tb.models.random_decoders import random_decoder
from tests.python.compiler.compiled_model import LOGITS_OUT, ModelChip
from weights.model import QuantizedModel
from weights.synthetic import random_model, shape_of


def check_batch(
    model: QuantizedModel, lengths: list[int], limits: Limits | None = None, steps: int = 2
) -> None:
    """Prompts of these lengths one by one, then steps of all of them together."""
    compiled = compile_model(model, limits, cache="memory")
    chip = ModelChip(compiled, len(lengths))
    random = np.random.default_rng(sum(lengths))
    vocab, first = model.shape.vocab, compiled.first
    sessions = [GoldenSession(model) for _ in lengths]
    tokens = []
    for number, (session, length) in enumerate(zip(sessions, lengths, strict=True)):
        ids = random.integers(0, vocab, length).tolist()
        chip.run(compiled.prefill(length), ids, sequence=number)
        tokens.append(int(session.prefill(ids)[-1].argmax()))
    # The row of a sequence and the place of its cache are two things.
    order = random.permutation(len(lengths)).tolist()
    size = compiled.cache.bytes
    ahead = [lengths[number] - lengths[order[0]] for number in order]
    caches = [(number - order[0]) * size for number in order]
    program = compiled.batch(ahead, caches)
    for turn in range(steps):
        positions = [first + lengths[number] + turn for number in order]
        given = compiled.batch_lists([tokens[number] for number in order], positions)
        ids = np.frombuffer(given, "<u4").tolist()
        chip.run(program, ids, pos=positions[0], sequence=order[0])
        for row, number in enumerate(order):
            expected = sessions[number].step(tokens[number])
            at = LOGITS_OUT + row * up(2 * vocab)
            actual = chip.memory[at : at + 2 * vocab].view("<i2")
            np.testing.assert_array_equal(actual, expected, err_msg=f"row {row}, step {turn}")
            tokens[number] = int(expected.argmax())
    for number, session in enumerate(sessions):
        for layer, past in enumerate(session.cache):
            for values, want in ((False, past.k), (True, past.v)):
                have = chip.cached(layer, values, session.length, number)
                np.testing.assert_array_equal(have, want, err_msg=f"{number}, layer {layer}")


LENGTHS = {
    "one": [7],
    "two, of which the first is longer": [40, 3],
    "sixteen": [1, 2, 15, 16, 17, 31, 32, 33, 5, 48, 64, 9, 100, 3, 1, 126],
}


@pytest.mark.parametrize("lengths", LENGTHS.values(), ids=LENGTHS)
@pytest.mark.parametrize("family", ["gpt2", "llama", "mistral", "qwen2"])
def test_each_gets_what_it_gets_alone(family: str, lengths: list[int]) -> None:
    """Lengths of all kinds; a window for Mistral, whose first positions some have left behind."""
    check_batch(measured_models.tiny(family), lengths)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_decoder(kind: str) -> None:
    """Windows that change from layer to layer, several tables of rotations, norms of all places."""
    check_batch(model_of_kind(kind, 3), [40, 3, 17, 1])


def test_a_sink_stands_before_every_sequence() -> None:
    """Position 0 is none of the prompt's; each cache has it."""
    check_batch(model_of_kind("windows", 5, sink=7), [30, 2, 16])


def test_wide_activations() -> None:
    """Inputs of `down` in int16, which need a table and buffers of their own."""
    shape = shape_of("llama", layers=2, hidden=64, heads=4, kv_heads=2, head_dim=16, ffn=72)
    model = random_model(replace(shape, vocab=83, context=64), 5, 3)
    assert model.shape.wide
    check_batch(limited(model, 3000), [20, 9, 33])


@pytest.mark.parametrize("family", ["gemma2", "opt", "qwen3"])
def test_folders_of_other_architectures(family: str, tmp_path: Path) -> None:
    """Odd shapes, a sink, windows, norms of heads: read from a folder, quantised, batched."""
    model = random_decoder(family, 11, tmp_path / family).model
    most = model.shape.context - model.first - 3
    check_batch(model, [7, 1, most, most // 2])


@pytest.mark.parametrize("array", [4, 8, 32])
def test_other_arrays(array: int) -> None:
    """Arrays smaller than a batch, and one whose tiles are larger."""
    check_batch(measured_models.tiny("llama"), [33, 1, 64, 20, 7], Limits(array_dim=array))


FORMS = {
    "tiles of all heads of two sequences": (36 << 10, LayoutChoice(Form.RING, 4, 128, 8, 4)),
    "heads in turn": (26 << 10, LayoutChoice(Form.RING, 4, 128, 8)),
    "heads in turn, scores of one": (5632, LayoutChoice(Form.RING, 2, 128, 1)),
    "heads in pieces": (5120, LayoutChoice(Form.PIECES, 3, 32, 8)),
}


@pytest.mark.parametrize(("size", "choice"), FORMS.values(), ids=FORMS)
def test_little_sram(size: int, choice: LayoutChoice) -> None:
    """K and V come head by head, or in pieces, where the tiles of a sequence have no room."""
    limits = Limits(sram_bytes=size)
    model = measured_models.tiny("gpt2")
    layout = plan_model(model.shape, limits, "memory").batch(3, None).layout
    assert layout.choice == choice
    check_batch(model, [100, 3, 50], limits)


def test_a_short_text_has_a_step_of_its_own() -> None:
    """With the longest text known, K and V of more positions get no room."""
    model = random_gpt2(small_shape(layers=1, vocab=32, heads=2), np.random.default_rng(1))
    plan = plan_model(model.shape, Limits(), "memory")
    assert plan.batch(4, 100).layout.sram_bytes < plan.batch(4, None).layout.sram_bytes


@pytest.mark.parametrize("sequences", [0, SEQUENCES + 1])
def test_a_number_of_sequences_is_refused(sequences: int) -> None:
    """At least one, and at most as many as a step has rows."""
    compiled = compile_model(measured_models.tiny("gpt2"), cache="memory")
    with pytest.raises(CompileError, match=f"given {sequences} sequences, allowed 1 to 16"):
        compiled.batch([0] * sequences, [0] * sequences)


def test_more_positions_than_the_context_are_refused() -> None:
    """As for a step of one sequence."""
    compiled = compile_model(measured_models.tiny("gpt2"), cache="memory")
    with pytest.raises(CompileError, match="positions: given 129, allowed 1 to 128"):
        compiled.batch([0], [0], positions=129)
