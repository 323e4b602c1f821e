# SPDX-License-Identifier: Apache-2.0
"""What pages show of commands is what the commands print."""

from __future__ import annotations

from pathlib import Path

import pytest

from dev import samples_page
from tests.forms import sample

PRINTED = (
    "PASS test_gpt2_block seed 1 (1.0 s)\n┏━━━┳━━━┳━━━┓\n┃   ┃ words ┃ kcycles/s ┃\n"
    "│ S=1 │ 7 │ 99 │\n└───┘\n"
)


@pytest.mark.parametrize("page", sample(samples_page.PAGES, 1), ids=lambda path: path.name)
def test_the_page_shows_what_its_commands_print(page: Path) -> None:
    """The table of a block; text and figures of every `make generate`."""
    text = page.read_text(encoding="utf-8")
    assert samples_page.filled(text, page.name) == text, "run python -m dev.samples_page"


def test_a_session_shows_what_its_command_prints(monkeypatch: pytest.MonkeyPatch) -> None:
    """Text, then exit code or refusal, without speed and progress; the next command is another."""
    asked: list[tuple[str, ...]] = []
    said = {
        "soc": (
            "hi  \n",
            "building ...\nexit code 0 after 5 cycles, 0; sim 2 s\n",
        ),
        "firmware": ("", "npu: no such thing\n"),
    }

    def printed(*words: str, refused: bool = False) -> tuple[str, str]:
        asked.append(words)
        assert refused
        return said[words[0]]

    monkeypatch.setattr(samples_page, "_printed", printed)
    page = '    $ make soc PROGRAM=p INPUT="a b"\n    old\n    $ npu firmware q -o r\n\ntext\n'
    assert samples_page.filled(page, "computer.md") == (
        '    $ make soc PROGRAM=p INPUT="a b"\n    hi\n    exit code 0 after 5 cycles, 0\n'
        "    $ npu firmware q -o r\n    npu: no such thing\n\ntext\n"
    )
    assert asked == [("soc", "p", "--input=a b"), ("firmware", "q", "-o", "r")]


def test_a_stale_page_is_noticed_and_written_anew(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Other words are another page; how fast the machine simulates is left out."""
    page = tmp_path / "README.md"
    sample = '    make generate MODEL=m PROMPT="a b"\n\n    {}\n    model  {}\n\nx\n'
    block = "<!-- begin block -->\n{}<!-- end block -->\n"
    page.write_text(sample.format("old", "y") + block.format(""), encoding="utf-8")
    asked: list[tuple[str, ...]] = []

    def printed(*words: str) -> tuple[str, str]:
        asked.append(words)
        said = "building ...\nmodel  z \nsimulation    2 s\nrecord: f\n"
        return (PRINTED, "") if words[0] == "test" else ("new \n", said)

    monkeypatch.setattr(samples_page, "_printed", printed)
    monkeypatch.setattr(samples_page, "PAGES", (page,))
    monkeypatch.setattr(samples_page, "ROOT", tmp_path)
    assert samples_page.main(["--check"]) == 1
    assert capsys.readouterr().err == "README.md is stale: run python -m dev.samples_page\n"
    assert samples_page.main([]) == 0
    table = "| run | words |\n| --- | --- |\n| S=1 | 7 |\n"
    assert page.read_text(encoding="utf-8") == sample.format("new", "z") + block.format(table)
    assert samples_page.main(["--check"]) == 0
    assert asked[:2] == [("generate", "m", "--prompt=a b"), ("test", "test_gpt2_block")]
