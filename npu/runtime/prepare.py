# SPDX-License-Identifier: Apache-2.0
"""Binds a plan to addresses: what to write into memory and registers, and what to wait for.

A prepared plan is plain data; whoever has it needs no more than memory, the register port and the
interrupt. `check_prepared` computes it again and compares every number.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from npu.driver.bus import RegisterAccess
from npu.driver.chip import PAGE, REGIONS, MemoryRegion, region_accesses, start_accesses
from npu.driver.command.buffer import PLACES
from npu.driver.command.descriptor import ENTRY, ProgramDescriptor
from npu.driver.command.port import OF_A_DESCRIPTOR
from npu.driver.generate import PromptPlan as Generation
from npu.runtime.decoder import LOGITS, TOKENS, generation_of
from npu.runtime.plan import ALIGNMENT, Action, BaseArea, Plan, PlannedSegment
from npu.runtime.port_steps import ARENA_BYTES
from npu.runtime.schedule import batches_of
from npu.runtime.schema import EntryError, check_same
from spec.isa.operands import WORD, up
from spec.regs import (
    CHIP_BASE,
    CHIP_FIELDS,
    CMD_BASE,
    CMD_FIELDS,
    SEQ_BASE,
    ChipReg,
    CmdReg,
    StartState,
)

MEMORY_END = 1 << 32
_WORD_BYTES = 4


@dataclass(frozen=True, slots=True)
class Bases:
    """Where the parts of a plan lie: addresses, multiples of 64.

    Attributes:
        stream, constants, programs: what the chip reads.
        arena: the tensors, which it reads and writes.
        ring: the 128 bytes of the descriptor ring, and what products on the command port stage.
    """

    stream: int
    constants: int
    programs: int
    arena: int
    ring: int

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return the names of the parts."""
        return tuple(one.name for one in fields(cls))

    def of(self, name: str) -> int:
        """Return the address of a part."""
        address: int = getattr(self, name)
        return address


def sizes_of(plan: Plan) -> dict[str, int]:
    """Return the bytes of each part of a plan in memory."""
    programs = sum(up(len(one.image), ALIGNMENT) for one in plan.segments)
    return {
        "stream": len(plan.stream),
        "constants": len(plan.constants),
        "programs": programs,
        "arena": plan.arena,
        "ring": up(ARENA_BYTES, ALIGNMENT) if needs_port(plan) else PLACES * ENTRY,
    }


def needs_port(plan: Plan) -> bool:
    """Whether the command port has more to do than to launch programs."""
    return any(step.action is Action.PORT for step in plan.steps)


def bases_from(plan: Plan, first: int = PAGE, order: Sequence[str] = Bases.names()) -> Bases:
    """Return addresses from `first` on, each part on a page, in an order of their names."""
    sizes, at = sizes_of(plan), up(first, PAGE)
    found = {}
    for name in order:
        found[name] = at
        at = up(at + max(1, sizes[name]), PAGE)
    return Bases(**found)


@dataclass(frozen=True, slots=True)
class BatchEnd:
    """What says that a batch is done.

    Attributes:
        register: to read when the interrupt has come.
        done: bits that must be set.
        error: bits that must not.
    """

    register: int
    done: int
    error: int


@dataclass(frozen=True)
class PreparedBatch:
    """Launches that go into the descriptor ring together.

    Attributes:
        launches: segments, in order.
        tags: of their descriptors.
        preamble: register writes before anything starts.
        address: of `words`.
        words: of the ring, 32 bits each.
        submission: register writes that start the ring.
        completion: what to wait for.
    """

    launches: tuple[int, ...]
    tags: tuple[int, ...]
    preamble: tuple[RegisterAccess, ...]
    address: int
    words: tuple[int, ...]
    submission: tuple[RegisterAccess, ...]
    completion: BatchEnd

    @property
    def image(self) -> bytes:
        """The ring as it lies in memory."""
        return b"".join(one.to_bytes(_WORD_BYTES, "little") for one in self.words)


