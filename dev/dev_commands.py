# SPDX-License-Identifier: Apache-2.0
"""The commands of `npu` for developers: cop-sweep, faults, synth, formal, quality, lint."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

from dev import faults, formal, lint, proofs, quality_folder, quality_pages, rtl_sizes, synth, yosys
from npu.commands import build_folder
from npu.commands.arguments import AddCommand, UsageError, add_weights, names_in, positive
from npu.commands.consoles import printed
from npu.commands.files import FileError
from npu.commands.load_model import BAD_MODEL
from spec.configurations import USUAL
from spec.paths import ROOT
from tb.cop_datapath import model, sweep
from tb.run import build, registry, sources
from tb.run.requests import add_common, check_simulator
from tb.run.verilator import VerilatorError

BAD_INPUT = (
    *BAD_MODEL,
    FileError,
    UsageError,
    VerilatorError,
    build.BuildError,
    faults.FaultError,
    model.DatapathError,
    registry.UnknownTestError,
    yosys.SynthesisError,
)
"""What a user can cause, or a tool; the text is what to print."""


def _faults(arguments: argparse.Namespace) -> int:
    """Plant each fault of faults/ in the RTL; its test must notice; build/reports/faults.json."""
    check_simulator(arguments.sim)
    chosen = faults.discover()
    names = names_in(arguments.faults)
    unknown = set(names) - {fault.name for fault in chosen}
    if unknown:
        raise UsageError(f"no fault is called {', '.join(sorted(unknown))}; see faults/")
    if names:
        chosen = [fault for fault in chosen if fault.name in names]
    build.generate()

    started = time.monotonic()
    verdicts = faults.run_all(
        chosen,
        arguments.chip or USUAL,
        arguments.seed,
        arguments.jobs,
        lambda line: print(line, flush=True),
    )
    faults.write_report(verdicts)
    missed = [verdict for verdict in verdicts if not verdict.noticed]
    for verdict in missed:
        print(verdict)
    minutes = (time.monotonic() - started) / 60
    print(f"{len(verdicts) - len(missed)} of {len(verdicts)} faults noticed in {minutes:.1f} min")
    return 1 if missed else 0


def _synth(arguments: argparse.Namespace) -> int:
    """Synthesise the blocks; print what each uses and write build/reports/synth.json."""
    names = names_in(arguments.blocks)
    chosen = synth.chosen(names, synth.BLOCKS)
    build.generate()
    print(f"yosys {yosys.tool_version()}")
    synth.check_planted()
    print(f"{len(synth.PLANTED)} planted faults are refused, a known module is counted right")
    proofs.check()
    print(
        f"{len(proofs.OUTPUTS)} proofs of the arithmetic hold, "
        f"{len(proofs.PLANTED)} planted faults are refuted; "
        f"{'.'.join(proofs.REGISTERED)} is a register's, and a result within the cycle is found"
    )
    results, refused = synth.run(
        chosen, arguments.jobs, lambda line: print(line, flush=True), synth.synthesise
    )
    rows = [asdict(figures) for figures in results]
    print(synth.render(rows))
    figures = {row["block"]: row for row in rows}
    larger = synth.too_large(figures)
    for block, share in synth.SHARES.items():
        if {block, share.of} <= figures.keys():
            verdict = "FAIL" if block in larger else "ok  "
            print(f"{verdict} {synth.share_text(block, figures)}")
    refused += larger
    if arguments.page and not refused:
        synth.write_page(rows)
        rtl_sizes.write()
    if names:
        return 1 if refused else 0
    synth.save(results)
    covered = {module for figures in results for module in figures.modules}
    missing = synth.uncovered(covered, sources.rtl_sources())
    for path in missing:
        print(f"in no block: {path.relative_to(ROOT)}")
    print(f"{len(results)} blocks synthesised, {len(refused)} refused, {len(missing)} files unused")
    return 1 if refused or missing else 0


def _formal(arguments: argparse.Namespace) -> int:
    """Prove rules of control and protocols for all time; build/reports/formal.json."""
    chosen = formal.chosen(names_in(arguments.proofs))
    build.generate()
    print(f"yosys {yosys.tool_version()}, {len(chosen)} proofs")
    print(f"{'proof':32} {'seconds':>7}  verdict")
    verdicts = formal.prove(chosen, arguments.jobs, lambda found: print(found, flush=True))
    if not arguments.proofs:
        formal.write_report(verdicts)
    held = sum(verdict.holds for verdict in verdicts)
    print(f"{held} of {len(verdicts)} proofs hold, and the fault of each is refuted")
    return 1 if held < len(verdicts) else 0


def _cop_sweep(arguments: argparse.Namespace) -> int:
    """Compare the coprocessor's datapath with references; build/reports/cop_sweep.json."""
    names = names_in(arguments.functions) or list(model.FUNCTIONS)
    unknown = [name for name in names if name not in model.FUNCTIONS]
    if unknown:
        allowed = ", ".join(repr(name) for name in model.FUNCTIONS)
        raise UsageError(f"given {unknown[0]!r}, allowed {allowed}")
    build.generate()
    print(sweep.HEAD)
    sweeps = []
    for name in names:
        sweeps.append(sweep.run(name, arguments.sample, arguments.seed, arguments.jobs))
        print(sweeps[-1], flush=True)
    if names == list(model.FUNCTIONS):
        sweep.write_report(sweeps)
    findings = [finding for each in sweeps for finding in each.findings()]
    print("\n".join(findings) or "no result is wrong")
    return 1 if findings else 0


