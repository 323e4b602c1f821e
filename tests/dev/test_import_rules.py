# SPDX-License-Identifier: Apache-2.0
"""The import rules of pyproject.toml notice what they are there for."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from spec.paths import PACKAGES, ROOT

OURS = (*PACKAGES, "tests")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
ALWAYS_THERE = {pin.partition("==")[0].replace("-", "_") for pin in PROJECT["dependencies"]}
"""Libraries that no group has to bring."""
LATE = {
    "npu/cli/command_line.py": "a command imports what it needs, and no more",
    "dev/bootstrap.py": "it says what a Python lacks that has none of it",
    "dev/onnx_suite.py": "onnx, slow to load",
    "npu/planner/decoder_file.py": "onnx, slow to load",
    "weights/synthetic.py": "safetensors, slow to load",
}
"""What else is imported inside functions, and why."""


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


def _imported(tree: ast.AST) -> Iterator[str]:
    """Yield the modules of import statements, and the names that may be modules in them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _late(path: Path) -> set[str]:
    """Return what a module imports inside its functions."""
    bodies = (ast.FunctionDef, ast.AsyncFunctionDef)
    functions = [node for node in ast.walk(_tree(path)) if isinstance(node, bodies)]
    return {name for function in functions for name in _imported(function)}


def _file_of(name: str) -> Path | None:
    """Return the source of a module of ours, or of the one that has a name."""
    for module in (name, name.rpartition(".")[0]):
        path = ROOT / module.replace(".", "/")
        for file in (path.with_suffix(".py"), path / "__init__.py"):
            if module and file.exists():
                return file
    return None


@cache
def _needs_a_group(name: str) -> bool:
    """Say whether a module cannot be imported without a group: by itself, or by what it imports."""
    package = name.partition(".")[0]
    if package not in OURS:
        return package not in sys.stdlib_module_names | ALWAYS_THERE
    file = _file_of(name)
    if file is None:
        return False
    first = [node for node in _tree(file).body if isinstance(node, ast.Import | ast.ImportFrom)]
    return any(_needs_a_group(each) for node in first for each in _imported(node))


def test_functions_import_what_only_a_group_brings() -> None:
    """All else stands at the top, where the import rules see it."""
    wrong = {
        str(path.relative_to(ROOT)): sorted(
            name for name in _late(path) if not _needs_a_group(name)
        )
        for folder in OURS
        for path in (ROOT / folder).rglob("*.py")
    }
    assert {path: names for path, names in wrong.items() if names and path not in LATE} == {}
