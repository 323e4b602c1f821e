# SPDX-License-Identifier: Apache-2.0
"""Damaged plans: every entry, every section, and programs that say more than they may."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.needs import needs

needs("graphs")

from npu.runtime.plan_files import (
    IMAGE,
    PLAN,
    PlanFileError,
    files_of,
    plan_from,
    read_plan,
)
from npu.runtime.schema import EntryError, check, plan_schema
from spec.isa.generated import Opcode, SetReg
from spec.isa.instruction import Instruction, decode_image, encode_image
from tests.python.compiler.user_networks import built
from tests.python.plans.plan_damage import damages, flipped, resealed, sections_of, with_record

STEP = 97
"""Of the bits of an image that are tried; tests/suites/test_plan_damage.py tries every one of
header, table, programs and graph."""


@cache
def _files() -> dict[str, bytes]:
    return files_of(built().plan)


def test_every_entry_of_a_plan_is_refused_when_it_is_another() -> None:
    """Whatever stands in an entry's place; no entry is there that may be anything."""
    record = json.loads(_files()[PLAN])
    paths, named, tried = set(), 0, 0
    for damage in damages(record):
        with pytest.raises(PlanFileError) as caught:
            plan_from(with_record(_files(), damage.record))
        text = str(caught.value)
        assert ": given " in text, (damage.path, text)
        assert ", allowed " in text, (damage.path, text)
        tried += 1
        paths.add(damage.path)
        place = text.split(": given ")[0].rpartition(" ")[2]
        named += place.startswith(damage.path) or damage.path.startswith(place)
    assert tried > 1000
    assert len(paths) > 150
    # Others name what contradicts the entry, such as a word that loads from elsewhere.
    assert named > 0.9 * tried


def test_every_bit_of_an_image_counts() -> None:
    """Header, stream, constants, programs, graph, and what fills them up."""
    files = _files()
    size = 8 * len(files[IMAGE])
    for bit in range(0, size, STEP):
        with pytest.raises(PlanFileError, match=r"plan.json: image.sha256: given .*, allowed"):
            plan_from({**files, IMAGE: flipped(files[IMAGE], bit)})
    for cut in (0, 1, 64, len(files[IMAGE]) - 1):
        with pytest.raises(PlanFileError, match=r"plan.json: image.bytes: given .*, allowed"):
            plan_from({**files, IMAGE: files[IMAGE][:cut]})
    assert {"stream", "constants", "segment0", "segment1", "graph"} <= set(sections_of(files))


def _program(segment: int) -> list[Instruction]:
    return decode_image(built().plan.segments[segment].image)


def _find(program: list[Instruction], opcode: Opcode) -> int:
    return next(i for i, word in enumerate(program) if word.opcode == opcode)


def _changed(which: Opcode, /, **fields: int) -> Callable[[list[Instruction]], None]:
    def change(program: list[Instruction]) -> None:
        at = _find(program, which)
        values = {name: getattr(program[at], name) for name in Instruction.__slots__}
        program[at] = Instruction(**{**values, **fields})

    return change


def _set_base(program: list[Instruction]) -> None:
    at = _find(program, Opcode.SET)
    program[at] = Instruction(Opcode.SET, dst=SetReg.BASE0)


def _ended_early(program: list[Instruction]) -> None:
    program[_find(program, Opcode.BARRIER)] = program[-1]


