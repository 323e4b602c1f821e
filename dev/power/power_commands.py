# SPDX-License-Identifier: Apache-2.0
"""The command `npu power`: energy of a token by engine and format, of a MAC, of an idle row."""

from __future__ import annotations

import argparse
from pathlib import Path

from dev import synth, yosys
from dev.power import engines, measure, report, token
from npu import optional
from npu.commands import progress
from npu.commands.arguments import AddCommand, UsageError, add_config, names_in
from spec.configurations import USUAL
from tb.run import build, verilator

BAD_INPUT = (UsageError, yosys.SynthesisError, build.BuildError, verilator.VerilatorError)
"""What a user can cause, or a tool; the text is what to print."""


def _power(arguments: argparse.Namespace) -> int:
    """Measure the energy of a token by engine, of a MAC, of an idle row; reports/power.json."""
    names = names_in(arguments.blocks)
    blocks = synth.chosen(names, [engine.block for engine in engines.ENGINES])
    model = Path(arguments.model).name
    if model not in token.MODELS:
        raise UsageError(f"--model: given {model!r}, allowed {', '.join(token.MODELS)}")
    words = names_in(arguments.weights)
    for word in words:
        if word not in token.FORMATS:
            raise UsageError(f"--weights: given {word!r}, allowed {', '.join(token.FORMATS)}")
    if arguments.chip not in (None, USUAL):
        raise UsageError(f"--config: given {arguments.chip.name!r}, allowed {USUAL.name}")
    if (names or model != token.MODELS[0]) and arguments.page:
        raise UsageError(f"--page: given a part, allowed all engines of {token.MODELS[0]}")
    if (lacks := optional.missing("synth", *optional.GATES)) is not None:
        raise UsageError(f"power: {lacks}")
    print(f"yosys {yosys.tool_version()}", flush=True)
    build.generate()
    found = report.PowerReport(model, {word: token.run(model, word) for word in words})
    toggles = {word: measure.toggles_of(one) for word, one in found.tokens.items()}
    found.stated = {word: measure.stated(one, toggles[word]) for word, one in found.tokens.items()}
    for engine in engines.ENGINES:
        if engine.block in blocks:
            with progress.step(f"netlist and power of {engine.name}"):
                found.engines.append(measure.engine_figures(engine, toggles))
    if not names:
        with progress.step("a row of the array, under Gaussian activations and idle"):
            found.row = measure.row()
        report.save(found)
    print(report.render(found))
    if arguments.page:
        report.write_page(found)
    worse = found.worse()
    for line in worse:
        print(line)
    print(f"{len(found.engines)} engines, {len(found.tokens)} tokens, {len(worse)} bars missed")
    return 1 if worse else 0


def add_commands(command: AddCommand) -> None:
    """Add the command to the parser of `npu`."""
    parser = command("power", _power)
    parser.add_argument("blocks", nargs="?", default="", help="engines, comma list; default all")
    parser.add_argument("--model", default=token.MODELS[0], help=", ".join(token.MODELS))
    parser.add_argument(
        "--weights", default="int8,int4g32", metavar="FORMATS", help="of the token, comma list"
    )
    add_config(parser, None)
    parser.add_argument("--page", action="store_true", help="write docs/energy.md")
