# SPDX-License-Identifier: Apache-2.0
"""README's commands are those that continuous integration begins with; its counts are true."""

from __future__ import annotations

import re

import pytest

from npu.optional import BARE
from spec.isa.coprocessor import COP_INSTRUCTIONS
from spec.paths import ROOT
from spec.regs import CmdOp
from weights.importer import load_checkpoint

README = (ROOT / "README.md").read_text(encoding="utf-8")
CI = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
LLAMA = str(ROOT / "weights" / "checkpoints" / "llama-tiny")


def test_continuous_integration_begins_with_readme() -> None:
    """The same three commands, as they stand there, before any other, on a bare machine."""
    _, _, section = README.partition("## Three commands\n")
    shown = re.findall(r"^    (\S.*?)(?:  +#.*)?$", section.partition("\nEach works")[0], re.M)
    assert len(shown) == 3
    before, _, rest = CI.partition(f"export {BARE}=1\n")
    called, _, after = rest.partition(f"unset {BARE}\n")
    assert called.splitlines() == shown
    assert "\nrm -rf .venv\n" in before
    assert "make" not in re.sub(r"^#.*$", "", before, flags=re.M)
    assert after.index("apt-get install") < after.index("make test SKIPPED=1")


@pytest.mark.parametrize(
    ("words", "count"),
    [
        ("{} small operations", {16: "sixteen"}[len(CmdOp)]),
        ("{} instructions on int8 vectors and float32", len(COP_INSTRUCTIONS)),
        (
            "a byte-level LLaMA of {:,} parameters",
            sum(tensor.size for tensor in load_checkpoint(LLAMA).tensors.values()),
        ),
    ],
)
def test_counts(words: str, count: int | str) -> None:
    """What is counted in words is as many as there are."""
    assert words.format(count) in " ".join(README.split())
