# SPDX-License-Identifier: Apache-2.0
"""Contracts in the RTL: a comment at every port and parameter, a name and a message at assertions.

A port's comment says what a user of the module must know and the type does not tell: unit, when it
is valid, whether a request may be withdrawn, latency where it is fixed. It stands behind the
declaration, or on lines of its own directly above it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pyslang.syntax import SyntaxKind, SyntaxNode, SyntaxTree

from spec.paths import ROOT, RTL

_PORTS = (SyntaxKind.ImplicitAnsiPort, SyntaxKind.ExplicitAnsiPort)
_PARAMETERS = (SyntaxKind.ParameterDeclaration, SyntaxKind.TypeParameterDeclaration)
_ASSERTIONS = (
    SyntaxKind.AssertPropertyStatement,
    SyntaxKind.AssumePropertyStatement,
    SyntaxKind.CoverPropertyStatement,
    SyntaxKind.ImmediateAssertStatement,
    SyntaxKind.ImmediateAssumeStatement,
)


def _nodes(node: SyntaxNode) -> Iterator[SyntaxNode]:
    """Yield a node and all below it."""
    yield node
    for child in node:
        if isinstance(child, SyntaxNode):
            yield from _nodes(child)


def _line(tree: SyntaxTree, node: SyntaxNode) -> int:
    return int(tree.sourceManager.getLineNumber(node.getFirstToken().location))


def _end(tree: SyntaxTree, node: SyntaxNode) -> int:
    return int(tree.sourceManager.getLineNumber(node.getLastToken().location))


def _commented(lines: list[str], first: int, last: int) -> bool:
    """Whether a declaration on lines first to last has a comment behind it or directly above."""
    above = lines[first - 2].strip() if first > 1 else ""
    return above.startswith("//") or any("//" in line for line in lines[first - 1 : last])


def _declared(node: SyntaxNode) -> str:
    """Return the name that a port or parameter declares."""
    declarators = getattr(node, "declarators", None)
    declarator = getattr(node, "declarator", None) or (declarators[0] if declarators else node)
    return str(getattr(declarator, "name", declarator)).split()[-1]


def _headers(root: SyntaxNode) -> Iterator[SyntaxNode]:
    return (node for node in _nodes(root) if node.kind == SyntaxKind.ModuleHeader)


def findings_in(path: Path, name: str) -> list[str]:
    """Return what a file lacks, as `file:line: text`."""
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    tree = SyntaxTree.fromText(text)
    found = []
    for header in _headers(tree.root):
        for node in _nodes(header):
            if node.kind not in (*_PORTS, *_PARAMETERS):
                continue
            what = "port" if node.kind in _PORTS else "parameter"
            first, last = _line(tree, node), _end(tree, node)
            if not _commented(lines, first, last):
                declared = _declared(node)
                found.append(
                    f"{name}:{first}: {what} {declared} has no comment: say unit, when it is "
                    "valid, whether it may be withdrawn"
                )
    for node in _nodes(tree.root):
        if node.kind in _ASSERTIONS:
            found += _assertion(tree, node, name)
    return found


def _assertion(tree: SyntaxTree, node: SyntaxNode, name: str) -> Iterator[str]:
    """Yield what an assertion lacks."""
    line = _line(tree, node)
    if getattr(node, "label", None) is None:
        yield f"{name}:{line}: an assertion without a name: write Name_A: in front of it"
    if "else" not in str(node):
        yield f'{name}:{line}: an assertion without a message: write else $error("...")'


def findings(rtl: Path = RTL, root: Path = ROOT) -> list[str]:
    """Return what all files of the RTL lack."""
    return [
        line
        for path in sorted(rtl.rglob("*.sv"))
        for line in findings_in(path, str(path.relative_to(root)))
    ]
