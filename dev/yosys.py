# SPDX-License-Identifier: Apache-2.0
"""Runs scripts of yosys, natively and in a process of their own; keeps what they found out."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from npu import optional
from spec.paths import ROOT

PACKAGE = "pyosys"
WARNINGS_WAIVED: dict[str, str] = {}
"""Parts of warnings of yosys that are not findings, with the reason."""
_RUN = (
    "import sys\n"
    "from pyosys import libyosys\n"
    "libyosys.run_pass('script ' + sys.argv[1], libyosys.Design())\n"
)


class SynthesisError(RuntimeError):
    """Blocks that were refused, or figures that cannot be had."""


def tool_version() -> str:
    """Return the version of yosys."""
    try:
        return importlib.metadata.version(PACKAGE)
    except importlib.metadata.PackageNotFoundError as error:
        raise SynthesisError(f"yosys is not installed: {optional.missing('synth')}") from error


def findings(log: str, waived: Iterable[str] = ()) -> list[str]:
    """Return the warnings and errors in a log of yosys, each with the lines that belong to it.

    Args:
        log: its text.
        waived: parts of lines that are no findings.
    """
    found: list[str] = []
    open_ = False
    for line in log.splitlines():
        if ("Warning: " in line or "ERROR: " in line) and not any(
            text in line for text in (*WARNINGS_WAIVED, *waived)
        ):
            found.append(line.strip())
            open_ = True
        elif open_ and line.startswith("    "):
            found[-1] += "\n" + line.rstrip()
        else:
            open_ = False
    return found


def run(script: str, folder: Path, waived: Iterable[str] = ()) -> str:
    """Run a script in the root of the tree; return its log.

    Args:
        script: of yosys.
        folder: for script and log.
        waived: parts of lines of the log that are no findings.

    Raises:
        SynthesisError: yosys failed or has findings.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "run.ys").write_text(script, encoding="utf-8")
    path = folder / "log.txt"
    with path.open("wb") as log_file:
        process = subprocess.run(
            [sys.executable, "-c", _RUN, str(folder / "run.ys")],
            cwd=ROOT,
            stdout=log_file,
            stderr=subprocess.STDOUT,
            check=False,
        )
    log = path.read_text(encoding="utf-8", errors="replace")
    found = findings(log, waived)
    if process.returncode and not found:
        found = log.strip().splitlines()[-20:] or [f"yosys returned {process.returncode}"]
    if found:
        raise SynthesisError("\n".join(found))
    return log


def digest(text: str, files: Iterable[Path]) -> str:
    """Return what a result follows from: yosys, a text (of a script), the contents of files."""
    found = hashlib.sha256(f"{tool_version()}\n{text}".encode())
    for path in files:
        found.update(path.read_bytes())
    return found.hexdigest()


def kept(
    result: Path, key: str, make: Callable[[], Mapping[str, Any]]
) -> tuple[Mapping[str, Any], bool]:
    """Return figures, made or of an earlier run with the same key; and whether they were kept.

    Args:
        result: the file that keeps them.
        key: what they follow from, of `digest`.
        make: makes them; nothing is kept if it raises.
    """
    if result.exists():
        found = json.loads(result.read_text(encoding="utf-8"))
        if found["key"] == key:
            return found["figures"], True
    result.unlink(missing_ok=True)
    figures = make()
    result.parent.mkdir(parents=True, exist_ok=True)
    result.write_text(json.dumps({"key": key, "figures": figures}), encoding="utf-8")
    return figures, False
