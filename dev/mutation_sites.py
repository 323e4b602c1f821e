# SPDX-License-Identifier: Apache-2.0
"""The mutants of a SystemVerilog file: every small fault that the operators of the field know.

A mutant changes one expression, or drops one statement. What is decided before the simulation runs
has none: parameters, types, dimensions, widths, conditions of generate blocks, bounds of loops,
labels of cases, functions that any of these call; nor have assertions, and conditions that ask for
the reset alone.

A mutant's place is the largest expression around what changes that is evaluated as one: whether it
gives another value there says that the mutant shows there, not only that it was passed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pyslang.syntax import (
    AssignmentPatternItemSyntax,
    BinaryExpressionSyntax,
    BitSelectSyntax,
    BlockStatementSyntax,
    CastExpressionSyntax,
    ConcatenationExpressionSyntax,
    ConcurrentAssertionMemberSyntax,
    ConditionalExpressionSyntax,
    ConditionalPatternSyntax,
    ConditionalPredicateSyntax,
    ConditionalStatementSyntax,
    ContinuousAssignSyntax,
    DataDeclarationSyntax,
    ElabSystemTaskSyntax,
    ElementSelectExpressionSyntax,
    ElementSelectSyntax,
    EventControlWithExpressionSyntax,
    ExpressionStatementSyntax,
    ForLoopStatementSyntax,
    FunctionDeclarationSyntax,
    IdentifierNameSyntax,
    IdentifierSelectNameSyntax,
    ImplicitAnsiPortSyntax,
    InsideExpressionSyntax,
    IntegerVectorExpressionSyntax,
    InvocationExpressionSyntax,
    LiteralExpressionSyntax,
    ModuleDeclarationSyntax,
    MultipleConcatenationExpressionSyntax,
    NamedPortConnectionSyntax,
    ParenthesizedExpressionSyntax,
    PrefixUnaryExpressionSyntax,
    RangeListSyntax,
    RangeSelectSyntax,
    ScopedNameSyntax,
    SimplePropertyExprSyntax,
    SimpleSequenceExprSyntax,
    StandardCaseItemSyntax,
    SyntaxNode,
    TypedefDeclarationSyntax,
    TypeParameterDeclarationSyntax,
    ValueRangeExpressionSyntax,
)

from dev.fault_merge import INPUT
from dev.sv_source import Piece, SvSource, children, decides_early, names, nodes, span

RESET = "rst_ni"
DROP, DROP_RESET = "drop", "drop-reset"
"""Operators that leave out a statement, the latter one of those that a reset executes."""

_OPERATORS: Mapping[str, tuple[str, str]] = {
    "AddExpression": ("arithmetic", "-"),
    "SubtractExpression": ("arithmetic", "+"),
    "LogicalAndExpression": ("logical", "||"),
    "LogicalOrExpression": ("logical", "&&"),
    "BinaryAndExpression": ("bitwise", "|"),
    "BinaryOrExpression": ("bitwise", "&"),
    "BinaryXorExpression": ("bitwise", "|"),
    "EqualityExpression": ("relational", "!="),
    "InequalityExpression": ("relational", "=="),
    "LessThanExpression": ("relational", "<="),
    "LessThanEqualExpression": ("relational", "<"),
    "GreaterThanExpression": ("relational", ">="),
    "GreaterThanEqualExpression": ("relational", ">"),
    "LogicalShiftLeftExpression": ("shift", ">>"),
    "LogicalShiftRightExpression": ("shift", "<<"),
    "ArithmeticShiftRightExpression": ("shift", ">>"),
}
"""Binary expressions: the class of the operator, and what replaces it."""
_NOTS = ("UnaryLogicalNotExpression", "UnaryBitwiseNotExpression")
_CLOSED = (
    ConcurrentAssertionMemberSyntax,
    ElabSystemTaskSyntax,
    EventControlWithExpressionSyntax,
    ImplicitAnsiPortSyntax,
    TypeParameterDeclarationSyntax,
    TypedefDeclarationSyntax,
)
"""What has no mutants inside."""
_NEGATED = ("EqualityExpression", "InequalityExpression", "UnaryLogicalNotExpression")
"""Conditions whose negation is the mutant of another operator."""
_VALUES = (
    BinaryExpressionSyntax,
    CastExpressionSyntax,
    ConcatenationExpressionSyntax,
    ConditionalExpressionSyntax,
    ElementSelectExpressionSyntax,
    IdentifierSelectNameSyntax,
    InsideExpressionSyntax,
    MultipleConcatenationExpressionSyntax,
    ParenthesizedExpressionSyntax,
    PrefixUnaryExpressionSyntax,
    ScopedNameSyntax,
)
"""Expressions that have a value of their own, with all that is in them."""
_WIDER = (
    *_VALUES,
    BitSelectSyntax,
    ConditionalPatternSyntax,
    ConditionalPredicateSyntax,
    ElementSelectSyntax,
    RangeListSyntax,
    RangeSelectSyntax,
    ValueRangeExpressionSyntax,
)
"""What may stand between such an expression and a smaller one in it."""
_NUMBER = re.compile(
    r"(?P<width>\d+)'(?P<signed>[sS])?(?P<base>[bodhBODH])(?P<digits>[0-9a-fA-F_]+)"
)


@dataclass(frozen=True)
class Mutant:
    """One small fault.

    Attributes:
        file: path of the file from the folder of the RTL.
        line: of what changes, from 1.
        column: of what changes, from 1.
        operator: the kind of change.
        old: text of what changes.
        new: what stands there instead; "" for a dropped statement.
        start: offset of the place's first byte in `SvSource`.
        end: offset behind the place's last byte.
        mutated: text of the whole place with the fault.
        home: name of the function or module that it is in.
    """

    file: str
    line: int
    column: int
    operator: str
    old: str
    new: str
    start: int
    end: int
    mutated: str
    home: str

    @property
    def name(self) -> str:
        """What it is called on the command line, unique in the tree."""
        stem = self.file.rsplit("/", 1)[-1].removesuffix(".sv")
        return f"{stem}:{self.line}:{self.column}:{self.operator}"

    @property
    def is_drop(self) -> bool:
        """Whether a statement is left out."""
        return self.operator in (DROP, DROP_RESET)

    @property
    def change(self) -> str:
        """The change, in one line."""
        old, new = (" ".join(text.split()) for text in (self.old, self.new))
        return f"{old} dropped" if self.is_drop else f"{old} -> {new}"


def mutants_of(file: str, source: SvSource, constant: frozenset[str]) -> list[Mutant]:
    """Return all mutants of a file, in the order of their places.

    Args:
        file: its path from the folder of the RTL.
        source: the file.
        constant: functions that are called before the simulation runs.
    """
    return list(_Finder(file, source, constant).found())


@dataclass(frozen=True)
class _Finder:
    """The walk through one file."""

    file: str
    source: SvSource
    constant: frozenset[str]

    def found(self) -> Iterator[Mutant]:
        """Yield all mutants."""
        for node in nodes(self.source.root):
            if isinstance(node, ModuleDeclarationSyntax):
                yield from self._below(node, node.header.name.valueText, False)

    def _below(self, node: SyntaxNode, home: str, in_reset: bool) -> Iterator[Mutant]:
        for child in self._open(node):
            if not isinstance(child, SyntaxNode) or isinstance(child, _CLOSED):
                continue
            if any(child is each for each in decides_early(child)):
                continue
            if isinstance(child, DataDeclarationSyntax) and not _executes(node):
                continue
            inner = home
            if isinstance(child, FunctionDeclarationSyntax):
                inner = self.source.text(child.prototype.name).strip()
                if inner in self.constant:
                    continue
            reset = in_reset or self._resets(node, child)
            for piece, new, operator in self._changes(child):
                yield self._changed(child, piece, new, f"{operator}{'-reset' * reset}", inner)
            if isinstance(child, ExpressionStatementSyntax):
                yield self._dropped(child, DROP_RESET if reset else DROP, inner)
            yield from self._below(child, inner, reset)

    def _resets(self, node: SyntaxNode, child: Piece) -> bool:
        """Say whether a child is what a statement does under reset."""
        if not isinstance(node, ConditionalStatementSyntax) or child is not node.statement:
            return False
        return self.source.text(node.predicate) == f"!{RESET}"

    def _open(self, node: SyntaxNode) -> list[Piece]:
        """Return the children of a node in which something may change at run time."""
        shut: list[Piece | None] = [*decides_early(node)]
        match node:
            case CastExpressionSyntax():
                shut.append(node.left)
            case MultipleConcatenationExpressionSyntax():
                shut.append(node.expression)
            case RangeSelectSyntax():
                shut += [node.right]
                shut += [node.left] if node.kind.name == "SimpleRangeSelect" else []
            case ForLoopStatementSyntax():
                return [node.statement]
            case StandardCaseItemSyntax():
                return [node.clause]
            case AssignmentPatternItemSyntax():
                return [node.expr]
            case ConditionalStatementSyntax() if names(node.predicate) == {RESET}:
                shut.append(node.predicate)
            case InvocationExpressionSyntax():
                name = self.source.text(node.left)
                if name.startswith("$") and name not in ("$signed", "$unsigned"):
                    return []
            case NamedPortConnectionSyntax():
                if not INPUT.fullmatch(node.name.valueText):
                    return []
            case BinaryExpressionSyntax() if "Assignment" in node.kind.name:
                shut.append(node.left)
        return [child for child in children(node) if not any(child is each for each in shut)]

    def _changes(self, node: SyntaxNode) -> Iterator[tuple[Piece, str, str]]:
        """Yield what may change of a node itself: a piece, what stands there instead, how."""
        kind = node.kind.name
        match node:
            case BinaryExpressionSyntax() if kind in _OPERATORS:
                operator, new = _OPERATORS[kind]
                yield node.operatorToken, new, operator
            case PrefixUnaryExpressionSyntax() if kind in _NOTS:
                yield node, self.source.text(node.operand), "not"
            case ConditionalExpressionSyntax():
                left, right = self.source.text(node.left), self.source.text(node.right)
                condition = self.source.text(node.predicate)
                yield node, f"{condition} ? ({right}) : ({left})", "arms"
            case ConditionalStatementSyntax():
                condition = node.predicate.conditions[0].expr
                if names(condition) != {RESET} and condition.kind.name not in _NEGATED:
                    yield condition, f"!({self.source.text(condition)})", "condition"
            case IdentifierNameSyntax() | IdentifierSelectNameSyntax() | ScopedNameSyntax():
                if self._is_whole(node):
                    yield node, "'0", "stuck"
            case RangeSelectSyntax() if kind == "SimpleRangeSelect":
                ends = [self.source.text(end) for end in (node.left, node.right)]
                step = "-" if ends[1].isdecimal() and int(ends[1]) > 0 else "+"
                yield node, ":".join(f"({end}) {step} 1" for end in ends), "slice"
            case LiteralExpressionSyntax() | IntegerVectorExpressionSyntax():
                for new in _neighbours(self.source.text(node)):
                    yield node, new, "constant"

    def _is_whole(self, node: SyntaxNode) -> bool:
        """Say whether a name is all that an input or a continuous assignment gets."""
        above = node.parent
        while isinstance(above, SimplePropertyExprSyntax | SimpleSequenceExprSyntax):
            above = above.parent
        if isinstance(above, NamedPortConnectionSyntax):
            return not names(node) <= {"clk_i", RESET}
        return (
            isinstance(above, BinaryExpressionSyntax)
            and above.kind.name == "AssignmentExpression"
            and isinstance(above.parent, ContinuousAssignSyntax)
        )

    def _changed(
        self, node: SyntaxNode, piece: Piece, new: str, operator: str, home: str
    ) -> Mutant:
        place = _place(piece if isinstance(piece, SyntaxNode) else node)
        (start, end), (first, last) = span(place), span(piece)
        text = self.source.text(place).encode()
        mutated = text[: first - start] + new.encode() + text[last - start :]
        line, column = self.source.line_of(first)
        old = self.source.text(piece)
        return Mutant(
            self.file, line, column, operator, old, new, start, end, mutated.decode(), home
        )

    def _dropped(self, node: ExpressionStatementSyntax, operator: str, home: str) -> Mutant:
        start, end = span(node)
        line, column = self.source.line_of(start)
        old = self.source.text(node)
        return Mutant(self.file, line, column, operator, old, "", start, end, "", home)


def _executes(node: SyntaxNode) -> bool:
    """Say whether declarations in a node are evaluated each time that it is entered."""
    return isinstance(node, FunctionDeclarationSyntax | BlockStatementSyntax)


def _place(node: SyntaxNode) -> SyntaxNode:
    """Return the largest expression around a node that has a value of its own."""
    place = node
    while isinstance(node.parent, _WIDER):
        if "Assignment" in node.parent.kind.name and isinstance(
            node.parent, BinaryExpressionSyntax
        ):
            break
        node = node.parent
        if isinstance(node, _VALUES):
            place = node
    return place


def _neighbours(text: str) -> Iterator[str]:
    """Yield the constant next to a constant, of the same width."""
    number = _NUMBER.fullmatch(text)
    if text in ("'0", "'1"):
        yield "'1" if text == "'0" else "'0"
    elif text.isdecimal():
        yield str(int(text) + 1)
    elif number is not None and number["digits"].strip("_"):
        base = {"b": 2, "o": 8, "d": 10, "h": 16}[number["base"].lower()]
        value, width = int(number["digits"].replace("_", ""), base), int(number["width"])
        signed, top = number["signed"] or "", (1 << width) - 1
        yield f"{width}'{signed}d{value + 1 if value < top else value - 1}"
