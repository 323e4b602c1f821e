# SPDX-License-Identifier: Apache-2.0
"""What the open library of 180 nm says of a cell: pins, functions, energy of a clock's edges."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dev import gates

SUPPLY = 1.8
"""Volts."""
SLEW = 0.1
"""Nanoseconds that an edge takes at a port, and that of the clock."""
_PIN = re.compile(r"^  pin\((\w+)\) +\{(.*?)^  \}", re.M | re.S)
_PASSIVE = re.compile(
    r'_power\(passive_\w+\) \{\s*index_1 \("(.*?)"\);\s*values \("(.*?)"\);', re.S
)


@dataclass(frozen=True)
class Cell:
    """A cell.

    Attributes:
        area: in um2.
        inputs: capacitance of each input, in pF.
        output: its output; of those with more than one, the first.
        function: of the inputs, as Python; "" of what has a state.
        clock_pj: what both edges of the clock cost inside the cell, if it has such a pin.
        charge_pj: what they cost outside: the capacitance of that pin.
        data_pj: what a toggle of D costs in a register that does not take it over.
    """

    area: float
    inputs: Mapping[str, float]
    output: str
    function: str
    clock_pj: float
    charge_pj: float
    data_pj: float


def read(path: Path = gates.LIBERTY) -> dict[str, Cell]:
    """Return the cells of a Liberty file by name; energies at edges of `SLEW`."""
    _, *parts = re.split(r"^cell \((\w+)\) \{", path.read_text(encoding="utf-8"), flags=re.M)
    return {name: _cell(text) for name, text in zip(parts[::2], parts[1::2], strict=True)}


def _cell(text: str) -> Cell:
    inputs: dict[str, float] = {}
    outputs: dict[str, str] = {}
    energy: dict[str, float] = {}
    for name, body in _PIN.findall(text):
        capacitance = re.search(r"capacitance : ([\d.]+)", body)
        if "direction : input" in body and capacitance:
            inputs[name] = float(capacitance[1])
            energy[name] = sum(
                float(np.interp(SLEW, _numbers(index), _numbers(values)))
                for index, values in _PASSIVE.findall(body)
            )
        elif function := re.search(r'function : "(.*)"', body):
            outputs[name] = function[1]
    output = next(iter(outputs))
    known = not re.search(r"^  (ff|latch) ", text, re.M)
    area = re.search(r"^ *area : ([\d.]+)", text, re.M)
    return Cell(
        area=float(area[1]) if area else 0.0,
        inputs=inputs,
        output=output,
        function=_python(outputs[output]) if known else "",
        clock_pj=energy.get("CLK", 0.0),
        charge_pj=inputs.get("CLK", 0.0) * SUPPLY**2,
        data_pj=energy.get("D", 0.0) / 2,
    )


def _numbers(text: str) -> list[float]:
    return [float(each) for each in text.split(",")]


def _python(function: str) -> str:
    """Return a function of Liberty, in which a blank is AND, as one of Python's integers."""
    spaced = re.sub(r"(?<=[\w)]) +(?=[\w(!])", "&", function)
    return spaced.replace("!", "~").replace("+", "|").replace(" ", "")
