# SPDX-License-Identifier: Apache-2.0
"""Merges changed copies of a SystemVerilog file into one that chooses between them at run time.

The syntax trees of the original and of a changed copy are walked side by side. Where they differ,
the smallest enclosing piece that can be chosen while the simulation runs becomes a choice by
`npu_fault_pkg::fault`, the number of the fault that the plusarg `+fault=` plants: a statement, a
continuous assignment, the connection of an input. The sides of a choice are whole assignments and
never operands, so that neither gives the other its width or sign. The original stays in place as
one side, so the choices of several faults nest, and number 0 is the original.

What is decided before the simulation runs cannot be chosen: parameters, types, ports, conditions of
generate blocks, functions that any of these call. A copy that changes such a piece is refused.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from pyslang.syntax import (
    BlockStatementSyntax,
    ContinuousAssignSyntax,
    DataDeclarationSyntax,
    FunctionDeclarationSyntax,
    GenerateBlockSyntax,
    ModuleDeclarationSyntax,
    NamedPortConnectionSyntax,
    ProceduralBlockSyntax,
    StatementSyntax,
    SyntaxNode,
    TimingControlStatementSyntax,
)

from dev.sv_source import (
    Edit,
    Piece,
    SvSource,
    aligned,
    assigned,
    children,
    constant_functions,
    declared,
    head,
    span,
)

PACKAGE = """\
// The fault that the model has, 0 for none:
{names}
package npu_fault_pkg;
  function automatic int unsigned planted();
    int unsigned number;
    if ($value$plusargs("fault=%d", number) == 0) number = 0;
    return number;
  endfunction

  int unsigned fault = planted();
