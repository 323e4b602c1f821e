# SPDX-License-Identifier: Apache-2.0
"""The machine itself: boot, UART, devices, traps, exit codes, the limit; with both compilers."""

from __future__ import annotations

import re

import pytest

from npu import optional
from npu.firmware import compile as firmware
from tb.soc.program_run import MachineError, MachineKnobs
from tests.needs import needs
from tests.soc import support

COMPILERS = tuple(firmware.PACKAGES)
NEEDS = {"zig": (), "gcc": optional.RISCV}
BYTES = bytes(range(256))


def compiler(name: str) -> firmware.Name:
    """Return a compiler, or skip the test if it is not installed."""
    needs(*NEEDS[name])
    (found,) = (one for one in firmware.compilers() if one == name)
    return found


@pytest.mark.parametrize("name", COMPILERS)
def test_hello_echoes_every_byte(name: str) -> None:
    """Boots from address 0, prints, and passes on all 256 bytes."""
    path = firmware.compile_program("hello", firmware.FirmwareTarget(compiler(name)))
    ran = support.run(path, f"hello-{name}", text=BYTES)
    first, _, rest = ran.output.partition(b"\n")
    assert re.fullmatch(rb"hello from address [0-9a-f]+", first)
    assert rest == BYTES
    assert ran.code == 0
    assert ran.times == sorted(ran.times)


def test_printf_of_the_c_library() -> None:
    """With picolibc printf, floats too, and getchar use the UART."""
    path = support.test_program("printf", compiler("gcc"))
    ran = support.run(path, "printf", text=b"and back")
    assert ran.output == b"3.142 -1.000000e+30 00c0ffee text\nAND BACK1\n"
    assert ran.code == 0


@pytest.mark.parametrize("name", COMPILERS)
@pytest.mark.parametrize("mood", range(len(support.HARSH)))
def test_devices(name: str, mood: int) -> None:
    """Memory at every alignment, the chip's registers and time, on every kind of bus."""
    path = support.test_program("devices", compiler(name))
    ran = support.run(path, f"devices-{name}-{mood}", support.HARSH[mood])
    assert (ran.output, ran.code) == (b"0 failed\n", 0)


@pytest.mark.parametrize("name", COMPILERS)
def test_traps(name: str) -> None:
    """Unknown codes trap with mcause 2 and change nothing; a bus error is an NMI."""
    ran = support.run(support.test_program("trap", compiler(name)), f"trap-{name}")
    lines = ran.output.decode().splitlines()
    assert lines[:6] == [*["mcause 2"] * 4, "mcause 11", "12345678 after 5 traps"]
    assert lines[6:] == [f"mcause {(1 << 31) + 1024}"]
    assert ran.code == 6


@pytest.mark.parametrize("asleep", [False, True])
def test_limit_says_where(asleep: bool) -> None:
    """A program that never exits ends at the limit; the message says where the core was."""
    path = support.test_program("forever", None, *(["ASLEEP"] if asleep else []))
    said = r"no exit within 20,000 cycles: the core was at 0x\w+ \(stuck\+0x\w+\)"
    with pytest.raises(MachineError, match=said + (", asleep$" if asleep else "$")):
        support.run(path, f"forever-{asleep}", MachineKnobs(limit=20_000))


def test_macc_loop() -> None:
    """A loop of MACC, addi and bne takes 5 cycles a turn, and its sum is right."""
    ran = support.run(support.test_program("macc_loop"), "macc-loop")
    assert ran.output == b"%d\n" % (3 * 1000 * 1001 // 2)
    address, _ = ran.elf.symbol("cycles")
    (cycles,) = ran.memory.array(address, (1,), "<u4")
    assert cycles <= 5 * 1000 + 10
