# SPDX-License-Identifier: Apache-2.0
"""The programs of small models on the core with the RTL as coprocessor: golden's text."""

from __future__ import annotations

from pathlib import Path

import pytest

from golden.recipes import texts
from npu.firmware import compile as firmware
from tb.soc import program_run
from tb.soc.program_run import MachineKnobs
from tests.forms import sample
from tests.python.driver.firmware_support import expected_text, float_model, int8_model
from tests.soc import support
from weights.firmware.prompts import PROMPTS

SMALL = ("mnist", "newton", "recipes", "vectors")


def _compiled(name: str, *defines: str) -> Path:
    output = program_run.FOLDER / ("-".join(["machine", name, *defines]) + ".elf")
    return firmware.compile_program(name, defines=defines, output=output)


def _printed(name: str, knobs: MachineKnobs, *defines: str, text: str = "") -> str:
    path = _compiled(name, *defines)
    ran = support.run(path, f"{path.stem}-{knobs.latency}", knobs, text.encode())
    assert ran.code == 0
    return ran.output.decode("latin-1")


@pytest.mark.parametrize("name", SMALL)
def test_small_programs(name: str) -> None:
    """Every line."""
    assert _printed(name, MachineKnobs()) == expected_text(name)


@pytest.mark.parametrize("latency", sample([200, 1], 1))
def test_other_memories(latency: int) -> None:
    """Results do not depend on the memory's latency and gaps, nor on those of the core's buses."""
    knobs = MachineKnobs(latency=latency, memory_gap=20, core_gap=20)
    for name in ("recipes", "vectors"):
        assert _printed(name, knobs) == expected_text(name)


def test_logits_of_a_token() -> None:
    """Position 16 of the transformer: next byte, and all logits by a hash, bit for bit in FP32."""
    expected = {
        "bytelm_fp32": lambda: texts.one_token_fp32(float_model()),
        "bytelm_int8": lambda: texts.one_token_int8(int8_model()),
    }
    for name in sample(list(expected), 1):
        assert _printed(name, MachineKnobs(), "ONE_TOKEN").startswith(expected[name]())


@pytest.mark.parametrize("name", sample(["bytelm_int8", "bytelm_fp32"], 1))
def test_next_tokens_of_prompts(name: str) -> None:
    """Next byte and logits of the built-in prompts: all 20 in the long form."""
    prompts = len(sample(PROMPTS, 2))
    printed = _printed(name, MachineKnobs(), f"PROMPT_COUNT={prompts}")
    assert printed == expected_text(name, prompts)
