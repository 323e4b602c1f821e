# SPDX-License-Identifier: Apache-2.0
"""A plan as a folder: `plan.json` and `image.bin`.

`image.bin` is a packed file of stream, constants, programs and the text form of the plan's graph,
`plan.json` (`plan.schema.json`) all else. No part holds an absolute address. Reading recomputes
what can be recomputed, and refuses what differs.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from npu.graph.form import Graph, GraphError
from npu.graph.text import parse, write
from npu.graph.verify import check_operation
from npu.image import Pack, PackError, pack, unpack
from npu.isa.operands import WORD, Limits
from npu.runtime.decoder import Decoder, check_taken, decoder_plan
from npu.runtime.plan import (
    Action,
    Area,
    Base,
    Origin,
    Plan,
    PlannedSegment,
    PlannedTensor,
    Step,
)
from npu.runtime.plan_checks import check_plan
from npu.runtime.plan_record import record_of, section_of
from npu.runtime.schema import EntryError, check, check_same, plan_schema, words

PLAN, IMAGE = "plan.json", "image.bin"
CONSTANTS, GRAPH = "constants", "graph"
"""Sections of the image beside the programs."""
INFO = ("origin", "chip", "decoder")
"""What the image says of itself, the same as the plan."""


class PlanFileError(ValueError):
    """A folder holds no plan, or a damaged one; the message names file, entry and what is wrong."""


def files_of(plan: Plan) -> dict[str, bytes]:
    """Return the contents of a plan's files, by name."""
    image = _image_of(plan)
    text = json.dumps(_whole(plan, image), indent=1) + "\n"
    return {PLAN: text.encode(), IMAGE: image}


def record_with_image(plan: Plan) -> dict[str, Any]:
    """Return the contents of plan.json."""
    return _whole(plan, _image_of(plan))


def _image_of(plan: Plan) -> bytes:
    sections = {CONSTANTS: plan.constants}
    sections |= {section_of(i): one.image for i, one in enumerate(plan.segments)}
    sections[GRAPH] = write(plan.graph).encode()
    return pack(
        plan.stream, plan.shares, edge=plan.limits.edge, sections=sections, info=_info(plan)
    )


def bytes_of(plan: Plan) -> bytes:
    """Return a plan as one piece: a packed file of its files."""
    return pack(b"", (), sections=files_of(plan))


def plan_of_bytes(data: bytes, place: str = "plan") -> Plan:
    """Return the plan of what `bytes_of` has made.

    Raises:
        PlanFileError: the bytes are not as they were made.
    """
    try:
        files = unpack(data, filename=place).sections
    except PackError as error:
        raise PlanFileError(str(error)) from None
    if sorted(files) != sorted((PLAN, IMAGE)):
        raise PlanFileError(
            f"{place}: given {', '.join(files) or 'nothing'}, allowed {PLAN}, {IMAGE}"
        )
    return plan_from(files, place)


def holds_plan(folder: Path) -> bool:
    """Say whether a folder is one of a plan, damaged or not."""
    return (folder / PLAN).is_file()


def read_plan(folder: Path) -> Plan:
    """Read a plan. Raises PlanFileError unless every file is as it was written."""
    files = {name: _bytes_of(folder / name) for name in (PLAN, IMAGE)}
    return plan_from(files, str(folder))


def plan_from(files: dict[str, bytes], place: str = "plan") -> Plan:
    """Return the plan of its files' contents.

    Args:
        files: contents by name, as `files_of` gives them.
        place: where they are from, for errors.

    Raises:
        PlanFileError: they are not as they were written.
    """
    try:
        record = json.loads(files[PLAN])
    except (ValueError, RecursionError):
        raise PlanFileError(
            f"{place}/{PLAN}: given text that is no JSON, allowed what npu compile wrote"
        ) from None
    try:
        return _read(record, files[IMAGE], f"{place}/{IMAGE}")
    except EntryError as error:
        raise PlanFileError(f"{place}/{PLAN}: {error}") from None
    except GraphError as error:
        text = f"graph: given one with {error}, allowed what npu compile wrote"
        raise PlanFileError(f"{place}/{IMAGE}: {text}") from None
    except PackError as error:
        raise PlanFileError(str(error)) from None


