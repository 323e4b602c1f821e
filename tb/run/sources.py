# SPDX-License-Identifier: Apache-2.0
"""The list of SystemVerilog sources, packages first and each after those it uses."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from spec.paths import GENERATED, HDL, REGS, ROOT, RTL

CHECKS = HDL / "checks"
"""Rules of the streams in `rtl/`, bound to its modules, a file for each of its folders."""
STREAM = CHECKS / "stream_checker.sv"
"""What they are written with: it comes before them."""


def _package_name(text: str) -> str | None:
    match = re.search(r"^\s*package\s+(?:automatic\s+)?(\w+)\s*;", text, re.MULTILINE)
    return match[1] if match else None


def packages(paths: Iterable[Path]) -> list[Path]:
    """Return those of `paths` that hold packages, each after those that it names."""
    return [path for path in in_order(paths) if _package_name(path.read_text(encoding="utf-8"))]


def in_order(paths: Iterable[Path]) -> list[Path]:
    """Return `paths` with packages first, each after the packages that it names.

    Raises:
        ValueError: packages use each other in a circle.
    """
    packages: dict[str, tuple[Path, set[str]]] = {}
    others: list[Path] = []
    for path in sorted(paths):
        text = path.read_text(encoding="utf-8")
        name = _package_name(text)
        if name is None:
            others.append(path)
        else:
            packages[name] = (path, set(re.findall(r"\b(\w+)::", text)) - {name})
    ordered: list[Path] = []
    left = dict(packages)
    while left:
        ready = [name for name, (_, uses) in left.items() if not uses & left.keys()]
        if not ready:
            raise ValueError(f"packages use each other in a circle: {', '.join(sorted(left))}")
        ordered += [left.pop(name)[0] for name in ready]
    return ordered + others


def _declared(text: str) -> set[str]:
    return set(
        re.findall(r"^\s*(?:module|package|interface)\s+(?:automatic\s+)?(\w+)", text, re.MULTILINE)
    )


def closure(top: str, paths: Iterable[Path]) -> list[Path]:
    """Return those of `paths`, in their order, that `top` needs: all that their code mentions.

    Raises:
        ValueError: no file has the module `top`.
    """
    texts = {path: path.read_text(encoding="utf-8") for path in paths}
    homes = {name: path for path, text in texts.items() for name in _declared(text)}
    if top not in homes:
        raise ValueError(f"no file has a module {top}")
    found, left = {homes[top]}, [homes[top]]
    while left:
        code = re.sub(r"//.*", "", texts[left.pop()])
        words = set(re.findall(r"\w+", code))
        new = {homes[word] for word in words & homes.keys()} - found
        found |= new
        left += new
    return [path for path in texts if path in found]


def rtl_sources(rtl: Path = RTL, generated: Path = GENERATED) -> list[Path]:
    """Return the design's sources: hand-written ones of `rtl` and the generated ones."""
    return in_order([*rtl.rglob("*.sv"), *generated.rglob("*.sv")])


def waivers(rtl: Path = RTL, generated: Path = GENERATED) -> list[Path]:
    """Return the Verilator control files of the design; they go before the sources."""
    return sorted([*rtl.rglob("*.vlt"), *generated.rglob("*.vlt"), *REGS.rglob("*.vlt")])


def bench_sources(rtl: Path = RTL, generated: Path = GENERATED) -> list[Path]:
    """Return the sources of design and bench; `tb_top` is the top."""
    bench = {*HDL.glob("*.sv"), *CHECKS.glob("*.sv")} - {STREAM}
    return [STREAM, *in_order([*rtl.rglob("*.sv"), *generated.rglob("*.sv"), *bench])]


def checks(top: Path, rtl: Path = RTL, generated: Path = GENERATED) -> list[Path]:
    """Return the rules, and the checks of all folders from which the bench `top` needs a module."""
    design = [*rtl.rglob("*.sv"), *generated.rglob("*.sv"), *top.parent.glob("*.sv")]
    needed = {path.stem for path in closure(top.stem, design)}
    return [STREAM, *(path for path in sorted(CHECKS.glob("*_checks.sv")) if needed & bound(path))]


def bound(path: Path) -> set[str]:
    """Return the modules that a file binds something to."""
    text = path.read_text(encoding="utf-8")
    return set(re.findall(r"^(?:bind |`STREAM\()(\w+)", text, re.MULTILINE))


def relative(paths: Iterable[Path]) -> list[str]:
    """Return paths as seen from the project's folder.

    Verilator writes the names of the sources into what it generates: relative ones make the same
    C++ in every clone, which the compiler's cache then knows.
    """
    return [os.path.relpath(path, ROOT) for path in paths]
