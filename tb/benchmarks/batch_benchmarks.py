# SPDX-License-Identifier: Apache-2.0
"""The benchmarks of passes of several rows: of the texts of a batch, and guesses of one text."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from golden.session import GoldenSession, generate
from npu.compiler import compile_model, ideal
from npu.compiler.ideal import LeastWork
from npu.compiler.shape import Shape
from npu.driver.batch import BatchPass, BatchPrograms, BatchRequest, Pieces, Row, batched
from npu.driver.chip import Chip
from npu.driver.speculate import VerifyingPrograms, speculated
from npu.planner.batch_placement import BatchPlacement
from npu.planner.placement import Placement
from spec.isa import Instruction
from spec.regs import StartState
from tb.benchmarks import measured_models
from tb.benchmarks.benchmark import Benchmark
from tb.benchmarks.benchmark_load import BenchmarkLoad, ProgramRun
from tb.benchmarks.measured_models import cache_image, random_past
from tb.benchmarks.model_benchmarks import (
    SMALL_MEMORY,
    SMALL_POSITIONS,
    attention_macs,
    counted,
    small_dimensions,
)
from weights.model import QuantizedModel
from weights.synthetic import random_model, shape_of

SEQUENCES = 16
"""Of a batch."""
MIXED_TEXTS, MIXED_ROWS, MIXED_TOKENS = 16, 8, 40
"""Texts, how many of them share a step, and the tokens of each."""
GQA_POSITION = 1000
VERIFIED = 8
"""Rows of a pass that verifies."""
PROMPTS = Path(__file__).with_name("prompts.txt")
GUESSED_TOKENS, GUESSES = 100, 7
"""Of each text behind these prompts, and guesses of a pass."""


def counted_batch(shape: Shape, pasts: Sequence[int]) -> int:
    """Return the multiplications of a batch's step as the chip counts them."""
    work = ideal.batch(shape, pasts)
    least = sum(shape.layers * ideal.attention(shape, 1, past).macs for past in pasts)
    return work.macs - least + sum(attention_macs(shape, 1, past) for past in pasts)


