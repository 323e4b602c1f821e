# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C while a model generates: the text so far stays, the simulator goes."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from golden import session
from spec.paths import ROOT
from tb.run.build import Configuration
from weights.quantize import quantize_checkpoint

CHECKPOINT = ROOT / "weights" / "checkpoints" / "gpt2-tiny"
PROMPT = "The parser accepts"
TOKENS = 100
SEEN = 4
"""So many tokens are waited for."""


def _children(pid: int) -> list[int]:
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    return [int(child) for child in listed]


def test_ctrl_c_keeps_the_text_and_ends_the_simulator() -> None:
    """Status 130, the tokens that had appeared, one line of explanation, and no process left."""
    binary = Configuration().binary
    assert binary.exists(), f"{binary} is not built: run make test"
    # What a shell starts in the background ignores Ctrl-C, and so would what it starts itself.
    command = ["env", "--default-signal=INT", sys.executable, "-m", "npu.cli"]
    command += ["generate", str(CHECKPOINT)]
    command += ["--prompt", PROMPT, "--tokens", str(TOKENS)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdout=pipe, stderr=pipe) as process:
        assert process.stdout is not None
        text = process.stdout.read(len(PROMPT) + SEEN)
        simulators = [
            pid
            for pid in _children(process.pid)
            if Path(f"/proc/{pid}/exe").resolve() == binary.resolve()
        ]
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors.decode()
    assert errors.decode().splitlines()[-1] == "npu: interrupted"
    assert len(simulators) == 1
    assert not any(Path(f"/proc/{pid}").exists() for pid in simulators)
    shown = (text + rest).removesuffix(b"\n")
    model = quantize_checkpoint(str(CHECKPOINT))
    expected = session.generate(model, list(PROMPT.encode()), TOKENS)
    whole = PROMPT.encode() + bytes(expected)
    assert whole.startswith(shown)
    assert len(PROMPT) + SEEN <= len(shown) < len(whole)
