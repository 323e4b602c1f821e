# SPDX-License-Identifier: Apache-2.0
"""The commands of `npu` that work with models and programs."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console

from npu.asm import AsmError
from npu.compiler import CompileError, PackError
from npu.compiler.model import Place
from npu.driver.generate import PromptError
from npu.driver.sampling import SamplingError
from npu.isa.operands import ARRAY_DIMS, Limits
from tb import build
from tb.knobs import LATENCY_MAX
from tb.models import compiled, files, generate, inspect, profile, programs
from tb.models.load import load
from tb.models.simulate import SimulationError
from tb.paths import REPORTS, ROOT
from tb.progress import step
from weights.calibrate import ScalesError
from weights.checkpoint import CheckpointError
from weights.model import ModelError
from weights.tokenizer import TokenizerError

BAD_INPUT = (
    AsmError,
    CheckpointError,
    CompileError,
    ModelError,
    PackError,
    PromptError,
    SamplingError,
    ScalesError,
    SimulationError,
    TokenizerError,
    files.FileError,
    profile.PictureError,
)
"""What a user can cause; each says in one line what was given and what is allowed."""
PLACES: tuple[Place, ...] = ("auto", "sram", "memory")
WIDTH = 100
"""Columns of a table where there is no terminal."""
MODEL = "a Hugging Face folder, or a hub id such as openai-community/gpt2"

_Command = Callable[..., argparse.ArgumentParser]


def add_commands(command: _Command) -> None:
    """Add the commands to the parser of `npu`; `command(name, function)` returns a new parser."""
    _add_generate(command("generate", _generate))
    _add_profile(command("profile", _profile))
    _add_compile(command("compile", _compile))
    _add_inspect(command("inspect", _inspect))
    _add_asm(command("asm", _asm))
    _add_disasm(command("disasm", _disasm))


def _whole(text: str, least: int) -> int:
    if not (text.isascii() and text.isdecimal()) or int(text) < least:
        raise argparse.ArgumentTypeError(f"given {text!r}, allowed whole numbers from {least}")
    return int(text)


def _count(text: str) -> int:
    return _whole(text, 1)


def _latency(text: str) -> int:
    if not (text.isascii() and text.isdecimal()) or not 1 <= int(text) <= LATENCY_MAX:
        raise argparse.ArgumentTypeError(
            f"given {text!r}, allowed whole numbers 1 to {LATENCY_MAX}"
        )
    return int(text)


def _number(text: str) -> int:
    return _whole(text, 0)


def _steps(text: str) -> int:
    return _whole(text, 2)


def _dim(text: str) -> int:
    allowed = [str(dim) for dim in ARRAY_DIMS]
    if text not in allowed:
        raise argparse.ArgumentTypeError(f"given {text!r}, allowed {', '.join(allowed)}")
    return int(text)


def _symbol(text: str) -> tuple[str, int]:
    name, equals, value = text.partition("=")
    try:
        number = int(value, 0)
    except ValueError:
        equals = ""
    if not equals or not name.isidentifier():
        raise argparse.ArgumentTypeError(f"given {text!r}, allowed NAME=INTEGER")
    return name, number


def _add_dim(parser: argparse.ArgumentParser) -> None:
    sizes = ", ".join(map(str, ARRAY_DIMS))
    parser.add_argument(
        "--array-dim", type=_dim, default=16, metavar="N", help=f"edge of the array: {sizes} (16)"
    )


def _add_cache(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--cache",
        choices=PLACES,
        default="auto",
        help="place of the K/V cache: sram, memory, or auto, the SRAM if that costs nothing (auto)",
    )


def _add_latency(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--latency", type=_latency, default=40, metavar="N", help="of the memory, in cycles (40)"
    )


def _add_prompt(
    parser: argparse.ArgumentParser, tokens: int, kind: Callable[[str], int], rule: str
) -> None:
    parser.add_argument("model", metavar="MODEL", help=MODEL)
    parser.add_argument("--prompt", required=True, metavar="TEXT", help="the text to go on with")
    parser.add_argument(
        "--tokens", type=kind, default=tokens, metavar="N", help=f"tokens at most{rule} ({tokens})"
    )


def _add_generate(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Go on with a text: the model is quantised, compiled and run on the simulated chip, which "
        "picks the tokens itself (greedy) or leaves the choice to the host (sampling). Then every "
        "token, and every logit that was sampled from, is compared with the integer network. Text "
        "goes to standard output, progress and figures to standard error; "
        "build/reports/generate.json has both."
    )
    _add_prompt(parser, 48, _count, "")
    parser.add_argument(
        "--temperature", type=float, default=0.0, metavar="T", help="of sampling; 0 is greedy (0)"
    )
    parser.add_argument(
        "--top-k", type=_number, default=0, metavar="K", help="of sampling; 0 is all (0)"
    )
    parser.add_argument("--seed", type=_number, default=1, metavar="N", help="of sampling (1)")
    _add_cache(parser)
    _add_latency(parser)
    _add_dim(parser)


def _generate(arguments: argparse.Namespace) -> int:
    """Generate text on the simulated chip and compare it with golden."""
    console = _watched()
    request = generate.Request(
        prompt=arguments.prompt,
        tokens=arguments.tokens,
        temperature=arguments.temperature,
        top_k=arguments.top_k,
        seed=arguments.seed,
        latency=arguments.latency,
        cache=arguments.cache,
    )
    generate.check_sampling(request)
    limits = Limits(array_dim=arguments.array_dim)
    text = request.prompt, request.tokens
    loaded = load(arguments.model, limits, request.cache, console, text)
    generate.check_request(loaded, request)
    configuration = _built(arguments.array_dim)
    report = generate.run(loaded, request, configuration, console)
    console.print(generate.table(loaded, report))
    _save(REPORTS / "generate.json", generate.record(loaded, request, report), console)
    return 1 if report.mismatch else 0


def _add_profile(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Run a prompt and some tokens on the simulated chip, each step by itself, and say where "
        "the cycles of the last step went: by part of the model, by engine, and what the engines "
        "waited for. build/reports/profile gets timelines for ui.perfetto.dev (prompt.json, "
        "step.json), pictures (step.png, roofline.png) and all figures (profile.json)."
    )
    _add_prompt(parser, 4, _steps, ", 2 or more")
    _add_cache(parser)
    _add_latency(parser)


def _profile(arguments: argparse.Namespace) -> int:
    """Show where the cycles of a decode step go."""
    console = _watched()
    profile.require_pictures()
    text = arguments.prompt, arguments.tokens
    loaded = load(arguments.model, Limits(), arguments.cache, console, text)
    profile.check_request(loaded, arguments.prompt, arguments.tokens)
    configuration = _built(Limits().array_dim)
    latency = arguments.latency
    found = profile.run(loaded, arguments.prompt, arguments.tokens, latency, configuration, console)
    last = found.passes[-1]
    console.print(profile.passes_table(found.passes))
    console.print(profile.parts_table(loaded, last))
    console.print(profile.engines_table(last))
    with step("drawing", console=console):
        written = profile.write(loaded, found, latency)
    console.print(f"RTL = golden: {found.mismatch or 'yes, every token'}", highlight=False)
    for path in written:
        console.print(f"written: {path.relative_to(ROOT)}", highlight=False)
    _save(profile.FOLDER / "profile.json", profile.record(loaded, found), console)
    return 1 if found.mismatch else 0


def _add_compile(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Quantise and compile a model into one packed file: parameter stream, tables, and all that "
        "a host needs to make programs from it. The texts of its programs are written beside it."
    )
    parser.add_argument("model", metavar="MODEL", help=MODEL)
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE", help="to write")
    parser.add_argument(
        "--rows", type=_count, metavar="N", help="also the program for a prompt of N tokens"
    )
    _add_cache(parser)
    _add_dim(parser)


def _compile(arguments: argparse.Namespace) -> int:
    """Compile a model into a packed file and program texts."""
    files.check_output(arguments.output)
    limits = Limits(array_dim=arguments.array_dim)
    loaded = load(arguments.model, limits, arguments.cache, _watched())
    written = compiled.write(loaded.compiled, arguments.output, arguments.rows)
    _printed().print(compiled.written_table(written))
    return 0


def _add_inspect(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Say what a file or folder holds; its content decides, not its name. A checkpoint (folder "
        "or hub id): dimensions, tensors, parameters, scales. A packed file: what is in it, and "
        "the bytes of each layer. A program (text or words): instructions, barriers, SRAM, stream."
    )
    parser.add_argument("what", metavar="WHAT", help="a folder, a hub id or a file")
    parser.add_argument("--listing", action="store_true", help="print the instructions as well")
    _add_dim(parser)


def _inspect(arguments: argparse.Namespace) -> int:
    """Say what a checkpoint, a packed file or a program holds."""
    limits = Limits(array_dim=arguments.array_dim)
    inspect.show(arguments.what, limits, arguments.listing, _printed())
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
    _add_dim(parser)


def _asm(arguments: argparse.Namespace) -> int:
    """Assemble a program text into words."""
    limits = Limits(array_dim=arguments.array_dim)
    output = programs.output_of(arguments.file, arguments.output)
    words = programs.assemble_file(arguments.file, dict(arguments.define), limits)
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
    _add_dim(parser)


def _disasm(arguments: argparse.Namespace) -> int:
    """Turn words back into a program text."""
    text = programs.disassemble_file(arguments.file, Limits(array_dim=arguments.array_dim))
    if arguments.output is None:
        sys.stdout.write(text)
    else:
        files.write(arguments.output, text)
    return 0


def _watched() -> Console:
    """Return where progress and figures beside the output go."""
    return Console(stderr=True, width=None if sys.stderr.isatty() else WIDTH)


def _printed() -> Console:
    """Return where tables that are the output go."""
    return Console(width=None if sys.stdout.isatty() else WIDTH)


def _built(array_dim: int) -> build.Configuration:
    configuration = build.Configuration(array_dim=array_dim)
    build.generate()
    build.build(configuration)
    return configuration


def _save(path: Path, record: dict[str, Any], console: Console) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    console.print(f"record: {path.relative_to(ROOT)}", highlight=False)
