# SPDX-License-Identifier: Apache-2.0
"""The command `npu fpga`: a chip on an FPGA board, from the self test to the bitstream."""

from __future__ import annotations

import argparse
import asyncio
from contextlib import AbstractContextManager
from pathlib import Path

from dev import yosys
from dev.fpga import boards, flow, fpga_report, simulation
from dev.fpga.self_test import WIDTHS, BlockRun, MicroGpt, run_block, run_microgpt
from npu.commands import progress
from npu.commands.arguments import AddCommand, UsageError
from npu.driver.errors import DeviceError, RequestError
from npu.driver.serial_bus import SerialBus
from spec.paths import ROOT
from tb.run import build, verilator

BAD_INPUT = (
    UsageError,
    boards.BoardError,
    build.BuildError,
    verilator.VerilatorError,
    yosys.SynthesisError,
    DeviceError,
    RequestError,
)
"""What a user can cause, or a tool or a board; the text is what to print."""


def _on(
    board: boards.Board, bus: AbstractContextManager[SerialBus]
) -> tuple[BlockRun, list[MicroGpt]]:
    """Run everything on a board, say how it went."""
    microgpts = []
    with bus as open_bus:
        block = asyncio.run(run_block(open_bus, board.limits))
        print(block, flush=True)
        for width in WIDTHS if block.passed else ():
            one = asyncio.run(run_microgpt(open_bus, board.limits, width))
            at = fpga_report.tokens(board.megahertz, one.mean)
            print(
                f"microGPT {width} wide: {one.mean:,} cycles a token, {at} tokens/s at "
                f"{board.megahertz} MHz",
                flush=True,
            )
            microgpts.append(one)
    return block, microgpts


def _fpga(arguments: argparse.Namespace) -> int:
    """Test a chip on a board over its serial port, simulated or real; make its bitstream."""
    board = boards.named(arguments.config)
    if arguments.port and arguments.page:
        raise UsageError("--page: given with --port, allowed for the simulated board only")
    if arguments.self_test and (arguments.page or arguments.unrouted):
        name = "--page" if arguments.page else "--unrouted"
        raise UsageError(f"{name}: given with --self-test, allowed without")
    if arguments.port:
        block, _ = _on(board, simulation.real(Path(arguments.port), board.memory_bytes, board.baud))
        return 0 if block.passed else 1
    if not arguments.self_test and (lacks := flow.missing()) is not None:
        raise UsageError(f"fpga: {lacks}")
    build.generate()
    binary = simulation.build_board(board)
    block, microgpts = _on(board, simulation.simulated(binary, board.memory_bytes))
    if arguments.self_test or not block.passed:
        return 0 if block.passed else 1
    with progress.step(f"mapping {board.name} by module (5 minutes)"):
        modules = flow.modules(board)
    whole = modules[0]
    print(
        f"{board.name} needs {whole.lut4:,} LUT4, {whole.ff:,} FF, {whole.multipliers} "
        f"multipliers, {whole.block_rams} block RAMs",
        flush=True,
    )
    with progress.step(f"mapping {board.name} for the placer (5 minutes)"):
        flow.netlist(board)
    with progress.step(f"placing {board.name} (half an hour)"):
        placed = flow.placed(board)
    path: list[str] = []
    size = 0
    if not arguments.unrouted:
        with progress.step(f"routing {board.name} (an hour)"):
            placed = flow.routed(board)
        path = flow.timing(board)
        made = flow.bitstream(board)
        size = made.stat().st_size
        print(f"{made.relative_to(ROOT)}: {size:,} bytes", flush=True)
    report = fpga_report.FpgaReport(
        board, block, tuple(microgpts), modules, placed, tuple(path), size
    )
    print("\n".join([*path, fpga_report.clock_line(report)]))
    fpga_report.save(report)
    if arguments.page:
        fpga_report.write_page(report)
    return 0


def add_commands(command: AddCommand) -> None:
    """Add the command to the parser of `npu`."""
    parser = command("fpga", _fpga)
    parser.add_argument(
        "--config", default=boards.USUAL.name, help=f"board: {', '.join(boards.BOARDS)}"
    )
    parser.add_argument(
        "--port", default="", help="serial port of a real board: only run the self test there"
    )
    parser.add_argument(
        "--self-test", action="store_true", help="only the self test, on the simulated board"
    )
    parser.add_argument("--unrouted", action="store_true", help="stop when it is placed")
    parser.add_argument("--page", action="store_true", help="write docs/fpga.md")
