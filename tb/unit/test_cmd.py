# SPDX-License-Identifier: Apache-2.0
"""The command port's operations by register alone, against the golden port."""

from __future__ import annotations

import cocotb
import numpy as np

from golden.command import PortModel
from golden.command.memory import FaultyMemory
from npu.regs import CMD_FIELDS, CmdOp, CmdReg
from tb.bench.dut import Dut
from tb.bench.environment import PROGRAM
from tb.command.descriptor_words import TILES
from tb.command.random_descriptors import any_tile, legal_tile
from tb.unit.requests import OBSERVED, REQUEST, SLOT_BYTES
from tb.unit.world import UnitBench, World

LONGEST = 80
"""Cycles in which any operation has ended: a VRELU of 64 bytes may copy one of them at a time."""
SCRATCH = range(CmdReg.SCRATCH0, CmdReg.SCRATCH15 + 4, 4)
SHOWN = (CmdReg.RESULT, CmdReg.RESULT_HI, CmdReg.CTRL_STATUS, CmdReg.PERF_MACS, *SCRATCH)
START = CMD_FIELDS["CTRL_STATUS_START"].mask
OPERATIONS = 90

Access = tuple[CmdReg | int, int | None]
"""A register and what is written; None: it is read."""


def operation(random: np.random.Generator, op: CmdOp) -> list[Access]:
    """Return accesses that run an operation on random operands and read all that it may change."""
    tile = (CmdReg.GEMM_CFG, CmdReg.GEMM_BASE, CmdReg.GEMM_STRIDE)
    filled = random.choice(np.array(SCRATCH), 6, replace=False).tolist()
    random_ones = (CmdReg.OP_A, CmdReg.OP_B, CmdReg.ACC, *tile, *filled)
    writes: list[Access] = [(each, int(random.integers(1 << 32))) for each in random_ones]
    if op in (*TILES, CmdOp.VRELU_S8):
        drawn = (legal_tile if random.random() < 0.7 else any_tile)(random, op, len(SCRATCH) * 4)
        writes += zip(tile, (drawn.cfg, drawn.base, drawn.stride), strict=True)
    writes += [(CmdReg.OPCODE, int(op)), (CmdReg.CTRL_STATUS, START)]
    return writes + [(register, None) for register in SHOWN]


@cocotb.test
async def unit_cmd_operations(dut: Dut) -> None:
    """Every operation on random operands and tiles, allowed ones and others."""
    unit = UnitBench.of(dut)
    for _ in range(8):
        accesses: list[Access] = []
        for op in unit.random.choice(np.array(list(CmdOp)), OPERATIONS).tolist():
            accesses += operation(unit.random, CmdOp(op))
        await run(unit, accesses)


async def run(unit: UnitBench, accesses: list[Access]) -> None:
    """Play accesses on the chip's port and on golden's; what is read must agree."""
    requests = np.zeros(len(accesses), REQUEST)
    for index, (register, value) in enumerate(accesses):
        word = (value or 0) | int(register) << 32 | (value is not None) << 40
        requests["payload"][index] = list(word.to_bytes(14, "little"))
        if index and accesses[index - 1] == (CmdReg.CTRL_STATUS, START):
            requests["wait"][index] = LONGEST
    unit.memory.stage(PROGRAM, requests.tobytes())
    await unit.run(World(), 300_000, words=len(accesses))
    read = unit.memory.array(OBSERVED + SLOT_BYTES, (len(accesses), 4), np.uint32)[:, 0]
    port = PortModel(FaultyMemory(np.zeros(16, np.uint8)))
    for index, (register, value) in enumerate(accesses):
        if value is not None:
            port.write(int(register), value)
        elif (expected := port.read(int(register))) != int(read[index]):
            op = CmdOp(port.read(CmdReg.OPCODE)).name
            raise AssertionError(
                f"access {index}, {CmdReg(register).name} after {op}: expected {expected:#010x}, "
                f"actual {int(read[index]):#010x}"
            )
