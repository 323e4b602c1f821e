# SPDX-License-Identifier: Apache-2.0
"""The commands of `npu` around the machine: soc, firmware."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from golden.decoder import forward_rows
from npu.cli import build_folder, files
from npu.cli.arguments import MODEL, AddCommand, UsageError, add_accept_loss, whole_from
from npu.cli.consoles import watched
from npu.cli.files import FileError
from npu.cli.load_model import BAD_MODEL, load
from npu.cli.progress import step
from npu.firmware import compile as firmware
from npu.firmware.plan import (
    IMAGE,
    ROOM,
    FirmwarePlan,
    PlanError,
    firmware_network,
    firmware_plan,
)
from npu.graph.form import Array, GraphError
from npu.graph.passes.samples import random_samples
from npu.isa.operands import Limits
from npu.paths import BUILD, ROOT
from npu.runtime.plan import Plan
from npu.runtime.plan_files import PlanFileError, holds_plan, read_plan
from tb.bench.knobs import LATENCY_MAX
from tb.run import build
from tb.run.machine import CoreMissingError, MachineConfiguration
from tb.run.verilator import VerilatorError
from tb.soc import program_run
from tb.soc.elf_file import Elf

MODEL_FOLDER = "weights/checkpoints/gpt2-tiny"
PROMPT = "The parser accepts"
TOKENS = 48
"""What a model does unless the command line says otherwise."""
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
        help=f"bytes of memory from {IMAGE:#x} on, such as npu compile --plan writes",
    )
    parser.add_argument(
        "--model",
        default=MODEL_FOLDER,
        metavar="MODEL",
        help=f"for a program by name that runs one ({MODEL_FOLDER}): {MODEL}; for network the "
        "folder that npu compile has made of a network whose operations all run in programs of "
        "the chip; its inputs are drawn",
    )
    parser.add_argument(
        "--prompt",
        default=PROMPT,
        metavar="TEXT",
        help=f"that a language model goes on with ({PROMPT})",
    )
    parser.add_argument(
        "--tokens",
        type=whole_from(1),
        default=TOKENS,
        metavar="N",
        help=f"that it writes at most ({TOKENS})",
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
    if firmware.needs_plan(arguments.name):
        needs = "MODEL --prompt TEXT" if firmware.needs_prompt(arguments.name) else "FOLDER"
        raise UsageError(
            f"program: given {arguments.name!r}, which needs a model: allowed is npu soc "
            f"{arguments.name} --model {needs}"
        )
    floats: firmware.Floats = "hard" if arguments.hard_float else "soft"
    target = firmware.Target(arguments.compiler, floats)
    build_folder.require()
    print(firmware.compile_program(arguments.name, target).relative_to(ROOT))
    return 0


@dataclass(frozen=True)
class Program:
    """What is to run.

    Attributes:
        path: the ELF file.
        image: bytes of memory from IMAGE on; none if empty.
        end: first address that nobody uses.
    """

    path: Path
    image: bytes = b""
    end: int = 0


def plan_of(model: str, prompt: str, tokens: int, *, accept_loss: bool = False) -> FirmwarePlan:
    """Compile a model and a prompt for a program. Raises what the parts raise.

    A folder that `npu compile` has made of a network is taken as it is, with random inputs.
    """
    console = watched()
    if holds_plan(Path(model)):
        plan = read_plan(Path(model))
        return network_of(plan, {name: x[0] for name, x in random_samples(plan.graph, 1).items()})
    loaded = load(
        model,
        Limits(),
        "auto",
        console,
        (prompt, tokens),
        integers=forward_rows,
        accept_loss=accept_loss,
    )
    console.print(f"integers: {loaded.loss}", highlight=False)
    return firmware_plan(loaded.compiled, loaded.tokenizer, prompt, tokens, loaded.end)


def network_of(plan: Plan, inputs: Mapping[str, Array]) -> FirmwarePlan:
    """Lay out a network with inputs. Raises PlanError for a decoder, GraphError for inputs."""
    if plan.decoder is not None:
        raise PlanError("plan: given that of a decoder, allowed that of a network")
    return firmware_network(plan, inputs)


def compiled(
    name: str, plan: FirmwarePlan | None, target: firmware.Target | None = None, place: str = ""
) -> Program:
    """Compile a program by name, with a plan if it needs one.

    Args:
        name: of the program.
        plan: of the model that it runs.
        target: how to compile.
        place: folder in build/firmware for what belongs to this plan, by default the name.
    """
    build_folder.require()
    if plan is None:
        return Program(firmware.compile_program(name, target))
    folder = BUILD / "firmware" / (place or name)
    folder.mkdir(parents=True, exist_ok=True)
    files.write(folder / firmware.PLAN, plan.header)
    output = folder / f"{name}.elf"
    path = firmware.compile_program(name, target, include=[folder], output=output)
    return Program(path, plan.image, plan.end)


def _check_model(name: str, model: str) -> None:
    """Raise UsageError for a checkpoint where a network is needed, or the other way round."""
    prompted, planned = firmware.needs_prompt(name), holds_plan(Path(model))
    if prompted and planned:
        raise UsageError(f"--model {model}: given the folder of a plan, allowed is {MODEL}")
    if not prompted and not planned:
        raise UsageError(
            f"--model {model}: given no folder of a plan, allowed is one that npu compile has made "
            f"of a network, for {name}"
        )


def _program(arguments: argparse.Namespace) -> Program:
    """Return what the command line asks for, compiled if it is a name."""
    name = arguments.program
    if name in firmware.examples():
        plan = None
        if firmware.needs_plan(name):
            _check_model(name, arguments.model)
            plan = plan_of(
                arguments.model,
                arguments.prompt,
                arguments.tokens,
                accept_loss=arguments.accept_loss,
            )
        with step("compiling the program", console=watched()):
            return compiled(name, plan, firmware.Target(arguments.compiler))
    if "/" not in name and "." not in name and not Path(name).exists():
        raise UsageError(
            f"program: given {name!r}, allowed an ELF file or {', '.join(firmware.examples())}"
        )
    image = b"" if arguments.image is None else program_run.image_of(arguments.image)
    return Program(Path(name), image, IMAGE + len(image))


def _soc(arguments: argparse.Namespace) -> int:
    """Run a program on a RISC-V core with the chip beside it."""
    console = watched()
    program = _program(arguments)
    room = IMAGE if program.image else ROOM
    elf = Elf.load(program.path, room, "below the image" if program.image else "memory")
    configuration = built()
    with _uart() as show:
        ran = program_run.run_program(
            configuration,
            elf,
            name=f"soc-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}",
            image=program.image,
            memory_end=program.end,
            text=arguments.input.encode("utf-8", "surrogateescape"),
            knobs=program_run.MachineKnobs(latency=arguments.latency, limit=arguments.limit),
            on_output=show,
        )
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


@contextmanager
def _uart() -> Iterator[Callable[[bytes], None]]:
    """Give what shows bytes at once; when it is over, the line is ended."""
    last = b"\n"

    def show(data: bytes) -> None:
        nonlocal last
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        last = data[-1:]

    try:
        yield show
    finally:
        if last != b"\n":
            show(b"\n")
