# SPDX-License-Identifier: Apache-2.0
"""Finds a mode that is written as a number, where `isa.toml` has a name for it.

Looked at are the fields of imm whose values have names, one-bit switches aside: in SystemVerilog
what a member of that name is compared with, and bits of imm that are cut out by hand; in Python
also what such a field is given, as a keyword, an entry of a dictionary or by `put`. Words that are
written down whole, as tests of the encoding do, stay what they are.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from spec.isa import OPCODES
from spec.paths import PACKAGES, ROOT

FIELDS = {
    name
    for info in OPCODES.values()
    for name, bits in info.imm.items()
    if bits.values is not None and bits.width > 1
}
"""Fields of imm that name something."""
OTHER_MEANINGS = {"index"}
"""Of them those that Python code also calls other things, which are only looked at in `imm`."""

_MEMBER = rf"\.({'|'.join(sorted(FIELDS))})\b"
_NUMBER = r"(?:\d*'[sS]?[bodhBODH][0-9a-fA-F_]+|'[01]\b|\b\d+\b)"
_SV_PATTERNS = (
    re.compile(rf"{_MEMBER}\s*(?:[=!]==?|[<>]=?)\s*{_NUMBER}"),
    re.compile(rf"{_NUMBER}\s*[=!]==?\s*\w+(?:\.\w+)*{_MEMBER}"),
    re.compile(rf"{_MEMBER}\s+inside\s*\{{[^}}]*{_NUMBER}"),
    re.compile(rf"\bcase\s*\([\w.]*{_MEMBER}\)(?:(?!endcase)[\s\S])*?\n\s*{_NUMBER}[^:;\n]*:"),
)
_SV_BITS = re.compile(r"\.imm\s*\[")
_SV_COMMENT = re.compile(r"//[^\n]*")
ADVICE = "write its name, from spec/isa/isa.toml"


def in_systemverilog(text: str) -> Iterator[tuple[int, str]]:
    """Yield (line, what is wrong) of a SystemVerilog source."""
    text = _SV_COMMENT.sub("", text)
    for pattern in _SV_PATTERNS:
        for match in pattern.finditer(text):
            line = text.count("\n", 0, match.end()) + 1
            yield line, f"a value of {match[1]} is written as a number: {ADVICE}"
    for match in _SV_BITS.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        yield line, "bits of imm are cut out by hand: read them through the struct of the opcode"


def _is_number(node: ast.expr) -> bool:
    """Whether it is a number, or a collection with one; True and False are none."""
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return any(map(_is_number, node.elts))
    return isinstance(node, ast.Constant) and type(node.value) is int


def _key(node: ast.expr) -> str:
    """Return the field of `imm["field"]`, "" of anything else."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return node.slice.value if node.slice.value in FIELDS else ""
    return ""


def _field(node: ast.expr) -> str:
    """Return the field whose value an expression is, "" if it is no such."""
    name = ""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return _key(node.func.value) if node.func.attr == "get" else ""
    if isinstance(node, ast.Attribute):
        name = node.attr
    elif isinstance(node, ast.Name):
        name = node.id
    return name if name in FIELDS - OTHER_MEANINGS else ""


def _given(node: ast.AST) -> Iterator[str]:
    """Yield the fields that a node compares with a number or sets to one."""
    match node:
        case ast.Compare():
            sides = [node.left, *node.comparators]
            if any(map(_is_number, sides)):
                yield from filter(None, map(_field, sides))
        case ast.Call():
            for keyword in node.keywords:
                if keyword.arg in FIELDS - OTHER_MEANINGS and _is_number(keyword.value):
                    yield str(keyword.arg)
            put = isinstance(node.func, ast.Attribute) and node.func.attr == "put"
            if put and isinstance(node.func, ast.Attribute) and any(map(_is_number, node.args)):
                yield from filter(None, [_key(node.func.value)])
        case ast.Dict():
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and key.value in FIELDS and _is_number(value):
                    yield str(key.value)


def in_python(text: str) -> Iterator[tuple[int, str]]:
    """Yield (line, what is wrong) of a Python source."""
    for node in ast.walk(ast.parse(text)):
        for name in _given(node):
            line = getattr(node, "lineno", 0)
            yield line, f"a value of {name} is written as a number: {ADVICE}"


def findings(root: Path = ROOT, folders: Sequence[str] = ("rtl", *PACKAGES, "tests")) -> list[str]:
    """Return the modes that are written as numbers, as `file:line: text`."""
    found = []
    for path in sorted(path for folder in folders for path in (root / folder).rglob("*")):
        check = {".sv": in_systemverilog, ".py": in_python}.get(path.suffix)
        if check is not None:
            places = check(path.read_text(encoding="utf-8"))
            found += [f"{path.relative_to(root)}:{line}: {text}" for line, text in places]
    return found
