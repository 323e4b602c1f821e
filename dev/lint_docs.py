# SPDX-License-Identifier: Apache-2.0
"""Checks the pages: what they name exists, every page can be reached, lines are short.

A page names a file or folder in backticks (from the root of the tree, or beside the page) or in a
link; in backticks a module of the RTL, or what a header of the firmware declares (`npu_...`). Pages
that are generated keep their long lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from spec.paths import ROOT

COLUMNS = 110
MADE = ("build", ".regress", ".venv")
"""Folders that commands make: what is in them is not in the tree."""
NOT_OURS = {
    "npu_plan.h": "a header that is written beside an image",
    "openai-community/gpt2": "a model on the hub",
    "tb/tests/test_mine.py": "the reader's own file, in an example",
}
"""What looks like a path of the tree and is none, with the reason."""
SOURCES = {".cpp", ".h", ".md", ".patch", ".py", ".rdl", ".sv", ".svg", ".toml", ".vlt"}
"""A name with one of these endings and no folder is a file somewhere in the tree."""
_PATH = re.compile(r"\.?\w[\w.*-]*(/[\w.*-]+)*/?")
_MODULE = re.compile(r"npu_[a-z0-9_]+")
_LINK = re.compile(r"\[[^]]*\]\(([^)\s]+)\)")
_CODE = re.compile(r"`([^`\n]+(?:\n[^`\n]+)?)`")


@dataclass(frozen=True)
class DocsTree:
    """The tree in which pages are checked.

    Attributes:
        root: its first folder.
    """

    root: Path = ROOT

    @cached_property
    def pages(self) -> list[Path]:
        """The pages: those at the root that say how the project is used, and all of docs."""
        roots = [self.root / f"{name}.md" for name in ("README", "CONTRIBUTING", "SECURITY")]
        return [path for path in roots if path.exists()] + sorted(
            (self.root / "docs").rglob("*.md")
        )

    @cached_property
    def names(self) -> set[str]:
        """The names of all files, generated ones too, without their folders."""
        folders = [path for path in self.root.iterdir() if path.name not in (*MADE, ".git")]
        folders.append(self.root / "build" / "gen")
        below = (path for folder in folders if folder.is_dir() for path in folder.rglob("*"))
        return {path.name for path in (*folders, *below)}

    @cached_property
    def declared(self) -> set[str]:
        """The names of functions and types in the firmware's headers."""
        headers = sorted((self.root / "firmware").rglob("*.h"))
        return {name for one in headers for name in _MODULE.findall(one.read_text("utf-8"))}

    def text(self, page: Path) -> str:
        """Return a page; the lines of its code are empty."""
        kept, fenced = [], False
        for line in page.read_text(encoding="utf-8").splitlines():
            fenced ^= line.startswith("```")
            kept.append("" if fenced or line.startswith(("    ", "```")) else line)
        return "\n".join(kept)

    def finding(self, page: Path, line: int, text: str) -> str:
        """Return a finding as file, line and what to do."""
        return f"{page.relative_to(self.root)}:{line}: {text}"


def _exists(tree: DocsTree, page: Path, name: str) -> bool:
    name = name.rstrip("/")
    return any(any(folder.glob(name)) for folder in (tree.root, page.parent))


def _missing_name(tree: DocsTree, page: Path, word: str) -> str | None:
    """Return what is wrong with a word in backticks."""
    name = word.split("=")[-1].strip(",;:")
    if _MODULE.fullmatch(name):
        known = f"{name}.sv" in tree.names or f"{name}.rdl" in tree.names
        known |= name in tree.declared
        return None if known else f"given module `{name}`, rtl has none of this name"
    if not _PATH.fullmatch(name) or name in NOT_OURS or name.split("/")[0] in MADE:
        return None
    if "NAME" in name:  # stands for any
        return None
    if "/" in name:
        known = _exists(tree, page, name)
    else:
        known = Path(name).suffix not in SOURCES or name in tree.names
    return None if known else f"given `{name}`, no such file or folder"


def _anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), flags=re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in headings}


def _missing_link(page: Path, target: str) -> str | None:
    """Return what is wrong with a link."""
    name, _, anchor = target.partition("#")
    if re.match(r"\w+:", target):
        return None
    file = (page.parent / name).resolve() if name else page
    if not file.exists():
        return f"given link to {target}, no such file or folder"
    if anchor and file.suffix == ".md" and anchor not in _anchors(file):
        return f"given link to {target}, {file.name} has no such heading"
    return None


def names(tree: DocsTree) -> Iterator[str]:
    """Yield a finding for each name on a page that does not exist."""
    for page in tree.pages:
        text = tree.text(page)
        found = [(match, _missing_link(page, match[1])) for match in _LINK.finditer(text)]
        for match in _CODE.finditer(text):
            found += [(match, _missing_name(tree, page, word)) for word in match[1].split()]
        for match, wrong in found:
            if wrong is not None:
                line = text.count("\n", 0, match.start()) + 1
                yield tree.finding(page, line, f"{wrong}; name one that exists")


def unreached(tree: DocsTree, index: str = "docs/index.md") -> Iterator[str]:
    """Yield a finding for each page of docs to which no links lead from its index."""
    reached: set[Path] = set()
    ahead = [tree.root / index]
    while ahead:
        page = ahead.pop()
        if page in reached or page.suffix != ".md" or not page.exists():
            continue
        reached.add(page)
        targets = _LINK.findall(page.read_text(encoding="utf-8"))
        ahead += [(page.parent / target.partition("#")[0]).resolve() for target in targets]
    for page in tree.pages:
        if page.is_relative_to(tree.root / "docs") and page not in reached:
            yield f"{page.relative_to(tree.root)}:1: no page leads here from {index}; link it there"


def long_lines(tree: DocsTree) -> Iterator[str]:
    """Yield a finding for each line of text that is too long; tables and links may be."""
    for page in tree.pages:
        if page.read_text(encoding="utf-8").startswith("<!-- Generated"):
            continue
        for number, text in enumerate(tree.text(page).splitlines(), 1):
            allowed = text.startswith(("|", "<!--", "![")) or " " not in text.strip()
            if len(text) > COLUMNS and not allowed and not _LINK.search(text):
                given = f"given {len(text)} columns, allowed {COLUMNS}"
                yield tree.finding(page, number, f"{given}; break the line")


def findings(tree: DocsTree | None = None) -> list[str]:
    """Return everything that is wrong with the pages, a line for each."""
    tree = tree or DocsTree()
    return [*names(tree), *unreached(tree), *long_lines(tree)]
