# SPDX-License-Identifier: Apache-2.0
"""A plan as a folder: `plan.json` and `image.bin`.

`image.bin` is a packed file of stream, constants, programs and the text form of the plan's graph,
`plan.json` (`plan.schema.json`) all else. No part holds an absolute address. Reading recomputes
what can be recomputed, and refuses what differs: a plan is made by one person and run by another.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
from dataclasses import asdict
from pathlib import Path
from typing import Any

from npu.graph import host_process
from npu.graph.form import Graph, GraphError
from npu.graph.text import parse, write
from npu.graph.verify import verify
from npu.image import Pack, PackError, pack, unpack
from npu.runtime.decoder import Decoder, check_taken, decoder_plan
from npu.runtime.plan import (
    Action,
    Base,
    BaseArea,
    Origin,
    Plan,
    PlannedSegment,
    PlannedTensor,
    PlanStep,
)
from npu.runtime.plan_checks import check_host, check_plan
from npu.runtime.plan_record import record_of, section_of
from npu.runtime.schema import EntryError, check, check_same, plan_schema, words
from spec.isa.operands import WORD, Limits

PLAN, IMAGE = "plan.json", "image.bin"
CHECKPOINT = "config.json"
"""What a folder has that holds a checkpoint instead."""
CONSTANTS, GRAPH = "constants", "graph"
"""Sections of the image beside the programs."""
INFO = ("origin", "chip", "decoder")
"""What the image says of itself, the same as the plan."""
MOST = {PLAN: 1 << 26, IMAGE: 1 << 32}
"""Bytes of the files: a plan that describes, and an image for addresses of 32 bits."""


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
    if (folder / CHECKPOINT).is_file() and not holds_plan(folder):
        raise PlanFileError(
            f"{folder}: given the folder of a checkpoint, allowed is {folder}.plan, which npu "
            f"compile {folder} -o {folder}.tsr --rows 16 makes"
        )
    if not holds_plan(folder):
        raise PlanFileError(
            f"{folder}: given a {'folder' if folder.is_dir() else 'name'} without {PLAN}, allowed "
            "is a folder that npu compile has written"
        )
    plan = bytes_in(folder / PLAN, MOST[PLAN])
    try:
        most = _image_bytes(_record(plan, str(folder)))
    except EntryError as error:
        raise PlanFileError(f"{folder}/{PLAN}: {error}") from None
    return plan_from({PLAN: plan, IMAGE: bytes_in(folder / IMAGE, most)}, str(folder))


def plan_from(files: dict[str, bytes], place: str = "plan") -> Plan:
    """Return the plan of its files' contents.

    Args:
        files: contents by name, as `files_of` gives them.
        place: where they are from, for errors.

    Raises:
        PlanFileError: they are not as they were written.
    """
    record = _record(files[PLAN], place)
    try:
        return _read(record, files[IMAGE], f"{place}/{IMAGE}")
    except EntryError as error:
        raise PlanFileError(f"{place}/{PLAN}: {error}") from None
    except GraphError as error:
        text = f"graph: given one with {_brief(str(error))}, allowed what npu compile wrote"
        raise PlanFileError(f"{place}/{IMAGE}: {text}") from None
    except PackError as error:
        raise PlanFileError(str(error)) from None


def _brief(text: str, most: int = 500) -> str:
    """Return a text without its middle if names of strangers make it long."""
    half = most // 2
    return text if len(text) <= most else f"{text[:half]} ... {text[-half:]}"


def _record(data: bytes, place: str) -> object:
    """Return the entries of plan.json."""
    wrong = "text that is no JSON"
    try:
        return json.loads(data, object_pairs_hook=_once)
    except EntryError as error:
        wrong = f"entry {error.path!r} twice in one object"
    except (ValueError, RecursionError):
        pass
    raise PlanFileError(f"{place}/{PLAN}: given {wrong}, allowed what npu compile wrote")


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise EntryError(next(one for one in names if names.count(one) > 1), "two", "one")
    return found


def bytes_in(path: Path, most: int) -> bytes:
    """Return the content of a file of a stranger's folder.

    Args:
        path: of the file; a link, a pipe or a device is none.
        most: bytes that it may have.

    Raises:
        PlanFileError: it is none, or longer.
    """
    try:
        # Whoever waits for the other end of a pipe waits for ever; a link leads somewhere else.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
        with os.fdopen(os.open(path, flags), "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise PlanFileError(f"{path}: given what is no file, allowed a file")
            if found.st_size > most:
                raise PlanFileError(f"{path}: given {found.st_size} bytes, allowed {most}")
            return file.read(most + 1)
    except OSError as error:
        reason = "given a link, allowed a file" if error.errno == errno.ELOOP else error.strerror
        raise PlanFileError(f"{path}: {reason or error}") from None


def _info(plan: Plan) -> dict[str, Any]:
    """Return the entries of the image on itself: it belongs to one plan."""
    return {
        "origin": asdict(plan.origin),
        "chip": asdict(plan.limits),
        "decoder": None if plan.decoder is None else plan.decoder.record(),
    }


def _whole(plan: Plan, image: bytes) -> dict[str, Any]:
    found = record_of(plan)
    summary = {"bytes": len(image), "sha256": hashlib.sha256(image).hexdigest()}
    # The order of the schema.
    found["image"] = summary
    return {name: found[name] for name in plan_schema()["properties"] if name in found}


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
        check_host(plan)
        check_plan(plan)
    else:
        plan = _decoder(record, content, limits)
    check_same(record, _whole(plan, image))
    _check_written(plan, image)
    return plan


def _image_bytes(record: object) -> int:
    """Return how many bytes a plan of this format says that its image has."""
    schema = plan_schema()
    head = {name: schema["properties"][name] for name in ("format", "image")}
    check(record, {"type": "object", "required": [*head], "properties": head}, schema, "")
    assert isinstance(record, dict)
    size: int = record["image"]["bytes"]
    return size


def _check_seal(record: object, image: bytes) -> None:
    """A plan of this format, and the image that belongs to it: that is told before all else."""
    stored = _image_bytes(record)
    if stored != len(image):
        raise EntryError("image.bytes", stored, f"{len(image)}, those of {IMAGE}")
    assert isinstance(record, dict)
    found = hashlib.sha256(image).hexdigest()
    if record["image"]["sha256"] != found:
        raise EntryError("image.sha256", record["image"]["sha256"], f"{found}, that of {IMAGE}")


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
    """Return the graph, checked as when it was compiled, and what its host steps carry."""
    graph = parse(content.sections[GRAPH].decode("utf-8", "replace"))
    verify(graph, placed=True, planned=True)
    for operation in graph.operations:
        if operation.kind == "host":
            host_process.check(graph, operation)
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
            PlanStep(Action(one["action"]), one["of"], tuple(one["reads"]), tuple(one["writes"]))
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
        {each["register"]: Base(BaseArea(each["area"]), each["offset"]) for each in one["bases"]},
        one["stream_bytes"],
        one["sram_bytes"],
        tuple(one["reads"]),
        tuple(one["writes"]),
        dict(one["registers"]),
    )