def _bytes_of(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise PlanFileError(f"{path}: {error.strerror or error}") from None


def _info(plan: Plan) -> dict[str, Any]:
    """Return what the image says of itself: it belongs to one plan."""
    return {
        "origin": asdict(plan.origin),
        "chip": asdict(plan.limits),
        "decoder": None if plan.decoder is None else plan.decoder.record(),
    }


def _whole(plan: Plan, image: bytes) -> dict[str, Any]:
    found = record_of(plan)
    summary = {"bytes": len(image), "sha256": hashlib.sha256(image).hexdigest()}
    # The order of the schema.
    return {
        name: summary if name == "image" else found[name] for name in plan_schema()["properties"]
    }


def _read(record: object, image: bytes, place: str) -> Plan:
    schema = plan_schema()
    _check_seal(record, image)
    check(record, schema, schema, "")
    assert isinstance(record, dict)
    limits = Limits(**record["chip"])
    content = unpack(image, filename=place, edge=limits.edge)
    for name in INFO:
        check_same(record[name], content.info.get(name), name)
    count = len(record["segments"])
    wanted = [CONSTANTS, *map(section_of, range(count)), GRAPH]
    if sorted(content.sections) != sorted(wanted) or set(content.info) != {*INFO}:
        given = ", ".join(content.sections)
        raise EntryError("segments", words(f"{count} and sections {given}"), ", ".join(wanted))
    for number, one in enumerate(record["segments"]):
        size = len(content.sections[section_of(number)])
        if size != WORD * one["words"]:
            raise EntryError(f"segments[{number}].words", one["words"], f"{size / WORD:g}")
    if record["decoder"] is None:
        plan = _plan(record, content, limits)
        check_plan(plan)
    else:
        plan = _decoder(record, content, limits)
    check_same(record, _whole(plan, image))
    _check_written(plan, image)
    return plan


def _check_seal(record: object, image: bytes) -> None:
    """A plan of this format, and the image that belongs to it: that is told before all else."""
    schema = plan_schema()
    head = {name: schema["properties"][name] for name in ("format", "image")}
    check(record, {"type": "object", "required": [*head], "properties": head}, schema, "")
    assert isinstance(record, dict)
    stored = record["image"]
    if stored["bytes"] != len(image):
        raise EntryError("image.bytes", stored["bytes"], f"{len(image)}, those of {IMAGE}")
    found = hashlib.sha256(image).hexdigest()
    if stored["sha256"] != found:
        raise EntryError("image.sha256", stored["sha256"], f"{found}, that of {IMAGE}")


def _check_written(plan: Plan, image: bytes) -> None:
    """Nothing is in the image that would not be written again: no version, no order, no blank."""
    written = _image_of(plan)
    if image != written:
        at = next(
            (i for i, (one, other) in enumerate(zip(image, written, strict=False)) if one != other),
            min(len(image), len(written)),
        )
        given, right = image[at : at + 1], written[at : at + 1]
        raise EntryError(f"image[{at}]", given, f"{right!r}, as it would be written")


def _decoder(record: dict[str, Any], content: Pack, limits: Limits) -> Plan:
    """Return the plan of a decoder, made again from what it is made from."""
    plan = decoder_plan(
        Decoder.of_record(record["decoder"]),
        parse(content.sections[GRAPH].decode("utf-8", "replace")).name,
        [content.sections[section_of(number)] for number in range(len(record["segments"]))],
        limits,
        content.stream,
        content.shares,
        content.sections[CONSTANTS],
        Origin(**record["origin"]),
    )
    if write(plan.graph).encode() != content.sections[GRAPH]:
        raise EntryError("decoder", words("another graph"), "that of the image")
    check_taken(plan)
    return plan


def _graph(content: Pack) -> Graph:
    """Return the graph; the operations that the host evaluates are checked here."""
    graph = parse(content.sections[GRAPH].decode("utf-8", "replace"))
    for one in graph.operations:
        if not one.on_chip:
            check_operation(graph, one)
    return graph


def _plan(record: dict[str, Any], content: Pack, limits: Limits) -> Plan:
    graph = _graph(content)
    tensors: list[PlannedTensor] = []
    for number, one in enumerate(record["tensors"]):
        if one["name"] not in graph.tensors or one["name"] in [t.name for t in tensors]:
            raise EntryError(f"tensors[{number}].name", one["name"], "a tensor of the graph, once")
        times = (one[key] for key in ("offset", "bytes", "first", "last"))
        tensors.append(PlannedTensor(one["name"], graph.type(one["name"]), *times))
    return Plan(
        graph,
        tuple(
            Step(Action(one["action"]), one["of"], tuple(one["reads"]), tuple(one["writes"]))
            for one in record["steps"]
        ),
        tuple(_segment(number, one, content) for number, one in enumerate(record["segments"])),
        limits,
        content.stream,
        content.shares,
        content.sections[CONSTANTS],
        record["arena"]["bytes"],
        tuple(tensors),
        Origin(**record["origin"]),
    )


def _segment(number: int, one: dict[str, Any], content: Pack) -> PlannedSegment:
    image = content.sections[section_of(number)]
    names = [each["name"] for each in one["operations"]]
    if len({*names}) < len(names):
        raise EntryError(f"segments[{number}].operations", words("a name twice"), "each once")
    registers = [each["register"] for each in one["bases"]]
    if len({*registers}) < len(registers):
        raise EntryError(f"segments[{number}].bases", words("a register twice"), "each once")
    return PlannedSegment(
        tuple(names),
        image,
        "",
        {each["name"]: each["word"] for each in one["operations"] if each["word"] is not None},
        {each["register"]: Base(Area(each["area"]), each["offset"]) for each in one["bases"]},
        one["stream_bytes"],
        one["sram_bytes"],
        tuple(one["reads"]),
        tuple(one["writes"]),
        dict(one["registers"]),
    )