@dataclass(frozen=True)
class Prepared:
    """A plan at addresses.

    Attributes:
        plan: what was bound.
        bases: to what.
        memory: (address, bytes) of all that must lie in memory before the first start.
        regions: of memory that the chip may use; no others.
        protection: register writes that say so.
        starts: how each segment starts by registers.
        batches: how launches go into the ring.
    """

    plan: Plan
    bases: Bases
    memory: tuple[tuple[int, bytes], ...]
    regions: tuple[MemoryRegion, ...]
    protection: tuple[RegisterAccess, ...]
    starts: tuple[StartState, ...]
    batches: tuple[PreparedBatch, ...]

    @property
    def end(self) -> int:
        """The first address behind all parts."""
        sizes = sizes_of(self.plan)
        return max(self.bases.of(name) + size for name, size in sizes.items())

    def address(self, name: str) -> int:
        """Return where in memory a tensor lies."""
        offset = self.plan.places[name].offset
        return self.bases.arena + offset

    def generation(self) -> Generation:
        """Return how the driver generates with the plan of a decoder."""
        assert self.plan.decoder is not None
        logits = self.address(LOGITS) if LOGITS in self.plan.places else 0
        return generation_of(self.plan.decoder, self.starts, self.address(TOKENS), logits)

    def batch_of(self, segment: int) -> PreparedBatch:
        """Return the batch that a segment is launched in."""
        return next(one for one in self.batches if segment in one.launches)

    def to_json(self) -> dict[str, Any]:
        """Return everything but the contents of memory, as JSON has it."""
        return {
            "bases": asdict(self.bases),
            "memory": [{"address": at, "bytes": len(data)} for at, data in self.memory],
            "regions": [asdict(one) for one in self.regions],
            "protection": _listed(self.protection),
            "starts": [_listed(start_accesses(one)) for one in self.starts],
            "batches": [
                {
                    "launches": list(one.launches),
                    "tags": list(one.tags),
                    "preamble": _listed(one.preamble),
                    "address": one.address,
                    "words": list(one.words),
                    "submission": _listed(one.submission),
                    "completion": asdict(one.completion),
                }
                for one in self.batches
            ],
        }


def _listed(accesses: Iterable[RegisterAccess]) -> list[dict[str, Any]]:
    return [{"address": one.address, "value": one.value} for one in accesses]


def prepare(plan: Plan, bases: Bases | None = None) -> Prepared:
    """Bind a plan to addresses.

    Args:
        plan: from the compiler, or read from files, which verifies it.
        bases: where its parts go; one behind the other from the second page on if None.

    Raises:
        EntryError: an address is no multiple of 64, parts overlap, or one ends past the memory
            that the chip can address.
    """
    bases = bases or bases_from(plan)
    check_bases(plan, bases)
    programs: list[tuple[int, bytes]] = []
    at = bases.programs
    for one in plan.segments:
        programs.append((at, one.image))
        at += up(len(one.image), ALIGNMENT)
    starts = tuple(
        start_of(plan, segment, bases, address)
        for segment, (address, _) in zip(plan.segments, programs, strict=True)
    )
    pieces = [(bases.stream, plan.stream), (bases.constants, plan.constants), *programs]
    regions = tuple(_regions(plan, bases))
    padded = [*regions, *[None] * (REGIONS - len(regions))]
    return Prepared(
        plan,
        bases,
        tuple((address, data) for address, data in pieces if data),
        regions,
        tuple(access for i, one in enumerate(padded) for access in region_accesses(i, one)),
        starts,
        tuple(_batch(bases, one, starts) for one in batches_of(plan.steps)),
    )


def check_bases(plan: Plan, bases: Bases) -> None:
    """Raise EntryError unless the parts of a plan fit at these addresses."""
    sizes = sizes_of(plan)
    placed: list[tuple[int, int, str]] = []
    for name, size in sizes.items():
        base, path = bases.of(name), f"bases.{name}"
        room = MEMORY_END - size
        step = plan.alignment if name == "arena" else ALIGNMENT
        if isinstance(base, bool) or not isinstance(base, int) or base % step:
            raise EntryError(path, base, f"multiples of {step}")
        if not 0 <= base <= room:
            raise EntryError(path, base, f"0 to {room:#x}, for {size} bytes")
        for first, end, other in placed:
            if base < end and first < base + size:
                allowed = f"a place beside {other}, at {first:#x} to {end - 1:#x}"
                raise EntryError(path, base, allowed)
        if size:
            placed.append((base, base + size, name))


