# SPDX-License-Identifier: Apache-2.0
"""A sample of `make timing`: blocks that take seconds, against their bars."""

from __future__ import annotations

import re

import pytest

from dev import gates, synth, timing, yosys
from npu.cli import command_line
from npu.commands import last_resort
from tb.run import build, sources
from tests.needs import needs

needs("synth")


@pytest.mark.parametrize("name", ["stream", "dma-load", "smx-sum"])
def test_a_block_is_not_deeper_or_larger_than_its_bar(name: str) -> None:
    """The rest is for `make timing`, which takes minutes."""
    build.generate()
    (block,) = synth.chosen([name], timing.BLOCKS)
    found, _ = timing.measure(block, sources.rtl_sources())
    assert timing.worse([found], timing.bars()) == []
    assert timing.bars()[name]


def test_a_worse_block_ends_the_command_with_its_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And status 1; 0 where all is well."""
    monkeypatch.setattr(timing, "IN_GATES", ())
    assert command_line.run(["timing", "stream"]) == 0
    low = {"stream": dict.fromkeys(timing.FIGURES, 10**6) | {"levels": 3}}
    monkeypatch.setattr(timing, "bars", lambda: low)
    assert command_line.run(["timing", "stream"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert any(re.fullmatch(r"stream: levels \d+, bar 3: .* -> .* \d+ -> .*", one) for one in lines)
    assert lines[-1] == "1 blocks, 0 refused, 1 figures above their bars"


@pytest.mark.parametrize(
    ("words", "refusal"),
    [
        (["adder"], "given 'adder', allowed 'top-a8-min', "),
        (["stream", "--page"], "--page: given 'stream', allowed for all blocks only"),
        (["stream,array-a16", "--ecp5"], "--ecp5: given array-a16, allowed top-a8-min, "),
        (["stream", "--raise", "seq"], "--raise, --release: given alone, allowed with --page"),
    ],
)
def test_what_cannot_be_is_refused_in_a_line(words: list[str], refusal: str) -> None:
    """Before anything is run."""
    with pytest.raises(last_resort.Refusal, match=f"^{re.escape(refusal)}"):
        command_line.run(["timing", *words])


def test_a_missing_tool_is_named_with_what_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Yosys is needed, OpenSTA is not: its column is left out."""
    monkeypatch.setattr(gates, "STA", "no-such-program")
    assert gates.missing() == "apt-get install opensta qflow-tech-osu018"
    monkeypatch.setattr(yosys, "PACKAGE", "no-such-package")
    with pytest.raises(last_resort.Refusal, match=r"^yosys is not installed: "):
        command_line.run(["timing", "stream"])