def _quality(arguments: argparse.Namespace) -> int:
    """Compare the integer networks with float32 on held-out text; build/reports/quality.json."""
    if names_model(arguments.models):
        if arguments.publish:
            raise UsageError("--publish: given for a folder, allowed for shipped models")
        tokens = arguments.tokens or quality_folder.TOKENS
        quality_folder.show(arguments.models, arguments.text, tokens, arguments.weights, printed())
        return 0
    if arguments.text is not None or arguments.weights.narrow:
        raise UsageError("--text, --weights: given for shipped models, allowed for a folder")
    names = names_in(arguments.models)
    quality_pages.check_request(names, arguments.tokens, arguments.publish, arguments.tier)
    build_folder.require()
    command = [sys.executable, "-m", "dev.quality", "--tier", arguments.tier]
    command += [f"--{name}" for name in ("debug", "publish") if vars(arguments)[name]]
    command += ["--tokens", str(arguments.tokens)] if arguments.tokens else []
    # Products this small are slower when they are spread over threads.
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    command += names
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


def names_model(text: str) -> bool:
    """Say whether a text names a folder, file or hub id, and no list of shipped models."""
    return "/" in text or (text != "" and Path(text).exists())


def _lint(_: argparse.Namespace) -> int:
    """Check style and types, import rules, generated files."""
    build.generate()
    return lint.run()


def _format(_: argparse.Namespace) -> int:
    """Format SystemVerilog and Python in place."""
    return lint.format_sources()


def _gen(_: argparse.Namespace) -> int:
    """Make the generated files."""
    build.generate(anew=True)
    return 0


def add_commands(command: AddCommand) -> None:
    """Add the commands to the parser of `npu`."""
    fault = command("faults", _faults)
    add_common(fault)
    fault.add_argument("faults", nargs="?", default="", help="names, comma list; default all")
    synthesis = command("synth", _synth)
    synthesis.add_argument("blocks", nargs="?", default="", help="names, comma list; default all")
    synthesis.add_argument("-j", "--jobs", type=positive, default=1, help="blocks side by side")
    synthesis.add_argument(
        "--page",
        action="store_true",
        help="write these figures into docs/synthesis.md and docs/rtl",
    )
    proved = command("formal", _formal)
    proved.add_argument(
        "proofs", nargs="?", default="", help="proofs or checkers, comma list; default all"
    )
    proved.add_argument("-j", "--jobs", type=positive, default=1, help="proofs side by side")
    swept = command("cop-sweep", _cop_sweep)
    swept.add_argument("functions", nargs="?", default="", help="names, comma list; default all")
    swept.add_argument(
        "--sample", type=positive, default=sweep.INPUTS, help="inputs of each; default all 2^32"
    )
    swept.add_argument("--seed", type=positive, default=1, help="of where the sample begins")
    swept.add_argument("-j", "--jobs", type=positive, default=0, help="threads; default all")
    measured = command("quality", _quality)
    measured.description = (
        "Compare integer networks with float32. Of a folder, GGUF file or hub id: bits per byte "
        "of both and the share of equal top-1 tokens, on held-out text or a text of yours; a loss "
        "that an import refuses is an error. Of the shipped models, by name (which needs PyTorch): "
        "against transformers, with bars, on all of the text; build/reports/quality.json."
    )
    measured.add_argument(
        "models",
        nargs="?",
        default="",
        metavar="FOLDER|MODELS",
        help="a folder, a GGUF file or a hub id with a slash; or names of shipped models, comma "
        "list; default all",
    )
    measured.add_argument(
        "--tokens",
        type=positive,
        metavar="N",
        help=f"tokens, at least; default of a folder {quality_folder.TOKENS}, of others all",
    )
    measured.add_argument(
        "--text", type=Path, metavar="FILE", help="for a folder: UTF-8, instead of held-out text"
    )
    add_weights(measured)
    tiers = "smoke: of narrow formats only those with a bar; full (full)"
    measured.add_argument("--tier", default="full", help=tiers)
    measured.add_argument("--publish", action="store_true", help="write the figures of README")
    command("lint", _lint)
    command("format", _format)
    command("gen", _gen)