endpackage
"""
"""What the merged files choose by; `{names}` stands for the lines that say what number is what."""

_LISTS = (
    BlockStatementSyntax,
    FunctionDeclarationSyntax,
    GenerateBlockSyntax,
    ModuleDeclarationSyntax,
)
"""Nodes whose children are statements or members, any number of them; packages are modules."""
INPUT = re.compile(r"\w+_n?i")
"""Ports that are inputs, by their names."""
_PLAIN_NAME = re.compile(r"[\w.]+")


def differences(
    original: SvSource, changed: SvSource, number: int, constant: frozenset[str]
) -> list[Edit] | None:
    """Return what makes the original choose the changed file for one number.

    Args:
        original: the file.
        changed: its changed copy.
        number: the value of `npu_fault_pkg::fault` for which the copy holds.
        constant: functions that cannot choose, from `constant_functions`.

    Returns:
        The edits for `original.edited`, None if a difference cannot be chosen at run time or is
        no SystemVerilog.
    """
    if changed.is_broken:
        return None
    return _Walk(original, changed, number, constant).piece(original.root, changed.root)


@dataclass
class Merger:
    """A copy of `rtl/` that takes in faults one after the other.

    Attributes:
        rtl: the original's folder.
    """

    rtl: Path
    _edits: dict[str, list[Edit]] = field(default_factory=dict)
    _names: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        texts = {path: path.read_text(encoding="utf-8") for path in self.rtl.rglob("*.sv")}
        self._originals = {
            str(path.relative_to(self.rtl)): SvSource(text) for path, text in texts.items()
        }
        self._constant = constant_functions(self._originals.values())

    def take(self, patched: Path, number: int, name: str) -> bool:
        """Take in what a patched copy has changed, if all of it can be chosen at run time."""
        found: dict[str, list[Edit]] = {}
        files = {str(path.relative_to(patched)) for path in patched.rglob("*.sv")}
        if files != self._originals.keys():
            return False
        for file, original in self._originals.items():
            text = (patched / file).read_text(encoding="utf-8")
            if text == (self.rtl / file).read_text(encoding="utf-8"):
                continue
            edits = differences(original, SvSource(text), number, self._constant)
            others = self._edits.get(file, [])
            if edits is None or _declared_by(edits) & _declared_by(others):
                return False
            found[file] = edits
        for file, edits in found.items():
            self._edits.setdefault(file, []).extend(edits)
        self._names.append(f"// {number}: {name}")
        return True

    def write(self, folder: Path) -> None:
        """Write the copy that has all faults taken in, of which `+fault=` chooses one."""
        shutil.copytree(self.rtl, folder)
        package = PACKAGE.replace("{names}", "\n".join(self._names))
        (folder / "npu_fault_pkg.sv").write_text(package, encoding="utf-8")
        for file, edits in self._edits.items():
            (folder / file).write_text(self._originals[file].edited(edits), encoding="utf-8")


def _declared_by(edits: Iterable[Edit]) -> set[str]:
    return {name for edit in edits for name in edit.declares}


@dataclass(frozen=True)
class _Walk:
    """The walk through two trees side by side; None stands for a difference that is refused."""

    original: SvSource
    changed: SvSource
    number: int
    constant: frozenset[str]

    def piece(self, old: Piece, new: Piece) -> list[Edit] | None:
        """Return the edits for the smallest pieces that can be chosen."""
        if self.original.text(old) == self.changed.text(new):
            return []
        if not isinstance(old, SyntaxNode) or not isinstance(new, SyntaxNode):
            return None
        inside = self._inside(old, new) if old.kind == new.kind else None
        return inside if inside is not None else self._choice(old, new)

    def _inside(self, old: SyntaxNode, new: SyntaxNode) -> list[Edit] | None:
        if isinstance(old, FunctionDeclarationSyntax):
            name = self.original.text(old.prototype.name).strip()
            if name in self.constant:
                return None
        if isinstance(old, _LISTS):
            return self._list(old, new)
        olds, news = children(old), children(new)
        if len(olds) != len(news):
            return None
        return _together(self.piece(*pair) for pair in zip(olds, news, strict=True))

    def _list(self, old: SyntaxNode, new: SyntaxNode) -> list[Edit] | None:
        """Compare lists of statements or members, some of which may be missing or added."""
        pairs = list(aligned(self.original, old, self.changed, new))
        added = [after for before, after in pairs if before is None and after is not None]
        mine = {name for piece in added if _is_declaration(piece) for name in declared(piece)}
        edits: list[list[Edit] | None] = []
        at = span(old)[0]
        for before, after in pairs:
            if before is None and after is not None:
                edits.append(self._added(after, at, mine))
            elif before is not None:
                at = span(before)[1]
                edits.append(self._dropped(before) if after is None else self.piece(before, after))
        return _together(edits)

    def _choice(self, old: SyntaxNode, new: SyntaxNode) -> list[Edit] | None:
        if isinstance(old, StatementSyntax) and isinstance(new, StatementSyntax):
            timed = any(isinstance(node, TimingControlStatementSyntax) for node in (old, new))
            return None if timed else [self._either(span(old), self.changed.text(new))]
        if isinstance(old, ContinuousAssignSyntax) and isinstance(new, ContinuousAssignSyntax):
            return self._assignment(old, new)
        if isinstance(old, NamedPortConnectionSyntax) and isinstance(
            new, NamedPortConnectionSyntax
        ):
            return self._connection(old, new)
        return None

    def _either(self, place: tuple[int, int], other: str) -> Edit:
        """Make the statement at `place` the one for all other numbers; `other` may be empty."""
        chosen = f"if (npu_fault_pkg::fault == {self.number}) begin {other} end"
        return Edit(*place, f"begin {chosen} else begin ", " end end")

    def _assignment(
        self, old: ContinuousAssignSyntax, new: ContinuousAssignSyntax | None
    ) -> list[Edit] | None:
        """Make `assign y = a;` an `always_comb` with a choice; it does nothing without `new`."""
        if len(old.assignments) != 1 or old.strength or old.delay:
            return None
        other = ""
        if new is not None:
            if head(old) != head(new) or len(new.assignments) != 1:
                return None
            other = f"{self.changed.text(new.assignments[0])};"
        keyword = Edit(*span(old.assign), "always_comb /* ", " */")
        place = span(old.assignments[0])[0], span(old)[1]
        return [keyword, self._either(place, other)]

    def _connection(
        self, old: NamedPortConnectionSyntax, new: NamedPortConnectionSyntax
    ) -> list[Edit] | None:
        """Choose what an input is connected with; only a plain name has its width by itself."""
        if old.name.valueText != new.name.valueText or not (old.expr and new.expr):
            return None
        if not INPUT.fullmatch(old.name.valueText):
            return None
        if not _PLAIN_NAME.fullmatch(self.original.text(old.expr)):
            return None
        chosen = f"(npu_fault_pkg::fault == {self.number}) ? ({self.changed.text(new.expr)})"
        return [Edit(*span(old.expr), f"({chosen} : (", "))")]

    def _dropped(self, piece: Piece) -> list[Edit] | None:
        if isinstance(piece, ContinuousAssignSyntax):
            return self._assignment(piece, None)
        if _is_declaration(piece):
            return []
        body = piece.statement if isinstance(piece, ProceduralBlockSyntax) else piece
        if isinstance(body, TimingControlStatementSyntax):
            body = body.statement
        return [self._either(span(body), "")] if isinstance(body, StatementSyntax) else None

    def _added(self, piece: Piece, at: int, mine: set[str]) -> list[Edit] | None:
        """Add a piece at an offset; a process only if all that it assigns is added with it."""
        text = self.changed.text(piece)
        if isinstance(piece, StatementSyntax):
            return [Edit(at, at, f" if (npu_fault_pkg::fault == {self.number}) begin {text} end")]
        if _is_declaration(piece):
            return [Edit(at, at, f"\n  {text}", declares=frozenset(declared(piece)))]
        is_process = isinstance(piece, ProceduralBlockSyntax | ContinuousAssignSyntax)
        if is_process and assigned(piece) <= mine | declared(piece):
            return [Edit(at, at, f"\n  {text}")]
        return None


def _is_declaration(piece: Piece) -> bool:
    return isinstance(piece, DataDeclarationSyntax)


def _together(parts: Iterable[list[Edit] | None]) -> list[Edit] | None:
    """Return all edits, None if one part is refused."""
    edits: list[Edit] = []
    for part in parts:
        if part is None:
            return None
        edits += part
    return edits
