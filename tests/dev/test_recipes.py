# SPDX-License-Identifier: Apache-2.0
"""Recipes of the developer guide are performed: few files by hand, and all of the tree follows.

A recipe is an addition as a patch, `recipes/NAME.patch`. It goes into a copy of the tree, where
`make gen` is run and then `tests/recipes/NAME.py`, which looks at what was added from quantiser to
golden. What the RTL makes of it is in tests/suites/test_recipes_on_rtl.py.
"""

from __future__ import annotations

import re

import pytest

from spec.paths import DOCS
from tests.forms import FULL
from tests.needs import needs
from tests.recipes.tree import MOST, patched, run, touched

AS_WELL = (
    "tests/python/spec/test_published.py::test_numbers_are_those_that_were_published",
    "tests/python/spec/test_published.py::test_registers_are_those_that_were_published",
)
"""Tests of the tree that a recipe would turn red if it lacked a file."""
NEEDS = {"kind_of_operation": "graphs"}
"""Groups of pip without which a recipe cannot be performed."""
SHORT = () if FULL else ("-k", "not model")
"""A whole model is for the long form."""


@pytest.mark.parametrize("name", MOST)
def test_a_recipe_takes_few_files(name: str) -> None:
    """Those of the patch, which are those that the guide lists."""
    guide = (DOCS / "developer-guide.md").read_text(encoding="utf-8")
    section = guide.split(f"\n## Adding a {name.replace('_', ' ')}\n")[1].split("\n## ")[0]
    assert f"(../recipes/{name}.patch)" in section
    listed = re.findall(r"^\d\. `([^`]+)`", section, re.MULTILINE)
    assert sorted(listed) == touched(name)
    assert len(listed) <= MOST[name]


@pytest.mark.parametrize("name", MOST)
def test_a_recipe_is_all_that_it_takes(name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """In a copy of the tree, with the generated files made anew."""
    if name in NEEDS:
        needs(NEEDS[name])
    tree = patched(name, tmp_path_factory.mktemp(name))
    run(tree, "-m", "pytest", "-qx", f"tests/recipes/{name}.py", *AS_WELL, *SHORT)
