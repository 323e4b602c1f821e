# SPDX-License-Identifier: Apache-2.0
"""What `npu release` packs, and what keeps it from packing."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.needs import needs

needs("ip")

from dev import release
from dev.ip.archive import DIGESTS
from dev.ip.contents import version
from dev.report.collect import Places
from spec.configurations import CHIPS
from spec.paths import ROOT

LOG = "# Changelog\n\n## 0.2.0 - 2026-12-01\n\n- b\n\n## 0.1.0 - unreleased\n\n- a\n"


def test_the_section_of_a_version() -> None:
    """From its heading to the next, with its day."""
    assert release.changes(LOG, "0.2.0") == release.Changes(
        "2026-12-01", "## 0.2.0 - 2026-12-01\n\n- b\n"
    )
    assert release.changes(LOG, "0.1.0").date == "unreleased"


@pytest.mark.parametrize(("log", "count"), [("", 0), (LOG, 0), (f"## 3 - x\n{LOG}## 3 - y\n", 2)])
def test_a_version_has_one_section(log: str, count: int) -> None:
    """None and two are refused, with those that there are."""
    with pytest.raises(release.ReleaseError, match=f"{count} sections of version 3, allowed one"):
        release.changes(log, "3")


def test_changes_that_are_not_committed_are_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As a draft too: archives and wheel are of one commit."""
    monkeypatch.setattr(release, "commit", lambda: "0123abc-dirty")
    assert release.main(["--draft"]) == 2
    said = "npu: the sources are 0123abc-dirty, allowed a commit without changes\n"
    assert capsys.readouterr().err == said


@pytest.fixture
def without_results(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A commit without changes, no results, and a folder for releases inside the project's."""
    folder = release.FOLDER / tmp_path.name
    empty = Places(tmp_path / "results.sqlite", tmp_path, tmp_path)
    monkeypatch.setattr(release, "FOLDER", folder)
    monkeypatch.setattr(release, "commit", lambda: "0" * 40)
    monkeypatch.setattr(release, "Places", lambda: empty)
    return folder


def test_a_release_has_its_evidence(
    without_results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each report that is missing has a line, and nothing is written."""
    assert release.main([]) == 2
    said = capsys.readouterr()
    assert "missing: CHANGELOG.md: the section is of 'unreleased', allowed a day" in said.out
    assert "missing: results of the last regression: no results, allowed passed" in said.out
    assert re.search(r"npu: \d+ things are missing; --draft packs all the same", said.err)
    assert not without_results.exists()


def test_a_draft_has_all_parts(
    without_results: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """An archive of each chip, the changes, the page, and digests that fit."""
    monkeypatch.setattr(release, "wheel", lambda folder: folder / "none.whl")
    assert release.main(["--draft"]) == 0
    (home,) = without_results.iterdir()
    number = version()
    assert home.name == f"tessera-{number}-draft"
    archives = {f"tessera-{chip}-{number}.tar.gz" for chip in CHIPS}
    names = {path.name for path in home.iterdir()}
    assert names == {*archives, release.NOTES, release.PAGE, DIGESTS}
    lines = (home / DIGESTS).read_text(encoding="utf-8").splitlines()
    digests = {name: digest for digest, name in (line.split("  ") for line in lines)}
    assert digests.keys() == names - {DIGESTS}
    for name, digest in digests.items():
        assert hashlib.sha256((home / name).read_bytes()).hexdigest() == digest, name


def test_the_wheel_is_of_the_commit(tmp_path: Path) -> None:
    """What is in no commit is not in it; what a host needs is."""
    with zipfile.ZipFile(release.wheel(tmp_path)) as made:
        names = set(made.namelist())
    listed = subprocess.run(
        ["git", "ls-tree", "-r", "--name-only", "HEAD"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    packed = {name for name in names if ".dist-info/" not in name}
    assert packed <= set(listed)
    assert {"npu/cli/command_line.py", "tessera/session.py", "spec/configurations.toml"} <= packed


def test_a_wheel_that_fails_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With what pip said last."""
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(release.ReleaseError, match="the wheel cannot be built: it says nothing"):
        release.wheel(tmp_path)