def _never_ended(program: list[Instruction]) -> None:
    program[-1] = Instruction(Opcode.NOP)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_changed(Opcode.GEMM, opcode=63), r"ILLEGAL_OPCODE: .*, allowed a legal instruction"),
        (_changed(Opcode.GEMM, m=0), r"BAD_DIMENSION: .*, allowed a legal instruction"),
        (_changed(Opcode.DMA_LOAD, src1=2), r"given load of arena .*, allowed bytes of one tensor"),
        (_changed(Opcode.DMA_LOAD, imm=3), r"given BASE3, allowed BASE0"),
        (_changed(Opcode.DMA_STORE, src1=2), r"given store to arena .*, allowed bytes of one"),
        (
            _changed(Opcode.DMA_STORE, imm=2),
            r"given (BASE2|store to constants .*), allowed",
        ),
        (_changed(Opcode.GEMM, n=48), r"of the stream from .* for GEMM, allowed the share of"),
        (_changed(Opcode.DMA_LOAD, opcode=Opcode.KV_READ), r"given .*, allowed"),
        (_set_base, r"given SET BASE0, allowed SET STREAM"),
        (_ended_early, r"given END, allowed END as the last word"),
        (_never_ended, r"given NOP, allowed END as the last word"),
    ],
)
def test_a_program_that_says_more_than_it_may_is_refused(
    change: Callable[[list[Instruction]], None], message: str
) -> None:
    """Even with checksums, hashes and sizes that fit it."""
    for segment in range(2):
        program = _program(segment)
        try:
            change(program)
        except StopIteration:
            continue
        files = resealed(_files(), f"segment{segment}", encode_image(program))
        with pytest.raises(PlanFileError, match=message) as caught:
            plan_from(files)
        assert "plan.json: segments[" in str(caught.value)


def test_what_is_resealed_without_a_change_is_a_plan() -> None:
    """The checks above refuse what they change, not how they write it."""
    image = built().plan.segments[0].image
    plan = plan_from(resealed(_files(), "segment0", image))
    assert plan.segments[0].image == image


def _json(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        record = json.loads((folder / PLAN).read_text())
        change(record)
        (folder / PLAN).write_text(json.dumps(record))

    return apply


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: (folder / PLAN).unlink(), "given a folder without plan.json"),
        (lambda folder: (folder / IMAGE).unlink(), "image.bin: No such file"),
        (lambda folder: (folder / PLAN).write_text("{"), "given text that is no JSON"),
        (lambda folder: (folder / PLAN).write_text("[" * 100_000), "given text that is no JSON"),
        (lambda folder: (folder / PLAN).write_text("[]"), r"given \[\], allowed of type object"),
        (_json(lambda r: r.update(format=1)), "format: given 1, allowed 2"),
        (_json(lambda r: r.pop("arena")), "arena: given nothing, allowed memory of the tensors"),
        (_json(lambda r: r["chip"].update(array_dim=12)), "chip.array_dim: given 12, allowed 4, 8"),
        (_json(lambda r: r["chip"].update(array_dim=8)), "chip.array_dim: given 8, allowed 16"),
        (_json(lambda r: r["steps"].pop()), r"steps: given 16 entries, allowed|steps.*given"),
        (_json(lambda r: r["tensors"][0].update(scale=1e999)), r"tensors\[0\].scale: given inf"),
        (
            _json(lambda r: r["segments"][1].update(stream_bytes=1 << 20)),
            r"segments\[1\].stream_bytes: given 1048576, allowed 1280",
        ),
        (
            _json(lambda r: r["batches"].append([0, 1, 0, 1])),
            r"batches\[2\]: given 4 entries, allowed 1 to 3",
        ),
    ],
)
def test_a_damaged_folder_is_refused(
    tmp_path: Path, damage: Callable[[Path], object], message: str
) -> None:
    """Each error names the file, the entry, what was given and what is allowed."""
    for name, data in _files().items():
        (tmp_path / name).write_bytes(data)
    damage(tmp_path)
    with pytest.raises(PlanFileError, match=message) as caught:
        read_plan(tmp_path)
    assert str(caught.value).startswith(str(tmp_path))


def test_the_schema_is_the_one_of_other_tools() -> None:
    """The package jsonschema accepts what we write and refuses what our reader's schema refuses."""
    import jsonschema

    schema = plan_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    record = json.loads(_files()[PLAN])
    assert validator.is_valid(record)
    refused = 0
    for damage in damages(record):
        try:
            check(damage.record, schema, schema, "")
        except EntryError:
            refused += 1
            assert not validator.is_valid(damage.record), damage.path
        else:
            assert validator.is_valid(damage.record), damage.path
    assert refused > 500
