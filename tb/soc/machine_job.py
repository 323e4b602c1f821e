# SPDX-License-Identifier: Apache-2.0
"""What happens inside the simulator: reset, sleep until the program is over, say how it ended."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import cocotb
from cocotb.triggers import RisingEdge

from tb.bench import callbacks
from tb.bench.dut import Dut

REQUEST, RESULT = "request.json", "result.json"
RESET_CYCLES = 5


@cocotb.test
async def run_program(dut: Dut) -> None:
    """Run what lies in the memory; Python is entered once after the reset, when it is over."""
    run_dir = Path(str(cocotb.plusargs["run_dir"]))
    request: dict[str, Any] = json.loads((run_dir / REQUEST).read_text(encoding="utf-8"))
    for name, value in request["knobs"].items():
        getattr(dut, f"knob_{name}").value = value
    for _ in range(RESET_CYCLES):
        await RisingEdge(dut.clk)
    dut.rst_n.value = 1
    entries, started = callbacks.count(), time.process_time()
    await RisingEdge(dut.finished)
    result = {
        "exited": bool(int(dut.exited.value)),
        "code": int(dut.exit_code.value),
        "cycles": int(dut.cycle.value),
        "pc": int(dut.pc.value),
        "sleeping": bool(int(dut.sleeping.value)),
        "start_cycle": int(dut.start_cycle.value),
        "entries": callbacks.count() - entries - 1,
        "seconds": time.process_time() - started,
    }
    (run_dir / RESULT).write_text(json.dumps(result), encoding="utf-8")
