# SPDX-License-Identifier: Apache-2.0
"""A SystemVerilog file as text and syntax tree: what its pieces name, and edits around them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from pyslang.parsing import Token
from pyslang.syntax import (
    BinaryExpressionSyntax,
    CaseGenerateSyntax,
    ContinuousAssignSyntax,
    DeclaratorSyntax,
    FunctionDeclarationSyntax,
    IdentifierNameSyntax,
    IdentifierSelectNameSyntax,
    IfGenerateSyntax,
    LoopGenerateSyntax,
    ParameterDeclarationSyntax,
    ParameterValueAssignmentSyntax,
    SyntaxNode,
    SyntaxTree,
    VariableDimensionSyntax,
)

_CONSTANT = (ParameterDeclarationSyntax, ParameterValueAssignmentSyntax, VariableDimensionSyntax)
_IMPLICIT_CONNECTION = re.compile(r"(?<=[\s(,])\.(\w+)(?=\s*[,)])")

Piece = SyntaxNode | Token
Pair = tuple[Piece | None, Piece | None]


@dataclass(frozen=True)
class Edit:
    """Text around a piece of the original file, which stays in place.

    Attributes:
        start: offset of the piece's first byte.
        end: offset behind its last byte; equal to `start` for something added.
        before: text in front of it.
        after: text behind it.
        declares: names that the added text declares.
    """

    start: int
    end: int
    before: str
    after: str = ""
    declares: frozenset[str] = frozenset()


class SvSource:
    """A file's text and its syntax tree; `.port` in an instance is written out as `.port(port)`."""

    def __init__(self, text: str) -> None:
        self._bytes = _IMPLICIT_CONNECTION.sub(r".\1(\1)", text).encode()
        self._tree = SyntaxTree.fromText(self._bytes.decode())
        self.root: SyntaxNode = self._tree.root

    @property
    def is_broken(self) -> bool:
        """Whether the text is no SystemVerilog."""
        return any(diagnostic.isError() for diagnostic in self._tree.diagnostics)

    def text(self, piece: Piece) -> str:
        """Return the text of a piece, without the comments around it."""
        start, end = span(piece)
        return self._bytes[start:end].decode()

    @property
    def lines(self) -> int:
        """How many lines the file has."""
        return self._bytes.count(b"\n")

    def line(self, number: int) -> str:
        """Return a line, numbered from 1."""
        return self._bytes.decode().splitlines()[number - 1]

    def slice(self, start: int, end: int) -> str:
        """Return the text between two offsets."""
        return self._bytes[start:end].decode()

    def line_of(self, offset: int) -> tuple[int, int]:
        """Return line and column of a byte, both from 1."""
        before = self._bytes[:offset]
        return before.count(b"\n") + 1, offset - before.rfind(b"\n")

    def edited(self, edits: Iterable[Edit]) -> str:
        """Return the file with all edits, equal ones once; of two at one place the first leads."""
        marks = []
        ordered = sorted(dict.fromkeys(edits), key=lambda edit: (edit.start, -edit.end))
        for rank, edit in enumerate(ordered):
            # At one place: what ends there, innermost first, what is added, what begins there.
            if edit.start == edit.end:
                marks.append((edit.start, 1, rank, edit.before))
            else:
                marks.append((edit.start, 2, rank, edit.before))
                marks.append((edit.end, 0, -rank, edit.after))
        pieces, at = [], 0
        for place, _, _, text in sorted(marks):
            pieces += [self._bytes[at:place].decode(), text]
            at = place
        return "".join([*pieces, self._bytes[at:].decode()])


def span(piece: Piece) -> tuple[int, int]:
    """Return the offsets of a piece's first byte and of the one behind it."""
    place = piece.range if isinstance(piece, Token) else piece.sourceRange
    return place.start.offset, place.end.offset


