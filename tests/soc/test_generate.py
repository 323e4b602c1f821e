# SPDX-License-Identifier: Apache-2.0
"""Firmware starts a compiled model on the chip and prints its text, without Python."""

from __future__ import annotations

from pathlib import Path

import pytest

from golden import session
from npu.firmware.plan import IMAGE
from spec.paths import ROOT
from tb.soc import given_program, program_run
from tb.soc.elf_file import Elf
from tb.soc.program_run import MachineKnobs
from tests.forms import FULL, sample
from tests.soc import support
from weights.quantize import quantize_checkpoint

CHECKPOINTS = ROOT / "weights" / "checkpoints"
PROMPT = "The parser accepts"
OVER = 1.01
"""Cycles from the start of the chip to the last printed token, at most, to the chip's own."""


def _expected(model: str, count: int) -> bytes:
    network = quantize_checkpoint(str(CHECKPOINTS / model))
    return PROMPT.encode() + bytes(session.generate(network, list(PROMPT.encode()), count))


def _run(model: str, count: int, knobs: MachineKnobs, tmp_path: Path) -> program_run.Ran:
    plan = given_program.plan_of(str(CHECKPOINTS / model), PROMPT, count)
    program = given_program.compiled("generate", plan, place=f"test-{tmp_path.name}")
    elf = Elf.load(program.path, IMAGE)
    name = f"test-generate-{tmp_path.name}"
    ran = program_run.run_program(
        *(support.machine(), elf),
        name=name,
        image=program.image,
        memory_end=program.end,
        knobs=knobs,
    )
    assert (ran.entries, ran.code) == (0, 0)
    return ran


@pytest.mark.parametrize("model", sample(["gpt2-tiny", "llama-tiny"], 1))
def test_text_is_goldens(model: str, tmp_path: Path) -> None:
    """Tokens are those of the integer network, the last one printed hardly later than made."""
    count = 32 if FULL else 16
    ran = _run(model, count, MachineKnobs(), tmp_path)
    assert ran.output == _expected(model, count) + b"\n"
    address, _ = ran.elf.symbol("generated")
    tokens, cycles = ran.memory.array(address + 4, (2,), "<u4")
    assert tokens == count
    last_printed = ran.times[-2] - ran.start_cycle
    assert cycles * 0.9 < last_printed <= OVER * cycles


@pytest.mark.parametrize("mood", range(len(support.HARSH)))
def test_text_in_other_moods(mood: int, tmp_path: Path) -> None:
    """A fast and a slow memory, and gaps on the core's buses, change nothing but time."""
    ran = _run("gpt2-tiny", 6, support.HARSH[mood], tmp_path)
    assert ran.output == _expected("gpt2-tiny", 6) + b"\n"


@pytest.mark.parametrize(
    ("name", "given", "has"),
    [
        ("array_dim", 8, 16),
        ("sram_bytes", 131072, 262144),
        ("acc_rows", 64, 128),
        ("norm_max", 4096, 8192),
        ("narrow_formats", 0, 1),
    ],
)
def test_another_chip(name: str, given: int, has: int, tmp_path: Path) -> None:
    """A plan for a chip of another size is refused before anything is started."""
    plan = given_program.plan_of(str(CHECKPOINTS / "gpt2-tiny"), PROMPT, 2)
    header = plan.header.replace(f".{name} = {has}u", f".{name} = {given}u", 1)
    assert header != plan.header
    other = type(plan)(plan.image, header, plan.end, plan.results)
    program = given_program.compiled("generate", other, place=f"test-{tmp_path.name}")
    elf = Elf.load(program.path, IMAGE)
    ran = program_run.run_program(
        support.machine(), elf, name=f"test-other-{tmp_path.name}", image=program.image
    )
    said = f"chip.{name}: given a plan for {given}, allowed {has}, that of the chip\n".encode()
    assert (ran.output, ran.code) == (PROMPT.encode() + b"\n" + said, 1)


def test_more_tokens_than_there_is_room_for(tmp_path: Path) -> None:
    """A job for another plan is refused before anything is started."""
    plan = given_program.plan_of(str(CHECKPOINTS / "gpt2-tiny"), PROMPT, 2)
    header = plan.header.replace(".count = 2u", ".count = 2000u", 1)
    assert header != plan.header
    other = type(plan)(plan.image, header, plan.end, plan.results)
    program = given_program.compiled("generate", other, place=f"test-{tmp_path.name}")
    elf = Elf.load(program.path, IMAGE)
    ran = program_run.run_program(
        support.machine(), elf, name=f"test-room-{tmp_path.name}", image=program.image
    )
    assert ran.code == 1
    assert b"plan: steps[0]: given a segment, base, address or tensor that" in ran.output
