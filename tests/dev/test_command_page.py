# SPDX-License-Identifier: Apache-2.0
"""The page of the command port's driver shows what the driver does today."""

from __future__ import annotations

import pytest

from dev import command_page


def test_the_page_is_current() -> None:
    """Examples and listings are those of the code."""
    page = command_page.PAGE.read_text(encoding="utf-8")
    assert command_page.filled(page) == page, "stale: run python -m dev.command_page"


def test_a_stale_page_is_noticed() -> None:
    """One digit of a listing, or a line of an example, makes a difference."""
    page = command_page.PAGE.read_text(encoding="utf-8")
    for old in ("0xfc03fe01", "await buffer.submit()", "10000000000 "):
        assert old in page
        assert command_page.filled(page.replace(old, "")) == page


def test_every_example_has_its_place() -> None:
    """A missing marker is an error."""
    page = command_page.PAGE.read_text(encoding="utf-8")
    with pytest.raises(ValueError, match=r"command-port.md: given parts"):
        command_page.filled(page.replace("<!-- end ring -->", ""))
