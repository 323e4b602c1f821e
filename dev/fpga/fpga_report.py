# SPDX-License-Identifier: Apache-2.0
"""What `make fpga` found: build/reports/fpga.json, lines on a screen, and docs/fpga.md."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from dev import ecp5, marked_page
from dev.fpga import boards
from dev.fpga.flow import Placed
from dev.fpga.self_test import BlockRun, MicroGpt
from spec.paths import BUILD, ROOT

REPORT = BUILD / "reports" / "fpga.json"
PAGE = ROOT / "docs" / "fpga.md"
CHIP = "npu_top"
NO_BITSTREAM = "There is no bitstream: the router has not come to its end."


@dataclass(frozen=True)
class Published:
    """A microGPT of someone else on a board.

    Attributes:
        name: of the project.
        board: that it ran on, and its clock.
        width: of its residual stream.
        numbers: its format.
        first, mean, last: tokens a second of the first token, of a text, and of the last token, as
            it says; None where it does not.
    """

    name: str
    board: str
    width: int
    numbers: str
    first: int | None
    mean: int | None
    last: int | None


PUBLISHED = (
    Published(
        "[TALOS-V2](https://github.com/Luthiraa/TALOS-V2)",
        "DE1-SoC, Cyclone V, 56.25 MHz",
        16,
        "Q4.12",
        None,
        53_000,
        None,
    ),
    Published(
        "[gateGPT](https://github.com/fguzman82/gateGPT), first on its board",
        "XUPV5, Virtex-5, 80 MHz",
        24,
        "Q5.11",
        56_022,
        None,
        None,
    ),
    Published(
        "gateGPT, final",
        "XUPV5, Virtex-5, 80 MHz",
        24,
        "Q5.11",
        69_204,
        60_600,
        53_800,
    ),
)


@dataclass(frozen=True)
class FpgaReport:
    """What was found of a board.

    Attributes:
        board: of `boards.BOARDS`.
        block: its self test.
        microgpts: what wrote tokens.
        modules: what it needs of the device by module, itself first.
        placed: its clock, routed or not.
        path: its slowest path, routed.
        bitstream: bytes of it, 0 for none.
    """

    board: boards.Board
    block: BlockRun
    microgpts: tuple[MicroGpt, ...]
    modules: tuple[ecp5.MappedModule, ...]
    placed: Placed
    path: tuple[str, ...]
    bitstream: int


def save(report: FpgaReport, path: Path = REPORT) -> None:
    """Write all figures as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(asdict(report), indent=1) + "\n", encoding="utf-8")


def tokens(megahertz: float, cycles: int) -> str:
    """Return tokens a second at so many cycles each, with three digits that count."""
    return f"{int(float(f'{megahertz * 1e6 / cycles:.3g}')):,}"


def clock_line(report: FpgaReport) -> str:
    """Return what the placer or the router says of a board's clock."""
    placed, board = report.placed, report.board
    word = "routed" if placed.routed else "placed, with wires estimated and not yet routed"
    return (
        f"array {board.array_dim} is {word}: {placed.megahertz:.1f} MHz, "
        f"{placed.comb:,} of {boards.DEVICE.lut4:,} LUTs"
    )


def _table(heads: Sequence[str], left: int, rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * left + ["---:"] * (len(heads) - left), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def modules_table(report: FpgaReport) -> str:
    """Return what the board needs by module, largest first, and what the device has."""
    by_name = {one.module: _cells(one) for one in report.modules}
    whole, chip = by_name[boards.INNER], by_name[CHIP]
    around = [f"{all_ - inner:,}" for all_, inner in zip(whole, chip, strict=True)]
    rows = [(one.module, *(f"{number:,}" for number in _cells(one))) for one in report.modules]
    has = boards.DEVICE
    # Each LUT has a flip-flop beside it.
    device = [f"{number:,}" for number in (has.lut4, has.lut4, has.multipliers, has.block_rams)]
    rows += [("memory, bridge and UART", *around), ("the device has", *device)]
    return _table(("module", "LUT4", "FF", "multipliers", "block RAM"), 1, rows)


def _cells(one: ecp5.MappedModule) -> tuple[int, int, int, int]:
    return one.lut4, one.ff, one.multipliers, one.block_rams


def microgpt_table(report: FpgaReport) -> str:
    """Return tokens a second of the microGPTs, and of those that others have published."""
    clock = report.placed.megahertz
    word = "routed" if report.placed.routed else "placed"
    rows = [
        (
            "Tessera",
            f"ECP5-85, array {report.board.array_dim}, {clock:.1f} MHz {word}",
            str(one.width),
            "int8, int16 residual",
            f"{one.mean:,}",
            *(tokens(clock, cycles) for cycles in (one.first, one.mean, one.last)),
        )
        for one in report.microgpts
    ]
    rows += [
        (
            one.name,
            one.board,
            str(one.width),
            one.numbers,
            "",
            *(
                "" if number is None else f"{number:,}"
                for number in (one.first, one.mean, one.last)
            ),
        )
        for one in PUBLISHED
    ]
    heads = ("chip", "board and clock", "width", "numbers", "cycles a token")
    return _table((*heads, "first token/s", "mean", "last"), 4, rows)


def page(text: str, report: FpgaReport) -> str:
    """Return docs/fpga.md with what was found."""
    path = "".join(f"{line}\n" for line in report.path)
    bits = f"The bitstream has {report.bitstream:,} bytes." if report.bitstream else NO_BITSTREAM
    if report.placed.routed:
        spare = report.placed.megahertz - report.board.megahertz
        bits += (
            f" Its PLL makes {report.board.megahertz} MHz, {abs(spare):.2f} MHz "
            f"{'less' if spare >= 0 else 'more'} than the\n"
            "slowest path allows where the device is slowest."
        )
    slowest = f"\nIts slowest path:\n\n```text\n{path}```\n" if path else ""
    parts = {
        "selftest": lambda: f"\n```text\n{report.block}\n```\n\n",
        "clock": lambda: f"\nThe board with {clock_line(report)}.\n\n{bits}\n{slowest}\n",
        "modules": lambda: f"\n{modules_table(report)}\n",
        "microgpt": lambda: f"\n{microgpt_table(report)}\n",
    }
    return marked_page.fill(text, PAGE, parts)


def write_page(report: FpgaReport) -> None:
    """Write what was found into docs/fpga.md."""
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), report), encoding="utf-8")
