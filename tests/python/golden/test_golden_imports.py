# SPDX-License-Identifier: Apache-2.0
"""The golden references stay an independent witness: what they may import is short and checked."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import golden

ALLOWED = {
    "golden",
    "mpmath",
    "numpy",
    "npu.graph",
    "npu.graph.form",
    "spec.isa",
    "spec.isa.cop_generated",
    "spec.isa.elements",  # the types of constants
    "spec.regs",
    "weights.firmware.models",
    "weights.model",
}


def imported(path: Path) -> set[str]:
    """Return the names of all modules that a file imports, at any level."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
    return names


def test_golden_imports_only_numpy_mpmath_generated_constants_and_model_types() -> None:
    """Neither the bench, the compiler, nor the ISA's own legality rules are used."""
    files = sorted(Path(golden.__path__[0]).rglob("*.py"))
    assert len(files) > 15
    for path in files:
        for name in imported(path):
            base = name.partition(".")[0]
            fine = (
                name in ALLOWED
                or base in {"golden", "mpmath", "numpy"}
                or base in sys.stdlib_module_names
            )
            assert fine, f"{path.name} imports {name}"
