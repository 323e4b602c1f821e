# SPDX-License-Identifier: Apache-2.0
"""A chip that is built without narrow formats of weights (NarrowFormats = 0)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import cocotb
import numpy as np
import pytest

from golden import formats
from npu.compiler import CompiledModel, CompileError, compile_model
from spec.isa import ErrorCode, GemmB, WeightFormat, WeightGroup
from spec.isa.legality import check
from spec.paths import ROOT
from spec.regs.generated import CHIP_FIELDS, ChipReg
from tb.bench.dut import Dut
from tb.bench.environment import Bench
from tb.bench.recovery import next_program_runs
from tb.stimulus import Case, run_cases
from tb.stimulus.gemm_cases import GROUP_ROWS, build, random_mode, random_shape
from tb.stimulus.gemm_cases import groups as groups_of
from tb.stimulus.random_case import Generator
from tb.stimulus.refused_programs import Refusals
from tb.stimulus.refused_words import Group, groups
from tb.stimulus.sram_space import Space
from weights.formats.recipe import parse_recipe
from weights.quantize import quantize_checkpoint

TAGS = ("gemm",)

NARROW_FORMATS = 0
MODEL = ROOT / "weights" / "checkpoints" / "gpt2-tiny"
KINDS = (
    "out=i32",
    "src1=0x3000 A=i16 out=i32 acc",
    "src1=0x4000 q=ch bias op=add out=i16 dp=64",
    "q=ch table relu",
    "q=tensor argmax",
)
"""What else a GEMM with weights from the stream may do."""


def _narrow(edge: int) -> Iterator[Group]:
    """Yield GEMMs in every narrow format with each of its groups."""
    for fmt in WeightFormat:
        for group in groups_of(fmt, edge):
            if fmt != WeightFormat.INT8:
                rows = f"group={GROUP_ROWS[group]}" if fmt in formats.GROUPED else ""
                for kind in KINDS:
                    shape = "dst=0x1000 src0=0x2000 M=1 N=20 K=40"
                    yield from groups(f"GEMM {shape} B=stream fmt={fmt.asm} {rows} {kind}")


@cocotb.test
async def test_int8_only_refusals(dut: Dut) -> None:
    """Every narrow GEMM is an ILLEGAL_FIELD for this chip alone, and nothing of it happens."""
    refusals = await Refusals.start(dut)
    other = replace(refusals.limits, narrow_formats=True)
    for words in _narrow(refusals.limits.edge):
        prefix = words[0] if len(words) == 2 else None
        assert check(words[-1], prefix, other) is None, f"{words} is illegal everywhere"
        await refusals.refused(words, ErrorCode.ILLEGAL_FIELD, stream=bytes(1024))


@cocotb.test
async def test_int8_only_gemm(dut: Dut) -> None:
    """CONFIG2 says that the formats are not there; GEMMs with int8 weights run in every mode."""
    bench = await Bench.start(dut)
    fields = await bench.chip.read_chip(ChipReg.CONFIG2)
    assert CHIP_FIELDS["CONFIG2_NARROW_FORMATS"].get(fields) == 0
    assert not bench.config.narrow_formats

    def case(random: np.random.Generator, space: Space, b_form: GemmB) -> Case:
        mode, edge = random_mode(random, bench.config.tile), bench.config.tile
        transpose = mode.transpose and b_form != GemmB.STREAM
        mode = replace(mode, b_form=b_form, transpose=transpose, fmt=WeightFormat.INT8)
        mode = replace(mode, group=WeightGroup.G32)
        shape = random_shape(random, mode, bench.config.acc_rows)
        return build(random, space, shape, mode, edge)

    forms = [GemmB.STREAM, GemmB.ROW_MAJOR, GemmB.STREAM, GemmB.TILE]
    cases: list[Generator] = [partial(case, b_form=form) for form in forms]
    await run_cases(bench, cases, 40, programs=3)
    await next_program_runs(bench)


@cocotb.test
async def test_int8_only_compiler(dut: Dut) -> None:
    """What the chip says of itself is enough for a layer it cannot run to be refused by name."""
    bench = await Bench.start(dut)
    model = quantize_checkpoint(str(MODEL), parse_recipe("o=int4g32"))
    with pytest.raises(
        CompileError, match=r"^h\.0\.proj: given weights in int4g, allowed int8: the"
    ):
        compile_model(model, bench.limits)
    packed = compile_model(model, replace(bench.limits, narrow_formats=True)).packed()
    with pytest.raises(CompileError, match=r"^f: h\.0\.proj: given weights in int4g, allowed int8"):
        CompiledModel.load(packed, filename="f", chip=bench.limits)
