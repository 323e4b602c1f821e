# SPDX-License-Identifier: Apache-2.0
"""The import rules of pyproject.toml notice what they are there for."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from spec.paths import PACKAGES, ROOT


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the sources of all packages and the rules."""
    folder = tmp_path_factory.mktemp("rules")
    shutil.copy(ROOT / "pyproject.toml", folder)
    for package in PACKAGES:
        for source in (ROOT / package).rglob("*.py"):
            target = folder / source.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
    return folder


def _findings(folder: Path) -> str:
    script = Path(sys.executable).parent / "lint-imports"
    run = subprocess.run(
        [script, "--no-cache"], cwd=folder, capture_output=True, text=True, check=False
    )
    return run.stdout if run.returncode else ""


@pytest.mark.parametrize(
    ("module", "imported"),
    [
        ("npu/driver/generate.py", "golden.decoder"),
        ("golden/vec.py", "npu.compiler"),
        ("weights/model.py", "golden.gemm"),
        ("spec/isa/gemm.py", "weights.model"),
        ("tb/bench/host.py", "tb.run.runner"),
        ("tb/models/generate.py", "tb.benchmarks.suite"),
        ("tb/run/runner.py", "dev.faults"),
    ],
)
def test_an_import_back_up_is_named(copy: Path, module: str, imported: str) -> None:
    """Importing module, imported one and line are said."""
    path = copy / module
    text = path.read_text(encoding="utf-8")
    path.write_text(f"{text}\nimport {imported}\n", encoding="utf-8")
    found = _findings(copy)
    path.write_text(text, encoding="utf-8")
    importer = module.removesuffix(".py").replace("/", ".")
    line = text.count("\n") + 2
    assert any(importer in said and f"(l.{line})" in said for said in found.splitlines()), found


def test_the_tree_keeps_them(copy: Path) -> None:
    """Without a change nothing is found."""
    assert not _findings(copy)
