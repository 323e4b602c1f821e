# SPDX-License-Identifier: Apache-2.0
"""What the tests of generation share: the same claims about each shipped checkpoint."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from golden import session
from golden.session import GoldenSession
from npu.driver import generate
from npu.driver.errors import ProgramFailed
from npu.driver.generate import PromptError
from npu.driver.sampling import Sampler
from tb.bench.dut import Dut
from tb.bench.environment import Bench, full
from tb.bench.knobs import Knobs
from tb.models.resident_model import Resident, check_logits
from tb.models.sample_model import TEXT
from weights.model import QuantizedModel
from weights.quantize import quantize_checkpoint
from weights.shipped import CHECKPOINTS

QUIET = Knobs(log=0)
"""Nothing is written down: for runs whose tokens and logits are compared, and not their writes."""
LENGTHS = (1, 35)
"""Of prompts; the window of Mistral has 32 positions."""
ALL_LENGTHS = (1, 2, 3, 4, 5, 8, 15, 16, 17, 31, 32, 33, 48, 64, 65, 96, 112)
POSITIONS = (0, 17, 32, 127)
ALL_POSITIONS = (0, 1, 15, 16, 17, 31, 32, 33, 47, 48, 63, 64, 100, 126, 127)


def checkpoint(family: str) -> QuantizedModel:
    """Return the shipped checkpoint of a family in integers."""
    return quantize_checkpoint(str(CHECKPOINTS / f"{family}-tiny"))


def ids_of_text(count: int) -> list[int]:
    """Return the first bytes of the sample text, repeated as needed."""
    return list((TEXT * 2).encode()[:count])


async def greedy_equals_network(dut: Dut, family: str) -> None:
    """Prompts of several lengths, 10 tokens each by one start: the tokens of the network."""
    bench = await Bench.start(dut, QUIET)
    model = checkpoint(family)
    resident = Resident.place(bench, model)
    seen: set[int] = set()
    for length in ALL_LENGTHS if full() else LENGTHS:
        prompt = ids_of_text(length)
        generated = await generate.greedy(resident.chip, resident.plan(prompt), 10)
        expected = session.generate(model, prompt, 10)
        assert generated.ids == expected, f"prompt of {length}: {generated.ids} != {expected}"
        assert len(generated.cycles) == 1
        seen |= set(expected)
    assert len(seen) > 5, f"only {seen} appear"


async def sampled_equals_network(dut: Dut, family: str) -> None:
    """Tokens drawn by the host from the chip's logits, every one of which is the network's."""
    bench = await Bench.start(dut, QUIET)
    model = checkpoint(family)
    resident = Resident.place(bench, model)
    for length in (1, 27, 64) if full() else (27,):
        prompt, rows = ids_of_text(length), list[npt.NDArray[np.int16]]()
        sampler = Sampler(model.scales["logits"], temperature=1.2, top_k=40, seed=length)
        generated = await generate.sampled(
            resident.chip,
            resident.plan(prompt, logits=True),
            10,
            sampler.choose,
            on_token=lambda _, row, rows=rows: rows.append(row.copy()),  # type: ignore[misc]
        )
        golden = GoldenSession(model)
        row = golden.prefill(prompt)[-1]
        for index, (token, logits) in enumerate(zip(generated.ids, rows, strict=True)):
            check_logits(f"prompt of {length}, token {index}", row, logits)
            row = golden.step(token)
        assert len(generated.ids) == len(generated.cycles) == 10
        assert generated.ids != session.generate(model, prompt, 10)


async def context_is_used_up(dut: Dut, family: str) -> None:
    """The last position of the context serves prompt and step; one more is refused."""
    bench = await Bench.start(dut, QUIET)
    model = checkpoint(family)
    resident = Resident.place(bench, model)
    ids = ids_of_text(model.shape.context + 1)
    for length in (model.shape.context, model.shape.context - 2)[0 if full() else 1 :]:
        plan, most = resident.plan(ids[:length], logits=True), model.shape.context - length + 1
        assert plan.prompt is not None and plan.step is not None
        golden = GoldenSession(model)
        row = golden.prefill(ids[:length])[-1]
        check_logits(f"prompt of {length}", row, await resident.logits(plan.prompt))
        for position in range(length, model.shape.context):
            logits = await resident.logits(replace(plan.step, pos=position, token=ids[position]))
            check_logits(f"position {position}", golden.step(ids[position]), logits)
        expected = session.generate(model, ids[:length], most)
        assert len(expected) == most
        if full():  # the start that is refused below leaves the same tokens
            generated = await generate.greedy(resident.chip, plan, most)
            assert generated.ids == expected
        try:
            await generate.greedy(resident.chip, plan, most + 1)
            raise AssertionError(f"{most + 1} tokens after {length}: not refused")
        except PromptError as error:
            assert f"given {most + 1} after a prompt of {length}, allowed 1 to {most}" in str(error)
    careless = replace(plan, context=plan.context + 1)
    try:
        await generate.greedy(resident.chip, careless, most + 1)
        raise AssertionError(f"{most + 1} tokens after {length}: not refused by the chip")
    except ProgramFailed as error:
        assert str(error).startswith("CONTEXT_FULL by engine seq at instruction"), str(error)
    tokens = bench.memory.array(plan.tokens, (most,), np.uint32).tolist()
    assert tokens == expected, "what was generated before the error is lost"
    again = await generate.greedy(resident.chip, resident.plan(ids[:3]), 2)
    assert again.ids == session.generate(model, ids[:3], 2), "the next program does not run"
    try:
        resident.plan(ids)
        raise AssertionError("a prompt longer than the context: not refused")
    except PromptError as error:
        assert f"given {len(ids)} tokens, allowed 1 to {model.shape.context}" in str(error)


async def steps_equal_in_detail(dut: Dut, family: str) -> None:
    """A prompt and steps, each tensor compared with the network's and each write with the model."""
    bench = await Bench.start(dut)
    model = checkpoint(family)
    ids = ids_of_text(model.shape.context)
    resident, golden = Resident.place(bench, model), GoldenSession(model)
    await resident.prompt_in_detail(ids[:17], golden)
    for token in ids[17:19]:
        await resident.step_in_detail(token, golden)
    elsewhere = Resident.place(bench, model, "memory")
    for position in ALL_POSITIONS if full() else POSITIONS:
        golden = GoldenSession(model)
        if position:
            golden.extend(ids[:position])
            elsewhere.stage_cache(golden.cache)
        await elsewhere.step_in_detail(ids[position], golden)
