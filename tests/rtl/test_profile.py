# SPDX-License-Identifier: Apache-2.0
"""The profile of a short run on the RTL: every cycle is accounted for."""

from __future__ import annotations

import json
from pathlib import Path

from rich.console import Console

from golden.decoder import forward_rows
from npu.commands.load_model import load
from spec.isa.operands import Limits
from spec.paths import ROOT
from tb.models import profile
from tb.run import timeline
from tb.run.build import Configuration

CHECKPOINT = str(ROOT / "weights" / "checkpoints" / "qwen2-tiny")
BEFORE_THE_INTERRUPT = 8
"""The chip counts its cycles up to the end; the interrupt comes a few later."""


def test_profile_on_rtl(tmp_path: Path) -> None:
    """Prompt and steps have timelines whose cycles are those that the chip counted."""
    configuration = Configuration()
    assert configuration.binary.exists(), f"{configuration.binary} is not built: run make test"
    console = Console(quiet=True)
    loaded = load(CHECKPOINT, Limits(), "memory", console, integers=forward_rows)
    found = profile.run(loaded, "The parser", 3, 40, configuration, console, place="test_profile")
    assert found.mismatch == ""
    assert [one.title() for one in found.passes] == [
        *("prompt of 10", "step at position 10", "step at position 11")
    ]
    for one, cycles in zip(found.passes, found.simulated.cycles, strict=True):
        assert 0 <= one.line.cycles - cycles <= BEFORE_THE_INTERRUPT
        assert sum(one.parts.values()) == one.line.cycles
        assert one.work.ideal_cycles < one.line.cycles
        for _, works, waits in profile.engine_rows(one.line):
            assert works + sum(waits.values()) <= one.line.cycles
    engines = {name: waits for name, _, waits in profile.engine_rows(found.passes[-1].line)}
    assert max(engines["gemm"], key=lambda reason: engines["gemm"][reason]) == "parameter stream"
    timeline.write_chrome(found.passes[-1].line, tmp_path / "step.json")
    events = json.loads((tmp_path / "step.json").read_text())["traceEvents"]
    words = {
        event["args"]["text"].split()[0] for event in events if event.get("cat") == "instruction"
    }
    assert {"EMBED", "RMSNORM", "ROPE", "KV_READ", "KV_APPEND", "SOFTMAX", "ARGMAX"} <= words
