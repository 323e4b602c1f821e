# SPDX-License-Identifier: Apache-2.0
"""What a function of this tree uses, found in the sources: itself, and through its helpers."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[3]


@dataclass
class _Module:
    """The top level of a source file: what it defines, and what its imports mean."""

    name: str
    defined: dict[str, ast.stmt] = field(default_factory=dict)
    imported: dict[str, str] = field(default_factory=dict)

    def add(self, statement: ast.stmt) -> None:
        """Take in one statement."""
        match statement:
            case ast.FunctionDef() | ast.ClassDef():
                self.defined[statement.name] = statement
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                self.defined[name] = statement
            case ast.Import():
                for alias in statement.names:
                    self.imported[alias.asname or alias.name] = alias.name
            case ast.ImportFrom():
                for alias in statement.names:
                    full = f"{statement.module}.{alias.name}"
                    self.imported[alias.asname or alias.name] = full

    def meaning(self, dotted: str) -> str:
        """Return the full name behind `np.sum` or `helper`; "" for a local one."""
        first, dot, rest = dotted.partition(".")
        if first in self.defined:
            return f"{self.name}.{dotted}"
        return self.imported[first] + dot + rest if first in self.imported else ""


@cache
def _module(name: str) -> _Module | None:
    """Return a module of this tree, None if there is no such file."""
    path = ROOT / f"{name.replace('.', '/')}.py"
    if not path.is_file():
        return None
    module = _Module(name)
    for statement in ast.parse(path.read_text(encoding="utf-8")).body:
        module.add(statement)
    return module


def _dotted(node: ast.AST) -> str:
    """Return `a.b.c` of an expression, "" if it is nothing of the kind."""
    if isinstance(node, ast.Attribute):
        base = _dotted(node.value)
        return f"{base}.{node.attr}" if base else ""
    return node.id if isinstance(node, ast.Name) else ""


def _home(name: str) -> tuple[_Module, str] | None:
    """Return the module of this tree that defines a full name, and the name in it."""
    parts = name.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        module = _module(".".join(parts[:cut]))
        if module is not None and parts[cut] in module.defined:
            return module, parts[cut]
    return None


def used_by(function: str, inside: str) -> set[str]:
    """Return the full names that a function uses, itself or through what it calls.

    Args:
        function: a full name, such as `tests.python.test_x.test_y`.
        inside: a module that is looked into as the modules of the tests are; no other one is.

    Raises:
        LookupError: there is no such function.
    """
    if _home(function) is None:
        raise LookupError(f"there is no {function}")
    found: set[str] = set()
    left = [function]
    while left:
        home = _home(left.pop())
        if home is None:
            continue
        module, name = home
        names = {module.meaning(_dotted(node)) for node in ast.walk(module.defined[name])}
        fresh = names - found - {""}
        found |= fresh
        left += [full for full in fresh if full.startswith(("tests.", f"{inside}."))]
    return found


def public(module: str) -> Iterator[str]:
    """Yield the full names of the public functions of a module of this tree."""
    source = _module(module)
    assert source is not None, module
    for name, statement in source.defined.items():
        if isinstance(statement, ast.FunctionDef) and not name.startswith("_"):
            yield f"{module}.{name}"
