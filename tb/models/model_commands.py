# SPDX-License-Identifier: Apache-2.0
"""The commands of `npu` that run models on the simulated chip."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console

from golden.decoder import forward_rows
from npu.commands.arguments import (
    MODEL,
    AddCommand,
    add_accept_loss,
    add_cache,
    add_config,
    add_weights,
    whole_from,
)
from npu.commands.consoles import watched
from npu.commands.load_model import BAD_MODEL, Loaded, load
from npu.commands.progress import step
from npu.driver.sampling import SamplingError
from spec.configurations import USUAL, ChipParameters
from spec.isa.operands import Limits
from spec.paths import REPORTS, ROOT
from tb.bench.knobs import LATENCY_MAX
from tb.models import generate, profile
from tb.models.simulate_generation import SimulationError
from tb.run import build
from tb.run.verilator import VerilatorError

BAD_INPUT = (
    *BAD_MODEL,
    SamplingError,
    SimulationError,
    VerilatorError,
    build.BuildError,
    profile.PictureError,
)
"""What a user can cause; each says in one line what was given and what is allowed."""


def add_commands(command: AddCommand) -> None:
    """Add the commands to the parser of `npu`."""
    _add_generate(command("generate", _generate))
    _add_profile(command("profile", _profile))


def _add_latency(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--latency",
        type=whole_from(1, LATENCY_MAX),
        default=40,
        metavar="N",
        help="of the memory, in cycles (40)",
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
    _add_prompt(parser, 48, whole_from(1), "")
    parser.add_argument(
        "--temperature", type=float, default=0.0, metavar="T", help="of sampling; 0 is greedy (0)"
    )
    parser.add_argument(
        "--top-k", type=whole_from(0), default=0, metavar="K", help="of sampling; 0 is all (0)"
    )
    parser.add_argument(
        "--seed", type=whole_from(0), default=1, metavar="N", help="of sampling (1)"
    )
    add_weights(parser)
    add_accept_loss(parser)
    add_cache(parser)
    _add_latency(parser)
    add_config(parser)


def _generate(arguments: argparse.Namespace) -> int:
    """Generate text on the simulated chip and compare it with golden."""
    console = watched()
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
    limits = arguments.chip.limits
    loaded = _loaded(arguments, limits, console)
    generate.check_request(loaded, request)
    configuration = _built(arguments.chip)
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
    _add_prompt(parser, 4, whole_from(2), ", 2 or more")
    add_weights(parser)
    add_accept_loss(parser)
    add_cache(parser)
    _add_latency(parser)


def _profile(arguments: argparse.Namespace) -> int:
    """Show where the cycles of a decode step go."""
    console = watched()
    loaded = _loaded(arguments, Limits(), console)
    profile.check_request(loaded, arguments.prompt, arguments.tokens)
    profile.require_pictures()
    configuration = _built(USUAL)
    latency = arguments.latency
    found = profile.run(loaded, arguments.prompt, arguments.tokens, latency, configuration, console)
    last = found.passes[-1]
    console.print(profile.passes_table(found.passes))
    console.print(profile.parts_table(loaded, last))
    console.print(profile.engines_table(last))
    with step("drawing", console=console):
        written = profile.write(loaded, found, latency)
    console.print(f"integers: {loaded.loss}", highlight=False)
    console.print(f"RTL = golden: {found.mismatch or 'yes, every token'}", highlight=False)
    for path in written:
        console.print(f"written: {path.relative_to(ROOT)}", highlight=False)
    _save(profile.FOLDER / "profile.json", profile.record(loaded, found), console)
    return 1 if found.mismatch else 0


def _loaded(arguments: argparse.Namespace, limits: Limits, console: Console) -> Loaded:
    return load(
        arguments.model,
        limits,
        arguments.cache,
        console,
        (arguments.prompt, arguments.tokens),
        arguments.weights,
        integers=forward_rows,
        accept_loss=arguments.accept_loss,
    )


def _built(chip: ChipParameters) -> build.Configuration:
    configuration = build.Configuration(chip=chip)
    build.generate()
    build.build(configuration)
    return configuration


def _save(path: Path, record: dict[str, Any], console: Console) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    console.print(f"record: {path.relative_to(ROOT)}", highlight=False)
