# SPDX-License-Identifier: Apache-2.0
"""Changes each value of each common source, and asks the fast tests of Python who notices.

What RTL, golden, compiler and pages share cannot be noticed by comparing these with each other. The
data files of the interfaces have tests that change each of their values and compare with tables
typed by hand (`INTERFACES`). In the common modules of Python each number is made one more, each
sign and each comparison the neighbouring one, in a copy of the tree, and the tests of `witnesses`
run on it.
"""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from dev.mutation_draw import MutationError
from spec.paths import BUILD, ROOT
from tb.run import parallel, registry

COPIES = BUILD / "mutation" / "common"
INTERFACES = ("tests/python/spec/test_published.py", "tests/suites/test_published.py")
"""Tests that change each value of isa.toml, coprocessor.toml, descriptors.toml, register maps."""
_CONSTANTS = "tests/python/golden/test_golden_constants.py"
_ELEMENTS = "tests/python/spec/test_elements.py"
_GOLDEN = "tests/python/golden/test_golden_"
_CODES = ("tests/python/weights/test_weight_codes.py", "tests/python/weights/test_recipes.py")
WITNESSES: dict[str, tuple[str, ...]] = {
    "golden/fixed.py": (_CONSTANTS, f"{_GOLDEN}fixed.py", f"{_GOLDEN}requantize.py"),
    "golden/requantize.py": (
        _CONSTANTS,
        f"{_GOLDEN}requantize.py",
    ),
    "golden/tables.py": (
        _CONSTANTS,
        f"{_GOLDEN}tables.py",
        f"{_GOLDEN}softmax.py",
        f"{_GOLDEN}layernorm.py",
    ),
    "golden/gelu.py": (
        _CONSTANTS,
        f"{_GOLDEN}gelu.py",
    ),
    "golden/formats.py": (_CONSTANTS, f"{_GOLDEN}formats.py", f"{_GOLDEN}machine_formats.py"),
    "spec/isa/elements.py": (_ELEMENTS, f"{_GOLDEN}formats.py", *_CODES),
    "spec/isa/weight_formats.py": (_ELEMENTS, f"{_GOLDEN}formats.py", *_CODES),
}
"""Common modules, and the tests that can notice without a simulator, the quickest first."""
_NEXT: dict[type[ast.operator | ast.cmpop], type[ast.operator | ast.cmpop]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
}
LIMIT_S = 300
"""Wall-clock limit of the tests of one change."""


@dataclass(frozen=True)
class SourceChange:
    """A common module with one value changed.

    Attributes:
        file: its path from the project's folder.
        line: of the change, from 1.
        column: of the change, from 1.
        what: the change, in one line.
        text: the whole module.
    """

    file: str
    line: int
    column: int
    what: str
    text: str

    @property
    def name(self) -> str:
        """What it is called."""
        return f"{self.file}:{self.line}:{self.column}: {self.what}"

    @property
    def old_line(self) -> str:
        """Text of the line that it changes, as it is in the tree."""
        return (ROOT / self.file).read_text(encoding="utf-8").splitlines()[self.line - 1].strip()


def changes(file: str, text: str) -> Iterator[SourceChange]:
    """Yield a module with each number and operator changed, one at a time.

    Texts of errors and types stay: nobody computes with them.
    """
    tree = ast.parse(text)
    unread = {id(node) for part in _unread(tree) for node in ast.walk(part)}
    for node in ast.walk(tree):
        if id(node) in unread:
            continue
        match node:
            case ast.Constant(value=bool(value)):
                yield _changed(file, text, node, str(not value))
            case ast.Constant(value=int(value)):
                yield _changed(file, text, node, str(value + 1))
            case ast.Constant(value=float(value)):
                yield _changed(file, text, node, repr(value + 1.0))
            case ast.BinOp(op=op) | ast.AugAssign(op=op) if type(op) in _NEXT:
                new = ast.copy_location(_with_operator(node, _NEXT[type(op)]()), node)
                yield _changed(file, text, node, f"({ast.unparse(new)})")
            case ast.Compare(ops=[op]) if type(op) in _NEXT:
                new = ast.Compare(node.left, [_NEXT[type(op)]()], node.comparators)  # type: ignore[list-item]
                yield _changed(file, text, node, f"({ast.unparse(new)})")


def _with_operator(node: ast.BinOp | ast.AugAssign, op: object) -> ast.AST:
    if isinstance(node, ast.BinOp):
        return ast.BinOp(node.left, op, node.right)  # type: ignore[arg-type]
    return ast.AugAssign(node.target, op, node.value)  # type: ignore[arg-type]


