# SPDX-License-Identifier: Apache-2.0
"""What commands print, as pages show it: `python -m dev.samples_page [--check]`.

The table of `test_gpt2_block` in README.md, below each `make generate` of README.md and
docs/formats.md its text and figures, and below each `$ make soc`, `$ npu soc` and `$ npu firmware`
of docs/computer.md and each `$ npu estimate` and `$ npu generate` of docs/user-guide.md what it
prints. Each command is
run as it stands there. How fast the machine simulates is left out.
"""

from __future__ import annotations

import argparse
import platform
import re
import shlex
import subprocess
import sys

from dev import marked_page
from spec.paths import DOCS, ROOT
from weights.figures import read_text

README = ROOT / "README.md"
PAGES = (README, DOCS / "formats.md", DOCS / "computer.md", DOCS / "user-guide.md")
BLOCK = "test_gpt2_block"
_MODULE = "dev.samples_page"
_SAMPLE = re.compile(r"^    make generate (.*)\n\n((?:    .*\n)+)", re.M)
_SESSION = re.compile(
    r"^    \$ (make|npu) ((?:soc|firmware|estimate|generate) .*)\n((?:    (?!\$ ).*\n)*)", re.M
)
_OPTIONS = {"PROMPT": "--prompt", "WEIGHTS": "--weights", "TOKENS": "--tokens", "INPUT": "--input"}
_ENDS = re.compile(r"^(?:(exit code .*);|(npu: .*))", re.M)
"""What a session shows of standard error."""
_SPEED = "simulation  "
_LOSS = re.compile(r"^    integers +.*\n", re.M)
"""What the integers lose on a text that each Python brings another one of."""


class SampleError(RuntimeError):
    """A command of a page fails; the text is what it says."""


def _printed(*words: str, refused: bool = False) -> tuple[str, str]:
    """Return what a command of `npu` writes to standard output and to standard error.

    Raises:
        SampleError: it fails, and is none that may be `refused`.
    """
    command = [sys.executable, "-m", "npu.cli", *words]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if run.returncode and not refused:
        raise SampleError(f"npu {shlex.join(words)}: {run.stdout}{run.stderr}")
    return run.stdout, run.stderr


def generated(words: str) -> str:
    """Return text and figures of `make generate`, indented, by its variables."""
    given = dict(word.split("=", 1) for word in shlex.split(words))
    options = [f"{_OPTIONS[name]}={value}" for name, value in given.items() if name != "MODEL"]
    text, said = _printed("generate", given["MODEL"], *options)
    table = said[said.index("model  ") : said.index("record: ")]
    lines = [*text.splitlines(), *table.splitlines()]
    return "".join(f"    {one.rstrip()}\n" for one in lines if not one.startswith(_SPEED))


def session(program: str, words: str) -> str:
    """Return what a command of a session prints, indented, by its line."""
    command, *given = shlex.split(words)
    if program == "make":
        pairs = dict(word.split("=", 1) for word in given)
        options = [f"{_OPTIONS[name]}={text}" for name, text in pairs.items() if name != "PROGRAM"]
        given = [pairs["PROGRAM"], *options]
    text, said = _printed(command, *given, refused=True)
    told = [one[0] or one[1] for one in _ENDS.findall(said)]
    if command == "generate":
        figures = said[said.index("end token  ") : said.index("record: ")].splitlines()[1:]
        told = [line for line in figures if not line.startswith(_SPEED)]
    lines = [*text.splitlines(), *told]
    return "".join(f"    {line.rstrip()}\n" for line in lines)


def block_table() -> str:
    """Return the table that `test_gpt2_block` prints, without the speed of the machine."""
    printed, _ = _printed("test", BLOCK)
    rows = [line for line in printed.splitlines() if line[:1] in "┃│"]
    cells = [[cell.strip() for cell in re.split("[┃│]", row)[1:-2]] for row in rows]
    head, *lines = cells
    head[0] = "run"
    return "".join(f"| {' | '.join(row)} |\n" for row in (head, ["---"] * len(head), *lines))


def _sample(shown: re.Match[str]) -> str:
    """Return a sample as it is now; on another Python than pages are of, with its own loss."""
    found = generated(shown[1])
    loss = _LOSS.search(shown[2])
    if loss is not None and platform.python_version() != read_text().python:
        found = _LOSS.sub(loss[0], found)
    return f"    make generate {shown[1]}\n\n{found}"


def filled(page: str, name: str) -> str:
    """Return a page with what its commands print."""
    page = _SAMPLE.sub(_sample, page)
    page = _SESSION.sub(lambda one: f"    $ {one[1]} {one[2]}\n{session(one[1], one[2])}", page)
    if name == README.name:
        page = marked_page.fill(page, README, {"block": block_table})
    return page


def main(argv: list[str] | None = None) -> int:
    """Write the pages; with --check only compare them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--check", action="store_true", help="fail if a page is stale")
    check = parser.parse_args(argv).check
    pages = {path: path.read_text(encoding="utf-8") for path in PAGES}
    now = {path: filled(page, path.name) for path, page in pages.items()}
    stale = [path for path in PAGES if now[path] != pages[path]]
    for path in stale:
        if check:
            print(f"{path.relative_to(ROOT)} is stale: run python -m {_MODULE}", file=sys.stderr)
        else:
            path.write_text(now[path], encoding="utf-8")
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
