# SPDX-License-Identifier: Apache-2.0
"""A pass that verifies: rows of one sequence, each with the logits that a step would give it."""

from __future__ import annotations

import numpy as np
import pytest

from golden.session import GoldenSession
from npu.compiler import CompileError, compile_model
from npu.compiler.model import Place
from spec.isa.operands import Limits, up
from tb.benchmarks import measured_models
from tb.models.decoder_kinds import KINDS, model_of_kind
from tests.python.compiler.compiled_model import LOGITS_OUT, ModelChip
from weights.model import QuantizedModel


def check_passes(
    model: QuantizedModel, prompt: int, accepted: list[tuple[int, int]], place: Place = "auto"
) -> None:
    """Verify rows, of which the first so many are kept; those behind them are overwritten."""
    compiled = compile_model(model, cache=place)
    chip, session = ModelChip(compiled), GoldenSession(model)
    random = np.random.default_rng(prompt)
    vocab = model.shape.vocab
    ids = random.integers(0, vocab, prompt).tolist()
    chip.run(compiled.prefill(prompt), ids)
    session.prefill(ids)
    for rows, kept in accepted:
        given = random.integers(0, vocab, rows).tolist()
        chip.run(compiled.verify(rows, session.length), given)
        logits = session.prefill(given[:kept])
        for row, expected in enumerate(logits):
            at = LOGITS_OUT + row * up(2 * vocab)
            actual = chip.memory[at : at + 2 * vocab].view("<i2")
            np.testing.assert_array_equal(actual, expected, err_msg=f"row {row} of {rows}")


PASSES = [(5, 2), (1, 1), (16, 16), (8, 1), (3, 3), (2, 1)]


@pytest.mark.parametrize("place", ["sram", "memory"])
@pytest.mark.parametrize("family", ["gpt2", "llama", "mistral", "qwen2"])
def test_each_row_has_its_logits(family: str, place: Place) -> None:
    """Rows of all numbers, behind others that were refused."""
    check_passes(measured_models.tiny(family), 30, PASSES, place)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_decoder(kind: str) -> None:
    """Windows, several tables of rotations, norms of all places."""
    check_passes(model_of_kind(kind, 3), 11, [(7, 3), (4, 4), (16, 9)])


def test_rows_past_the_context_are_refused() -> None:
    """As those of a prompt are."""
    compiled = compile_model(measured_models.tiny("gpt2"))
    with pytest.raises(CompileError, match="context full: 4 rows from position 125 end at 129"):
        compiled.verify(4, 125)


def test_rows_without_room_are_refused() -> None:
    """One pass has all of them, or there is none."""
    model = measured_models.tiny("gpt2")
    compiled = compile_model(model, Limits(sram_bytes=6 << 10), cache="memory")
    with pytest.raises(CompileError, match="a pass of 16 rows at position 100 of a decoder with"):
        compiled.verify(16, 100)
    with pytest.raises(CompileError, match="rows: given 17 to verify, allowed 1 to 16"):
        compiled.verify(17, 100)
