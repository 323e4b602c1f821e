# SPDX-License-Identifier: Apache-2.0
"""What a random test has drawn, part by part, so that it can run again with fewer parts.

A test that draws scenes writes down each before it runs it. When the run fails, in whatever way (an
assertion ends the simulator), `tb.run.shrinking` has the scene run again with some of its parts,
which the plusarg `keep` names; so does a user with KEEP=.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeVar

import cocotb

FILE = "scene.json"
Part = TypeVar("Part")
_KEEP = re.compile(r"(\d+)(?::([a-z]\d+(?:\+[a-z]\d+)*))?")


@dataclass(frozen=True)
class Keep:
    """Which scene of a test runs, and with what.

    Attributes:
        scene: its number, from 0 on.
        parts: names of the parts that it has, None for all of them.
    """

    scene: int
    parts: tuple[str, ...] | None = None

    @classmethod
    def parse(cls, text: str) -> Keep:
        """Read what KEEP= takes.

        Raises:
            ValueError: it is something else.
        """
        found = _KEEP.fullmatch(text)
        if found is None:
            raise ValueError(
                f"KEEP: given {text!r}, allowed what a failing test prints: "
                "a scene, or scene:part+part, such as 17 or 17:p3+c0"
            )
        return cls(int(found[1]), tuple(found[2].split("+")) if found[2] else None)

    def __str__(self) -> str:
        """The text that `parse` reads."""
        return f"{self.scene}" + (f":{'+'.join(self.parts)}" if self.parts else "")


@dataclass(frozen=True)
class SceneRecord:
    """A scene as the folder of its run has it.

    Attributes:
        test: whose it is.
        scene: its number.
        parts: names of the parts that it has.
        text: all of it, for people.
    """

    test: str
    scene: int
    parts: list[str]
    text: str


def record(folder: Path, scene: SceneRecord) -> None:
    """Write down a scene that is about to run."""
    (folder / FILE).write_text(json.dumps(asdict(scene)), encoding="utf-8")


def last_of(folder: Path) -> SceneRecord | None:
    """Return the last scene that a run wrote down, None if there was none."""
    try:
        return SceneRecord(**json.loads((folder / FILE).read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None


def wanted(count: int) -> Sequence[Keep]:
    """Return the scenes that a test runs: `count` whole ones, or the one that the run names."""
    text = str(cocotb.plusargs.get("keep", ""))
    return [Keep.parse(text)] if text else [Keep(number) for number in range(count)]


def names_of(letter: str, parts: Sequence[object]) -> list[str]:
    """Return what the parts of a kind are called: p0, p1 and so on if its letter is p."""
    return [f"{letter}{number}" for number in range(len(parts))]


def chosen(letter: str, parts: Sequence[Part], keep: Keep) -> list[Part]:
    """Return the parts of a kind that are kept."""
    names = zip(names_of(letter, parts), parts, strict=True)
    return [part for name, part in names if keep.parts is None or name in keep.parts]
