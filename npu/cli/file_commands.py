# SPDX-License-Identifier: Apache-2.0
"""The commands of `npu` that work with files and models, without a chip."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from npu.asm import AsmError
from npu.cli import compiled_files, files, inspect_files, network_folder, program_files
from npu.cli.arguments import (
    MODEL,
    AddCommand,
    UsageError,
    add_array_dim,
    add_cache,
    add_weights,
    whole_from,
)
from npu.cli.consoles import printed, watched
from npu.cli.load_model import BAD_MODEL, load
from npu.firmware.compile import PLAN
from npu.firmware.plan import PlanError, firmware_plan
from npu.graph.form import GraphError
from npu.isa.operands import Limits
from npu.runtime.report import WIDTH

TOKENS = 48
"""Of a plan unless the command line says otherwise."""
IMAGE_SUFFIX = ".img"
BAD_INPUT = (*BAD_MODEL, AsmError, files.FileError, GraphError, PlanError, UsageError)
"""What a user can cause; each says in one line what was given and what is allowed."""


def add_commands(command: AddCommand) -> None:
    """Add the commands to the parser of `npu`."""
    _add_compile(command("compile", _compile, builds=False))
    _add_inspect(command("inspect", _inspect, builds=False))
    _add_asm(command("asm", _asm, builds=False))
    _add_disasm(command("disasm", _disasm, builds=False))


def _symbol(text: str) -> tuple[str, int]:
    name, equals, value = text.partition("=")
    try:
        number = int(value, 0)
    except ValueError:
        equals = ""
    if not equals or not name.isidentifier():
        raise argparse.ArgumentTypeError(f"given {text!r}, allowed NAME=INTEGER")
    return name, number


def _add_compile(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Quantise and compile a model into one packed file: parameter stream, tables, and all that "
        "a host needs to make programs from it. The texts of its programs are written beside it. "
        "With --rows also a plan, which npu run runs and npu explain shows. A network from a file "
        "of ONNX, StableHLO or TFLite becomes the folder of a plan, for npu run, npu explain and "
        "npu soc network."
    )
    parser.add_argument("model", metavar="MODEL", help=f"{MODEL}; or a file of a network")
    parser.add_argument(
        *("-o", "--output"),
        type=Path,
        required=True,
        metavar="FILE",
        help="file or folder to write",
    )
    parser.add_argument(
        "--rows",
        type=whole_from(1),
        metavar="N",
        help="also the program for a prompt of N tokens, and the plan for it, with programs that "
        "generate, prefill and step (a folder: FILE with the suffix .plan)",
    )
    parser.add_argument(
        "--plan",
        metavar="PROMPT",
        help="also the image (FILE with the suffix .img) and the C header (npu_plan.h beside it) "
        "with which a program for a RISC-V core goes on with PROMPT",
    )
    parser.add_argument(
        "--tokens",
        type=whole_from(1),
        metavar="N",
        help=f"of --plan, at most ({TOKENS})",
    )
    add_weights(parser)
    add_cache(parser)
    add_array_dim(parser)
    network_folder.add_options(parser)


def _compile(arguments: argparse.Namespace) -> int:
    """Compile a model into a packed file and program texts, or a network into a folder."""
    if network_folder.is_network(arguments.model):
        return network_folder.compile_network(arguments, watched(), printed(WIDTH))
    network_folder.refuse_network_options(arguments)
    files.check_output(arguments.output)
    limits = Limits(array_dim=arguments.array_dim)
    prompt, count = arguments.plan, arguments.tokens
    if prompt is None and count is not None:
        raise UsageError("--tokens: given without --plan, allowed with it")
    count = count or TOKENS
    text = None if prompt is None else (prompt, count)
    loaded = load(arguments.model, limits, arguments.cache, watched(), text, arguments.weights)
    if prompt is not None:
        plan = firmware_plan(loaded.compiled, loaded.tokenizer, prompt, count, loaded.end)
        files.write(arguments.output.with_suffix(IMAGE_SUFFIX), plan.image)
        files.write(arguments.output.with_name(PLAN), plan.header)
    written = compiled_files.write(loaded.compiled, arguments.output, arguments.rows)
    printed().print(compiled_files.written_table(written))
    printed().print(compiled_files.weights_table(written.model))
    return 0


def _add_inspect(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Say what a file or folder holds; its content decides, not its name. A checkpoint (folder "
        "or hub id): dimensions, tensors, parameters, scales. A packed file: what is in it, and "
        "the bytes of each layer. With --weights: bits a weight and cycles of the bus a token. A "
        "program (text or words): instructions, barriers, SRAM, stream."
    )
    parser.add_argument("what", metavar="WHAT", help="a folder, a hub id or a file")
    parser.add_argument("--listing", action="store_true", help="print the instructions as well")
    add_weights(parser)
    add_array_dim(parser)


def _inspect(arguments: argparse.Namespace) -> int:
    """Say what a checkpoint, a packed file or a program holds."""
    limits = Limits(array_dim=arguments.array_dim)
    inspect_files.show(arguments.what, limits, arguments.weights, arguments.listing, printed())
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
    add_array_dim(parser)


def _asm(arguments: argparse.Namespace) -> int:
    """Assemble a program text into words."""
    limits = Limits(array_dim=arguments.array_dim)
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
    add_array_dim(parser)


def _disasm(arguments: argparse.Namespace) -> int:
    """Turn words back into a program text."""
    text = program_files.disassemble_file(arguments.file, Limits(array_dim=arguments.array_dim))
    if arguments.output is None:
        sys.stdout.write(text)
    else:
        files.write(arguments.output, text)
    return 0
