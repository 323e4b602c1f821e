# SPDX-License-Identifier: Apache-2.0
"""Every number of the register maps, changed one at a time, is noticed."""

from __future__ import annotations

from pathlib import Path

import pytest

from spec.regs import source
from tests.python.spec import interface_mutations
from tests.python.spec.test_published import published_window


@pytest.mark.parametrize("window", source.WINDOWS, ids=lambda window: window[0])
def test_every_change_of_a_register_map_is_noticed(
    window: tuple[str, str, int], tmp_path: Path
) -> None:
    """Each number, access and lock changed, each two neighbours exchanged."""
    text = (source.HERE / f"{window[1]}.rdl").read_text(encoding="utf-8")
    read = interface_mutations.reader(window, tmp_path)
    changes = interface_mutations.of_rdl(text)
    assert interface_mutations.unnoticed(changes, read, published_window(read(text))) == []
