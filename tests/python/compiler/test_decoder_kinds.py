# SPDX-License-Identifier: Apache-2.0
"""Decoders of every kind: programs on the instruction-level model are golden, byte by byte."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from golden import session
from npu.commands.load_model import window_text
from npu.compiler import CompiledModel, CompileError, compile_block, compile_model, ideal, pieces
from npu.compiler.kv_staging import Form
from npu.compiler.model_plan import memory_parts, plan_model, stream_bytes
from npu.compiler.shape import SELDOM, from_json, to_json
from npu.planner.decoder_plan import plan_of_decoder
from spec.isa import Opcode
from spec.isa.operands import Limits
from tb.models.decoder_kinds import KINDS, model_of_kind
from tests.forms import sample
from tests.python.compiler.compiled_model import ModelChip, check_steps
from weights.architectures import ARCHITECTURES
from weights.formats.recipe import parse_recipe
from weights.model import QuantizedModel
from weights.synthetic import random_model, shape_of

CHIP = Limits(sram_bytes=48 * 1024)
LITTLE = Limits(sram_bytes=10 * 1024, acc_rows=32)
SEED, SINK = 3, 7
MIXED = "windows, tables, heads, parts"


def _generated(compiled: CompiledModel, ids: list[int], count: int) -> list[int]:
    chip = ModelChip(compiled)
    chip.run(compiled.generate(len(ids), chunk=4), ids, loop_left=count - 1)
    return chip.tokens(count)


@pytest.mark.parametrize("kind", KINDS)
def test_prompts_steps_and_tokens(kind: str) -> None:
    """Prompts behind one another, in chunks, steps across a tile's border, tokens by one start."""
    model = model_of_kind(kind, SEED)
    compiled = compile_model(model, CHIP)
    check_steps(model, compiled, [9, 17, 3, 1], chunk=16, decode=4)
    ids = [3, 70, 1, 22, 9, 41]
    assert _generated(compiled, ids, 24) == session.generate(model, ids, 24)


@pytest.mark.parametrize("chip", [replace(CHIP, array_dim=32), LITTLE])
@pytest.mark.parametrize("kind", sample([*reversed(KINDS)], 4))
def test_other_chips(kind: str, chip: Limits) -> None:
    """Larger tiles, and an SRAM with room for few rows, with the cache in memory."""
    model = model_of_kind(kind, SEED)
    check_steps(model, compile_model(model, chip, cache="memory"), [21], chunk=16, decode=2)


@pytest.mark.parametrize("family", ARCHITECTURES)
def test_every_architecture(family: str) -> None:
    """With its usual parts: a prompt in chunks, steps, and tokens by one start."""
    shape = shape_of(family, layers=3, context=40)
    model = random_model(shape, SEED)
    compiled = compile_model(model, CHIP)
    check_steps(model, compiled, [21], chunk=16, decode=1)
    ids = [3, 70, 1, 22, 9, 41]
    assert _generated(compiled, ids, 8) == session.generate(model, ids, 8)


NARROW = "qkv=mxfp6e2,up=nf4g16,o=int4,down=int2,head=int4"


@pytest.mark.parametrize("kind", sample([MIXED, "heads, parallel", *KINDS], 2))
def test_narrow_weights(kind: str) -> None:
    """Packed weights, q, k and v apart, are golden's decoder on the expanded ones."""
    model = model_of_kind(kind, SEED, weights=NARROW)
    compiled = compile_model(model, CHIP)
    check_steps(model, compiled, [9], decode=3)
    assert len(compiled.stream) == stream_bytes(model.shape, CHIP.edge, parse_recipe(NARROW))
    assert CompiledModel.load(compiled.packed()) == compiled
    ideal_step = ideal.forward(model.shape, 1, 5, in_memory=False, layouts=compiled.layouts)
    assert ideal_step.read_bytes < len(compiled.stream)


@pytest.mark.parametrize("windows", [(0, 20, 20), (20, 0, 5), (1, 16, 40), (17, 32, 17)])
@pytest.mark.parametrize(
    ("kib", "forms"),
    [
        (28, (Form.ALL, Form.ALL)),
        (10, (Form.RING, Form.RING)),
        (9, (Form.RING, Form.PIECES)),
        (5, (Form.PIECES, Form.PIECES)),
    ],
)
def test_windows_by_layer(windows: tuple[int, ...], kib: int, forms: tuple[Form, Form]) -> None:
    """With less and less room, K and V of the next layer read ahead; every step up to the end."""
    model = model_of_kind("windows", SEED, windows=windows, head_dim=32, context=80)
    chip = replace(LITTLE, sram_bytes=kib * 1024)
    compiled = compile_model(model, chip, cache="memory")
    if 0 in windows:
        chunk = compiled.plan.prompt(17, 48, chunk=16, logits=True)[0]
        found = compiled.plan.step_with_logits.layout.choice.form, chunk.layout.choice.form
        assert found == forms
    check_steps(model, compiled, [48, 1], chunk=16, decode=31)


@pytest.mark.parametrize("kind", sample([MIXED, *KINDS], 1))
def test_behind_a_constant_position(kind: str) -> None:
    """In one program, and by a prompt and a step with every logit."""
    model = model_of_kind(kind, SEED, SINK)
    compiled, ids = compile_model(model, CHIP), [3, 70, 1, 22, 9, 41, 60, 33, 18]
    assert _generated(compiled, ids, 20) == session.generate(model, ids, 20)
    chip, golden = ModelChip(compiled), session.GoldenSession(model)
    chip.run(compiled.prefill(len(ids), logits=True), ids)
    np.testing.assert_array_equal(chip.logits(), golden.prefill(ids)[-1])
    chip.run(compiled.decode(logits=True), pos=golden.length, token=11)
    np.testing.assert_array_equal(chip.logits(), golden.step(11))


