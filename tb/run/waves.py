# SPDX-License-Identifier: Apache-2.0
"""Writes a GTKWave save file next to a waveform: signals in groups, opcodes as mnemonics."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pywellen
from vcd.gtkw import GTKWSave

from npu.paths import BUILD, GENERATED, HDL

WAVES = BUILD / "waves"
_ZOOM = -9.5
"""Binary logarithm of the pixels per time unit: a few hundred cycles fill a screen."""


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
    """

    groups: tuple[tuple[str, tuple[str, ...]], ...]
    needs: dict[str, str]
    mnemonics: dict[str, Path]
    decimals: frozenset[str]


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
    return View(groups, needs, names, frozenset(data["decimals"]))


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
    return View(shown, {}, {}, frozenset())


def _add_signal(save: GTKWSave, name: str, width: int, view: View) -> None:
    """Show a signal: opcodes as mnemonics, bits in binary, counts in decimal, the rest in hex."""
    shown = name if width == 1 else f"{name}[{width - 1}:0]"
    if name in view.mnemonics:
        save.trace(shown, translate_filter_file=str(view.mnemonics[name]))
    else:
        form = "bin" if width == 1 else "dec" if name in view.decimals else "hex"
        save.trace(shown, datafmt=form)


def write_save_file(fst: Path, view: View | None = None) -> Path:
    """Write `<name>.gtkw` beside the waveform `<name>.fst`; return its path.

    Raises:
        WaveError: the waveform lacks a signal of the view.
    """
    path, widths = fst.with_suffix(".gtkw"), signals_in(fst)
    view = view or load_view()
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
        save.timestart(0)
        save.size(1600, 900)
        save.zoom_markers(_ZOOM)
        save.sst_expanded(False)
        for heading, names in shown.items():
            with save.group(heading):
                for name in names:
                    _add_signal(save, name, widths[name], view)
    return path


def named_signals(save_file: Path) -> list[str]:
    """Return the signals that a save file names, without their bit ranges."""
    lines = save_file.read_text(encoding="utf-8").splitlines()
    return [re.sub(r"\[\d+:0\]$", "", line) for line in lines if line and line[0] not in "[@-^*"]
