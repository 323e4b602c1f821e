# SPDX-License-Identifier: Apache-2.0
"""The tables of docs/integration.md, from the RTL: `python -m dev.integration_page [--check]`.

Ports and their meanings are those of `rtl/npu_top.sv`, bursts and counts the constants of the
modules that issue them, windows those of the register maps.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from dev import marked_page
from spec.configurations import CHIPS
from spec.isa import Engine
from spec.paths import DOCS, RTL
from spec.regs import source

FILE = DOCS / "integration.md"
TOP = RTL / "npu_top.sv"
BUSES = {"s_axil": "s_axil_", "m_axi": "m_axi_", "x": "x_"}
"""Parts of the page with the ports of a bus, and how these begin."""


@dataclass(frozen=True)
class TextPort:
    """A port as it stands in the source: `range` as written, `meaning` its comment."""

    name: str
    direction: str
    range: str
    meaning: str

    @property
    def bits(self) -> str:
        """The cell of a table that says its width."""
        return f"`{self.range}`" if self.range else "1"


_PORT = re.compile(r"^  (input|output) +logic *((?: *\[[^]]+\])*) *(\w+),? *(?://(.*))?$")
_PARAMETER = re.compile(r"^  parameter (?:int unsigned|bit) (\w+) = ([\w']+),? *(?://(.*))?$")


def ports(text: str) -> list[TextPort]:
    """Return the ports of a module.

    A comment belongs to the port beside it or below it, but to neither where it stands behind an
    empty line: there it is about all that follow.

    Args:
        text: the module's source.

    Raises:
        ValueError: a line is none of these.
    """
    head = text.partition("\n) (\n")[2].partition("\n);\n")[0]
    found: list[TextPort] = []
    above: list[str] = []
    empty = False
    for line in head.splitlines():
        if port := _PORT.match(line):
            direction, width, name, beside = port.groups()
            words = [*above, *([beside.strip()] if beside else [])]
            found.append(
                TextPort(name, direction, re.sub(r" +", " ", width).strip(), " ".join(words))
            )
            above = []
        elif line.startswith("  // "):
            if not empty:
                above.append(line[5:])
        elif line:
            raise ValueError(f"{TOP.name}: given {line!r}, allowed ports and comments")
        empty = not line or (empty and line.startswith("  // "))
    return found


def _ports(start: str) -> str:
    found = [port for port in ports(TOP.read_text(encoding="utf-8")) if port.name.startswith(start)]
    rows = [
        f"| `{port.name}` | {port.direction} | {port.bits} | {port.meaning} |\n" for port in found
    ]
    return "| port | | bits | meaning |\n|---|---|---|---|\n" + "".join(rows)


def constant(name: str, file: str) -> int:
    """Return a number that a file of the RTL gives a name.

    Raises:
        ValueError: it does not, or more than once.
    """
    text = (RTL / file).read_text(encoding="utf-8")
    found = re.findall(rf"(?:parameter|localparam) int unsigned {name} = (\d+)\b", text)
    if len(found) != 1:
        raise ValueError(f"{file}: given {name}, allowed a number that stands there once")
    return int(found[0])


def _bursts() -> str:
    """Return what each ID does: beats of a burst, bursts under way."""
    most = constant("MaxBurst", "mem_port/npu_mem_pkg.sv")
    fetch = constant("FetchBurst", "seq/npu_fetch.sv")
    queue = constant("QueueWords", "seq/npu_fetch.sv")
    block = constant("Block", "cop/npu_cop_reader.sv")
    core = constant("MaxOutstanding", "mem_port/npu_axi_read.sv")
    stores = constant("MaxOutstanding", "mem_port/npu_axi_write.sv")
    command = constant("MaxOutstanding", "cmd/npu_cmd_mem.sv")
    cop = constant("MaxOutstanding", "cop/npu_cop_mem.sv")
    stream = int(Engine.STREAM)
    rows = [
        (int(Engine.LD), "read", "loads of programs", most, f"{core}"),
        (int(Engine.SEQ), "read", "microcode", fetch, f"{core}; of {fetch} beats {queue // fetch}"),
        (stream, "read", "parameter stream", most, f"{core}; as many as hide the latency"),
        (8, "read", "descriptors of the command port", 1, f"{command}, with ID 9"),
        (9, "read", "streams of descriptors", 1, f"{command}, with ID 8"),
        (12, "read", "first operand of the coprocessor", block, f"{cop}, with ID 13"),
        (13, "read", "second operand of the coprocessor", block, f"{cop}, with ID 12"),
        (int(Engine.ST), "write", "stores of programs, tokens", most, f"{stores}"),
        (8, "write", "results and records of the command port", 1, f"{command}"),
        (12, "write", "results of the coprocessor", 1, f"{cop}"),
    ]
    head = (
        "| ID | | what | beats of a burst | bursts under way, at most |\n|---|---|---|---:|---|\n"
    )
    made = []
    for number, direction, what, beats, under in rows:
        length = "1" if beats == 1 else f"1 to {beats}"
        made.append(f"| {number} | {direction} | {what} | {length} | {under} |\n")
    return head + "".join(made)


def _windows() -> str:
    head = "| from | to | window |\n|---|---|---|\n"
    return head + "".join(
        f"| 0x{window.base:03X} | 0x{window.base + source.WINDOW_BYTES - 1:03X} "
        f"| [{window.title}](reference/registers.md) |\n"
        for window in source.load_all()
    )


def _parameters() -> str:
    """Return the parameters of `npu_top` with what they are in each configuration."""
    text = TOP.read_text(encoding="utf-8").partition("#(\n")[2].partition("\n) (\n")[0]
    above: list[str] = []
    names = " | ".join(f"`{name}`" for name in CHIPS)
    rows = [f"| parameter | {names} | meaning |\n", "|---|" + "---|" * len(CHIPS) + "---|\n"]
    for line in text.splitlines():
        if found := _PARAMETER.match(line):
            name, default, beside = found.groups()
            usual = int(default.removeprefix("1'b"))
            cells = " | ".join(str(chip.parameters.get(name, usual)) for chip in CHIPS.values())
            meaning = " ".join([*above, *([beside.strip()] if beside else [])])
            rows.append(f"| `{name}` | {cells} | {meaning} |\n")
            above = []
        else:
            above.append(line.removeprefix("  // "))
    return "".join(rows)


PARTS: dict[str, Callable[[], str]] = {
    **{name: partial(_ports, start) for name, start in BUSES.items()},
    "bursts": _bursts,
    "windows": _windows,
    "parameters": _parameters,
}


def filled(page: str, file: Path = FILE) -> str:
    """Return the page with its tables as they are now."""
    return marked_page.fill(page, file, PARTS)


def main(argv: list[str] | None = None) -> int:
    """Write the tables; with --check only compare them."""
    return marked_page.run(argv, "dev.integration_page", "the page of integration", FILE, filled)


if __name__ == "__main__":
    sys.exit(main())
