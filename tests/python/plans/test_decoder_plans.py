# SPDX-License-Identifier: Apache-2.0
"""Plans of decoders: made, read, damaged, bound to addresses and replayed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from golden import session
from golden.command.model import ModelBus
from golden.machine import ChipConfig
from npu.cli.command_line import main
from npu.compiler import compile_model
from npu.driver import generate
from npu.driver.chip import Chip
from npu.driver.generate import PromptError
from npu.planner.decoder_plan import plan_of_decoder
from npu.runtime.plan import Plan
from npu.runtime.plan_files import PLAN, PlanFileError, files_of, plan_from
from npu.runtime.prepare import Bases, Prepared, bases_from, check_prepared, prepare
from npu.runtime.replay import By, DrivenChip, Replay
from npu.runtime.schema import EntryError
from spec.isa.generated import Opcode, SetReg
from spec.isa.instruction import Instruction, decode_image, encode_image
from spec.isa.operands import up
from tests.python.golden.golden_support import random_model
from tests.python.plans.plan_damage import damages, resealed, with_record
from weights.model import QuantizedModel, Sink
from weights.quantize import quantize_checkpoint
from weights.shipped import CHECKPOINTS
from weights.synthetic import random_model as random_model_of
from weights.synthetic import shape_of

ROWS, COUNT = 20, 9
FAMILIES = ("gpt2", "llama", "mistral", "qwen2", "sink")
"""Architectures; "sink" is a llama behind a constant position."""


@cache
def _model(family: str = "llama") -> QuantizedModel:
    if family != "sink":
        return random_model(5, family, context=ROWS + COUNT - 1, layers=1, vocab=96)
    model = random_model(5, "llama", context=ROWS + COUNT, layers=2, vocab=96)
    rows = np.random.default_rng(6).integers(-127, 128, (2, 2, model.shape.kv_columns), np.int8)
    return replace(model, sink=Sink(0, *rows))


@cache
def _plan(family: str = "llama", where: str = "memory", logits: bool = True) -> Plan:
    compiled = compile_model(_model(family), cache="memory" if where == "memory" else "sram")
    return plan_of_decoder(compiled, ROWS, logits=logits, name=family)


def _ids() -> list[int]:
    return [int(one) for one in np.random.default_rng(3).integers(0, 96, ROWS)]


def _chip(plan: Plan, end: int) -> ModelBus:
    limits = plan.limits
    config = ChipConfig(limits.array_dim, limits.sram_bytes, limits.acc_rows)
    return ModelBus(np.zeros(up(end), np.uint8), config=config)


@pytest.mark.parametrize("where", ["memory", "sram"])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_plan_generates_what_the_network_does(family: str, where: str) -> None:
    """Through files and at other addresses: by registers, by the ring, token by token."""
    plan = plan_from(files_of(_plan(family, where)))
    expected = session.generate(_model(family), _ids(), COUNT)
    assert len(set(expected)) > 1
    order = ("arena", "programs", "ring", "constants", "stream")
    for bases in (bases_from(plan), bases_from(plan, 1 << 16, order)):
        prepared = prepare(plan, bases)
        check_prepared(prepared)
        for ids in asyncio.run(_generated(prepared)):
            assert ids == expected


@pytest.mark.parametrize("vocab", [5000, 70_000])
def test_a_head_of_several_instructions(vocab: int) -> None:
    """Its columns are taken piece by piece: as many as one can have, or few that are stored."""
    shape = shape_of("llama", hidden=16, heads=1, ffn=16, layers=1, vocab=vocab, context=10)
    model = random_model_of(shape, 3)
    plan = plan_from(files_of(plan_of_decoder(compile_model(model), 4, logits=True)))
    expected = session.generate(model, _ids()[:4], 7)
    assert max(expected) > 4096
    for ids in asyncio.run(_generated(prepare(plan, bases_from(plan)), _ids()[:4], 7)):
        assert ids == expected


def test_a_head_that_is_not_all_taken_is_refused() -> None:
    """Or of which a piece is taken twice, or one more."""
    shape = shape_of("llama", hidden=16, heads=1, ffn=16, layers=1, vocab=5000, context=10)
    files = files_of(plan_of_decoder(compile_model(random_model_of(shape, 3)), 4, logits=True))
    words = decode_image(plan_from(files).segments[1].image)
    at = [i for i, word in enumerate(words) if word.opcode == Opcode.GEMM and word.n == 904]
    assert len(at) == 1
    for n in (904 - 16, 904 + 16):
        other = [replace(word, n=n) if i in at else word for i, word in enumerate(words)]
        with pytest.raises(PlanFileError, match="allowed its own share"):
            plan_from(resealed(files, "segment1", encode_image(other)))


async def _generated(
    prepared: Prepared, given: Sequence[int] | None = None, count: int = COUNT
) -> list[list[int]]:
    """Return the tokens by registers, by the ring, by one start of the driver, one by one."""
    bus = _chip(prepared.plan, prepared.end)
    driven = DrivenChip(await Chip.connect(bus))
    await driven.load(prepared)
    found: list[list[int]] = []
    prompt = np.array(_ids() if given is None else given, np.uint32)
    for by in get_args(By):
        run = await Replay(prepared, driven).run({"prompt": prompt}, by)
        found.append(run.outputs["tokens"].tolist())
    plan = prepared.generation()
    greedy = await generate.greedy(driven.chip, plan, count)
    picked = await generate.sampled(driven.chip, plan, count, lambda row: int(np.argmax(row)))
    return [*found, greedy.ids, picked.ids]


def test_only_its_own_table_is_copied_from_the_constants() -> None:
    """A load of anything else there, or a store, is no program of a decoder."""
    files = files_of(_plan("sink"))
    words = decode_image(plan_from(files).segments[0].image)
    loads = [i for i, word in enumerate(words) if word.opcode == Opcode.DMA_LOAD and word.imm == 6]
    assert len(loads) == 2
    size = words[loads[0]].n
    for change in ({"n": size + 16, "m": 2}, {"opcode": Opcode.DMA_STORE}, {"imm": 2}):
        other = list(words)
        other[loads[1]] = replace(words[loads[1]], **change)
        with pytest.raises(PlanFileError, match="bytes of one tensor"):
            plan_from(resealed(files, "segment0", encode_image(other)))


def test_every_entry_is_refused_when_it_is_another() -> None:
    """Whatever stands in an entry's place."""
    files = files_of(_plan())
    record = json.loads(files[PLAN])
    tried = 0
    for damage in damages(record):
        with pytest.raises(PlanFileError) as caught:
            plan_from(with_record(files, damage.record))
        assert ": given " in str(caught.value), (damage.path, str(caught.value))
        assert ", allowed " in str(caught.value), damage.path
        tried += 1
    assert tried > 800


