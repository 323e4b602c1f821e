# SPDX-License-Identifier: Apache-2.0
"""Where things live in the source tree. Standard library only."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("dev", "golden", "npu", "spec", "tb", "tessera", "weights")
"""Folders of Python packages, but for the tests."""
RTL = ROOT / "rtl"
FPGA = ROOT / "fpga"
"""SystemVerilog around the chip on a board; no part of the chip."""
REGS = ROOT / "spec" / "regs"
HDL = ROOT / "tb" / "hdl"
DOCS = ROOT / "docs"
TESTS = ROOT / "tb" / "tests"
BUILD = ROOT / "build"
REPORTS = BUILD / "reports"
GENERATED = BUILD / "gen"
"""Generated SystemVerilog: `python -m spec.isa.generate`, `python -m spec.regs.generate`."""
