# SPDX-License-Identifier: Apache-2.0
"""A plan as a folder: `plan.json`, `image.bin` and `graph.txt`.

`image.bin` is a packed file of stream, constants and programs, `graph.txt` the text form of the
plan's graph, `plan.json` all else. No part holds an absolute address.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, NoReturn

from npu.graph.form import Graph, GraphError
from npu.graph.text import parse, write
from npu.image import Pack, PackError, pack, unpack
from npu.isa.operands import WORD, Limits
from npu.runtime.plan import Origin, Plan, PlannedSegment
from npu.runtime.tensor_rows import tensor_bytes

FORMAT = 1
PLAN, IMAGE, GRAPH = "plan.json", "image.bin", "graph.txt"
CONSTANTS = "constants"


class PlanFileError(ValueError):
    """A folder holds no plan, or a damaged one; the message names file, entry and what is wrong."""


def files_of(plan: Plan) -> dict[str, bytes]:
    """Return the contents of a plan's files, by name."""
    sections = {CONSTANTS: plan.constants}
    sections |= {_section(i): one.image for i, one in enumerate(plan.segments)}
    image = pack(plan.stream, plan.shares, edge=plan.limits.edge, sections=sections)
    graph = write(plan.graph).encode()
    record = {
        "format": FORMAT,
        "origin": asdict(plan.origin),
        "chip": asdict(plan.limits),
        "sha256": {IMAGE: _sha256(image), GRAPH: _sha256(graph)},
        "arena": plan.arena,
        "offsets": dict(plan.offsets),
        "segments": [
            {
                "section": _section(i),
                "operations": list(one.operations),
                "first_word": dict(one.first_word),
                "stream_bytes": one.stream_bytes,
                "sram_bytes": one.sram_bytes,
                "reads": list(one.reads),
                "writes": list(one.writes),
            }
            for i, one in enumerate(plan.segments)
        ],
        "steps": [
            {"launch": step} if isinstance(step, int) else {"host": step} for step in plan.steps
        ],
    }
    text = json.dumps(record, indent=1) + "\n"
    return {PLAN: text.encode(), IMAGE: image, GRAPH: graph}


def holds_plan(folder: Path) -> bool:
    """Say whether a folder is one of a plan, damaged or not."""
    return (folder / PLAN).is_file()


def read_plan(folder: Path) -> Plan:
    """Read a plan. Raises PlanFileError unless every file is as it was written."""
    return _Reader(folder).plan()


def _section(number: int) -> str:
    return f"segment{number}"


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class _Reader:
    """One folder under inspection."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.record: dict[str, Any] = {}

    def refuse(self, name: str, place: str, given: object, allowed: object) -> NoReturn:
        raise PlanFileError(f"{self.folder / name}: {place}: given {given}, allowed {allowed}")

    def bytes_of(self, name: str) -> bytes:
        try:
            return (self.folder / name).read_bytes()
        except OSError as error:
            raise PlanFileError(f"{self.folder / name}: {error.strerror or error}") from None

    def plan(self) -> Plan:
        text = self.bytes_of(PLAN)
        try:
            record = json.loads(text)
        except (ValueError, RecursionError):
            self.refuse(PLAN, "file", "text that is no JSON", "what npu compile wrote")
        if not isinstance(record, dict) or record.get("format") != FORMAT:
            given = record.get("format") if isinstance(record, dict) else type(record).__name__
            self.refuse(PLAN, "format", repr(given), FORMAT)
        self.record = record
        try:
            return self._plan()
        except (AttributeError, KeyError, TypeError, IndexError, StopIteration) as error:
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            raise PlanFileError(
                f"{self.folder / PLAN}: an entry is missing or of another kind ({reason})"
            ) from None

    def _plan(self) -> Plan:
        record = self.record
        image = self._image()
        graph = self._graph()
        segments = tuple(self._segment(one, image) for one in record["segments"])
        chip = record["chip"]
        known = {one.name for one in fields(Limits)}
        if set(chip) != known:
            self.refuse(PLAN, "chip", sorted(chip), sorted(known))
        plan = Plan(
            graph,
            tuple(one["launch"] if "launch" in one else one["host"] for one in record["steps"]),
            segments,
            Limits(**chip),
            image.stream,
            image.shares,
            image.sections[CONSTANTS],
            record["arena"],
            record["offsets"],
            Origin(**record["origin"]),
        )
        self._check(plan)
        return plan

    def _checked(self, name: str) -> bytes:
        data = self.bytes_of(name)
        found, stored = _sha256(data), self.record["sha256"][name]
        if found != stored:
            self.refuse(name, "SHA-256", found, f"{stored}, as {PLAN} says")
        return data

    def _image(self) -> Pack:
        try:
            return unpack(self._checked(IMAGE), filename=str(self.folder / IMAGE))
        except PackError as error:
            raise PlanFileError(str(error)) from None

    def _graph(self) -> Graph:
        text = self._checked(GRAPH).decode("utf-8", "replace")
        try:
            return parse(text)
        except GraphError as error:
            raise PlanFileError(f"{self.folder / GRAPH}: {error}") from None

    def _segment(self, one: dict[str, Any], image: Pack) -> PlannedSegment:
        return PlannedSegment(
            tuple(one["operations"]),
            image.sections[one["section"]],
            "",
            dict(one["first_word"]),
            one["stream_bytes"],
            one["sram_bytes"],
            tuple(one["reads"]),
            tuple(one["writes"]),
        )

    def _check(self, plan: Plan) -> None:
        """Refuse what would write or read elsewhere than in the plan's own places."""
        names = {one.name for one in plan.graph.operations}
        for number, step in enumerate(plan.steps):
            known = range(len(plan.segments)) if isinstance(step, int) else names
            if step not in known:
                self.refuse(PLAN, f"steps[{number}]", repr(step), "a segment or an operation")
        for name, offset in plan.offsets.items():
            room = plan.arena - tensor_bytes(plan.graph.type(name))
            if not 0 <= offset <= room or offset % WORD:
                allowed = f"multiples of {WORD} from 0 to {room}"
                self.refuse(PLAN, f"offsets[{name!r}]", offset, allowed)
        for number, one in enumerate(plan.segments):
            if not 0 <= one.stream_bytes <= len(plan.stream):
                allowed = f"0 to {len(plan.stream)}"
                self.refuse(PLAN, f"segments[{number}].stream_bytes", one.stream_bytes, allowed)
            if len(one.image) % WORD or not one.image:
                self.refuse(IMAGE, _section(number), f"{len(one.image)} bytes", "whole words")
            missing = {*one.reads, *one.writes} - set(plan.offsets)
            if missing:
                self.refuse(PLAN, f"segments[{number}]", sorted(missing), "tensors with offsets")
