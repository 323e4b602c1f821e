# SPDX-License-Identifier: Apache-2.0
"""The table of docs/operators.md is what the library says of its operators."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dev import operators_page
from npu.graph.library import OPERATORS


def test_the_page_is_current() -> None:
    """Its table is that of the library, with every operator."""
    page = operators_page.PAGE.read_text(encoding="utf-8")
    assert operators_page.filled(page) == page, "stale: run python -m dev.operators_page"
    assert all(f"| `{name}` |" in page for name in OPERATORS)


def test_a_stale_page_is_noticed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Another bound makes another page; a missing marker is an error."""
    assert operators_page.main(["--check"]) == 0
    page = operators_page.PAGE.read_text(encoding="utf-8")
    with pytest.raises(ValueError, match=r"operators.md: given parts \[\], allowed each"):
        operators_page.filled(page.replace("<!-- end operators -->", ""))
    monkeypatch.setitem(OPERATORS, "mlp", replace(OPERATORS["mlp"], bound=0.5))
    assert operators_page.main(["--check"]) == 1
    assert "docs/operators.md is stale" in capsys.readouterr().err
