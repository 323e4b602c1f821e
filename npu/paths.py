# SPDX-License-Identifier: Apache-2.0
"""Where things live in the source tree. Standard library only."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RTL = ROOT / "rtl"
REGS = ROOT / "npu" / "regs"
HDL = ROOT / "tb" / "hdl"
DOCS = ROOT / "docs"
TESTS = ROOT / "tb" / "tests"
BUILD = ROOT / "build"
REPORTS = BUILD / "reports"
GENERATED = BUILD / "gen"
"""Generated SystemVerilog: `python -m npu.isa.generate`, `python -m npu.regs.generate`."""
