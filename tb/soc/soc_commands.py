# SPDX-License-Identifier: Apache-2.0
"""The commands of `npu` around the machine: soc, firmware."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from npu import optional
from npu.commands import build_folder, files
from npu.commands.arguments import MODEL, AddCommand, UsageError, add_accept_loss, whole_from
from npu.commands.consoles import printed, watched
from npu.commands.files import FileError
from npu.commands.load_model import BAD_MODEL
from npu.firmware import compile as firmware
from npu.firmware.plan import IMAGE, ROOM, PlanError
from npu.graph.form import GraphError
from npu.runtime.plan_files import PlanFileError
from spec.paths import ROOT
from tb.bench.knobs import LATENCY_MAX
from tb.run import build
from tb.run.machine import CoreMissingError, MachineConfiguration
from tb.run.verilator import VerilatorError
from tb.soc import gdb_server, program_run
from tb.soc.elf_file import Elf
from tb.soc.given_program import (
    DECODER,
    DEFAULTS,
    NETWORK,
    SOURCES,
    GivenProgram,
    check_options,
    kind_of,
    own,
    program_of,
)
from tb.soc.trap_names import TrapNames

LATENCY = 40
PORT_MAX = 0xFFFF
BAD_INPUT = (
    *BAD_MODEL,
    PlanError,
    PlanFileError,
    GraphError,
    UsageError,
    FileError,
    VerilatorError,
    CoreMissingError,
    build.BuildError,
    firmware.FirmwareError,
    gdb_server.GdbError,
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
    names = ", ".join(firmware.examples())
    text = f"C sources, an ELF file, or one of firmware/examples: {names}"
    parser.add_argument("program", nargs="+", metavar="PROGRAM", help=text)
    parser.add_argument(
        "--image",
        type=Path,
        metavar="FILE",
        help=f"bytes of memory from {IMAGE:#x} on, such as npu compile --plan writes",
    )
    parser.add_argument(
        "--model",
        metavar="MODEL",
        help=f"for a program by name that runs one ({DEFAULTS['model']}): {MODEL}; for network, "
        "and for C sources that include npu_plan.h, the folder that npu compile has made of a "
        "network, none of whose operations needs a host "
        "between programs of the chip; its inputs are drawn",
    )
    parser.add_argument(
        "--prompt",
        metavar="TEXT",
        help=f"that a language model goes on with ({DEFAULTS['prompt']})",
    )
    parser.add_argument(
        "--tokens",
        type=whole_from(1),
        metavar="N",
        help=f"that it writes at most ({DEFAULTS['tokens']})",
    )
    add_accept_loss(parser)
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
        default=LATENCY,
        metavar="N",
        help=f"of the memory at the chip's port, in cycles ({LATENCY})",
    )
    emulated = parser.add_mutually_exclusive_group()
    emulated.add_argument(
        "--gdb",
        type=whole_from(0, PORT_MAX),
        metavar="PORT",
        help="wait for GDB on this port of 127.0.0.1 (0: a free one), which then runs the program "
        "on an emulated core",
    )
    emulated.add_argument(
        "--profile",
        action="store_true",
        help="run the program on an emulated core and count its instructions, by function and by "
        "mnemonic; --limit is in instructions",
    )
    emulated.add_argument(
        "--cycles",
        action="store_true",
        help="count instructions and cycles on the RTL, by function and by mnemonic; a cycle "
        "is that of the instruction which retires next",
    )
    _add_compiler(parser)
    parser.set_defaults(**DEFAULTS)


def _add_compiler(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--compiler", choices=tuple(firmware.PACKAGES), help="for C sources or a program by name"
    )
    parser.add_argument(
        *("-I", "--include"),
        action="append",
        type=Path,
        default=[],
        metavar="FOLDER",
        help="of headers, for C sources, beside firmware/include and firmware/lib; may be repeated",
    )
    parser.add_argument(
        "--flag",
        action="append",
        default=[],
        metavar="FLAG",
        help="for the compiler of C sources, behind its other ones: --flag=-O3; may be repeated",
    )


def _add_firmware(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Compile C sources, or a program of firmware/examples, with start-up code, library and "
        "linker script of firmware/lib, into build/firmware."
    )
    names = ", ".join(firmware.examples())
    parser.add_argument("program", nargs="+", metavar="PROGRAM", help=f"C sources, or {names}")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="the ELF file to write")
    parser.add_argument(
        "--hard-float", action="store_true", help="for rv32imf, which runs on the emulator"
    )
    _add_compiler(parser)


def _firmware(arguments: argparse.Namespace) -> int:
    """Compile a program for the RISC-V core beside the chip."""
    kind, name = kind_of(arguments.program, elf=False), arguments.program[0]
    check_options(vars(arguments), kind)
    if kind in (NETWORK, DECODER):
        needs = "MODEL --prompt TEXT" if kind == DECODER else "FOLDER"
        raise UsageError(
            f"program: given {name!r}, which needs a model: allowed is npu soc {name} "
            f"--model {needs}"
        )
    output: Path | None = arguments.output
    if output is not None:
        files.check_output(output)
        output = output.resolve()
    target = firmware.FirmwareTarget(arguments.compiler, "hard" if arguments.hard_float else "soft")
    if kind == SOURCES:
        path = own(arguments, target, output)
    else:
        build_folder.require()
        path = firmware.compile_program(name, target, output=output)
    print(path.relative_to(ROOT) if output is None else arguments.output)
    return 0


def _soc(arguments: argparse.Namespace) -> int:
    """Run a program on a RISC-V core with the chip beside it."""
    console = watched()
    emulated = arguments.gdb is not None or arguments.profile
    if emulated:
        _check_emulated(arguments)
    program = program_of(arguments)
    if emulated:
        return _emulated(arguments, program)
    if arguments.cycles:
        _require_emulator()
    room = IMAGE if program.image else ROOM
    elf = Elf.load(program.path, room, "below the image" if program.image else "memory")
    configuration = built()
    with _uart(elf) as show:
        ran = program_run.run_program(
            configuration,
            elf,
            name=f"soc-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}",
            image=program.image,
            memory_end=program.end,
            text=_input(arguments),
            knobs=program_run.MachineKnobs(latency=arguments.latency, limit=arguments.limit),
            on_output=show,
            profile=arguments.cycles,
        )
    kilocycles = ran.cycles / max(ran.seconds, 1e-9) / 1000
    console.print(
        f"exit code {ran.code} after {ran.cycles:,} cycles, {ran.entries} entries into Python; "
        f"simulation {ran.seconds:.1f} s, {kilocycles:,.0f} kcycles/s",
        highlight=False,
    )
    if arguments.cycles:
        from tb.soc.instruction_profile import InstructionProfile

        memory = ran.memory.data
        InstructionProfile(elf, memory, ran.retired, ran.cycles_at).print(printed())
    return ran.code


def _input(arguments: argparse.Namespace) -> bytes:
    return bytes(arguments.input.encode("utf-8", "surrogateescape"))


def _check_emulated(arguments: argparse.Namespace) -> None:
    """Raise UsageError for what the emulated core does not have."""
    option = "--profile" if arguments.profile else "--gdb"
    kind = kind_of(arguments.program)
    check_options(vars(arguments), kind)
    if kind in (NETWORK, DECODER) or arguments.model != DEFAULTS["model"] or arguments.image:
        raise UsageError(
            f"{option}: given with a model or an image, allowed without: of the chip the emulated "
            "core has the coprocessor alone"
        )
    given = {"--latency": arguments.latency != LATENCY}
    if not arguments.profile:
        given["--limit"] = arguments.limit != program_run.LIMIT
    for other in (name for name, is_given in given.items() if is_given):
        raise UsageError(f"{other}: given with {option}, allowed without")


def _emulated(arguments: argparse.Namespace, program: GivenProgram) -> int:
    """Run a program on the emulated core. Raises MachineError where that is not installed."""
    elf = Elf.load(program.path, ROOM, float_registers=True)
    _require_emulator()
    from tb.soc import emulated_run

    text = _input(arguments)
    with _uart(elf) as show:
        if not arguments.profile:
            return emulated_run.debug(program.path, text, arguments.gdb, show, watched())
        code, counts = emulated_run.profile(program.path, text, arguments.limit, show)
    counts.print(printed())
    return code


def _require_emulator() -> None:
    """Raise MachineError if the group is not installed that has emulator and disassembler."""
    lacks = optional.missing("emulator")
    if lacks:
        raise program_run.MachineError(f"no emulator or disassembler: {lacks}")


def built() -> MachineConfiguration:
    """Build the machine, or what has changed of it."""
    configuration = MachineConfiguration()
    build.generate()
    build.build(configuration)
    return configuration


@contextmanager
def _uart(elf: Elf) -> Iterator[Callable[[bytes], None]]:
    """Give what shows bytes at once, with names in lines about traps; at the end, a whole line."""
    last = b"\n"
    names = TrapNames(elf)

    def show(data: bytes) -> None:
        nonlocal last
        sys.stdout.buffer.write(names.added(data))
        sys.stdout.buffer.flush()
        last = data[-1:]

    try:
        yield show
    finally:
        if last != b"\n":
            show(b"\n")
