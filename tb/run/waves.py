# SPDX-License-Identifier: Apache-2.0
"""Writes a GTKWave save file next to a waveform: signals in groups, opcodes as mnemonics."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TextIO

import pywellen
from vcd.gtkw import GTKWSave

from spec.paths import BUILD, GENERATED, HDL
from tb.bench.dut import CLOCK_NS
from tb.bench.failure import UNKNOWN, Failure

WAVES = BUILD / "waves"
_ZOOM, _ZOOM_AT_MISMATCH = -9.5, -7.5
"""Minus the binary logarithm of the nanoseconds that 200 pixels show: a few hundred cycles fill a
screen, at a mismatch about a hundred."""
_LEAD = 64
"""Cycles that are seen before a mismatch."""
MISMATCH = "First mismatch"
"""Name of the marker, and heading of what is wrong."""
_SIZE, _NAMES = (1600, 1000), 400
"""Pixels of the window, and those of names with their values at the marker."""


class WaveError(ValueError):
    """A signal that the save file should show is not in the waveform."""


@dataclass(frozen=True)
class View:
    """What the viewer shows, from `tb/hdl/waves.toml`.

    Attributes:
        groups: heading and signal names, in order.
        needs: by heading, how the name of some signal must begin for the group to be shown.
        mnemonics: by signal that holds an opcode byte, the file of build/gen with their names.
        decimals: signals that are counts.
        ports: engines, by their port to the SRAM.
        mismatch: signals that are shown first where the write of an engine is wrong, with places
            for its name in small letters and its port.
        fields: whether a field of a struct is called by both, STRUCT/FIELD; GTKWave shows what is
            behind the last dot.
    """

    groups: tuple[tuple[str, tuple[str, ...]], ...]
    needs: dict[str, str]
    mnemonics: dict[str, Path]
    decimals: frozenset[str] = frozenset()
    ports: tuple[str, ...] = ()
    mismatch: tuple[str, ...] = ()
    fields: bool = False

    def at(self, told: Failure) -> View:
        """Return the view with the wrong write on top; the same one where no engine has written."""
        if told.engine not in self.ports:
            return self
        engine, port = told.engine.lower(), self.ports.index(told.engine)
        names = tuple(name.format(engine=engine, port=port) for name in self.mismatch)
        return replace(self, groups=((MISMATCH, names), *self.groups))


def load_view(file: Path = HDL / "waves.toml") -> View:
    """Return the view that `file` describes."""
    data = tomllib.loads(file.read_text(encoding="utf-8"))
    groups = tuple((group["name"], tuple(group["signals"])) for group in data["group"])
    needs = {group["name"]: group["needs"] for group in data["group"] if "needs" in group}
    names = {
        signal: GENERATED / file
        for file, signals in data["mnemonics"].items()
        for signal in signals
    }
    top = data["mismatch"]
    return View(
        groups,
        needs,
        names,
        frozenset(data["decimals"]),
        tuple(top["ports"]),
        tuple(top["signals"]),
    )


def signals_in(fst: Path) -> dict[str, int]:
    """Return the signals of a waveform: hierarchical name to width in bits."""
    return {var.full_name: var.bitwidth or 0 for var in pywellen.Waveform(str(fst)).all_vars()}


def block_view(names: Iterable[str]) -> View:
    """Return a view of the bench of one block: a group for the ports of each instance in it.

    Args:
        names: signals of the waveform, such as `unit_vec.u_vec.op_valid_i`.
    """
    groups: dict[str, list[str]] = {}
    for name in names:
        _, *instance, port = name.split(".", 2)
        if instance and re.search(r"^\w+_n?[io]\b", port):
            groups.setdefault(instance[0], []).append(name)
    shown = tuple((instance, tuple(ports)) for instance, ports in sorted(groups.items()))
    return View(shown, {}, {}, fields=True)


def gtkwave_name(name: str, width: int) -> str:
    """Return what GTKWave calls a signal: with its bits, an element of an array by array and index.

    Args:
        name: hierarchical name, such as `tb_top.engine_instr.[2]`.
        width: in bits.
    """
    name = re.sub(r"([^.]+)\.(\[\d+\])$", r"\1.\1\2", name)
    return name if width == 1 else f"{name}[{width - 1}:0]"


def _add_signal(save: GTKWSave, name: str, width: int, view: View) -> None:
    """Show a signal: opcodes as mnemonics, bits in binary, counts in decimal, the rest in hex."""
    shown = gtkwave_name(name, width)
    alias = shown.split(".", 2)[2].replace(".", "/") if view.fields else None
    if name in view.mnemonics:
        save.trace(shown, alias, translate_filter_file=str(view.mnemonics[name]))
    else:
        form = "bin" if width == 1 else "dec" if name in view.decimals else "hex"
        save.trace(shown, alias, datafmt=form)


def _place(save: GTKWSave, file: TextIO, told: Failure | None) -> None:
    """Open at the beginning of the waveform, or at a mismatch, in the middle of its cycle."""
    if told is None or told.cycle == UNKNOWN:
        save.timestart(0)
        save.zoom_markers(_ZOOM)
        return
    time = told.cycle * CLOCK_NS
    save.timestart(max(0, time - _LEAD * CLOCK_NS))
    save.zoom_markers(_ZOOM_AT_MISMATCH, time, a=time)
    print(f"[markername] A{MISMATCH}", file=file)


def write_save_file(fst: Path, view: View | None = None, told: Failure | None = None) -> Path:
    """Write `<name>.gtkw` beside the waveform `<name>.fst`; return its path.

    Args:
        fst: the waveform.
        view: what is shown, by default what `tb/hdl/waves.toml` says.
        told: where the test has failed: the viewer opens there, with a marker.

    Raises:
        WaveError: the waveform lacks a signal of the view.
    """
    path, widths = fst.with_suffix(".gtkw"), signals_in(fst)
    view = view or load_view()
    view = view if told is None else view.at(told)
    shown = {
        heading: names
        for heading, names in view.groups
        if any(name.startswith(view.needs.get(heading, "")) for name in widths)
    }
    missing = [name for names in shown.values() for name in names if name not in widths]
    if missing:
        raise WaveError(f"{fst.name} has no signal {missing[0]}; tb/hdl/waves.toml names it")
    with path.open("w", encoding="utf-8") as file:
        save = GTKWSave(file)
        save.dumpfile(str(fst))
        save.size(*_SIZE)
        save.signals_width(_NAMES)
        _place(save, file, told)
        save.sst_expanded(False)
        for heading, names in shown.items():
            with save.group(heading):
                for name in names:
                    _add_signal(save, name, widths[name], view)
    return path


def named_signals(save_file: Path) -> list[str]:
    """Return the signals that a save file names, as GTKWave calls them."""
    lines = save_file.read_text(encoding="utf-8").splitlines()
    return [re.sub(r"^\+\{.*?\} ", "", line) for line in lines if line and line[0] not in "[@-^*"]
