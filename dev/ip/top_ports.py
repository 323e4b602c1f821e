# SPDX-License-Identifier: Apache-2.0
"""The ports of `npu_top` with some parameters, and those of the wrapper for block designers.

The wrapper has AXI4 and AXI4-Lite by the names that tools recognise: without the endings _i and
_o, and with the signals that the chip itself has no use for.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pyslang.ast import ArgumentDirection, PortSymbol
from pyslang.driver import Driver

TOP = "npu_top"
WRAPPER = "tessera"
CLOCK, RESET, INTERRUPT = "aclk", "aresetn", "irq"
_RENAMED = {"clk_i": CLOCK, "rst_ni": RESET, "irq_o": INTERRUPT}
_ADDRESS = (("lock", 1, 0), ("cache", 4, 0b0010), ("prot", 3, 0), ("qos", 4, 0))
"""Of an address of AXI4, beside what `npu_top` says: bits and value.

Normal memory, neither cacheable nor bufferable: an answer to a write comes from where it is seen.
"""


class SourceError(RuntimeError):
    """The sources of a chip cannot be elaborated."""


@dataclass(frozen=True)
class TopPort:
    """A port.

    Attributes:
        name: of it.
        is_input: it is one.
        width: bits.
        inner: port of `npu_top` that it is connected with, "" for none.
        value: of an output that has no inner port.
    """

    name: str
    is_input: bool
    width: int
    inner: str = ""
    value: int = 0

    @property
    def direction(self) -> str:
        """The word of Verilog."""
        return "input" if self.is_input else "output"

    @property
    def range(self) -> str:
        """The range of Verilog, "" for one bit."""
        return f"[{self.width - 1}:0]" if self.width > 1 else ""


def elaborated(files: Sequence[Path], top: str, parameters: Sequence[str] = ()) -> Driver:
    """Return slang with a design that it has elaborated.

    Raises:
        SourceError: with its first error.
    """
    driver = Driver()
    driver.addStandardArgs()
    words = ["slang", "--top", top, "--single-unit", *parameters, *map(str, files)]
    if not (driver.parseCommandLine(" ".join(words)) and driver.processOptions()):
        raise SourceError(f"{top}: slang does not understand its command line")
    if not driver.parseAllSources():
        raise SourceError(f"{top}: slang cannot read the sources")
    compilation = driver.createCompilation()
    errors = [each for each in compilation.getAllDiagnostics() if each.isError()]
    if errors:
        place = compilation.sourceManager.getLineNumber(errors[0].location)
        name = compilation.sourceManager.getFileName(errors[0].location)
        raise SourceError(f"{name}:{place}: {errors[0].code}")
    return driver


def of_top(files: Sequence[Path], parameters: Sequence[str]) -> tuple[TopPort, ...]:
    """Return the ports of `npu_top`.

    Args:
        files: its sources.
        parameters: as -GNAME=VALUE.

    Raises:
        SourceError: they are wrong.
    """
    compilation = elaborated(files, TOP, parameters).createCompilation()
    (instance,) = compilation.getRoot().topInstances
    ports = [port for port in instance.body.portList if isinstance(port, PortSymbol)]
    return tuple(
        TopPort(port.name, port.direction == ArgumentDirection.In, port.type.bitWidth)
        for port in ports
    )


def of_wrapper(ports: Sequence[TopPort], *, coprocessor: bool = False) -> tuple[TopPort, ...]:
    """Return the ports of the wrapper around a top with some ports.

    Args:
        ports: of the top.
        coprocessor: with those of the coprocessor.
    """
    found = []
    for port in ports:
        if port.name.startswith("x_") and not coprocessor:
            continue
        name = _RENAMED.get(port.name) or re.sub(r"_[io]$", "", port.name)
        found.append(TopPort(name, port.is_input, port.width, inner=port.name))
        if match := re.fullmatch(r"(s_axil|m_axi)_(a[rw])addr", name):
            bus, channel = match.groups()
            if bus == "s_axil":
                found.append(TopPort(f"{bus}_{channel}prot", is_input=True, width=3))
            else:
                found += [
                    TopPort(f"{bus}_{channel}{name}", is_input=False, width=width, value=value)
                    for name, width, value in _ADDRESS
                ]
    return tuple(found)
