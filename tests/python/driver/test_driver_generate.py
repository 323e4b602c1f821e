# SPDX-License-Identifier: Apache-2.0
"""The driver on the instruction-level model: placement, greedy and sampled generation, refusals."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from golden import session
from golden.command import ModelBus
from npu.compiler import CompileError, compile_model
from npu.compiler.model import Place
from npu.driver import generate
from npu.driver.chip import PAGE, Chip
from npu.driver.errors import ProgramFailed
from npu.driver.generate import PromptError, PromptPlan
from npu.driver.sampling import Sampler
from npu.planner.placement import Placement
from tests.python.golden.golden_support import random_model
from weights.model import QuantizedModel

PROMPT = [7, 1, 30, 7, 12]
MOST = (1, 512, 513, 2_048, 4_000)
"""Positions of texts in a context of 4,000."""


def _model(seed: int = 3) -> QuantizedModel:
    return random_model(
        seed, "mistral", hidden=48, heads=4, kv_heads=2, head_dim=16, ffn=80, vocab=37, context=24,
        window=6,
    )  # fmt: skip


def _chip(placement: Placement) -> Chip:
    """Return the driver on the reference, with all that a model needs in its memory."""
    rng = np.random.default_rng(1)
    memory = rng.integers(0, 256, placement.end, np.uint8)
    sram = rng.integers(0, 256, 256 << 10, np.uint8)
    chip = asyncio.run(Chip.connect(ModelBus(memory, sram=sram, races=True)))
    chip.stage(placement.pieces)
    return chip


def _placed(
    model: QuantizedModel, prompt: Sequence[int], place: Place = "auto", *, logits: bool = False
) -> tuple[Chip, PromptPlan]:
    placement = Placement(compile_model(model, cache=place))
    plan = placement.plan(prompt, logits=logits)
    return _chip(placement), plan


@pytest.mark.parametrize("place", ["sram", "memory"])
def test_greedy_is_the_network(place: Place) -> None:
    """One start gives the tokens of the integer network, and the same program serves each count."""
    model = _model()
    expected = session.generate(model, PROMPT, 20)
    chip, plan = _placed(model, PROMPT, place)
    for count in (1, 2, 20):
        assert asyncio.run(generate.greedy(chip, plan, count)).ids == expected[:count]
    assert len(set(expected)) > 3


def test_greedy_ends_behind_the_end_token() -> None:
    """The end token is the last one."""
    model = _model()
    expected = session.generate(model, PROMPT, 20)
    end = expected[7]
    chip, plan = _placed(model, PROMPT)
    generated = asyncio.run(generate.greedy(chip, plan, 20, [end]))
    assert generated.ids == expected[: expected.index(end) + 1]
    assert len(generated.cycles) == 1


@pytest.mark.parametrize(
    ("ends", "message"),
    [
        ([7, 9], r"end tokens: given 2 \(7, 9\), allowed up to 1, which the chip's register EOS"),
        ([37], r"end tokens: given 37, allowed 0 to 36"),
        ([-1], r"end tokens: given -1, allowed 0 to 36"),
    ],
)
def test_ends_that_the_register_does_not_hold(
    monkeypatch: pytest.MonkeyPatch, ends: list[int], message: str
) -> None:
    """One line, before anything is started."""
    chip, plan = _placed(_model(), PROMPT)
    monkeypatch.setattr(chip, "execute", None)
    with pytest.raises(PromptError, match=message):
        asyncio.run(generate.greedy(chip, plan, 20, ends))


def test_sampled_is_the_network() -> None:
    """The host draws from the logits of the network, one start per token."""
    model = _model()
    chip, plan = _placed(model, PROMPT, logits=True)
    plan = PromptPlan.of_json(json.loads(json.dumps(plan.to_json())))
    settings: dict[str, Any] = {"unit": model.scales["logits"], "temperature": 0.9}
    settings |= {"top_k": 9, "seed": 5}
    seen: list[npt.NDArray[np.int16]] = []
    generated = asyncio.run(
        generate.sampled(
            chip, plan, 12, Sampler(**settings).choose, on_token=lambda _, row: seen.append(row)
        )
    )
    golden, sampler, ids = session.GoldenSession(model), Sampler(**settings), []
    row = golden.prefill(PROMPT)[-1]
    for logits in seen:
        assert np.array_equal(logits, row)
        ids.append(sampler.choose(row))
        row = golden.step(ids[-1])
    assert generated.ids == ids
    assert ids != session.generate(model, PROMPT, 12)
    assert len(generated.cycles) == 12


def test_context_to_the_last_position() -> None:
    """The last token needs no position of its own; one more is refused, by driver and by chip."""
    model = _model()
    chip, plan = _placed(model, PROMPT)
    most = model.shape.context - len(PROMPT) + 1
    assert asyncio.run(generate.greedy(chip, plan, most)).ids == session.generate(
        model, PROMPT, most
    )
    with pytest.raises(PromptError, match=rf"given {most + 1} after a prompt of 5, allowed 1 "):
        asyncio.run(generate.greedy(chip, plan, most + 1))
    careless = replace(plan, context=plan.context + 1)
    with pytest.raises(ProgramFailed, match="CONTEXT_FULL by engine seq at instruction"):
        asyncio.run(generate.greedy(chip, careless, most + 1))


def test_a_short_text_has_short_steps() -> None:
    """Steps for so many positions are those for all, without pieces of K and V that stay empty."""
    model = random_model(
        5, "llama", hidden=16, heads=4, kv_heads=2, head_dim=64, ffn=16, vocab=37, context=4_000
    )
    compiled = compile_model(model)
    ids = [token % 37 for token in range(3, 513)]
    for rows, count in ((5, 1), (510, 3), (510, 4)):
        placement = Placement(compiled)
        plan = placement.plan(ids[:rows], logits=True, count=count)
        expected = session.generate(model, ids[:rows], count)
        assert asyncio.run(generate.greedy(_chip(placement), plan, count)).ids == expected
        with pytest.raises(PromptError, match=f"given {count + 1} after a prompt of {rows}, al"):
            plan.check_count(count + 1)
    sizes = [len(compiled.decode(positions=most).program.instructions) for most in MOST]
    assert sizes[0] == sizes[1] < sizes[2] < sizes[3] < sizes[4]
    assert compiled.decode(positions=4_000).text == compiled.decode().text
    longest = compiled.generate(5, positions=512).program.instructions
    assert len(longest) < len(compiled.generate(5).program.instructions)
    for refused in (0, 4_001):
        with pytest.raises(CompileError, match=f"positions: given {refused}, allowed 1 to 4000"):
            compiled.decode(positions=refused)
    placement = Placement(compiled)
    pieces = len(placement.pieces)
    with pytest.raises(PromptError, match="given 3997 after a prompt of 5, allowed 1 to 3996"):
        placement.plan(PROMPT, count=3_997)
    assert len(placement.pieces) == pieces


def test_greedy_plan_cannot_be_sampled_from() -> None:
    """Programs with logits are made on demand."""
    chip, plan = _placed(_model(), PROMPT)
    with pytest.raises(ValueError, match="allowed one with logits"):
        asyncio.run(generate.sampled(chip, plan, 2, lambda row: int(row.argmax())))


@pytest.mark.parametrize(
    ("prompt", "message"),
    [
        ([], "given 0 tokens, allowed 1 to 24"),
        ([1] * 25, "given 25 tokens, allowed 1 to 24"),
        ([3, 37], "given token id 37 at index 1, allowed 0 to 36"),
        ([-1], "given token id -1 at index 0, allowed 0 to 36"),
    ],
)
def test_refused_prompts(prompt: list[int], message: str) -> None:
    """A prompt is checked before anything is placed."""
    placement = Placement(compile_model(_model()))
    pieces = len(placement.pieces)
    with pytest.raises(PromptError, match=message):
        placement.plan(prompt)
    assert len(placement.pieces) == pieces


def test_placement() -> None:
    """Areas begin on pages, lie apart, and end within 32 bits."""
    compiled = compile_model(_model(), cache="memory")
    placement = Placement(compiled, base=0x1234)
    placement.plan(PROMPT, logits=True)
    areas = sorted((address, address + len(data)) for address, data in placement.pieces)
    assert all(address % PAGE == 0 and address > 0 for address, _ in areas)
    assert all(end <= start for (_, end), (start, _) in pairwise(areas))
    with pytest.raises(CompileError, match=r"bases.stream: given 4294963200, allowed 0 to"):
        Placement(compiled, base=(1 << 32) - PAGE)
    full = Placement(compiled)
    full.end = (1 << 32) - 16
    with pytest.raises(CompileError, match=r"a program: .* past the 0x100000000 bytes"):
        full.launch(compiled.decode())


def test_wide_head_is_split() -> None:
    """More tokens than an instruction has columns: the arg max runs on over the pieces."""
    model = random_model(
        2, "llama", hidden=16, heads=1, kv_heads=1, head_dim=16, ffn=16, vocab=61_460, context=16,
        layers=1,
    )  # fmt: skip
    head = replace(
        model.head,
        weight=np.concatenate([model.head.weight[:, 20:], model.head.weight[:, :20]], axis=1),
    )
    expected = [session.generate(m, PROMPT, 3) for m in (model, replace(model, head=head))]
    for one, ids in zip((model, replace(model, head=head)), expected, strict=True):
        chip, plan = _placed(one, PROMPT, logits=True)
        assert asyncio.run(generate.greedy(chip, plan, 3)).ids == ids
        asyncio.run(generate.sampled(chip, plan, 1, lambda row: int(row.argmax())))
        logits = np.frombuffer(chip.bus.read_memory(plan.logits, 2 * plan.vocab), "<i2")
        assert np.array_equal(logits, session.GoldenSession(one).prefill(PROMPT)[-1])
