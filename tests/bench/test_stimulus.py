# SPDX-License-Identifier: Apache-2.0
"""What the generators draw: legal instructions, and operands and parameters over their full range.

Each generator is run many times without a simulator. What it draws for an operand must show, taken
together, every value of an 8-bit type, and both ends and zero of a wider one.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import numpy.typing as npt
import pytest

from golden.machine import ChipConfig, Machine, StartState
from spec.isa import (
    OPCODES,
    VEC_OPS,
    Engine,
    GemmA,
    GemmB,
    GemmOp,
    GemmOut,
    GemmQ,
    Instruction,
    Opcode,
    VecOp,
)
from spec.isa.gemm import GemmForm
from spec.isa.operands import Prefix, sram_operands
from tb.stimulus.engine_cases import ENGINES, SHAPES, of_class
from tb.stimulus.gemm_cases import (
    Cut,
    GemmMode,
    GemmSize,
    argmax,
    build,
    classic,
    gemm,
)
from tb.stimulus.lined_rows import operands, sums_of, with_effect, written_sums
from tb.stimulus.random_case import Case, Generator, check_legal
from tb.stimulus.simple_cases import (
    StoreWindow,
    dma_store,
    gelu,
    layernorm,
    rmsnorm,
    rope,
    silu,
    softmax,
    vec,
)
from tb.stimulus.sram_space import BANKS, OneBank, Space, bank_of

SRAM_WORDS = 16384
EDGE = 16
CASES = 1000
LINED = GemmMode(
    GemmA.INT8,
    GemmB.STREAM,
    False,
    False,
    GemmQ.PREFIX,
    GemmOut.INT32,
    GemmOp.NONE,
    False,
    False,
    False,
    False,
)
"""Exact int32 sums of weights of the stream."""


def _vec_operands(op: VecOp) -> set[str]:
    """Return what an operation of VEC must be drawn with."""
    uses = VEC_OPS[op]
    names = {"A int8", "A int16"} if uses.wide else {"A int8"}
    names |= {"B int8", "B int16"} if uses.two else set()
    names |= {"K int16"} if uses.k == "scale" else set()
    names |= {"bounds int8", "bounds int16"} if uses.k == "bound" else set()
    return names | ({"table int8"} if uses.src1 == "table" else set())


NORM = {
    *("X int16", "gain uint16", "shift uint8", "bias int8", "epsilon uint64"),
    "parameters uint8",
}
OPERANDS: dict[str, tuple[Generator, set[str]]] = {
    "dma_store": (partial(dma_store, StoreWindow()), {"source uint8"}),
    "gemm": (
        gemm,
        {
            *(f"A {kind}" for kind in ("int8", "uint8", "int16", "uint16")),
            *("B int8", "D int8", "D int16", "partial sums int32", "sums uint32"),
            *("mult uint16", "shift uint8", "bias int32", "table int8"),
            *("mul uint16", "sh int64", "mul of MUL uint16"),
        },
    ),
    "classic": (
        classic,
        {"A int8", "B int8", "partial sums int32", "scale uint8", "shift int64"},
    ),
    **{f"vec {op.name}": (partial(vec, op=op), _vec_operands(op)) for op in VecOp},
    "gelu": (gelu, {"A int8", "table int8"}),
    "silu": (silu, {"A int8", "table int8"}),
    "rope": (rope, {"A int8", "cos and sin int16"}),
    "softmax": (softmax, {"scores int8", "scores int16"}),
    "layernorm": (layernorm, NORM),
    "rmsnorm": (rmsnorm, NORM),
}
ENDS: dict[str, tuple[int, ...]] = {
    "mul uint16": (1, 32767),
    "sh int64": (0, 63),
    "shift int64": (0, 63),
    "shift uint8": (0, 63, 64, 128, 255),
    "scale uint8": (0, 1, 254, 255),
    "bounds int8": (-128, -1, 0, 1, 127),
}
"""What must be drawn of numbers drawn once a case, or that use only a part of their type."""


def _draw(make: Generator, seed: int) -> Case:
    random = np.random.default_rng(seed)
    case = make(random, Space(random, SRAM_WORDS))
    check_legal(case.words)
    return case


@pytest.mark.parametrize("name", OPERANDS)
def test_full_range(name: str) -> None:
    """Every operand of the engine is there, and each shows the whole range of its type."""
    make, expected = OPERANDS[name]
    drawn: dict[str, list[npt.NDArray[np.integer]]] = {}
    for seed in range(CASES):
        for operand, values in _draw(make, seed).data.items():
            drawn.setdefault(f"{operand} {values.dtype.name}", []).append(values.ravel())
    assert set(drawn) == expected
    for operand, parts in drawn.items():
        values = np.unique(np.concatenate(parts))
        info = np.iinfo(values.dtype)
        whole = info.bits == 8
        wanted = tuple(range(info.min, info.max + 1)) if whole else (info.min, 0, info.max)
        wanted = ENDS.get(operand, wanted)
        missing = [value for value in wanted if value not in values]
        assert not missing, f"{name}: {operand} never is {missing}"


@pytest.mark.parametrize("op", [op for op in VecOp if VEC_OPS[op].two], ids=lambda op: op.name)
@pytest.mark.parametrize("kind", [np.int8, np.int16])
def test_ends_meet(op: VecOp, kind: type[np.integer]) -> None:
    """The ends of both operands of VEC meet in every combination."""
    info = np.iinfo(kind)
    met = set()
    for seed in range(CASES):
        data = _draw(partial(vec, op=op), seed).data
        if data["A"].dtype == kind:
            met |= set(zip(data["A"].ravel().tolist(), data["B"].ravel().tolist(), strict=True))
    ends = (info.min, info.max)
    assert {(a, b) for a in ends for b in ends} <= met


def test_argmax() -> None:
    """GEMMs with argmax are legal in every mode, written and not."""
    out = OPCODES[Opcode.GEMM].imm["out"]
    outs = {out.get(_draw(argmax, seed).words[-1].imm) for seed in range(CASES)}
    assert outs == set(GemmOut) - {GemmOut.INT32}


def _run(case: Case, edge: int) -> npt.NDArray[np.uint8]:
    """Return the SRAM behind a case that runs without errors and races."""
    memory, sram = np.zeros(1 << 20, np.uint8), np.zeros(SRAM_WORDS * 16, np.uint8)
    program = b"".join(one.encode() for one in [*case.words, Instruction(Opcode.END)])
    memory[: len(program)] = np.frombuffer(program, np.uint8)
    memory[256 : 256 + len(case.stream)] = np.frombuffer(case.stream, np.uint8)
    for address, data in case.fills:
        sram[address : address + len(data)] = np.frombuffer(data, np.uint8)
    machine = Machine(ChipConfig(array_dim=edge), memory, sram)
    result = machine.run(StartState(0, len(case.words) + 1, 256, len(case.stream)))
    assert (result.error, result.races) == (None, [])
    return sram


@pytest.mark.parametrize("edge", [16, 32])
@pytest.mark.parametrize("best", [False, True])
def test_depthwise(edge: int, best: bool) -> None:
    """Depthwise GEMMs are legal on their array, of one to four lines that run without races."""
    make = argmax if best else gemm
    lines, overlapping = set(), 0
    for seed in range(CASES // 4):
        random = np.random.default_rng(seed)
        case = make(random, Space(random, SRAM_WORDS), edge=edge, depthwise=True)
        check_legal(case.words, edge)
        word = case.words[-1]
        if not GemmForm.of(word).depthwise:
            continue
        prefix = Prefix.of(case.words[0] if len(case.words) == 2 else None)
        image = [one for one in sram_operands(word, prefix, edge) if one.name == "src0"]
        lines.add(len(image))
        overlapping += len(image) > 1 and image[1].address < image[0].end
        (start, data) = case.fills[0]
        assert (start, start + len(data)) == (image[0].address, image[-1].end)
        _run(case, edge)
    assert lines == {1, 2, 3, 4}
    assert overlapping > 5
    assert not any(GemmForm.of(_draw(make, seed).words[-1]).depthwise for seed in range(50))


@pytest.mark.parametrize("edge", [16, 32])
@pytest.mark.parametrize("best", [False, True])
def test_lines(edge: int, best: bool) -> None:
    """Rows in lines: a third of the products of the stream, all numbers, types, and pitches.

    The place of A holds what all lines cover; the sums are those of the rows that they make.
    """
    make = argmax if best else gemm
    streamed = lined = exact = 0
    met: set[tuple[str, str | int]] = set()
    types = set()
    for seed in range(CASES // 2):
        random = np.random.default_rng(seed)
        case = make(random, Space(random, SRAM_WORDS), edge=edge)
        check_legal(case.words, edge)
        form = GemmForm.of(case.words[-1])
        streamed += form.stream
        lines = [one for one in operands(case, edge) if one.name == "src0"]
        if len(lines) == 1:
            continue
        lined += 1
        first, bp = lines[0], lines[1].address - lines[0].address
        near = "over" if bp < first.row_bytes else "behind" if bp == first.row_bytes else "apart"
        rows = "over" if first.pitch < first.row_bytes else "behind"
        met |= {("lines", len(lines)), ("bp", near), ("ap", rows)}
        types.add(form.a_type)
        (start, data) = case.fills[0]
        assert (start, start + len(data)) == (first.address, lines[-1].end)
        sram = _run(case, edge)
        if form.out == GemmOut.INT32 and not form.accumulate:
            exact += 1
            assert np.array_equal(written_sums(case, edge, sram), sums_of(case, edge))
    assert met == {
        *(("lines", count) for count in (2, 3, 4)),
        *(("bp", near) for near in ("over", "behind", "apart")),
        *(("ap", near) for near in ("over", "behind")),
    }
    assert types == set(GemmA)
    assert best or exact > 5
    assert 0.2 < lined / streamed < 0.45


@pytest.mark.parametrize("edge", [16, 32])
def test_given_lines(edge: int) -> None:
    """Lines that have no effect are noticed: those that lie behind each other."""
    mode = replace(LINED, a_type=GemmA.INT16)
    row = 3 * edge * 2 // 16
    for bp, effect in ((row // 3, False), (row // 3 + 1, True), (1, True)):
        make = partial(build, shape=GemmSize(4, 5, 3 * edge), mode=mode, edge=edge)
        lined = with_effect(partial(make, cut=Cut(3, 0, bp)), edge)
        random = np.random.default_rng(bp)
        if not effect:
            with pytest.raises(ValueError, match="rows in one piece"):
                lined(random, Space(random, SRAM_WORDS))
            continue
        case = lined(random, Space(random, SRAM_WORDS))
        assert np.array_equal(written_sums(case, edge, _run(case, edge)), sums_of(case, edge))


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.name)
def test_shape_classes(engine: Engine) -> None:
    """Every shape class of every engine is legal and fits beside the others."""
    for edge in (16, 32):
        for index in range(len(SHAPES)):
            for make in of_class(engine, index, StoreWindow(), edge):
                assert _draw(make, index).words


@pytest.mark.parametrize("bank", range(BANKS))
def test_one_bank(bank: int) -> None:
    """Every row of every operand begins in the bank, and no two share a word."""
    random = np.random.default_rng(bank)
    space = OneBank(random, SRAM_WORDS, bank=bank)
    places = [space.matrix(rows, 16) for rows in (8, 4, 16, 1, 8, 8)]
    starts = [place.word + row * place.pitch for place in places for row in range(place.rows)]
    assert len(set(starts)) == len(starts) == sum(place.rows for place in places)
    assert set(bank_of(np.array(starts)).tolist()) == {bank}


def test_banks_are_even() -> None:
    """Each bank has the same share of the SRAM, and 16 words in a row lie in 16 banks."""
    banks = bank_of(np.arange(SRAM_WORDS))
    assert np.bincount(banks).tolist() == [SRAM_WORDS // BANKS] * BANKS
    assert (np.sort(banks.reshape(-1, BANKS), axis=1) == np.arange(BANKS)).all()
