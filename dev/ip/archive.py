# SPDX-License-Identifier: Apache-2.0
"""Writes a release: `python -m dev.ip.archive CONFIGURATION`, for `npu ip`."""

from __future__ import annotations

import gzip
import hashlib
import io
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path

from dev.ip.contents import Release, contents, version
from npu.commands import last_resort
from spec.configurations import named
from spec.paths import BUILD, ROOT
from tb.run import build

FOLDER = BUILD / "ip"
DIGESTS = "SHA256SUMS"


def commit() -> str:
    """Return the commit of the sources, "unknown" outside a checkout."""
    run = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return run.stdout.strip() or "unknown"


def digests(files: Mapping[str, str]) -> str:
    """Return the SHA-256 of files, as `sha256sum -c` reads it."""
    lines = [
        f"{hashlib.sha256(text.encode()).hexdigest()}  {name}\n"
        for name, text in sorted(files.items())
    ]
    return "".join(lines)


def packed(name: str, files: Mapping[str, str]) -> bytes:
    """Return a compressed archive of files in a folder: the same bytes for the same files."""
    inner = io.BytesIO()
    with tarfile.open(fileobj=inner, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for file, text in sorted(files.items()):
            data = text.encode()
            member = tarfile.TarInfo(f"{name}/{file}")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return gzip.compress(inner.getvalue(), mtime=0)


def write(release: Release, folder: Path = FOLDER) -> Path:
    """Write a release's folder and archive; return the archive.

    Raises:
        SourceError: the sources are wrong.
    """
    files = contents(release)
    files[DIGESTS] = digests(files)
    home = folder / release.name
    shutil.rmtree(home, ignore_errors=True)
    for name, text in files.items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
    archive = folder / f"{release.name}.tar.gz"
    archive.write_bytes(packed(release.name, files))
    return archive


def main(argv: list[str]) -> int:
    """Write the release of the configuration that is named; say where it is."""
    build.generate()
    release = Release(named(argv[0]), version(), commit())
    archive = write(release)
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    print(f"{archive.relative_to(ROOT)}: {archive.stat().st_size:,} bytes, sha256 {digest}")
    return 0


if __name__ == "__main__":
    sys.exit(last_resort.guarded("npu", lambda: main(sys.argv[1:]), debug=False))
