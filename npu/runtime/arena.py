# SPDX-License-Identifier: Apache-2.0
"""When tensors take their places in the arena, and what segments read and write there.

Nothing here is believed: transfers of the programs are matched with the places that the plan names,
and what follows is compared with what the plan says.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from npu.runtime.accesses import transfers
from npu.runtime.plan import Action, BaseArea, Plan, PlannedTensor
from npu.runtime.schema import EntryError, words


@dataclass(frozen=True, slots=True)
class Touch:
    """A transfer to or from the arena.

    Attributes:
        segment, word: which it is.
        position: of its operation in the plan.
        tensor: that it touches.
        first, end: bytes of the arena.
        writes: whether it writes them.
    """

    segment: int
    word: int
    position: int
    tensor: str
    first: int
    end: int
    writes: bool


def touches(plan: Plan) -> list[Touch]:
    """Return the bytes of the arena that programs touch, in the order of the steps.

    Raises:
        EntryError: a transfer lies in no tensor that has its place at that time.
    """
    found: list[Touch] = []
    alive: dict[int, list[PlannedTensor]] = {}
    for number in plan.launches:
        segment = plan.segments[number]
        owners = segment.owners
        for one in transfers(segment.program):
            base = segment.bases.get(one.register)
            if base is None or base.area is not BaseArea.ARENA:
                continue
            span = base.offset + one.first, base.offset + one.end
            owner = owners[one.word]
            if not owner:
                raise EntryError(
                    f"segments[{number}].program[{one.word}]",
                    words(f"transfer of arena {span[0]} to {span[1] - 1} by no operation"),
                    f"one of {', '.join(segment.operations)}",
                )
            position = plan.positions[owner]
            if position not in alive:
                alive[position] = [t for t in plan.tensors if t.first <= position <= t.last]
            name = _tensor_at(alive[position], span)
            if name is None:
                what = "store to" if one.writes else "load of"
                raise EntryError(
                    f"segments[{number}].program[{one.word}]",
                    words(f"{what} arena {span[0]} to {span[1] - 1}"),
                    f"bytes of one tensor of operation {owner!r}",
                )
            found.append(Touch(number, one.word, position, name, *span, one.writes))
    return found


def _tensor_at(tensors: Iterable[PlannedTensor], span: tuple[int, int]) -> str | None:
    for one in tensors:
        if one.offset <= span[0] and span[1] <= one.offset + one.bytes:
            return one.name
    return None


@dataclass(frozen=True)
class ArenaUse:
    """How a plan uses its arena.

    Attributes:
        tensors: with the times that follow from steps and programs, by offset.
        reads, writes: of each segment, by name of the tensor.
    """

    tensors: tuple[PlannedTensor, ...]
    reads: tuple[tuple[str, ...], ...]
    writes: tuple[tuple[str, ...], ...]


def use_of(plan: Plan, found: Sequence[Touch]) -> ArenaUse:
    """Return the use of the arena that follows from the transfers of a plan.

    A tensor takes its place from the first transfer on, or from the first operation behind the step
    that packs it, and keeps it up to the last transfer, or to the last operation before the step
    that unpacks it.
    """
    reads: list[dict[str, None]] = [{} for _ in plan.segments]
    stored: list[set[str]] = [set() for _ in plan.segments]
    for one in found:
        if one.writes:
            stored[one.segment].add(one.tensor)
        elif one.tensor not in stored[one.segment]:
            reads[one.segment][one.tensor] = None
    kept = _kept(plan)
    writes: list[tuple[str, ...]] = [()] * len(plan.segments)
    later: set[str] = set()
    for number in reversed(list(plan.launches)):
        writes[number] = tuple(sorted(name for name in stored[number] if name in later | kept))
        later.update(reads[number])
    spans = _spans(plan, found)
    tensors = [
        replace(one, first=spans[one.name][0], last=spans[one.name][1])
        for one in plan.tensors
        if one.name in spans
    ]
    tensors.sort(key=lambda one: (one.offset, one.first, one.name))
    return ArenaUse(tuple(tensors), tuple(tuple(sorted(one)) for one in reads), tuple(writes))


def _kept(plan: Plan) -> set[str]:
    """Return the tensors that the host needs."""
    elsewhere = [op for op in plan.graph.operations if not op.on_chip]
    return {*plan.graph.outputs, *(name for one in elsewhere for name in one.used)}


def _spans(plan: Plan, found: Sequence[Touch]) -> dict[str, tuple[int, int]]:
    spans: dict[str, tuple[int, int]] = {}

    def take(name: str, position: int) -> None:
        first, last = spans.get(name, (position, position))
        spans[name] = min(first, position), max(last, position)

    for one in found:
        take(one.tensor, one.position)
    position = -1
    for step in plan.steps:
        match step.action:
            case Action.LAUNCH:
                position += len(plan.segments[step.segment].operations)
            case Action.HOST | Action.PORT:
                position += 1
            case Action.PACK:
                take(str(step.of), position + 1)
            case Action.UNPACK:
                take(str(step.of), position)
    return spans


def check_disjoint(tensors: Sequence[PlannedTensor], arena: int) -> None:
    """Raise EntryError if two tensors have one place at a time, or one leaves the arena."""
    for number, one in enumerate(tensors):
        room = arena - one.bytes
        if one.offset > room:
            raise EntryError(f"tensors[{number}].offset", one.offset, f"0 to {room}")
        for before, other in enumerate(tensors[:number]):
            at_once = one.first <= other.last and other.first <= one.last
            end, other_end = one.offset + one.bytes, other.offset + other.bytes
            if at_once and one.offset < other_end and other.offset < end:
                raise EntryError(
                    f"tensors[{number}].offset",
                    one.offset,
                    f"a place beside tensors[{before}], {other.name!r} at {other.offset} to "
                    f"{other_end - 1}",
                )


def extents(found: Iterable[Touch]) -> Mapping[str, tuple[int, int]]:
    """Return the first byte that programs touch of each tensor, and the one behind the last."""
    spans: dict[str, tuple[int, int]] = {}
    for one in found:
        first, end = spans.get(one.tensor, (one.first, one.end))
        spans[one.tensor] = min(first, one.first), max(end, one.end)
    return spans
