# SPDX-License-Identifier: Apache-2.0
"""A process that replays plans and knows no more than numpy and the instruction model.

    python -m tests.python.plans.replay_process PLACE registers|ring

Each folder in PLACE holds a plan and `inputs.npz`, and gets `outputs.npz`. Printed as JSON: the
processor seconds until the first plan was ready to run, and what the process has imported.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from golden.command.model import ModelBus
from golden.machine import ChipConfig
from npu.driver.chip import Chip
from npu.runtime.plan_files import read_plan
from npu.runtime.prepare import prepare
from npu.runtime.replay import By, DrivenChip, Replay
from spec.isa.operands import up


async def _replay(folder: Path, by: By) -> float:
    """Replay a plan once; return the processor time at which it was ready."""
    plan = read_plan(folder)
    prepared = prepare(plan)
    limits = plan.limits
    config = ChipConfig(limits.array_dim, limits.sram_bytes, limits.acc_rows)
    bus = ModelBus(np.zeros(up(prepared.end), np.uint8), config=config)
    driven = DrivenChip(await Chip.connect(bus))
    await driven.load(prepared)
    ready = time.process_time()
    with np.load(folder / "inputs.npz") as stored:
        given = {name: stored[name] for name in stored.files}
    run = await Replay(prepared, driven).run(given, by)
    outputs: dict[str, Any] = dict(run.outputs)
    np.savez(folder / "outputs.npz", **outputs)
    return ready


def main(place: Path, by: By) -> None:
    """Replay all plans of a folder."""
    ready = [asyncio.run(_replay(folder, by)) for folder in sorted(place.iterdir())]
    packages = {
        name.partition(".")[0]
        for name, module in sys.modules.items()
        if "site-packages" in (getattr(module, "__file__", None) or "")
        and not name.startswith("_")  # what the interpreter itself begins with
    }
    modules = sorted(name for name in sys.modules if name.startswith("npu."))
    print(json.dumps({"ready": ready[0], "packages": sorted(packages), "modules": modules}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), "ring" if sys.argv[2] == "ring" else "registers")
