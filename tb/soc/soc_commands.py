# SPDX-License-Identifier: Apache-2.0
"""The commands of `npu` around the machine: soc, firmware."""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

from npu.cli.arguments import AddCommand, UsageError, whole_from
from npu.cli.consoles import watched
from npu.cli.files import FileError
from npu.cli.progress import step
from npu.firmware import compile as firmware
from npu.paths import ROOT
from tb.bench.knobs import LATENCY_MAX
from tb.run import build
from tb.run.verilator import VerilatorError
from tb.soc import program_run
from tb.soc.elf_file import Elf
from tb.soc.machine import CoreMissingError, MachineConfiguration

BAD_INPUT = (
    UsageError,
    FileError,
    VerilatorError,
    CoreMissingError,
    build.BuildError,
    firmware.FirmwareError,
    program_run.MachineError,
)
"""What a user can cause, or a tool; the text is what to print."""


def add_commands(command: AddCommand) -> None:
    """Add the commands to the parser of `npu`."""
    _add_soc(command("soc", _soc))
    _add_firmware(command("firmware", _firmware))


def _add_soc(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Run a program on a RISC-V core with the chip beside it: it boots from address 0, prints "
        "on a UART and ends the run with an exit code, which is that of this command. Python "
        "sleeps meanwhile."
    )
    text = f"an ELF file, or one of firmware/examples: {', '.join(firmware.examples())}"
    parser.add_argument("program", metavar="PROGRAM", help=text)
    parser.add_argument(
        "--image",
        type=Path,
        metavar="FILE",
        help=f"bytes of memory from {program_run.IMAGE:#x} on, such as npu compile --plan writes",
    )
    parser.add_argument(
        "--input", default="", metavar="TEXT", help="what the program reads from the UART"
    )
    parser.add_argument(
        "--limit",
        type=whole_from(1),
        default=program_run.LIMIT,
        metavar="CYCLES",
        help=f"after which the run is over ({program_run.LIMIT})",
    )
    parser.add_argument(
        "--latency",
        type=whole_from(1, LATENCY_MAX),
        default=40,
        metavar="N",
        help="of the memory at the chip's port, in cycles (40)",
    )
    _add_compiler(parser)


def _add_compiler(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--compiler", choices=tuple(firmware.PACKAGES), help="for a program by name"
    )


def _add_firmware(parser: argparse.ArgumentParser) -> None:
    parser.description = "Compile a program of firmware/examples into build/firmware."
    parser.add_argument("name", metavar="NAME", help=", ".join(firmware.examples()))
    parser.add_argument(
        "--hard-float", action="store_true", help="for rv32imf, which runs on the emulator"
    )
    _add_compiler(parser)


def _firmware(arguments: argparse.Namespace) -> int:
    """Compile a program for the RISC-V core beside the chip."""
    floats: firmware.Floats = "hard" if arguments.hard_float else "soft"
    target = firmware.Target(arguments.compiler, floats)
    print(firmware.compile_program(arguments.name, target).relative_to(ROOT))
    return 0


def elf_of(program: str, compiler: firmware.Name | None) -> Path:
    """Return the ELF file of a program: the file itself, or that of a name, compiled."""
    if program in firmware.examples():
        return firmware.compile_program(program, firmware.Target(compiler))
    if "/" not in program and "." not in program and not Path(program).exists():
        raise UsageError(
            f"program: given {program!r}, allowed an ELF file or {', '.join(firmware.examples())}"
        )
    return Path(program)


def _soc(arguments: argparse.Namespace) -> int:
    """Run a program on a RISC-V core with the chip beside it."""
    console = watched()
    image = b"" if arguments.image is None else program_run.image_of(arguments.image)
    with step("compiling the program", console=console):
        path = elf_of(arguments.program, arguments.compiler)
    room = program_run.IMAGE if image else program_run.ROOM
    elf = Elf.load(path, room, "below the image" if image else "memory")
    configuration = built()
    ran = program_run.run_program(
        configuration,
        elf,
        name=f"soc-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}",
        image=image,
        text=arguments.input.encode("utf-8", "surrogateescape"),
        knobs=program_run.MachineKnobs(latency=arguments.latency, limit=arguments.limit),
        on_output=_show,
    )
    if ran.output and not ran.output.endswith(b"\n"):
        _show(b"\n")
    kilocycles = ran.cycles / max(ran.seconds, 1e-9) / 1000
    console.print(
        f"exit code {ran.code} after {ran.cycles:,} cycles, {ran.entries} entries into Python; "
        f"simulation {ran.seconds:.1f} s, {kilocycles:,.0f} kcycles/s",
        highlight=False,
    )
    return ran.code


def built() -> MachineConfiguration:
    """Build the machine, or what has changed of it."""
    configuration = MachineConfiguration()
    build.generate()
    build.build(configuration)
    return configuration


def _show(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