def children(node: SyntaxNode) -> list[Piece]:
    """Return what a node consists of, its lists written out."""
    return [child for child in node if isinstance(child, SyntaxNode | Token)]


def nodes(piece: Piece) -> Iterator[SyntaxNode]:
    """Yield a node and all nodes below it."""
    if isinstance(piece, SyntaxNode):
        yield piece
        for child in children(piece):
            yield from nodes(child)


def names(piece: Piece) -> set[str]:
    """Return the names that a piece uses."""
    return {
        node.identifier.valueText
        for node in nodes(piece)
        if isinstance(node, IdentifierNameSyntax | IdentifierSelectNameSyntax)
    }


def declared(piece: Piece) -> set[str]:
    """Return the names of the variables and parameters that are declared in a piece."""
    return {node.name.valueText for node in nodes(piece) if isinstance(node, DeclaratorSyntax)}


def assigned(piece: Piece) -> set[str]:
    """Return the names on the left of assignments and under `++` and `--`, indices included."""
    found: set[str] = set()
    for node in nodes(piece):
        if isinstance(node, BinaryExpressionSyntax) and "Assignment" in node.kind.name:
            found |= names(node.left)
        elif "crementExpression" in node.kind.name:
            found |= names(node)
    return found


def decides_early(node: SyntaxNode) -> list[Piece]:
    """Return what of a node is evaluated before the simulation runs."""
    if isinstance(node, _CONSTANT):
        return [node]
    if isinstance(node, IfGenerateSyntax | CaseGenerateSyntax):
        return [node.condition]
    if isinstance(node, LoopGenerateSyntax):
        return [node.initialExpr, node.stopExpr, node.iterationExpr]
    return []


def constant_functions(sources: Iterable[SvSource]) -> frozenset[str]:
    """Return the names that are used before the simulation runs, also by functions used there."""
    uses: dict[str, set[str]] = {}
    early: set[str] = set()
    for source in sources:
        for node in nodes(source.root):
            if isinstance(node, FunctionDeclarationSyntax):
                name = source.text(node.prototype.name).strip()
                uses.setdefault(name, set()).update(names(node))
            for piece in decides_early(node):
                early |= names(piece)
    found: set[str] = set()
    while early:
        name = early.pop()
        found.add(name)
        early |= uses.get(name, set()) - found
    return frozenset(found)


def head(piece: Piece) -> str:
    """Return what a member begins with: two that differ behind it are the same member, changed."""
    if isinstance(piece, Token):
        return str(piece.rawText)
    if isinstance(piece, ContinuousAssignSyntax):
        return "assign " + " ".join(str(item.left).strip() for item in piece.assignments if item)
    return str(piece.kind)


def _matched(
    olds: Sequence[Piece],
    news: Sequence[Piece],
    old_key: Callable[[Piece], str],
    new_key: Callable[[Piece], str],
) -> Iterator[tuple[Sequence[Piece], Sequence[Piece]]]:
    """Yield pieces with equal keys in pairs, and the runs between them."""
    keys = [old_key(piece) for piece in olds], [new_key(piece) for piece in news]
    for tag, i, j, k, m in SequenceMatcher(None, *keys, autojunk=False).get_opcodes():
        if tag == "equal":
            yield from (([old], [new]) for old, new in zip(olds[i:j], news[k:m], strict=True))
        else:
            yield olds[i:j], news[k:m]


def aligned(old: SvSource, olds: SyntaxNode, new: SvSource, news: SyntaxNode) -> Iterator[Pair]:
    """Pair the children of two lists: equal ones, between these what begins alike, rest alone."""
    for left, right in _matched(children(olds), children(news), old.text, new.text):
        if len(left) == len(right) == 1:
            yield left[0], right[0]
            continue
        for one, other in _matched(left, right, head, head):
            if len(one) == len(other) == 1:
                yield one[0], other[0]
            else:
                yield from ((piece, None) for piece in one)
                yield from ((None, piece) for piece in other)
