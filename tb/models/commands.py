# SPDX-License-Identifier: Apache-2.0
"""The commands of `npu` that work with whole models."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable

from rich.console import Console

from npu.compiler import CompileError
from npu.compiler.model import Place
from npu.driver.generate import PromptError
from npu.driver.sampling import SamplingError
from npu.isa.operands import Limits
from tb import build
from tb.knobs import LATENCY_MAX
from tb.models import generate
from tb.models.load import load
from tb.models.simulate import SimulationError
from tb.paths import REPORTS, ROOT
from weights.calibrate import ScalesError
from weights.checkpoint import CheckpointError
from weights.tokenizer import TokenizerError

BAD_INPUT = (
    CheckpointError,
    ScalesError,
    TokenizerError,
    CompileError,
    PromptError,
    SamplingError,
    SimulationError,
)
"""What a user can cause; each says in one line what was given and what is allowed."""
INTERRUPTED = 130
"""Exit status after Ctrl-C, as shells have it."""
PLACES: tuple[Place, ...] = ("auto", "sram", "memory")


def add_commands(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the commands to the parser of `npu`; `command(name, function)` returns a new parser."""
    _add_generate(command("generate", _generate))


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


def _dim(text: str) -> int:
    if text not in ("8", "16", "32"):
        raise argparse.ArgumentTypeError(f"given {text!r}, allowed 8, 16, 32")
    return int(text)


def _add_generate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="a Hugging Face folder, or a hub id")
    parser.add_argument("--prompt", required=True, help="the text to go on with")
    parser.add_argument("--tokens", type=_count, default=48, help="tokens at most (48)")
    parser.add_argument(
        "--temperature", type=float, default=0.0, help="0: greedy, by the chip alone (0)"
    )
    parser.add_argument("--top-k", type=_number, default=0, help="of sampling; 0 = all (0)")
    parser.add_argument("--seed", type=_number, default=1, help="of sampling (1)")
    parser.add_argument(
        "--latency", type=_latency, default=40, help="of the memory, in cycles (40)"
    )
    parser.add_argument("--cache", choices=PLACES, default="auto", help="place of the K/V cache")
    parser.add_argument("--array-dim", type=_dim, default=16, help="8, 16 or 32 (16)")


def _generate(arguments: argparse.Namespace) -> int:
    """Generate text on the simulated chip and compare it with golden."""
    console = Console(stderr=True)
    request = generate.Request(
        prompt=arguments.prompt,
        tokens=arguments.tokens,
        temperature=arguments.temperature,
        top_k=arguments.top_k,
        seed=arguments.seed,
        latency=arguments.latency,
        cache=arguments.cache,
    )
    limits = Limits(array_dim=arguments.array_dim)
    loaded = load(arguments.model, limits, request.cache, console)
    generate.check_request(loaded, request)
    configuration = build.Configuration(array_dim=arguments.array_dim)
    with console.status("building the simulator"):
        build.generate()
        build.build(configuration)
    report = generate.run(loaded, request, configuration, console)
    console.print(generate.table(loaded, report))
    REPORTS.mkdir(parents=True, exist_ok=True)
    path = REPORTS / "generate.json"
    path.write_text(json.dumps(generate.record(loaded, request, report), indent=1) + "\n")
    console.print(f"record: {path.relative_to(ROOT)}")
    return 1 if report.mismatch else 0