def start_of(plan: Plan, segment: PlannedSegment, bases: Bases, program: int) -> StartState:
    """Return how a segment of a plan starts at addresses, its program at one of them."""
    registers = [0] * 8
    for register, base in segment.bases.items():
        of_area = bases.arena if base.area is BaseArea.ARENA else bases.constants
        registers[register] = of_area + base.offset
    others = dict(segment.registers)
    if plan.decoder is not None and plan.decoder.cache_bytes:
        others["kv_base"] += bases.arena
    return StartState(
        ucode_base=program,
        ucode_len=len(segment.image) // WORD,
        stream_base=bases.stream,
        # No further than the program reads: the chip reads the stream ahead.
        stream_len=segment.stream_bytes,
        bases=tuple(registers),
        **others,
    )


def _regions(plan: Plan, bases: Bases) -> list[MemoryRegion]:
    """Return the pages of all parts: all may be read, those with results be written."""
    written = {"arena", "ring"} if needs_port(plan) else {"arena"}
    found = []
    for name, size in sizes_of(plan).items():
        if size:
            base = bases.of(name)
            first = base // PAGE * PAGE
            region = MemoryRegion(first, up(base + size, PAGE) - first, True, name in written)
            found.append(region)
    return found


def _batch(bases: Bases, launches: tuple[int, ...], starts: Sequence[StartState]) -> PreparedBatch:
    """Return a batch; what its launches share is in registers, all else in the descriptors."""
    own = [starts[number] for number in launches]
    # What a segment does not use is 0: each register holds the same for all who use it.
    all_of_them = replace(
        own[0],
        stream_len=max(one.stream_len for one in own),
        bases=tuple(max(one.bases[register] for one in own) for register in range(8)),
    )
    shared = [one for one in all_of_them.writes() if one[0] not in OF_A_DESCRIPTOR]
    tags = tuple(number % 256 for number in launches)
    image = b"".join(
        ProgramDescriptor.of(start, tag).image(None) for start, tag in zip(own, tags, strict=True)
    )
    words = tuple(
        int.from_bytes(image[i : i + _WORD_BYTES], "little")
        for i in range(0, len(image), _WORD_BYTES)
    )
    preamble = [
        *(RegisterAccess(SEQ_BASE + register, value) for register, value in shared),
        RegisterAccess(CHIP_BASE + ChipReg.IRQ_ENABLE, CHIP_FIELDS["IRQ_ENABLE_CMD"].mask),
        RegisterAccess(CMD_BASE + CmdReg.CTRL_STATUS, CMD_FIELDS["CTRL_STATUS_CLEAR"].mask),
        RegisterAccess(CMD_BASE + CmdReg.CMD_IRQ, 0),
        RegisterAccess(CMD_BASE + CmdReg.CMD_PARAM, CMD_FIELDS["CMD_PARAM_DESCRIPTOR"].mask),
    ]
    submission = [
        RegisterAccess(CMD_BASE + CmdReg.DESC_BASE, bases.ring),
        RegisterAccess(CMD_BASE + CmdReg.DESC_TAIL, 0),
        RegisterAccess(CMD_BASE + CmdReg.DESC_HEAD, len(image) // ENTRY),
        RegisterAccess(CMD_BASE + CmdReg.CTRL_STATUS, CMD_FIELDS["CTRL_STATUS_START"].mask),
    ]
    completion = BatchEnd(
        CMD_BASE + CmdReg.CTRL_STATUS,
        CMD_FIELDS["CTRL_STATUS_DONE"].mask,
        CMD_FIELDS["CTRL_STATUS_ERROR"].mask,
    )
    return PreparedBatch(
        launches, tags, tuple(preamble), bases.ring, words, tuple(submission), completion
    )


def check_prepared(prepared: Prepared) -> None:
    """Compute a prepared plan again and compare.

    Raises:
        EntryError: naming the first number that differs, such as `batches[0].words[3]`.
    """
    again = prepare(prepared.plan, prepared.bases)
    for number, (one, other) in enumerate(zip(prepared.memory, again.memory, strict=False)):
        if one[1] != other[1] and len(one[1]) == len(other[1]):
            at = next(i for i, (x, y) in enumerate(zip(one[1], other[1], strict=True)) if x != y)
            path = f"memory[{number}].data[{at}]"
            raise EntryError(path, one[1][at], f"{other[1][at]}, as the plan's image has it")
    check_same(prepared.to_json(), again.to_json())
