# SPDX-License-Identifier: Apache-2.0
"""Copies of the tree with a recipe in them."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

from spec.paths import ROOT

MOST = {"weight_format": 6, "start_register": 5, "decoder_norm": 3, "kind_of_operation": 4}
"""Files that a recipe may take."""
NOT_COPIED = shutil.ignore_patterns(".*", "build", "*.egg-info")
GENERATORS = (
    "spec.isa.generate",
    "spec.regs.generate",
    "npu.firmware.plan_types",
    "dev.graphs_page",
)


def patch_of(name: str) -> Path:
    """Return the file of a recipe."""
    return ROOT / "recipes" / f"{name}.patch"


def touched(name: str) -> list[str]:
    """Return the files that a recipe changes by hand, sorted; a new one is called NAME."""
    text = patch_of(name).read_text(encoding="utf-8")
    files = re.findall(r"^\+\+\+ b/(\S+)$", text, re.MULTILINE)
    new = [Path(each) for each in files if not (ROOT / each).exists()]
    return sorted({*files} - {*map(str, new)} | {f"{one.parent}/NAME{one.suffix}" for one in new})


def run(tree: Path, *words: str) -> None:
    """Run Python in a copy of the tree; fail with what it says."""
    ran = subprocess.run(
        [sys.executable, *words], cwd=tree, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, f"{' '.join(words)}\n{ran.stdout[-3000:]}{ran.stderr[-3000:]}"


def patched(name: str, tree: Path) -> Path:
    """Return a copy of the tree with a recipe and all that is generated from it."""
    shutil.copytree(ROOT, tree, ignore=NOT_COPIED, dirs_exist_ok=True)
    subprocess.run(
        ["git", "apply", "--unsafe-paths", f"--directory={tree}", str(patch_of(name))],
        cwd=tree, check=True, capture_output=True, text=True,
    )  # fmt: skip
    for module in GENERATORS:
        run(tree, "-m", module)
    return tree