@pytest.mark.parametrize("kind", KINDS)
def test_files_and_sizes(kind: str) -> None:
    """A packed file makes the same programs; sizes known from the shape are those of the parts."""
    model = model_of_kind(kind, SEED)
    compiled = compile_model(model, CHIP, cache="memory")
    back = CompiledModel.load(compiled.packed())
    assert back == compiled
    assert back.generate(9).text == compiled.generate(9).text
    assert len(compiled.stream) == stream_bytes(model.shape, CHIP.edge)
    step = compiled.decode()
    assert step.shares == compiled.shares
    assert sum(piece.bytes for piece in pieces(step)) == len(compiled.stream)
    parts = memory_parts(model.shape, CHIP.edge, len(compiled.stream), compiled.cache.bytes)
    tables = sum(len(compiled.sections.get(name, b"")) for name in ("positions", "rope"))
    assert parts["positions"] == tables
    if model.shape.head_dim % 16 == 0:
        work = ideal.forward(model.shape, 1, 30, in_memory=False)
        necessary = sum(piece.necessary for piece in pieces(step))
        assert work.read_bytes == necessary + ideal.looked_up(model.shape)


@pytest.mark.parametrize("kind", sample([MIXED, *KINDS], 1))
def test_plans(kind: str) -> None:
    """The plan of a decoder takes the programs, also those that leave logits."""
    compiled = compile_model(model_of_kind(kind, SEED), CHIP, cache="memory")
    plan = plan_of_decoder(compiled, 7, logits=True)
    assert len(plan.segments) == 3
    assert plan.segments[0].registers["window"] == compiled.shape.window_of(0)


def test_few_instructions_normalise_heads() -> None:
    """One for all heads of q in all rows and one for those of k."""
    model = model_of_kind("heads", SEED)
    compiled = compile_model(model, CHIP)
    for program, rows in ((compiled.decode(), 1), (compiled.prefill(12), 12)):
        norms = [
            (word.m, word.n)
            for word in program.program.instructions
            if word.opcode == Opcode.RMSNORM and word.n == model.shape.head_dim
        ]
        assert norms == [(4 * rows, 32), (2 * rows, 32)] * model.shape.layers


def _steps_of(model: QuantizedModel) -> list[int]:
    words = compile_model(model, CHIP).decode().program.instructions
    return [word.src0 for word in words if word.opcode == Opcode.SET and word.dst == 2]


@pytest.mark.parametrize(
    ("windows", "sets"),
    [((5, 5, 5), []), ((5, 5, 0), [5, 0]), ((0, 5, 0), [5, 0]), ((5, 0, 7), [5, 0, 7])],
)
def test_the_register_changes_where_the_window_does(
    windows: tuple[int, ...], sets: list[int]
) -> None:
    """And nowhere else; the host begins with the first layer's."""
    model = model_of_kind("windows", SEED, windows=windows)
    assert _steps_of(model) == sets
    assert compile_model(model, CHIP).registers()["window"] == windows[0]


def test_windows_in_estimates() -> None:
    """Each layer reads and multiplies the keys of its own window."""
    shape = model_of_kind("windows", SEED).shape
    assert shape.windows == (0, 20, 5)
    row = 2 * shape.kv_columns
    work = [ideal.step(shape, 50, 0, in_memory=kept) for kept in (True, False)]
    assert work[0].read_bytes - work[1].read_bytes == row * (50 + 19 + 4)
    macs = [ideal.attention(shape, 1, 50, layer).macs for layer in range(3)]
    assert macs == [2 * shape.q_columns * keys for keys in (51, 20, 5)]
    assert window_text(shape) == "all in 1 layers, the last 20 in 1, the last 5 in 1"
    assert window_text(replace(shape, windows=(), window=9)) == "the last 9"
    assert window_text(replace(shape, windows=())) == ""


def test_a_shape_in_a_packed_file() -> None:
    """What is seldom is written where it is, and lists must name every layer."""
    compiled = compile_model(model_of_kind("everything of other sizes", SEED), CHIP)
    fields = to_json(compiled.shape, compiled.numbers)
    assert set(SELDOM) - fields.keys() == {"pre_norms", "wide"}
    assert from_json(fields) == (compiled.shape, compiled.numbers)
    for name in ("windows", "tables", "numbers"):
        with pytest.raises(CompileError, match=r"what is said by layer is said of each"):
            from_json(fields | {name: fields[name][:2]})


@pytest.mark.parametrize(
    ("kind", "changes", "limits", "message"),
    [
        ("rows", {"head_dim": 24}, {}, r"head_dim 24: .* rows of q and k allowed are multiples"),
        ("rows", {}, {"norm_max": 63}, r"hidden 64: the norm takes at most 63"),
        (
            "rows",
            {"hidden": 32, "head_dim": 16},
            {"norm_max": 48},
            r"heads \* head_dim = 64: the norm takes at most 48 channels",
        ),
    ],
)
def test_refused(kind: str, changes: dict[str, int], limits: dict[str, int], message: str) -> None:
    """What the chip's norm cannot take, named."""
    shape = replace(model_of_kind(kind, SEED).shape, **changes)  # type: ignore[arg-type]
    with pytest.raises(CompileError, match=message):
        plan_model(shape, replace(CHIP, **limits), "auto")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "what"),
    [
        ("windows of learned positions", "window"),
        ("parallel", "parallel"),
        ("heads, parallel", "parallel"),
    ],
)
def test_a_block_alone_is_plain(kind: str, what: str) -> None:
    """A block without its model is that of GPT-2."""
    with pytest.raises(CompileError, match=rf"^{what}: a gpt2 has one"):
        compile_block(model_of_kind(kind, SEED), 0, 4)
