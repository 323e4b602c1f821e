# SPDX-License-Identifier: Apache-2.0
"""The programs of small models, on the emulated core with golden as coprocessor: golden's text."""

from __future__ import annotations

import pytest

from golden.recipes import texts
from npu.firmware import compile as firmware
from tb.soc import program_run
from tests.forms import sample
from tests.needs import needs
from tests.python.driver.firmware_support import expected_text, float_model, int8_model
from tests.soc.test_machine import COMPILERS, compiler

needs("emulator")

from tb.soc.emulator import Emulator  # behind the check that it can be imported

SMALL = ("mnist", "newton", "recipes", "vectors")


def _printed(name: str, target: firmware.FirmwareTarget, text: str = "", *defines: str) -> str:
    output = program_run.FOLDER / f"model-{name}-{target.chosen()}-{target.floats}.elf"
    elf = firmware.compile_program(name, target, defines=defines, output=output)
    emulator = Emulator(elf, text=text.encode())
    assert emulator.run(500_000_000) == 0
    return emulator.output.decode("latin-1").replace("\r", "")


@pytest.mark.parametrize("floats", ["soft", "hard"])
@pytest.mark.parametrize("made_by", COMPILERS)
@pytest.mark.parametrize("name", SMALL)
def test_small_programs(name: str, made_by: str, floats: firmware.Floats) -> None:
    """Every line, from each compiler, floats in x or f registers."""
    assert _printed(name, firmware.FirmwareTarget(compiler(made_by), floats)) == expected_text(name)


@pytest.mark.parametrize("name", sample(["bytelm_int8", "bytelm_fp32"], 1))
def test_next_tokens_on_20_prompts(name: str) -> None:
    """Same next byte and, by a hash, the same 256 logits as the reference on every prompt."""
    assert _printed(name, firmware.FirmwareTarget()) == expected_text(name)


def test_text() -> None:
    """A prompt from the UART is continued as the references continue it."""
    prompt = "The parser accepts the "
    given = _printed("bytelm_int8", firmware.FirmwareTarget(), prompt)
    assert given == texts.text_int8(int8_model(), prompt)
    given = _printed("bytelm_fp32", firmware.FirmwareTarget(), prompt)
    assert given == texts.text_fp32(float_model(), prompt)


def test_the_integer_programs_need_no_coprocessor() -> None:
    """Compiled without it, they print the same."""
    for name in ("bytelm_int8", "mnist"):
        assert _printed(name, firmware.FirmwareTarget(), "", "NPU_SOFTWARE") == expected_text(name)
