# SPDX-License-Identifier: Apache-2.0
"""The emulated core: the same programs print the same, and Python reaches into them."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from npu.firmware import compile as firmware
from npu.firmware.compile import EXAMPLES
from spec.isa.cop_generated import CopOp
from spec.isa.coprocessor import encode
from tb.soc import program_run
from tests.needs import needs
from tests.python.driver.firmware_support import expected_text
from tests.soc import support
from tests.soc.test_machine import COMPILERS, compiler

needs("emulator")

from tb.soc.emulator import Emulator, EmulatorError  # behind the check that it can be imported


def _printed(name: str, target: firmware.FirmwareTarget) -> bytes:
    emulator = Emulator(firmware.compile_program(name, target))
    assert emulator.run() == 0
    return bytes(emulator.output)


@pytest.mark.parametrize("name", COMPILERS)
def test_every_instruction_prints_the_same(name: str) -> None:
    """Soft-float and hard-float builds agree: operands in x or f registers, the same bits."""
    first = firmware.compilers()[0]
    expected = _printed("npu_test", firmware.FirmwareTarget(first))
    for floats in ("soft", "hard"):
        assert _printed("npu_test", firmware.FirmwareTarget(compiler(name), floats)) == expected


@pytest.mark.parametrize("name", COMPILERS)
@pytest.mark.parametrize("place", ["F", "X"])
def test_float_registers_of_header_and_core(name: str, place: str, tmp_path: Path) -> None:
    """A program with float registers hands floats over in f or x; another core is refused."""
    target = firmware.FirmwareTarget(compiler(name), "hard")
    output = tmp_path / "npu_test.elf"
    define = f"NPU_FLOATS_IN_{place}"
    path = firmware.compile_program("npu_test", target, defines=[define], output=output)
    right, wrong = (Emulator(path, floats_in_f=same == (place == "F")) for same in (True, False))
    assert right.run() == 0
    assert bytes(right.output) == _printed(
        "npu_test", firmware.FirmwareTarget(firmware.compilers()[0])
    )
    assert wrong.run() == 2
    assert wrong.output.startswith(b"npu_fp.h: the core hands over other registers")


def test_float_registers_that_the_compiler_lacks(tmp_path: Path) -> None:
    """The header names what was given and what is allowed."""
    output = tmp_path / "npu_test.elf"
    with pytest.raises(firmware.FirmwareError, match="given NPU_FLOATS_IN_F, allowed with f reg"):
        firmware.compile_program("npu_test", defines=["NPU_FLOATS_IN_F"], output=output)


def test_two_source_forms_print_the_same() -> None:
    """The forms for a core with two sources print what the instructions with three do."""
    program = firmware.compile_sources(
        [EXAMPLES / "vectors" / "vectors.c"],
        "vectors",
        flags=("-include", "npu_two_sources.h"),
        output=program_run.FOLDER / f"test-vectors-npu_two_sources-{os.getpid()}.elf",
    )
    host = Emulator(program)
    assert (host.run(), bytes(host.output).decode()) == (0, expected_text("vectors"))


def test_uart_and_traps() -> None:
    """The UART echoes; what nobody knows traps as on the machine."""
    emulator = Emulator(firmware.compile_program("hello"), text=b"in\x00\xff")
    assert emulator.run() == 0
    assert emulator.output.endswith(b"\nin\x00\xff")
    with pytest.raises(EmulatorError, match=r"no exit within 3,000 instructions: .*\(stuck\+0x"):
        Emulator(support.test_program("forever")).run(3000)


def test_arrays_by_name_and_single_steps() -> None:
    """Arrays go in and out by symbol; a step executes one instruction, the coprocessor's too."""
    emulator = Emulator(support.test_program("macc_loop"))
    emulator.put("cycles", np.array([0x12345678], np.uint32))
    assert emulator.get("cycles", 1, np.uint32).tolist() == [0x12345678]
    macc = encode(CopOp.MACC)
    seen = 0
    for _ in range(400):
        place = emulator.state.pc
        word = int.from_bytes(emulator.ram[place : place + 4].tobytes(), "little")
        before = emulator.state
        after = emulator.step()
        if word & 0xFE00707F == macc:
            seen += 1
            assert after.pc == place + 4
            assert after.x == before.x
            first, second = (before.x[word >> at & 31] for at in (15, 20))
            assert first * second == 3 * (1001 - seen)
    assert seen > 50
    assert emulator.run() == 0
    assert emulator.output == b"1501500\n"
