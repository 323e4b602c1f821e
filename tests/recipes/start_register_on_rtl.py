# SPDX-License-Identifier: Apache-2.0
"""A test of the chip for `recipes/start_register.patch`: it goes into tb/tests of the copy."""

from __future__ import annotations

from typing import Any

import cocotb

from npu.asm import assemble
from tb.bench.dut import Dut
from tb.bench.environment import Bench

TAGS = ("seq",)


@cocotb.test
async def test_pos_end(dut: Dut) -> None:
    """LOOP takes no turn to the position that a start names; with 0, or behind it, all turns."""
    bench = await Bench.start(dut)
    program = assemble("again: NOP\nLOOP to=again\nEND").instructions
    for end, position in ((0, 14), (3, 14), (9, 8), (14, 13), (15, 14), (99, 14)):
        start: dict[str, Any] = {"pos": 4, "loop_left": 10, "kv_cap": 40, "pos_end": end}
        execution = await bench.execute(program, **start)
        assert execution.finish.error is None, execution.finish.error
        assert execution.finish.last.pos == position, end
