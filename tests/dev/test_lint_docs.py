# SPDX-License-Identifier: Apache-2.0
"""The check of the pages notices what it is there for, and says file, line and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from dev import lint_docs
from dev.lint_docs import DocsTree
from tb.run import build

GOOD = """# A page

Text with `rtl/vec/npu_vec.sv`, `rtl/vec`, `npu_vec`, `faults/*.patch`, `npu_vec.sv`, `npu_go`.
A [link](other.md#a-heading), one to the [root](../README.md), and `make x
MODEL=rtl/vec` across lines; [the
other](other.md). `build/reports/x.json` is made by a command, `config.json` is of other people.

    rtl/none.sv in code
"""


@pytest.fixture
def tree(tmp_path: Path) -> DocsTree:
    """Return a small tree whose pages are right."""
    for folder in ("docs", "rtl/vec", "faults"):
        (tmp_path / folder).mkdir(parents=True)
    for name in ("rtl/vec/npu_vec.sv", "faults/01.patch"):
        (tmp_path / name).write_text("", encoding="utf-8")
    header = tmp_path / "firmware" / "plan.h"
    header.parent.mkdir()
    header.write_text("void npu_go(void);\n", encoding="utf-8")
    (tmp_path / "README.md").write_text("[docs](docs/index.md)\n", encoding="utf-8")
    (tmp_path / "docs" / "index.md").write_text("[page](page.md)\n", encoding="utf-8")
    (tmp_path / "docs" / "page.md").write_text(GOOD, encoding="utf-8")
    (tmp_path / "docs" / "other.md").write_text("# Other\n\n## A heading\n", encoding="utf-8")
    return DocsTree(tmp_path)


def test_right_pages_have_no_findings(tree: DocsTree) -> None:
    """Paths, modules, functions of C, globs, links, names of other people's files, code."""
    assert lint_docs.findings(tree) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("`rtl/vec/npu_vek.sv`", "given `rtl/vec/npu_vek.sv`, no such file or folder"),
        ("`rtl/wec`", "given `rtl/wec`, no such file or folder"),
        ("`doc/index.md`", "given `doc/index.md`, no such file or folder"),
        ("`npu_vek`", "given module `npu_vek`, rtl has none of this name"),
        ("`npu_vek.sv`", "given `npu_vek.sv`, no such file or folder"),
        ("`faults/*.diff`", "given `faults/*.diff`, no such file or folder"),
        ("`make x MODEL=rtl/wec`", "given `rtl/wec`, no such file or folder"),
        ("[a](none.md)", "given link to none.md, no such file or folder"),
        ("[a](other.md#none)", "given link to other.md#none, other.md has no such heading"),
        ("![a](none.svg)", "given link to none.svg, no such file or folder"),
    ],
)
def test_a_name_that_does_not_exist_is_said(tree: DocsTree, text: str, said: str) -> None:
    """With page, line and what to do."""
    page = tree.root / "docs" / "page.md"
    page.write_text(f"{GOOD}\n{text}\n", encoding="utf-8")
    line = GOOD.count("\n") + 2
    found = f"docs/page.md:{line}: {said}; name one that exists"
    assert lint_docs.findings(DocsTree(tree.root)) == [found]


def test_a_page_that_nothing_leads_to_is_said(tree: DocsTree) -> None:
    """From the index of docs, over other pages too."""
    (tree.root / "docs" / "lost.md").write_text("# Lost\n", encoding="utf-8")
    (finding,) = lint_docs.findings(DocsTree(tree.root))
    assert finding == "docs/lost.md:1: no page leads here from docs/index.md; link it there"


def test_a_long_line_is_said_and_a_table_is_not(tree: DocsTree) -> None:
    """Tables, links and generated pages may be long."""
    long = "word " * 30
    page = tree.root / "docs" / "page.md"
    page.write_text(f"| {long} |\n[a]({'../docs/' * 20}other.md)\n{long}\n", encoding="utf-8")
    (finding,) = lint_docs.findings(DocsTree(tree.root))
    assert finding == "docs/page.md:3: given 150 columns, allowed 110; break the line"
    page.write_text(f"<!-- Generated from x -->\n[a](other.md)\n{long}\n", encoding="utf-8")
    assert lint_docs.findings(DocsTree(tree.root)) == []


def test_the_pages_of_this_tree_are_right() -> None:
    """Everything that they name exists, or is generated."""
    build.generate()
    assert lint_docs.findings() == []
