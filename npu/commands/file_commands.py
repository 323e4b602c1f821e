# SPDX-License-Identifier: Apache-2.0
"""The commands of `npu` that look at files and translate them, without a chip."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from npu.asm import AsmError
from npu.commands import files, inspect_files, program_files
from npu.commands.arguments import (
    MODEL,
    AddCommand,
    add_config,
    add_context,
    add_weights,
)
from npu.commands.consoles import printed
from npu.commands.estimate_report import CLOCK_MHZ, report
from npu.commands.load_model import BAD_MODEL

BAD_INPUT = (*BAD_MODEL, AsmError, files.FileError)
"""What a user can cause; each says in one line what was given and what is allowed."""
FASTEST_MHZ = 100_000


def add_commands(command: AddCommand) -> None:
    """Add the commands to the parser of `npu`."""
    _add_inspect(command("inspect", _inspect))
    _add_estimate(command("estimate", _estimate))
    _add_asm(command("asm", _asm))
    _add_disasm(command("disasm", _disasm))


def _symbol(text: str) -> tuple[str, int]:
    name, equals, value = text.partition("=")
    try:
        number = int(value, 0)
    except ValueError:
        equals = ""
    if not equals or not name.isidentifier():
        raise argparse.ArgumentTypeError(f"given {text!r}, allowed NAME=INTEGER")
    return name, number


def _add_inspect(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Say what a file or folder holds; its content decides, not its name. A checkpoint (folder, "
        "GGUF file or hub id): dimensions, tensors, parameters, scales. A packed file: what is in "
        "it, and the bytes of each layer. With --weights: bits a weight and cycles of the bus a "
        "token. A program (text or words): instructions, barriers, SRAM, stream."
    )
    parser.add_argument("what", metavar="WHAT", help="a folder, a hub id or a file")
    parser.add_argument("--listing", action="store_true", help="print the instructions as well")
    add_context(parser)
    add_weights(parser)
    add_config(parser)


def _inspect(arguments: argparse.Namespace) -> int:
    """Say what a checkpoint, a packed file or a program holds."""
    limits = arguments.chip.limits
    inspect_files.show(
        arguments.what,
        limits,
        arguments.weights,
        arguments.listing,
        printed(),
        arguments.context,
    )
    return 0


def _megahertz(text: str) -> float:
    """Return a clock."""
    try:
        clock = float(text)
    except ValueError:
        clock = 0.0
    if not 0 < clock <= FASTEST_MHZ:
        allowed = f"a number of MHz above 0 and up to {FASTEST_MHZ:,}"
        raise argparse.ArgumentTypeError(f"given {text!r}, allowed {allowed}")
    return clock


def _add_estimate(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Say by config.json alone what a model would take: whether it is accepted or why not, "
        "bytes of stream, tables and K/V cache by format and context, cycles and tokens a second, "
        "memory and time of its import. What is not imported is estimated by its dimensions."
    )
    parser.add_argument("model", metavar="MODEL", help=f"{MODEL}, or a config.json")
    add_context(parser)
    parser.add_argument(
        "--clock",
        type=_megahertz,
        default=CLOCK_MHZ,
        metavar="MHZ",
        help=f"of the chip ({CLOCK_MHZ:g})",
    )
    parser.add_argument("--json", action="store_true", help="print everything as JSON instead")
    add_weights(parser)
    add_config(parser)


def _estimate(arguments: argparse.Namespace) -> int:
    """Say by its configuration alone what a model would take."""
    found = report(
        arguments.model,
        arguments.chip.limits,
        arguments.weights,
        arguments.context,
        arguments.clock,
    )
    if arguments.json:
        print(json.dumps(found.to_json(), indent=1))
    else:
        found.show(printed())
    return 0


def _add_asm(parser: argparse.ArgumentParser) -> None:
    parser.description = "Turn a program text into words; see docs/reference/assembler.md."
    parser.add_argument("file", type=Path, metavar="FILE", help="the text")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="OUT", help="the words (FILE with the suffix .bin)"
    )
    parser.add_argument(
        *("-D", "--define"),
        type=_symbol,
        action="append",
        default=[],
        metavar="NAME=INTEGER",
        help="a symbol that the text uses; may be repeated",
    )
    add_config(parser)


def _asm(arguments: argparse.Namespace) -> int:
    """Assemble a program text into words."""
    limits = arguments.chip.limits
    output = program_files.output_of(arguments.file, arguments.output)
    words = program_files.assemble_file(arguments.file, dict(arguments.define), limits)
    files.write(output, b"".join(word.encode() for word in words))
    print(f"{output}: {len(words):,} words")
    return 0


def _add_disasm(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Turn the words of a program into text that assembles to the same words. Words that the "
        "chip refuses become .word lines with the reason."
    )
    parser.add_argument("file", type=Path, metavar="FILE", help="the words, 16 bytes each")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="OUT", help="the text (standard output)"
    )
    add_config(parser)


def _disasm(arguments: argparse.Namespace) -> int:
    """Turn words back into a program text."""
    text = program_files.disassemble_file(arguments.file, arguments.chip.limits)
    if arguments.output is None:
        sys.stdout.write(text)
    else:
        files.write(arguments.output, text)
    return 0
