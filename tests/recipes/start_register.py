# SPDX-License-Identifier: Apache-2.0
"""What `recipes/start_register.patch` adds, POSEND: run in a copy of the tree with it."""

from __future__ import annotations

from npu.compiler import compile_model
from npu.firmware.plan_types import initialiser
from npu.planner.decoder_plan import plan_of_decoder
from npu.runtime.plan_files import files_of, plan_from, record_with_image
from npu.runtime.prepare import prepare
from spec.isa import Instruction, Opcode
from spec.paths import ROOT
from spec.regs import SeqReg
from tests.python.golden.golden_programs import END, ProgramBench
from tests.python.golden.golden_support import random_model

POSEND = SeqReg["POSEND"]
CONTEXT = 40


def test_a_loop_ends_at_the_position() -> None:
    """Golden takes no turn to it; with 0, or behind it, turns end as ever."""
    for end, position in ((0, 14), (3, 14), (9, 8), (14, 13), (15, 14), (99, 14)):
        registers = {"loop_left": 10, "kv_cap": CONTEXT, "pos_end": end}
        bench = ProgramBench([Instruction(Opcode.LOOP), END], pos=4, registers=registers)
        assert bench.run().pos == position, end


def test_a_plan_starts_decoders_with_it() -> None:
    """Compiler, plan.json, driver and firmware have the end of the context."""
    compiled = compile_model(random_model(5, "llama", context=CONTEXT, layers=1, vocab=96))
    plan = plan_of_decoder(compiled, 5)
    assert plan_from(files_of(plan)).segments == plan.segments
    for start in prepare(plan).starts:
        assert dict(start.writes())[POSEND] == CONTEXT
    assert f".pos_end = {CONTEXT}u" in initialiser(record_with_image(plan))
    header = (ROOT / "firmware" / "include" / "npu_regs.h").read_text(encoding="utf-8")
    assert "X(POSEND, pos_end)" in header
