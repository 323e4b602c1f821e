# SPDX-License-Identifier: Apache-2.0
"""Several texts at a time on the RTL: each is what it would be alone."""

from __future__ import annotations

import cocotb
import numpy as np
import numpy.typing as npt

from golden import session
from golden.session import GoldenSession
from npu.compiler import compile_model
from npu.driver.batch import Batched, BatchRequest, batched
from npu.driver.chip import PAGE, MemoryRegion
from npu.driver.generate import PromptError
from npu.driver.sampling import Sampler
from npu.driver.speculate import speculated
from npu.planner.batch_placement import BatchPlacement
from npu.planner.placement import Placement
from spec.isa import ErrorCode
from tb.bench.dut import Dut
from tb.bench.environment import Bench, full
from tb.models.generate import SLACK, START
from tb.tests.models.generation import QUIET, checkpoint, ids_of_text
from weights.model import QuantizedModel

TAGS = ("models",)

BASE = 0x10_0000
"""Where the model begins in memory."""
LENGTHS = (1, 40, 16, 2, 33)
ALL_LENGTHS = (1, 88, 2, 15, 16, 17, 31, 32, 33, 47, 48, 49, 64, 80, 3, 5)
STEP = 30_000
"""Cycles that a step of 16 texts takes, and more."""


def _programs(bench: Bench, model: QuantizedModel, batch: int) -> BatchPlacement:
    """Put a model into the bench's memory."""
    placement = Placement(compile_model(model, bench.limits, cache="memory"), BASE)
    bench.chip.stage(placement.pieces)
    bench.bus.limit = SLACK * STEP * bench.slower + START
    return BatchPlacement(placement, batch)


def _requests(model: QuantizedModel, lengths: tuple[int, ...], count: int) -> list[BatchRequest]:
    """Return prompts of different texts, and of each an end token that some of them reach."""
    ends = session.generate(model, ids_of_text(lengths[0]), 4)[-1:]
    return [
        BatchRequest(ids_of_text(length + shift)[shift:], count - shift % 3, ends)
        for shift, length in enumerate(lengths)
    ]


def _check(model: QuantizedModel, requests: list[BatchRequest], result: Batched) -> None:
    for number, (request, text) in enumerate(zip(requests, result.texts, strict=True)):
        (end,) = request.ends
        expected = session.generate(model, request.prompt, request.count, end)
        assert text.ids == expected, f"text {number}: {text.ids} != {expected}"


@cocotb.test
async def test_batched_equals_single(dut: Dut) -> None:
    """More prompts than rows, of all lengths, that end one by one: the tokens of each alone."""
    bench = await Bench.start(dut, QUIET)
    lengths = ALL_LENGTHS if full() else LENGTHS
    for family in ("gpt2", "llama", "mistral", "qwen2") if full() else ("gpt2", "mistral"):
        model = checkpoint(family)
        requests = _requests(model, lengths, 9)
        programs = _programs(bench, model, 6 if full() else 3)
        result = await batched(bench.chip, programs, requests)
        _check(model, requests, result)
        ended = [len(text.ids) for text in result.texts]
        assert len(set(ended)) > 1, f"all of them ended after {ended[0]} tokens"
        rows = [len(each.positions) for each in result.passes]
        assert max(rows) == programs.sequences, rows
        steps = sum(map(bool, rows))
        assert steps < sum(ended) - len(ended), f"{steps} steps for {ended}"


@cocotb.test
async def test_batched_logits(dut: Dut) -> None:
    """Sampled, each text with numbers of its own: every logit is the network's."""
    bench = await Bench.start(dut, QUIET)
    model = checkpoint("llama")
    prompts = [ids_of_text(length) for length in (5, 30, 17)]
    samplers = [
        Sampler(model.scales["logits"], temperature=1.2, top_k=40, seed=seed)
        for seed in range(len(prompts))
    ]
    rows: list[list[tuple[int, npt.NDArray[np.int16]]]] = [[] for _ in prompts]
    await batched(
        bench.chip,
        _programs(bench, model, 2),
        [BatchRequest(prompt, 6) for prompt in prompts],
        lambda number, logits: samplers[number].choose(logits),
        lambda number, token, logits: rows[number].append((token, logits.copy())),
    )
    for prompt, picked in zip(prompts, rows, strict=True):
        golden = GoldenSession(model)
        expected = golden.prefill(prompt)[-1]
        assert len(picked) == 6
        for token, logits in picked:
            np.testing.assert_array_equal(logits, expected)
            expected = golden.step(token)


