# SPDX-License-Identifier: Apache-2.0
"""The timing diagrams of docs/rtl: `python -m dev.diagrams [--record | --check]`.

docs/rtl/diagrams.toml says what each shows: signals, and where in a recorded waveform it begins.
`--record` runs the test that it names, takes the diagrams from its waveform and writes each as
WaveJSON, NAME.json; without it the SVGs are made from these. Nothing is drawn by hand, so a diagram
shows what the RTL has done.
"""

from __future__ import annotations

import argparse
import json
import sys
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pywellen

from spec.paths import ROOT
from tb.bench.dut import CLOCK_NS
from tb.run import build, registry, runner, waves

FOLDER = ROOT / "docs" / "rtl"
DEFINITIONS = FOLDER / "diagrams.toml"
FORMATS: dict[str, Callable[[int], str]] = {
    "hex": lambda value: f"{value:X}",
    "dec": str,
}
SVG, XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
MARGIN = 20
"""On the left: fonts that are wider than the one that WaveDrom reckons with."""
WIDE = 24
"""Cycles that fit a page at full width; longer diagrams are narrower."""
WaveJson = dict[str, Any]


class DiagramError(ValueError):
    """A definition does not fit the waveform, or a diagram is missing; the text says which."""


@dataclass(frozen=True)
class DiagramRow:
    """A line of a diagram.

    Attributes:
        label: what stands in front of it.
        signal: its hierarchical name, under the diagram's scope.
        bit: which bit of the signal is shown; None for all of it.
        when: signal that is 1 while this one means something; "" for always.
        form: how a value of several bits is written, a key of FORMATS.
        names: what is written for the values 0, 1 and so on, in place of the number.
    """

    label: str
    signal: str
    bit: int | None = None
    when: str = ""
    form: str = "hex"
    names: tuple[str, ...] = ()

    def text(self, value: int) -> str:
        """Return a value as it is written."""
        if self.bit is not None:
            return str(value >> self.bit & 1)
        return self.names[value] if self.names else FORMATS[self.form](value)


@dataclass(frozen=True)
class Diagram:
    """What a diagram shows.

    Attributes:
        name: of its files.
        title: above it.
        scope: hierarchical name in front of those of all its signals.
        begin: the signal with whose rise it begins.
        nth: which rise, from 1.
        before: cycles shown before it.
        cycles: shown altogether.
        rows: from top to bottom.
    """

    name: str
    title: str
    scope: str
    begin: str
    cycles: int
    rows: tuple[DiagramRow, ...]
    nth: int = 1
    before: int = 1


def _row(data: dict[str, Any]) -> DiagramRow:
    return DiagramRow(**{**data, "names": tuple(data.get("names", ()))})


def load(file: Path = DEFINITIONS) -> tuple[str, tuple[Diagram, ...]]:
    """Return the test whose waveform serves, and the diagrams."""
    data = tomllib.loads(file.read_text(encoding="utf-8"))
    diagrams = tuple(
        Diagram(**{**one, "rows": tuple(_row(row) for row in one["rows"])})
        for one in data["diagram"]
    )
    return data["test"], diagrams


