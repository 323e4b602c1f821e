# SPDX-License-Identifier: Apache-2.0
"""Pages that are executed: what stands behind a block is what the block prints.

    python -m tests.python.plans.test_network_pages

writes what they print into them. A block with a file name behind the language becomes that file;
one of sh runs `npu` here, which ends with 0 unless a comment says `# exit code N`, and `python` in
a process of its own.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from npu.cli import command_line
from spec.paths import DOCS
from tests.needs import needs

PAGES = {
    "network-from-onnx.md": ("graphs",),
    "network-from-jax.md": ("graphs",),
    "plans.md": ("graphs",),
    "delegates.md": ("graphs",),
    "operators.md": (),
    "own-program.md": (),
}
"""And the groups that each needs."""
_LONG = re.compile(r"\d+\.\d{6,}")
_BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def _printed(kind: str, text: str, names: dict[str, Any]) -> str:
    """Execute a block and return what it prints."""
    output = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")  # programs write bytes
    with contextlib.redirect_stdout(output):
        if kind == "python":
            exec(compile(text, "page", "exec"), names)
        else:
            for line in text.splitlines():
                command, *arguments = shlex.split(line, comments=True)
                assert command in ("npu", "python"), line
                if command == "npu":
                    status = command_line.main(arguments)
                    assert f"# exit code {status}" in line if status else "exit" not in line, line
                else:
                    print(_process(arguments), end="")
    output.seek(0)
    return "".join(f"{line.rstrip()}\n" for line in output)


def _process(arguments: list[str]) -> str:
    """Run Python in a process of its own and return what it prints."""
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _executed(page: str) -> Iterator[tuple[re.Match[str], str]]:
    """Yield each block of printed text of a page, and what is printed in its place."""
    names: dict[str, Any] = {"__name__": "page"}
    last = ""
    for match in _BLOCK.finditer(page):
        kind, file, text = match.groups()
        if kind == "text":
            yield match, last
        elif file:
            Path(file).write_text(text, encoding="utf-8")
        else:
            last = _printed(kind, text, names)


@pytest.mark.parametrize("name", PAGES)
def test_the_page_does_what_it_says(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every block runs, in order and in an empty folder, and prints what the page shows."""
    needs(*PAGES[name])
    monkeypatch.chdir(tmp_path)
    shown = list(_executed((DOCS / name).read_text(encoding="utf-8")))
    assert len(shown) >= 2
    for match, printed in shown:
        assert _rounded(match.group(3)) == _rounded(printed)


def _rounded(text: str) -> str:
    """Return a text in which scales have three digits: libraries may sum in another order."""
    return _LONG.sub(lambda number: f"{float(number.group()):.3g}", text)


def write() -> None:
    """Write into the pages what they print."""
    for name in PAGES:
        page = (DOCS / name).read_text(encoding="utf-8")
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            parts, at = [], 0
            for match, printed in _executed(page):
                parts += [page[at : match.start(3)], printed]
                at = match.end(3)
        (DOCS / name).write_text("".join([*parts, page[at:]]), encoding="utf-8")
        print(f"{os.path.relpath(DOCS / name)}: written")


if __name__ == "__main__":
    write()