def _step(
    model: QuantizedModel, positions: Sequence[int], random: np.random.Generator
) -> BenchmarkLoad:
    """Return a decode step of sequences at positions, behind random keys and values in memory."""
    compiled = compile_model(model, cache="memory")
    shape, placement = model.shape, Placement(compiled)
    programs = BatchPlacement(placement, len(positions))
    tokens = [int(token) for token in random.integers(0, shape.vocab, len(positions))]
    expected = np.zeros((len(positions), programs.pitch // 2), "<i2")
    for number, (pos, token) in enumerate(zip(positions, tokens, strict=True)):
        session = GoldenSession(model)
        session.cache = random_past(shape, pos, random)
        image = cache_image(compiled, session.cache, random)
        placement.pieces.append((programs.caches + number * compiled.cache.bytes, image))
        expected[number, : shape.vocab] = session.step(token)
    rows = [Row(*each) for each in zip(range(len(positions)), tokens, positions, strict=True)]
    start, pieces = programs.step(rows)
    placement.pieces.append((programs.logits, bytes(expected.nbytes)))
    words = programs.step_program(rows).program.instructions
    run = ProgramRun(words, start, expected=(programs.logits, expected.tobytes()), pieces=pieces)
    return BenchmarkLoad(placement.pieces, [run])


def _verify(
    model: QuantizedModel, pos: int, rows: int, random: np.random.Generator
) -> BenchmarkLoad:
    """Return a pass of rows from a position on, behind random keys and values in memory."""
    compiled = compile_model(model, cache="memory")
    shape, placement = model.shape, Placement(compiled)
    programs = BatchPlacement(placement, 1, rows=rows)
    session = GoldenSession(model)
    session.cache = random_past(shape, pos, random)
    placement.pieces.append((programs.caches, cache_image(compiled, session.cache, random)))
    ids = random.integers(0, shape.vocab, rows).tolist()
    expected = np.zeros((rows, programs.pitch // 2), "<i2")
    expected[:, : shape.vocab] = session.prefill(ids)
    placement.pieces.append((programs.logits, bytes(expected.nbytes)))
    start, pieces = programs.verify(0, ids, pos)
    words = programs.model.verify(rows, pos).program.instructions
    run = ProgramRun(words, start, expected=(programs.logits, expected.tobytes()), pieces=pieces)
    return BenchmarkLoad(placement.pieces, [run])


@dataclass
class _Recorder:
    """Programs of a batch that are written down, with what each must leave; the chip is golden."""

    programs: BatchPlacement
    texts: Sequence[tuple[list[int], list[npt.NDArray[np.int16]]]]  # prompt, logits of each token
    runs: list[ProgramRun] = field(default_factory=list)
    _text_of: dict[int, int] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        return getattr(self.programs, name)

    def prompt(self, slot: int, ids: Sequence[int]) -> tuple[StartState, Pieces]:
        """Write down a prompt."""
        self._text_of[slot] = next(n for n, (prompt, _) in enumerate(self.texts) if prompt is ids)
        start, pieces = self.programs.prompt(slot, ids)
        words = self.programs.model.prefill(len(ids), logits=True).program.instructions
        return self._record(words, start, pieces, [(slot, 0)])

    def step(self, rows: Sequence[Row]) -> tuple[StartState, Pieces]:
        """Write down a step."""
        start, pieces = self.programs.step(rows)
        words = self.programs.step_program(rows).program.instructions
        done = [
            (row.slot, row.position - len(self.texts[self._text_of[row.slot]][0]) + 1)
            for row in rows
        ]
        return self._record(words, start, pieces, done)

    def verify(self, slot: int, ids: Sequence[int], position: int) -> tuple[StartState, Pieces]:
        """Write down a pass; what refused rows leave nobody looks at."""
        start, pieces = self.programs.verify(slot, ids, position)
        words = self.programs.model.verify(len(ids), position).program.instructions
        prompt, logits = self.texts[self._text_of[slot]]
        first = position - len(prompt) + 1
        done = [(slot, first)]
        for row, guess in enumerate(ids[1:]):
            if guess != logits[first + row].argmax():
                break
            done.append((slot, first + row + 1))
        return self._record(words, start, pieces, done)

    def _record(
        self,
        words: Sequence[Instruction],
        start: StartState,
        pieces: Pieces,
        done: list[tuple[int, int]],
    ) -> tuple[StartState, Pieces]:
        """Write down a program whose rows are the n-th tokens of the texts in some slots."""
        vocab = self.programs.vocab
        logits = np.zeros((len(done), self.programs.pitch // 2), "<i2")
        for row, (slot, number) in zip(logits, done, strict=True):
            row[:vocab] = self.texts[self._text_of[slot]][1][number]
        self.left = logits.tobytes()
        expected = self.programs.logits, self.left
        self.runs.append(ProgramRun(words, start, expected=expected, pieces=pieces))
        return start, pieces

    def read_memory(self, address: int, size: int) -> bytes:
        """Return logits that the last program leaves."""
        offset = address - self.programs.logits
        return self.left[offset : offset + size]

    @property
    def chip(self) -> Chip:
        """A chip that does nothing but leave what is expected."""

        async def execute(start: StartState) -> object:
            del start
            return SimpleNamespace(counters=SimpleNamespace(cycles=0))

        chip = SimpleNamespace(stage=lambda _: None, execute=execute, bus=self)
        return cast("Chip", chip)


@cache
def _mixed_prompts() -> list[list[int]]:
    """Return the prompts of the mixed batch, of 1 token to as many as the context has room for."""
    shape = measured_models.tiny_shape("gpt2")
    random = np.random.default_rng(16)
    lengths = random.integers(1, shape.context - MIXED_TOKENS + 2, MIXED_TEXTS)
    return [measured_models.ids_of(shape, int(length)) for length in lengths]


def _mixed(random: np.random.Generator) -> BenchmarkLoad:
    """Return the programs of texts of which the next one begins where another has ended."""
    del random  # the prompts are real ones
    model = measured_models.tiny("gpt2")
    placement = Placement(compile_model(model, cache="memory"))
    texts = [(prompt, _logits(model, prompt)) for prompt in _mixed_prompts()]
    recorder = _Recorder(BatchPlacement(placement, MIXED_ROWS), texts)
    requests = [BatchRequest(prompt, MIXED_TOKENS) for prompt, _ in texts]
    asyncio.run(batched(recorder.chip, cast("BatchPrograms", recorder), requests))
    return BenchmarkLoad(placement.pieces, recorder.runs)


@cache
def _prompts() -> list[list[int]]:
    """Return the prompts of guessed texts, as bytes."""
    return [list(line.encode()) for line in PROMPTS.read_text(encoding="utf-8").splitlines()]


def _guessed(random: np.random.Generator) -> tuple[BenchmarkLoad, list[BatchPass]]:
    """Return the programs of texts with guesses, one text after the other, and what they are."""
    del random  # the prompts are real ones
    model = measured_models.tiny("llama")
    placement = Placement(compile_model(model))
    texts = [(prompt, _logits(model, prompt, GUESSED_TOKENS)) for prompt in _prompts()]
    recorder = _Recorder(BatchPlacement(placement, 1, rows=GUESSES + 1), texts)
    passes = []
    for prompt, _ in texts:
        request, programs = (
            BatchRequest(prompt, GUESSED_TOKENS),
            cast("VerifyingPrograms", recorder),
        )
        result = asyncio.run(speculated(recorder.chip, programs, request, GUESSES))
        passes += result.passes
    return BenchmarkLoad(placement.pieces, recorder.runs), passes


def _counted_guessed() -> int:
    shape = measured_models.tiny_shape("llama")
    _, passes = _guessed(np.random.default_rng())
    return sum(
        counted(shape, each.prompt, 0)
        if each.prompt
        else counted_verification(shape, len(each.positions), each.positions[0])
        for each in passes
    )


def counted_verification(shape: Shape, rows: int, past: int) -> int:
    """Return the multiplications of a pass to the logits of all rows as the chip counts them."""
    return counted(shape, rows, past) + (rows - 1) * shape.vocab * shape.hidden


def _plain(random: np.random.Generator) -> BenchmarkLoad:
    """Return the same texts without guesses: one program each, the chip picks the tokens."""
    del random
    model = measured_models.tiny("llama")
    placement = Placement(compile_model(model))
    runs = []
    for prompt in _prompts():
        tokens = generate(model, prompt, GUESSED_TOKENS)
        program = placement.model.generate(len(prompt))
        start = replace(placement.launch(program), loop_left=GUESSED_TOKENS - 1)
        pieces = [(start.bases[0], np.array(prompt, "<u4").tobytes())]
        expected = start.bases[1], np.array(tokens, "<u4").tobytes()
        words = program.program.instructions
        runs.append(ProgramRun(words, start, expected=expected, pieces=pieces))
    return BenchmarkLoad(placement.pieces, runs)


def _plain_passes() -> list[tuple[int, int]]:
    """Return rows and past of the passes of these texts without guesses."""
    return [
        pair
        for length in map(len, _prompts())
        for pair in [(length, 0), *((1, length + done) for done in range(GUESSED_TOKENS - 1))]
    ]


def _logits(
    model: QuantizedModel, prompt: list[int], count: int = MIXED_TOKENS
) -> list[npt.NDArray[np.int16]]:
    """Return the logits of each token behind a prompt."""
    session = GoldenSession(model)
    rows = [session.prefill(prompt)[-1]]
    while len(rows) < count:
        rows.append(session.step(int(rows[-1].argmax())))
    return rows


def mixed_works(shape: Shape) -> list[LeastWork]:
    """Return the least work of each program of the mixed batch."""
    prompts = [len(prompt) for prompt in _mixed_prompts()]
    works = []
    for first in range(0, MIXED_TEXTS, MIXED_ROWS):  # all have the same number of tokens
        rows = prompts[first : first + MIXED_ROWS]
        works += [ideal.forward(shape, each, 0, in_memory=True, logits=True) for each in rows]
        for done in range(MIXED_TOKENS - 1):
            works.append(ideal.batch(shape, [each + done for each in rows]))
    return works


def _counted_mixed(shape: Shape) -> int:
    prompts = [len(prompt) for prompt in _mixed_prompts()]
    steps = [
        counted_batch(shape, [each + done for each in prompts[first : first + MIXED_ROWS]])
        for first in range(0, MIXED_TEXTS, MIXED_ROWS)
        for done in range(MIXED_TOKENS - 1)
    ]
    return sum(steps) + sum(counted(shape, each, 0) for each in prompts)


def _case(
    name: str, shape: Shape, positions: Sequence[int], model: Callable[[np.random.Generator], Any]
) -> Benchmark:
    def load(random: np.random.Generator) -> BenchmarkLoad:
        return _step(model(random), positions, random)

    return Benchmark(
        name,
        {"position": positions[0], "sequences": len(positions), **small_dimensions(shape)},
        ideal.batch(shape, positions),
        load,
        pictured=False,
        limit=40_000_000,
        counted=counted_batch(shape, positions),
        memory_bytes=2 * SMALL_MEMORY,
    )


def _small(random: np.random.Generator) -> QuantizedModel:
    return measured_models.random_gpt2(measured_models.small_shape(), random)


@cache
def _gqa_shape() -> Any:  # noqa: ANN401
    """Return a layer of a LLaMA of 1.1 billion parameters."""
    sizes = {"hidden": 2048, "heads": 32, "kv_heads": 4, "head_dim": 64, "ffn": 5632}
    return shape_of("llama", **sizes, layers=1, vocab=measured_models.EDGE, context=1024)


def _gqa(random: np.random.Generator) -> QuantizedModel:
    return random_model(_gqa_shape(), int(random.integers(1 << 32)))


def batch_cases() -> Iterator[Benchmark]:
    """Yield all of them."""
    tiny, small = measured_models.tiny_shape("gpt2"), measured_models.small_shape()
    for name, pos in (("batch_tiny_gpt2", 1), ("batch_tiny_gpt2_p64", 64)):
        yield _case(name, tiny, [pos] * SEQUENCES, lambda _: measured_models.tiny("gpt2"))
    yield Benchmark(
        "batch_mixed",
        {"texts": MIXED_TEXTS, "rows": MIXED_ROWS, "tokens": MIXED_TOKENS, "latency": 40},
        ideal.in_turn(mixed_works(tiny)),
        _mixed,
        pictured=False,
        limit=200_000,
        counted=_counted_mixed(tiny),
    )
    for pos in SMALL_POSITIONS:
        yield _case(f"batch_small_{pos}", small, [pos] * SEQUENCES, _small)
    past = min(SMALL_POSITIONS)
    yield Benchmark(
        f"verify_small_{VERIFIED}",
        {"position": past, "rows": VERIFIED, **small_dimensions(small)},
        ideal.forward(small, VERIFIED, past, in_memory=True, logits=VERIFIED),
        lambda random: _verify(_small(random), past, VERIFIED, random),
        pictured=False,
        limit=20_000_000,
        counted=counted_verification(small, VERIFIED, past),
        memory_bytes=SMALL_MEMORY,
    )
    guessing = measured_models.tiny_shape("llama")
    plain = [ideal.forward(guessing, *each, in_memory=False) for each in _plain_passes()]
    for name, load, macs in (
        ("greedy_llama_tiny", _plain, sum(counted(guessing, *each) for each in _plain_passes())),
        ("spec_llama_tiny", lambda random: _guessed(random)[0], _counted_guessed),
    ):
        yield Benchmark(
            name,
            {"texts": len(_prompts()), "tokens": GUESSED_TOKENS, "latency": 40},
            ideal.in_turn(plain),  # of both, so that the ratios have the same unit
            load,
            pictured=False,
            limit=2_000_000,
            counted=macs,
        )
    grouped = _gqa_shape().plain()
    for name, rows in (("gqa", 1), ("batch_gqa", SEQUENCES)):
        yield _case(f"{name}_{GQA_POSITION}", grouped, [GQA_POSITION] * rows, _gqa)