def _unread(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield what no result depends on: annotations, errors, decorators, lengths that follow."""
    for node in ast.walk(tree):
        match node:
            case ast.Raise() | ast.arg():
                yield node
            case ast.AnnAssign():
                yield node.annotation
            case ast.FunctionDef() | ast.ClassDef():
                yield from node.decorator_list
                if isinstance(node, ast.FunctionDef) and node.returns is not None:
                    yield node.returns
            case ast.Subscript(value=ast.Attribute(attr="NDArray")):
                yield node
            case ast.Call(func=ast.Attribute(attr="reshape"), args=lengths):
                # Any negative number is the length that follows from the others.
                yield from (one for one in lengths if isinstance(one, ast.UnaryOp))


def _changed(file: str, text: str, node: ast.expr | ast.AugAssign, new: str) -> SourceChange:
    lines = text.encode().splitlines(keepends=True)
    starts = [sum(map(len, lines[:number])) for number in range(len(lines) + 1)]
    assert node.end_lineno is not None and node.end_col_offset is not None
    first = starts[node.lineno - 1] + node.col_offset
    last = starts[node.end_lineno - 1] + node.end_col_offset
    data = text.encode()
    old = " ".join(data[first:last].decode().split())
    if isinstance(node, ast.AugAssign):
        new = new.strip("()")
    whole = (data[:first] + new.encode() + data[last:]).decode()
    return SourceChange(file, node.lineno, node.col_offset + 1, f"{old} -> {new}", whole)


def all_changes(names: Sequence[str] = ()) -> list[SourceChange]:
    """Return the changes of all common modules, or of those that are named.

    Raises:
        MutationError: a name is not there; the message lists near ones.
    """
    for name in names:
        if name not in WITNESSES:
            hint = registry.near(name, sorted(WITNESSES))
            raise MutationError(f"MUTANTS: given {name!r}, no common source is called so{hint}")
    return [
        change
        for file in names or WITNESSES
        for change in changes(file, (ROOT / file).read_text(encoding="utf-8"))
    ]


def copied(change: SourceChange, folder: Path) -> Path:
    """Make a tree with a change in it: links, but for the package that has changed."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    package = Path(change.file).parts[0]
    for entry in ROOT.iterdir():
        if entry.name == package:
            shutil.copytree(entry, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
        elif entry.name == "tests":
            # Their own file says where the project is.
            shutil.copytree(entry, folder / "tests", ignore=shutil.ignore_patterns("__pycache__"))
        elif not entry.name.startswith(".git"):
            (folder / entry.name).symlink_to(entry)
    (folder / change.file).write_text(change.text, encoding="utf-8")
    return folder


def noticed_by(change: SourceChange, folder: Path) -> str:
    """Return the test that notices a change, "" if none does.

    A module that cannot be imported any more is noticed by whoever imports it.
    """
    copied(change, folder)
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--tb=no", "-p", "no:cacheprovider"]
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        run = subprocess.run(
            [*command, *WITNESSES[change.file]],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=LIMIT_S,
        )
    except subprocess.TimeoutExpired:
        return f"no end within {LIMIT_S} s"
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if run.returncode == 0:
        return ""
    failed = [line for line in run.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return failed[0].split(" ")[1] if failed else run.stdout.strip().splitlines()[-1]


def run(chosen: Sequence[SourceChange], workers: int, say: Callable[[str], None]) -> dict[str, str]:
    """Try changes; return by their names who has noticed each, "" for nobody."""
    found: dict[str, str] = {}

    def one(number: int) -> tuple[SourceChange, str]:
        return chosen[number], noticed_by(chosen[number], COPIES / str(number))

    def take(pair: tuple[SourceChange, str]) -> None:
        change, who = pair
        found[change.name] = who
        say(f"[{len(found)}/{len(chosen)}] {change.name}: {who or 'NOBODY'}")

    parallel.as_they_end([partial(one, n) for n in range(len(chosen))], workers, take)
    return {change.name: found[change.name] for change in chosen}


def interfaces_hold() -> bool:
    """Run the tests that change each value of the data files; say whether all are noticed."""
    command = [sys.executable, "-m", "pytest", "-q", "-o", "addopts=--import-mode=importlib"]
    return subprocess.run([*command, *INTERFACES], cwd=ROOT, check=False).returncode == 0
