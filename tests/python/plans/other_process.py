# SPDX-License-Identifier: Apache-2.0
"""Plans handed to another process, which replays them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from npu.graph.form import Array
from npu.runtime.plan import Plan
from npu.runtime.plan_files import files_of
from npu.runtime.replay import By
from spec.paths import ROOT

Outputs = dict[str, Array]


def replayed(
    place: Path, work: Sequence[tuple[Plan, Mapping[str, Array]]], by: By
) -> tuple[list[Outputs], dict[str, Any]]:
    """Write plans and inputs, have another process replay them, and read what it has left.

    Args:
        place: an empty folder.
        work: plans and the inputs of each.
        by: how segments start.

    Returns:
        The outputs of each plan, and what the process says of itself.
    """
    folders = []
    for number, (plan, inputs) in enumerate(work):
        folder = place / f"{number:04d}"
        folder.mkdir()
        for name, data in files_of(plan).items():
            (folder / name).write_bytes(data)
        given: dict[str, Any] = dict(inputs)
        np.savez(folder / "inputs.npz", **given)
        folders.append(folder)
    command = [sys.executable, "-m", "tests.python.plans.replay_process", str(place), by]
    # As users have it: Python keeps what it has compiled, unless a test machine forbids it.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, env=environment
    )
    assert not done.returncode, done.stderr
    found = []
    for folder in folders:
        with np.load(folder / "outputs.npz") as stored:
            found.append({name: stored[name] for name in stored.files})
    return found, json.loads(done.stdout)
