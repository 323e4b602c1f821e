# SPDX-License-Identifier: Apache-2.0
"""A process that replays a plan and knows no more than numpy and the instruction model.

    python -m tests.python.replay_process FOLDER INPUTS.npz OUTPUTS.npz [registers|ring]

It prints as JSON the processor seconds until the plan is ready to run, and the packages it has.
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
from npu.isa.operands import up
from npu.runtime.plan_files import read_plan
from npu.runtime.prepare import prepare
from npu.runtime.replay import DrivenChip, Replay


def main(folder: str, inputs: str, outputs: str, by: str = "registers") -> None:
    """Replay a plan once."""
    plan = read_plan(Path(folder))
    prepared = prepare(plan)
    limits = plan.limits
    config = ChipConfig(limits.array_dim, limits.sram_bytes, limits.acc_rows)
    bus = ModelBus(np.zeros(up(prepared.end), np.uint8), config=config)
    with np.load(inputs) as stored:
        given = {name: stored[name] for name in stored.files}

    async def replay() -> dict[str, Any]:
        driven = DrivenChip(await Chip.connect(bus))
        await driven.load(prepared)
        ready = time.process_time()
        run = await Replay(prepared, driven).run(given, "ring" if by == "ring" else "registers")
        np.savez(outputs, **run.outputs)  # type: ignore[arg-type]
        return {"ready": ready}

    found = asyncio.run(replay())
    found["packages"] = sorted(
        {
            name.partition(".")[0]
            for name, module in sys.modules.items()
            if "site-packages" in (getattr(module, "__file__", None) or "")
            and not name.startswith("_")  # what the interpreter itself begins with
        }
    )
    found["modules"] = sorted(name for name in sys.modules if name.startswith("npu."))
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