def test_a_plan_at_wrong_addresses_is_refused() -> None:
    """A cache in memory needs an arena at a multiple of 256."""
    plan = _plan()
    bases = bases_from(plan)
    moved = Bases(**{**_fields(bases), "arena": bases.arena + 64})
    with pytest.raises(EntryError, match=r"bases.arena: given .*, allowed multiples of 256"):
        prepare(plan, moved)
    in_sram = _plan(where="sram")
    bases = bases_from(in_sram)
    prepare(in_sram, Bases(**{**_fields(bases), "arena": bases.ring + 4096 + 64}))


def _fields(bases: Bases) -> dict[str, int]:
    return {name: bases.of(name) for name in Bases.names()}


def _other(which: Opcode, /, **fields: int) -> dict[str, bytes]:
    """Return the plan with another instruction in its first program."""
    files = files_of(_plan())
    program = decode_image(_plan().segments[0].image)
    at = next(i for i, word in enumerate(program) if word.opcode == which)
    values = {name: getattr(program[at], name) for name in Instruction.__slots__}
    program[at] = Instruction(**{**values, **fields})
    return resealed(files, "segment0", encode_image(program))


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (lambda: _other(Opcode.GEMM, opcode=63), r"segments\[0\].program\[\d+\]: .* a legal"),
        (lambda: _other(Opcode.DMA_LOAD, src1=1), r"given BASE0 .*, allowed bytes of one tensor"),
        (lambda: _other(Opcode.DMA_LOAD, imm=6), r"given BASE6 .*, allowed bytes of one tensor"),
        (lambda: _other(Opcode.SET, dst=SetReg.BASE0), r"given SET, allowed what decoders"),
        (
            lambda: _other(Opcode.GEMM, n=17),
            r"of the stream from \d+ for GEMM, allowed its own share",
        ),
    ],
)
def test_a_program_that_does_more_than_it_may_is_refused(files, message: str) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    """Although all checksums fit."""
    with pytest.raises(PlanFileError, match=message):
        plan_from(files())


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([*range(ROWS - 1), 96], r"prompt: given token id 96 at index 19, allowed 0 to 95"),
        (list(range(ROWS - 1)), r"input 'prompt' has shape \[19\], allowed \[20\]"),
    ],
)
def test_wrong_prompts_are_refused(ids: list[int], message: str) -> None:
    """Before the chip is asked for anything."""
    prepared = prepare(_plan())

    async def run() -> None:
        bus = _chip(_plan(), prepared.end)
        driven = DrivenChip(await Chip.connect(bus))
        await driven.load(prepared)
        await Replay(prepared, driven).run({"prompt": np.array(ids, np.uint32)})

    with pytest.raises((PromptError, ValueError), match=message):
        asyncio.run(run())


def test_a_prompt_fits_the_context() -> None:
    """A plan says how many tokens there may be."""
    plan = _plan()
    assert plan.decoder is not None
    assert plan.decoder.most == COUNT
    assert plan.graph.type("tokens").shape == (COUNT,)
    assert dict(plan.segments[0].registers)["loop_left"] == COUNT - 1
    files = files_of(plan)
    record = json.loads(files[PLAN])
    record["decoder"]["rows"] = 1000
    with pytest.raises(PlanFileError, match=r"decoder.rows: given 1000, allowed"):
        plan_from(with_record(files, record))


def test_the_command_writes_and_runs_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`npu compile --rows`, `npu explain`, `npu run`: the tokens of the network."""
    place = str(CHECKPOINTS / "gpt2-tiny")
    assert main(["compile", place, "-o", str(tmp_path / "g.bin"), "--rows", "110"]) == 0
    capsys.readouterr()
    folder = str(tmp_path / "g.plan")
    assert main(["explain", folder]) == 0
    shown = capsys.readouterr().out
    assert "110 tokens, then up to 19 more" in shown
    assert "program prefill" in shown
    ids = np.arange(1, 111, dtype=np.uint32)
    np.save(tmp_path / "ids.npy", ids)
    assert main(["run", folder, "--input", str(tmp_path / "ids.npy")]) == 0
    with np.load(tmp_path / "g.plan/run/outputs.npz") as found:
        tokens = found["tokens"].tolist()
    assert tokens == session.generate(quantize_checkpoint(place), ids.tolist(), 19)
    assert not (tmp_path / "g.plan/run/report.json").exists()
    np.save(tmp_path / "ids.npy", ids + 10_000)
    assert main(["run", folder, "--input", str(tmp_path / "ids.npy")]) == 2
    assert "prompt: given token id 10001 at index 0" in capsys.readouterr().err
