# SPDX-License-Identifier: Apache-2.0
"""The command `npu lockstep`: the netlist of the smallest chip beside its RTL."""

from __future__ import annotations

import argparse

from dev import icarus, lockstep, yosys
from dev.regression import tree
from npu import optional
from npu.commands import progress
from npu.commands.arguments import AddCommand, UsageError, names_in, positive
from tb.run import build, registry
from tb.run.requests import chips_of, chosen_tests
from tb.run.verilator import VerilatorError

BAD_INPUT = (
    UsageError,
    VerilatorError,
    build.BuildError,
    registry.UnknownTestError,
    yosys.SynthesisError,
)
"""What a user can cause, or a tool; the text is what to print."""


def _lockstep(arguments: argparse.Namespace) -> int:
    """Run tests on RTL and netlist of array 4 side by side; compare every output in every cycle."""
    names = names_in(arguments.tests)
    chips_of(chosen_tests(names or lockstep.RUNS, lockstep.CHIP), lockstep.CHIP)
    print(f"yosys {yosys.tool_version()}", flush=True)
    build.generate()
    netlist = lockstep.write_netlist_of_chip()
    model = lockstep.prepared(lockstep.with_faults(netlist.named))
    build.build(model)
    runs = []
    for name in names or lockstep.RUNS:
        found = lockstep.compare(model, name, arguments.seed)
        print(found, flush=True)
        runs.append(found)
    different = sum(not found.same for found in runs)
    if names:
        return 1 if different else 0
    seen = [fault.difference for fault in lockstep.faults_seen(model)]
    for difference in seen:
        print(f"planted {difference}")
    print(f"{len(seen)} of {lockstep.FAULTS} planted faults seen, at least {lockstep.LEAST_SEEN}")
    said = ""
    if (lacks := optional.missing(icarus.PACKAGE)) is not None:
        print(f"no program on the netlist in Icarus: {lacks}")
    else:
        with progress.step("running a program on the netlist in Icarus (1 minute)"):
            said = str(icarus.run(netlist.short, lockstep.FOLDER / "icarus"))
        print(f"Icarus: {said}")
    lockstep.LockstepReport(
        tree.read(tree.DESIGN).digest,
        lockstep.CHIP.name,
        [found.run for found in runs],
        lockstep.FAULTS,
        len(seen),
        said,
    ).write()
    return 1 if different or len(seen) < lockstep.LEAST_SEEN else 0


def add_commands(command: AddCommand) -> None:
    """Add the command to the parser of `npu`."""
    parser = command("lockstep", _lockstep)
    parser.add_argument(
        "tests",
        nargs="?",
        default="",
        help="names, comma list; default a block of GPT-2 and random programs, then planted faults "
        "and a program in Icarus",
    )
    parser.add_argument("--seed", type=positive, default=1, help="of all random choices")
