# SPDX-License-Identifier: Apache-2.0
"""Recipes of the developer guide on the RTL, and in all tests that know what they add.

Blocks and chip are built in a copy of the tree with the recipe; see tests/dev/test_recipes.py.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from spec.paths import ROOT
from tests.needs import needs
from tests.recipes.tree import patched, run


def test_weight_format(tmp_path: Path) -> None:
    """Legality and engine with the new format among all others; every test of formats."""
    tree = patched("weight_format", tmp_path)
    run(tree, "-m", "npu.cli", "unit", "legal_gemm,gemm")
    _test(tree, "*format*", "isa", "golden_machine_legal", "published")


def test_start_register(tmp_path: Path) -> None:
    """A chip of its own; access and reset of the register with all others."""
    tree = patched("start_register", tmp_path)
    _on_chip(
        *(tree, "start_register", "pos_end"),
        *("test_registers_access_kinds", "test_registers_reset_clears"),
    )
    _test(
        *(tree, "regs_start", "driver_command", "decoder_plans", "plan_files"),
        "golden_machine_loop",
    )


def test_kind_of_operation(tmp_path: Path) -> None:
    """Graphs of means; every test of graphs and of their programs."""
    needs("graphs")
    tree = patched("kind_of_operation", tmp_path)
    _on_chip(tree, "kind_of_operation", "average", "test_networks_random")
    _test(tree, "graph_*", "golden_graph", "networks_random", "random_graphs")


def _on_chip(tree: Path, recipe: str, name: str, *others: str) -> None:
    """Run a recipe's own test of the chip, and others."""
    test = ROOT / "tests" / "recipes" / f"{recipe}_on_rtl.py"
    shutil.copy(test, tree / "tb" / "tests" / f"test_{name}.py")
    run(tree, "-m", "npu.cli", "test", ",".join((f"test_{name}", *others)))


def _test(tree: Path, *names: str) -> None:
    """Run test files of a tree, whatever room they are in."""
    files = [
        str(path) for name in names for path in (tree / "tests/python").rglob(f"test_{name}.py")
    ]
    assert len(files) >= len(names)
    run(tree, "-m", "pytest", "-qx", *sorted(files))