@cocotb.test
async def test_batched_long_prompt(dut: Dut) -> None:
    """A prompt that does not fit is refused by its number, before anything starts."""
    bench = await Bench.start(dut, QUIET)
    model = checkpoint("gpt2")
    programs = _programs(bench, model, 2)
    requests = [BatchRequest([1, 2], 4), BatchRequest([1] * 126, 4), BatchRequest([3], 1)]
    before = bench.memory.view(programs.caches, programs.logits - programs.caches).copy()
    try:
        await batched(bench.chip, programs, requests)
        raise AssertionError("not refused")
    except PromptError as error:
        assert str(error).startswith("prompt 1: tokens: given 4 after a prompt of 126"), error
    after = bench.memory.view(programs.caches, programs.logits - programs.caches)
    np.testing.assert_array_equal(after, before)


@cocotb.test
async def test_batched_broken_cache(dut: Dut) -> None:
    """A text whose cache cannot be reached ends with the report; the others are as ever."""
    bench = await Bench.start(dut, QUIET)
    model = checkpoint("gpt2")
    programs = _programs(bench, model, 3)
    requests = _requests(model, LENGTHS, 6)
    size = programs.model.cache.bytes
    behind = programs.caches + 2 * size
    assert size % PAGE == 0
    regions = [
        MemoryRegion(0, programs.caches + size, read=True, write=True),
        MemoryRegion(behind, programs.end - behind, read=True, write=True),
    ]
    await bench.chip.protect(regions)
    result = await batched(bench.chip, programs, requests)
    reports = [text.error for text in result.texts]
    report = reports.pop(1)
    assert report is not None and report.code == ErrorCode.REGION, report
    assert programs.slot_of(report.address) == 1, report
    assert reports == [None] * 4, reports
    del result.texts[1], requests[1]
    _check(model, requests, result)


@cocotb.test
async def test_speculated_equals_plain(dut: Dut) -> None:
    """Guesses that are right, wrong or none: tokens, logits and the cache of the plain text."""
    bench = await Bench.start(dut, QUIET)
    families = ("gpt2", "llama", "mistral", "qwen2") if full() else ("llama", "mistral")
    right, wrong = 0, 0
    for family in families:
        model = checkpoint(family)
        placement = Placement(compile_model(model, bench.limits), BASE)
        bench.chip.stage(placement.pieces)
        bench.bus.limit = SLACK * STEP * bench.slower + START
        programs = BatchPlacement(placement, 1, rows=8)
        for length in (3, 60) if full() else (18,):
            request = BatchRequest(ids_of_text(length), 24)
            rows: list[npt.NDArray[np.int16]] = []

            def keep(
                _: int, row: npt.NDArray[np.int16], rows: list[npt.NDArray[np.int16]] = rows
            ) -> None:
                rows.append(row)

            result = await speculated(
                bench.chip,
                programs,
                request,
                7,
                on_token=keep,
            )
            golden = GoldenSession(model)
            expected = golden.prefill(request.prompt)[-1]
            for token, logits in zip(result.texts[0].ids, rows, strict=True):
                np.testing.assert_array_equal(logits, expected)
                assert token == int(expected.argmax())
                expected = golden.step(token)
            assert len(rows) == request.count
            steps = [len(each.positions) for each in result.passes if each.positions]
            right += request.count - 1 - len(steps)
            wrong += sum(steps) - (request.count - 1)
    assert right > 10 < wrong, f"{right} guesses right, {wrong} wrong"
