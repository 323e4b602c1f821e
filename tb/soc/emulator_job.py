# SPDX-License-Identifier: Apache-2.0
"""Inside the simulator: an emulated core runs a program with the RTL as coprocessor."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import cocotb
from cocotb.task import bridge, resume

from golden.coprocessor import OfferAnswer as Accepted
from spec.regs import COP_BASE
from tb.bench.dut import Dut
from tb.bench.environment import Bench
from tb.bench.offers import Answer, Offer, OfferPlayer
from tb.soc.emulator import Emulator

REQUEST, RESULT = "request.json", "result.json"


class RtlPort:
    """The chip's coprocessor for a core in another thread: each call lets the simulation go on."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._player = OfferPlayer(bench.dut, bench.run_dir)
        self._play = resume(self._played)
        self._read = resume(bench.bus.read32)
        self._write = resume(bench.bus.write32)

    async def _played(self, offer: Offer) -> Answer:
        (answer,) = await self._player.play([offer])
        return answer

    def offer(self, word: int) -> Accepted:
        """Return the chip's answer to a word; the instruction itself is killed."""
        answer: Answer = self._play(Offer(word, kill=True))
        if not answer.accepted:
            return Accepted(accept=False)
        return Accepted(True, answer.writeback, answer.register_read, answer.float_registers)

    def execute(self, word: int, rs1: int = 0, rs2: int = 0, rs3: int = 0) -> Answer:
        """Execute an accepted instruction on the chip."""
        answer: Answer = self._play(Offer(word, (rs1, rs2, rs3)))
        return answer

    def read(self, offset: int) -> int:
        """Return a register of the coprocessor's window."""
        return int(self._read(COP_BASE + offset))

    def write(self, offset: int, value: int) -> None:
        """Write a register of the coprocessor's window."""
        self._write(COP_BASE + offset, value)


@cocotb.test
async def emulate(dut: Dut) -> None:
    """Run the program that the folder's request names."""
    run_dir = Path(str(cocotb.plusargs["run_dir"]))
    request: dict[str, Any] = json.loads((run_dir / REQUEST).read_text(encoding="utf-8"))
    bench = await Bench.start(dut)
    port = RtlPort(bench)
    emulator = Emulator(Path(request["program"]), lambda _: port, ram=bench.memory.data)
    code = await bridge(emulator.run)()
    result = {"code": code, "output": bytes(emulator.output).hex()}
    (run_dir / RESULT).write_text(json.dumps(result), encoding="utf-8")
