# SPDX-License-Identifier: Apache-2.0
"""Packs a release: `python -m dev.release [--draft]`, for `npu release`.

A release is what others take and what shows that it is right: an archive of each configuration, the
wheel, what has changed, and the page of all results. All of it comes from one commit.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from dev.ip.archive import DIGESTS, commit, write
from dev.ip.contents import Release, version
from dev.report import render
from dev.report.collect import Places, collect
from npu.commands import last_resort
from spec.configurations import CHIPS
from spec.paths import BUILD, ROOT
from tb.run import build

FOLDER = BUILD / "release"
CHANGES = ROOT / "CHANGELOG.md"
NOTES, PAGE = "CHANGES.md", "verification.html"
_HEADING = re.compile(r"^## (\S+) - (.+)$", re.MULTILINE)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


class ReleaseError(RuntimeError):
    """Something is in the way of a release."""


@dataclass(frozen=True)
class Changes:
    """A section of the changelog.

    Attributes:
        date: in its heading: a day, or "unreleased".
        text: all of it, with the heading.
    """

    date: str
    text: str


def changes(log: str, number: str) -> Changes:
    """Return the section of a version.

    Raises:
        ReleaseError: there is none, or more than one.
    """
    found = list(_HEADING.finditer(log))
    mine = [index for index, heading in enumerate(found) if heading[1] == number]
    if len(mine) != 1:
        known = ", ".join(heading[1] for heading in found) or "none"
        raise ReleaseError(
            f"CHANGELOG.md: {len(mine)} sections of version {number}, allowed one; it has {known}"
        )
    end = found[mine[0] + 1].start() if mine[0] + 1 < len(found) else len(log)
    return Changes(found[mine[0]][2].strip(), log[found[mine[0]].start() : end].rstrip() + "\n")


def wheel(folder: Path) -> Path:
    """Build the wheel of the commit, so that nothing else in the checkout gets into it.

    Raises:
        ReleaseError: pip has failed, with its last line.
    """
    with tempfile.TemporaryDirectory() as clean:
        files = Path(clean) / "tessera.tar"
        subprocess.run(["git", "archive", "-o", str(files), "HEAD"], cwd=ROOT, check=True)
        shutil.unpack_archive(files, clean)
        command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(folder), "."]
        run = subprocess.run(command, cwd=clean, capture_output=True, text=True, check=False)
    made = list(folder.glob("*.whl"))
    if run.returncode or not made:
        last = ((run.stderr or run.stdout).strip().splitlines() or ["it says nothing"])[-1]
        raise ReleaseError(f"the wheel cannot be built: {last}")
    return made[0]


def _lacks(notes: Changes, verdict: str, complaints: tuple[str, ...]) -> list[str]:
    """Return what a release has and this is without."""
    found = []
    if not _DATE.fullmatch(notes.date):
        found.append(f"CHANGELOG.md: the section is of {notes.date!r}, allowed a day, 2026-01-31")
    if verdict != "passed":
        found.append(f"results of the last regression: {verdict}, allowed passed")
    return [*found, *complaints]


def pack(*, draft: bool) -> Path:
    """Write a release's folder; return it.

    Args:
        draft: write it whatever is missing.

    Raises:
        ReleaseError: there is no commit to pack, something is missing, or the wheel fails.
    """
    revision, number = commit(), version()
    if not re.fullmatch(r"[0-9a-f]{40}", revision):
        raise ReleaseError(f"the sources are {revision}, allowed a commit without changes")
    notes = changes(CHANGES.read_text(encoding="utf-8"), number)
    page = collect(Places())
    lacks = _lacks(notes, page.verdict, page.complaints)
    for line in lacks:
        print(f"missing: {line}")
    if lacks and not draft:
        raise ReleaseError(f"{len(lacks)} things are missing; --draft packs all the same")

    home = FOLDER / f"tessera-{number}{'-draft' if lacks else ''}"
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    build.generate()
    for chip in CHIPS.values():
        one = Release(chip, number, revision)
        write(one, home)
        shutil.rmtree(home / one.name)
    wheel(home)
    (home / NOTES).write_text(notes.text, encoding="utf-8")
    shutil.copyfile(render.write(page), home / PAGE)
    files = {path.name: path.read_bytes() for path in sorted(home.iterdir())}
    lines = [f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in files.items()]
    (home / DIGESTS).write_text("".join(lines), encoding="utf-8")
    for name, data in files.items():
        print(f"{len(data):>12,}  {name}")
    print(f"written: {home.relative_to(ROOT)}, of commit {revision[:12]}")
    return home


def main(argv: list[str]) -> int:
    """Pack a release; return the exit status."""
    try:
        pack(draft=argv == ["--draft"])
    except ReleaseError as error:
        print(f"npu: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(last_resort.guarded("npu", lambda: main(sys.argv[1:]), debug=False))
