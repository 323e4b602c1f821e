# SPDX-License-Identifier: Apache-2.0
"""Models whose first position is constant: programs on the instruction-level model = golden."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from golden.decoder import beginning, forward, forward_trace
from golden.session import GoldenSession, generate
from npu.compiler import CompiledModel, CompileError, compile_model, ideal, pass_layout, pieces
from npu.compiler.model import Place
from npu.compiler.model_plan import stream_bytes
from npu.compiler.shape import from_json, to_json
from spec.isa.operands import Limits
from tb.models.decoder_kinds import limited
from tests.python.compiler.compiled_model import ModelChip, check_steps, ids_of
from weights.model import QuantizedModel
from weights.synthetic import random_model, shape_of

SINK = 7
CASES = {
    "gpt2": shape_of("gpt2", hidden=48, heads=3, ffn=64, context=40),
    "llama": shape_of("llama", hidden=64, heads=4, kv_heads=2, head_dim=24, context=40),
    "mistral": shape_of("mistral", hidden=64, heads=4, kv_heads=1, context=40, window=9),
}
PARTS = ["norm1", "qkv", "ratio", "proj", "norm2", "gate", "up", "down"]
"""Shares of a layer with int16 gates."""
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


def _wide(act_limit: int = 32767, louder: int = 0) -> QuantizedModel:
    """Return a model with int16 gates whose first position is free, so that it has a trace.

    What `down` reads is `louder` by so many bits.
    """
    shape = replace(CASES["llama"], head_dim=16, ffn=72)
    model = replace(random_model(shape, 5, SINK), sink=None)
    return limited(model, act_limit, louder=louder)


@pytest.mark.parametrize(("act_limit", "louder"), [(32767, 0), (32767, 6), (1000, 0)])
@pytest.mark.parametrize(
    "chip", [Limits(), Limits(array_dim=32), Limits(sram_bytes=12 * 1024, acc_rows=40)]
)
def test_every_tensor_of_int16_gates(chip: Limits, act_limit: int, louder: int) -> None:
    """Gate, what is looked up by it, activation, `up` and their limited product are golden's."""
    model = _wide(act_limit, louder)
    traced = forward_trace(model, ids_of(model))
    reached = {(int(block.act.min()), int(block.act.max())) for block in traced.blocks}
    at_limits = reached == {(-act_limit - 1, act_limit)}
    assert at_limits == (act_limit == 1000 or louder > 0)
    check_steps(model, compile_model(model, chip, cache="memory"), [19, 1], decode=2)


def test_the_unit_of_the_stream_grows(model: QuantizedModel) -> None:
    """In front of some layers, in prompts and steps; every tensor behind it is golden's."""
    shifts = [2 * (layer % 2) for layer in range(model.shape.layers)]
    pairs = zip(model.blocks, shifts, strict=True)
    blocks = tuple(replace(block, stream_shift=shift) for block, shift in pairs)
    grown = replace(model, sink=None, blocks=blocks)
    assert any(shifts)
    plain = forward_trace(replace(model, sink=None), IDS).blocks[-1].resid2
    assert not np.array_equal(forward_trace(grown, IDS).blocks[-1].resid2, plain)
    compiled = compile_model(grown)
    check_steps(grown, compiled, [19, 1], decode=2)
    assert CompiledModel.load(compiled.packed()).numbers == compiled.numbers


@pytest.mark.parametrize(("most", "piece"), [(72 * 19, (19, 72)), (300, (4, 72)), (32, (1, 32))])
def test_int16_gates_with_little_room(
    most: int, piece: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ratios of some rows at a time, or of some columns of one."""
    monkeypatch.setattr(pass_layout, "RATIOS_MOST", most)
    model = _wide()
    assert pass_layout.ratio_piece(model.shape, 19) == piece
    check_steps(model, compile_model(model, cache="memory"), [19, 1], decode=2)


def test_a_step_activates_while_up_is_made() -> None:
    """Both products are under way before VEC waits, for the second one only to multiply by it."""
    model = _wide()
    lines = [line for line in compile_model(model).decode().text.splitlines() if line[0] != ";"]
    first = next(at for at, line in enumerate(lines) if line.startswith("VEC"))
    assert [re.sub(r" (dst|v)=.*", "", line) for line in lines[first - 3 : first + 10]] == [
        "GEMM",
        "GEMM",
        "BARRIER n=1 gemm",
        "VEC op=scale_shift",
        "BARRIER vec",
        "VEC op=table",
        "BARRIER vec",
        "VEC op=scale_shift",
        "BARRIER vec",
        "VEC op=mul",
        "BARRIER gemm vec",
        "VEC op=mul",
        "BARRIER vec",
    ]


def test_sizes_of_int16_gates() -> None:
    """Those known from the shape are those of the parts; files keep what instructions hold."""
    model = _wide(1000)
    compiled = compile_model(model)
    assert len(compiled.stream) == stream_bytes(model.shape, compiled.limits.edge)
    names = [share.name for share in compiled.shares if share.name.startswith("h.0.")]
    assert names == [f"h.0.{name}" for name in PARTS]
    necessary = sum(piece.necessary for piece in pieces(compiled.decode()))
    work = ideal.forward(model.shape, 1, 5, in_memory=False)
    assert work.read_bytes == necessary + ideal.looked_up(model.shape)
    fields = to_json(compiled.shape, compiled.numbers)
    assert fields["numbers"][0]["act_limit"] == 1000
    assert from_json(fields) == (compiled.shape, compiled.numbers)
    plain = to_json(model.shape, (replace(compiled.numbers[0], near_mult=0, act_limit=0),))
    assert not {"near_mult", "act_limit"} & plain["numbers"][0].keys()


def test_a_norm_that_is_too_short_for_the_table() -> None:
    """It is what brings the table to SRAM."""
    with pytest.raises(
        CompileError, match=r"norm_max 255: of a model with int16 gates .* from 256"
    ):
        compile_model(_wide(), Limits(norm_max=255))
