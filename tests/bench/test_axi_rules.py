# SPDX-License-Identifier: Apache-2.0
"""The page of the ports tells of every rule of AXI that is broken once, and of no other."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

from spec.paths import DOCS, HDL
from tb.unit.axi_scenes import BREACHES, LEGAL

ROW = re.compile(r"^\| [^|]+ \| (?:both|chip|memory) \| [^|]+ \| (`[^|]+`) \|$", re.M)


def test_each_breach_is_of_one_rule() -> None:
    """Each scene is in one row, and each row has scenes."""
    text = (DOCS / "integration.md").read_text(encoding="utf-8")
    rows = [re.findall(r"`([^`]+)`", row) for row in ROW.findall(text)]
    assert len(rows) == 11
    for name in BREACHES:
        found = [row for row in rows if any(fnmatchcase(name, one) for one in row)]
        assert len(found) == 1, f"{name}: {found}"
    for one in (one for row in rows for one in row):
        assert any(fnmatchcase(name, one) for name in BREACHES), one


def _without_numbers(text: str) -> str:
    return re.sub(r"%\w+|\d+", "N", text)


def test_each_message_of_the_monitors_has_a_breach() -> None:
    """So a check that is added has a scene, and none is there that cannot fail."""
    names = ("axi_monitor", "axil_monitor", "axi_common_monitor")
    *texts, common = ((HDL / f"{name}.sv").read_text("utf-8") for name in names)
    texts += [common.replace('"%s', f'"{bus}') for bus in ("AXI", "AXI4-Lite")]
    said = [one for text in texts for one in re.findall(r'"(AXI[^"]* [^"]*)"', text)]
    assert len(said) == 16
    wanted = {_without_numbers(scene.says) for scene in BREACHES.values()}
    for message in said:
        assert any(one in _without_numbers(message) for one in wanted), message
    assert not any(scene.says for scene in LEGAL.values())
