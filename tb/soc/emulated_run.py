# SPDX-License-Identifier: Apache-2.0
"""`npu soc` on the emulated core: under a debugger, or counting instructions.

What is imported here is in an optional group of pip.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from tb.soc import gdb_server
from tb.soc.emulator import Emulator, EmulatorError
from tb.soc.gdb_target import EmulatedTarget
from tb.soc.instruction_profile import InstructionProfile
from tb.soc.program_run import MachineError

KILLED = 137
"""Exit code of a program that its debugger has ended, as a shell has it of SIGKILL."""
STRETCH = 100_000
"""Instructions after which what was printed is shown."""


def profile(
    program: Path, text: bytes, limit: int, show: Callable[[bytes], None]
) -> tuple[int, InstructionProfile]:
    """Run a program to its end; return its exit code and what it has executed.

    Args:
        program: an ELF file.
        text: what it reads from the UART.
        limit: instructions after which the run is over.
        show: told what it prints.

    Raises:
        FileError: the file cannot be used.
        MachineError: no exit within the limit, or the core cannot go on.
    """
    emulator = Emulator(program, text=text)
    counts = counted(emulator)
    try:
        return emulator.run(limit), counts
    except EmulatorError as error:
        raise MachineError(str(error)) from None
    finally:
        show(bytes(emulator.output))


def counted(emulator: Emulator) -> InstructionProfile:
    """Return counts of what an emulator executes from now on."""
    counts = InstructionProfile(emulator.elf, emulator.ram)

    def count(address: int) -> bool:
        counts.executed[address] += 1
        return False

    emulator.watch(count)
    return counts


def debug(
    program: Path, text: bytes, port: int, show: Callable[[bytes], None], console: Console
) -> int:
    """Let a debugger run a program; return its exit code, or KILLED.

    Args:
        program: an ELF file.
        text: what it reads from the UART.
        port: on this machine, where the debugger connects; 0 takes a free one.
        show: told what it prints.
        console: where the address is said.

    Raises:
        FileError: the file cannot be used.
        GdbError: the port cannot be used.
        MachineError: the debugger has left, and the core cannot go on.
    """
    emulator = Emulator(program, text=text)
    shown = 0

    def show_new() -> None:
        nonlocal shown
        new = bytes(emulator.output[shown:])
        shown += len(new)
        if new:
            show(new)

    listener = gdb_server.listen(port)
    host, taken = listener.getsockname()
    command = f"gdb-multiarch {program} -ex 'target remote {host}:{taken}'"
    console.print(f"waiting for: {command}", highlight=False, soft_wrap=True, markup=False)
    target = EmulatedTarget(emulator)
    if not gdb_server.serve(listener, target, show_new):
        return KILLED
    target.stops.clear()
    try:
        while emulator.exit_code is None:
            emulator.go(STRETCH)
            show_new()
    except EmulatorError as error:
        raise MachineError(str(error)) from None
    return emulator.exit_code
