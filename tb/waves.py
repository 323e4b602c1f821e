# SPDX-License-Identifier: Apache-2.0
"""Writes a GTKWave save file next to a waveform: signals in groups, opcodes as mnemonics."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pywellen

from tb.paths import BUILD, GENERATED, HDL

WAVES = BUILD / "waves"
MNEMONICS = GENERATED / "npu_mnemonics.txt"
"""Opcode byte to mnemonic, made by `python -m npu.isa.generate`."""

_GROUP_BEGIN, _GROUP_END = "@800200", "@1000200"
_ZOOM = -9.5
"""Binary logarithm of the pixels per time unit: a few hundred cycles fill a screen."""
_BIT, _HEX, _DECIMAL, _TRANSLATED = "@28", "@22", "@24", "@2022"


class WaveError(ValueError):
    """A signal that the save file should show is not in the waveform."""


@dataclass(frozen=True)
class View:
    """What the viewer shows, from `tb/hdl/waves.toml`.

    Attributes:
        groups: heading and signal names, in order.
        needs: by heading, how the name of some signal must begin for the group to be shown.
        mnemonics: signals that hold opcode bytes.
        decimals: signals that are counts.
    """

    groups: tuple[tuple[str, tuple[str, ...]], ...]
    needs: dict[str, str]
    mnemonics: frozenset[str]
    decimals: frozenset[str]


def load_view(file: Path = HDL / "waves.toml") -> View:
    """Return the view that `file` describes."""
    data = tomllib.loads(file.read_text(encoding="utf-8"))
    groups = tuple((group["name"], tuple(group["signals"])) for group in data["group"])
    needs = {group["name"]: group["needs"] for group in data["group"] if "needs" in group}
    return View(groups, needs, frozenset(data["mnemonics"]), frozenset(data["decimals"]))


def signals_in(fst: Path) -> dict[str, int]:
    """Return the signals of a waveform: hierarchical name to width in bits."""
    return {var.full_name: var.bitwidth or 0 for var in pywellen.Waveform(str(fst)).all_vars()}


def _lines(fst: Path, view: View, widths: dict[str, int]) -> Iterator[str]:
    yield f'[dumpfile] "{fst}"'
    yield "[timestart] 0"
    yield "[size] 1600 900"
    yield f"*{_ZOOM} 0{' -1' * 26}"
    yield "[sst_expanded] 0"
    for heading, names in view.groups:
        scope = view.needs.get(heading, "")
        if not any(name.startswith(scope) for name in widths):
            continue
        yield _GROUP_BEGIN
        yield f"-{heading}"
        for name in names:
            if name not in widths:
                raise WaveError(f"{fst.name} has no signal {name}; tb/hdl/waves.toml names it")
            width = widths[name]
            if name in view.mnemonics:
                yield _TRANSLATED
                yield f"^1 {MNEMONICS}"
            else:
                yield _BIT if width == 1 else _DECIMAL if name in view.decimals else _HEX
            yield name if width == 1 else f"{name}[{width - 1}:0]"
        yield _GROUP_END
        yield f"-{heading}"


def write_save_file(fst: Path, view: View | None = None) -> Path:
    """Write `<name>.gtkw` beside the waveform `<name>.fst`; return its path.

    Raises:
        WaveError: the waveform lacks a signal of the view.
    """
    path = fst.with_suffix(".gtkw")
    lines = _lines(fst, view or load_view(), signals_in(fst))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def named_signals(save_file: Path) -> list[str]:
    """Return the signals that a save file names, without their bit ranges."""
    lines = save_file.read_text(encoding="utf-8").splitlines()
    return [re.sub(r"\[\d+:0\]$", "", line) for line in lines if line and line[0] not in "[@-^*"]
