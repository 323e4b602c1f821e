# SPDX-License-Identifier: Apache-2.0
"""The command `npu timing`: levels of logic against bars, gates, clocks on an FPGA."""

from __future__ import annotations

import argparse

from dev import ecp5, gates, synth, timing, timing_report, yosys
from npu.commands.arguments import AddCommand, UsageError, names_in, positive
from tb.run import build

BAD_INPUT = (UsageError, yosys.SynthesisError, build.BuildError)
"""What a user can cause, or a tool; the text is what to print."""


def _timing(arguments: argparse.Namespace) -> int:
    """Count levels of logic in blocks and whole chips, against bars; build/reports/timing.json."""
    names = names_in(arguments.blocks)
    chosen = synth.chosen(names, timing.BLOCKS)
    raised = names_in(arguments.raised)
    synth.chosen(raised, timing.BLOCKS)
    if names and arguments.page:
        raise UsageError(f"--page: given {arguments.blocks!r}, allowed for all blocks only")
    if (raised or arguments.release) and not arguments.page:
        raise UsageError("--raise, --release: given alone, allowed with --page")
    if arguments.ecp5:
        allowed = (timing.SMALLEST.name, *timing.ON_ECP5)
        if other := [name for name in names if name not in allowed]:
            raise UsageError(f"--ecp5: given {', '.join(other)}, allowed {', '.join(allowed)}")
        if lacks := ecp5.missing():
            raise UsageError(f"--ecp5: {lacks}")
    build.generate()
    print(f"yosys {yosys.tool_version()}")

    def say(line: str) -> None:
        print(line, flush=True)

    results, refused = synth.run(chosen, arguments.jobs, say, timing.measure)
    mapped: list[gates.Gates] = []
    lacks = gates.missing()
    if lacks is None:
        wanted = [block.name for block in chosen if block.name in timing.IN_GATES]
        if wanted:
            blocks = synth.chosen([gates.ROW, *wanted], timing.BLOCKS)
            mapped, unmapped = synth.run(blocks, arguments.jobs, say, gates.measure)
            refused += unmapped
    device = None
    if arguments.ecp5:
        chips, unmapped = synth.run(
            [block for block in chosen if block == timing.SMALLEST], 1, say, ecp5.map_chip
        )
        clocks, unplaced = synth.run(
            [block for block in chosen if block.name in timing.ON_ECP5],
            arguments.jobs,
            say,
            ecp5.clock,
        )
        refused += unmapped + unplaced
        device = ecp5.Ecp5Report(chips[0].modules if chips else (), tuple(clocks))

    print(timing_report.render(results, mapped))
    if lacks is not None:
        print(f"no column of gates: {lacks}")
    if device is not None:
        print(timing_report.render_ecp5(device))
    if not names:
        timing_report.save(results, mapped, device)
    if arguments.page and not refused:
        timing.write_bars(timing.lowered(results, timing.bars(), raised))
        timing_report.write_page(results, mapped, device, arguments.release)
    worse = timing.worse(results, timing.bars())
    if not refused:
        worse += gates.slow(mapped)
        worse += ecp5.slow(device.clocks if device else ())
    for line in worse:
        print(line)
    print(f"{len(results)} blocks, {len(refused)} refused, {len(worse)} figures above their bars")
    return 1 if refused or worse else 0


def add_commands(command: AddCommand) -> None:
    """Add the command to the parser of `npu`."""
    parser = command("timing", _timing)
    parser.add_argument("blocks", nargs="?", default="", help="names, comma list; default all")
    parser.add_argument("-j", "--jobs", type=positive, default=1, help="blocks side by side")
    parser.add_argument(
        "--ecp5", action="store_true", help="the smallest chip on an ECP5, and clocks of blocks"
    )
    parser.add_argument(
        "--page", action="store_true", help="write docs/timing.md, and lower the bars"
    )
    parser.add_argument(
        "--raise", dest="raised", default="", metavar="BLOCKS", help="bars to raise; comma list"
    )
    parser.add_argument("--release", metavar="NAME", help="a row of the history on the page")