class Samples:
    """Values of signals by clock cycle, as they stand at its end."""

    def __init__(self, fst: Path) -> None:
        waveform = pywellen.Waveform(str(fst))
        self._signals = {var.full_name: var.signal for var in waveform.all_vars()}

    def of(self, diagram: Diagram, signal: str, cycle: int) -> int | None:
        """Return the value of a signal of a diagram; None behind the end of the waveform.

        Raises:
            DiagramError: the waveform has no such signal.
        """
        name = f"{diagram.scope}.{signal}"
        if name not in self._signals:
            raise DiagramError(f"{diagram.name}: no signal {name}; {DEFINITIONS.name} names it")
        value: int | None = self._signals[name].value_at((cycle + 1) * CLOCK_NS + CLOCK_NS // 2 - 1)
        return value


def _begin(diagram: Diagram, samples: Samples) -> int:
    """Return the first cycle of the diagram."""
    limit = 10_000
    rises = 0
    for before, cycle in pairwise(range(limit)):
        rises += (
            samples.of(diagram, diagram.begin, cycle) == 1
            and samples.of(diagram, diagram.begin, before) == 0
        )
        if rises == diagram.nth:
            return cycle - diagram.before
    raise DiagramError(f"{diagram.name}: {diagram.begin} does not rise {diagram.nth} times")


def _values(
    diagram: Diagram, row: DiagramRow, samples: Samples, first: int
) -> Iterator[str | None]:
    """Return what the row shows, cycle by cycle: None where it means nothing."""
    for cycle in range(first, first + diagram.cycles):
        value = samples.of(diagram, row.signal, cycle)
        meant = not row.when or samples.of(diagram, row.when, cycle) == 1
        yield row.text(value) if value is not None and meant else None


def _wave(row: DiagramRow, values: list[str | None], *, one_bit: bool) -> WaveJson:
    """Return a row as WaveJSON; what does not change goes on."""
    wave, data, last = "", [], ""
    for value in values:
        shown = "x" if value is None else value
        if shown == last:
            wave += "."
        elif value is None or one_bit:
            wave += shown
        else:
            wave += "="
            data.append(shown)
        last = shown
    return {"name": row.label, "wave": wave} | ({"data": data} if data else {})


def recorded(diagram: Diagram, samples: Samples, widths: dict[str, int]) -> WaveJson:
    """Return a diagram as WaveJSON."""
    first = _begin(diagram, samples)
    rows: list[WaveJson] = [{"name": "clk", "wave": "p" + "." * (diagram.cycles - 1)}]
    for row in diagram.rows:
        values = list(_values(diagram, row, samples, first))
        one_bit = row.bit is not None or widths[f"{diagram.scope}.{row.signal}"] == 1
        rows.append(_wave(row, values, one_bit=one_bit))
    skin = "default" if diagram.cycles <= WIDE else "narrow"
    head, foot = {"text": diagram.title}, {"tock": 0}
    return {"signal": rows, "head": head, "foot": foot, "config": {"skin": skin}}


def take(fst: Path, diagrams: tuple[Diagram, ...]) -> dict[str, WaveJson]:
    """Return all diagrams, by name, from a waveform."""
    samples, widths = Samples(fst), waves.signals_in(fst)
    return {one.name: recorded(one, samples, widths) for one in diagrams}


def record_test(folder: Path, name: str) -> Path:
    """Run a test with the debug build; return its waveform.

    Raises:
        DiagramError: the test failed.
    """
    configuration = build.Configuration(kind="debug")
    build.build(configuration)
    (test,) = registry.select([name], registry.discover())
    fst = folder / f"{name}.fst"
    result = runner.run(runner.Job(test, configuration, 1, fst, folder / "run"))
    if not result.passed:
        raise DiagramError(f"{name}: {result.message}")
    return fst


def json_text(diagram: WaveJson) -> str:
    """Return WaveJSON, a row on a line."""
    rows = ",\n    ".join(json.dumps(row) for row in diagram["signal"])
    rest = ",\n  ".join(f'"{k}": {json.dumps(v)}' for k, v in diagram.items() if k != "signal")
    return f'{{\n  "signal": [\n    {rows}\n  ],\n  {rest}\n}}\n'


def svg(diagram: str) -> str:
    """Return WaveJSON as SVG, on white ground, so that it can be read on a dark page as well."""
    import wavedrom

    for prefix, uri in {"": SVG, "xlink": XLINK}.items():
        ElementTree.register_namespace(prefix, uri)
    root = ElementTree.fromstring(wavedrom.render(diagram).tostring())
    _drop_unused_shapes(root)
    if json.loads(diagram)["config"]["skin"] == "narrow":
        _drop_odd_numbers(root)
    left, top, width, height = (int(number) for number in root.attrib["viewBox"].split(","))
    width += MARGIN
    root.set("viewBox", f"{left - MARGIN},{top},{width},{height}")
    root.set("width", str(width))
    ground = {"x": str(left - MARGIN), "width": str(width), "height": str(height), "fill": "white"}
    root.insert(0, ElementTree.Element(f"{{{SVG}}}rect", ground))
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def _drop_unused_shapes(root: ElementTree.Element) -> None:
    used = {element.get(f"{{{XLINK}}}href") for element in root.iter(f"{{{SVG}}}use")}
    for shapes in root.iter(f"{{{SVG}}}defs"):
        for shape in shapes.findall(f"{{{SVG}}}g"):
            if f"#{shape.get('id')}" not in used:
                shapes.remove(shape)


def _drop_odd_numbers(root: ElementTree.Element) -> None:
    """Number every second cycle where there is no room for more."""
    for group in root.iter(f"{{{SVG}}}g"):
        for text in group.findall(f"{{{SVG}}}text"):
            number = text.text or ""
            if text.get("class") == "muted" and number.isdigit() and int(number) % 2:
                group.remove(text)


def sources(folder: Path = FOLDER) -> Iterator[Path]:
    """Return the WaveJSON files of all diagrams."""
    for diagram in load()[1]:
        path = folder / f"{diagram.name}.json"
        if not path.exists():
            raise DiagramError(f"{path.name} is missing: run python -m dev.diagrams --record")
        yield path


def stale() -> list[str]:
    """Return what is wrong with the SVGs, a line for each."""
    lines = []
    for path in sources():
        picture = path.with_suffix(".svg")
        old = picture.read_text(encoding="utf-8") if picture.exists() else ""
        if old != svg(path.read_text(encoding="utf-8")):
            lines.append(f"{picture.relative_to(ROOT)} is stale: run python -m dev.diagrams")
    return lines


def _record() -> None:
    test, diagrams = load()
    waves.WAVES.mkdir(parents=True, exist_ok=True)
    for name, diagram in take(record_test(waves.WAVES, test), diagrams).items():
        (FOLDER / f"{name}.json").write_text(json_text(diagram), encoding="utf-8")


def main(argv: list[str] | None = None) -> int:
    """Write the SVGs; with --record the WaveJSON before; with --check only compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", action="store_true", help="take the diagrams from the RTL")
    parser.add_argument("--check", action="store_true", help="fail if an SVG is stale")
    args = parser.parse_args(argv)
    try:
        if args.check:
            findings = stale()
            print(*findings, sep="\n", end="\n" if findings else "", file=sys.stderr)
            return int(bool(findings))
        if args.record:
            _record()
        for path in sources():
            text = svg(path.read_text(encoding="utf-8"))
            path.with_suffix(".svg").write_text(text, encoding="utf-8")
    except (DiagramError, build.BuildError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
