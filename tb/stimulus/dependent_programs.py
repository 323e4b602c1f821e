# SPDX-License-Identifier: Apache-2.0
"""Random programs in which the result of one instruction is the operand of another.

The cases lie over each other in a piece of the SRAM and a piece of memory, and nobody fills their
operands: they work on what the instructions before them have left. SETs move bases and position,
dimensions follow the position, and a LOOP may go over some of the cases. Barriers are only as
strong as they must be (`tb.stimulus.barriers`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import numpy.typing as npt

from golden.machine import ChipConfig, Machine, StartState
from npu.asm import disassemble
from spec.isa import DYNAMIC, OPCODES, WORD, EmbedIndex, Instruction, Opcode, SetReg
from spec.isa.operands import up
from spec.regs import MachineStart
from tb.bench.environment import INPUT, OUTPUT, PROGRAM, STREAM
from tb.bench.memory import Memory
from tb.bench.scenes import Keep, names_of
from tb.stimulus import simple_cases
from tb.stimulus.barriers import Hazard, Recorded, hazards, insert, weakest
from tb.stimulus.gemm_cases import (
    GemmSize,
    argmax_mode,
    build,
    classic,
    fitting,
    random_mode,
)
from tb.stimulus.random_case import Case, Generator, check_legal, instruction, loads, size
from tb.stimulus.simple_cases import DMA_BASES
from tb.stimulus.sram_space import NoRoomError, Space
from tb.stimulus.transfer_cases import Heads, embed, kv_append, kv_read, set_register

BASES = (INPUT, *DMA_BASES[1:])
"""BASE0 for lists that are loaded; everything else goes through the other bases."""
CAPACITY = 1 << 12
"""Positions of the cache where a LOOP asks."""
LISTS = 1 << 10
"""Bytes in memory for a list of rows."""


@dataclass
class SharedSpace(Space):
    """A piece of the SRAM in which cases lie over each other; one case's operands lie apart.

    Attributes:
        low, high: the piece, as words.
        known: first words of operands of the cases so far.
    """

    low: int = 0
    high: int = 0
    known: list[int] = field(default_factory=list)

    def next_case(self) -> None:
        """Forget what the last case has taken."""
        self.taken = [(0, self.low), (self.high, self.words)]

    def take(self, words: int) -> int:
        """Return the place of `words` words, mostly where an operand of an earlier case begins."""
        if self.known and self.random.random() < 0.6:
            start = self.known[-1 - int(self.random.integers(min(len(self.known), 12)))]
            end = start + words
            if end <= self.high and all(
                end <= left or start >= right for left, right in self.taken
            ):
                self.taken.append((start, end))
                return start
        start = super().take(words)
        self.known.append(start)
        return start


class SharedMemory(simple_cases.StoreWindow):
    """A piece of the window of memory in which transfers lie over each other."""

    def __init__(self, random: np.random.Generator, size_bytes: int) -> None:
        """Share the first bytes of the window."""
        super().__init__()
        self._random = random
        self._size = size_bytes
        self._known: list[int] = []

    def take(self, size_bytes: int) -> int:
        """Return the offset of a piece, mostly one where an earlier transfer began."""
        last = self._size - size_bytes
        if last < 0:
            raise NoRoomError(f"no room for {size_bytes} bytes in the shared memory")
        fitting = [start for start in self._known if start <= last]
        if fitting and self._random.random() < 0.7:
            return int(self._random.choice(fitting))
        start = int(self._random.integers(last // WORD + 1)) * WORD
        self._known.append(start)
        return start


@dataclass(frozen=True)
class Draft:
    """What a program is made of.

    Attributes:
        cases: in order; none has fills.
        loop: the cases (first, past the last) that a LOOP goes over, None for no LOOP.
        registers: the machine registers at the start.
    """

    cases: tuple[Case, ...]
    loop: tuple[int, int] | None
    registers: MachineStart

    def without(self, number: int) -> Draft:
        """Return the draft without a case."""
        loop = self.loop
        if loop is not None:
            first, last = loop[0] - (number < loop[0]), loop[1] - (number < loop[1])
            loop = (first, last) if first < last else None
        cases = (*self.cases[:number], *self.cases[number + 1 :])
        return replace(self, cases=cases, loop=loop)

    @property
    def names(self) -> list[str]:
        """What its cases are called as parts of a scene."""
        return names_of("p", self.cases)

    def keeping(self, keep: Keep) -> Draft:
        """Return the draft with some of its cases."""
        draft = self
        for number, name in reversed(list(enumerate(self.names))):
            if keep.parts is not None and name not in keep.parts:
                draft = draft.without(number)
        return draft

    def join(self) -> tuple[list[Instruction], list[int], bytes]:
        """Return (words without barriers, number of the case of each word, stream)."""
        words: list[Instruction] = []
        owners: list[int] = []
        stream, target = b"", 0
        for number, case in enumerate(self.cases):
            part = list(case.words)
            if self.loop is not None and number == self.loop[0]:
                target = len(words)
                part = [*set_register(SetReg.STREAM, len(stream)).words, *part]
            stream += case.stream
            if self.loop is not None and number == self.loop[1] - 1:
                part += set_register(SetReg.KVCAP, CAPACITY).words
                part.append(Instruction(Opcode.LOOP, src0=target))
            words += part
            owners += [number] * len(part)
        return [*words, Instruction(Opcode.END)], [*owners, -1], stream


@dataclass(frozen=True)
class Dependent:
    """A legal program without races.

    Attributes:
        draft: what it is made of.
        words: its words, with the weakest barriers.
        stream: its parameter stream.
        hazards: pairs of accesses that only barriers order.
        dull: share of the instructions that write SRAM whose result is nearly constant.
    """

    draft: Draft
    words: list[Instruction]
    stream: bytes
    hazards: Counter[Hazard]
    dull: float

    @property
    def barriers(self) -> list[Instruction]:
        """The barriers in the program."""
        return [word for word in self.words if word.opcode == Opcode.BARRIER]

    def text(self) -> str:
        """Return the program as assembly, and how to start it."""
        start = f"{self.draft.registers}"
        return f"; {start}, {len(self.stream)} bytes of stream\n{disassemble(self.words)}"


@dataclass(frozen=True)
class Surroundings:
    """What a program is drawn for.

    Attributes:
        config: the chip.
        memory: the memory behind it; lists of rows are staged in it.
        sram: contents of the SRAM, (bytes,) uint8.
    """

    config: ChipConfig
    memory: Memory
    sram: npt.NDArray[np.uint8]


# --------------------------------------------------------------------------------------------------
# Cases
# --------------------------------------------------------------------------------------------------
def _extent(random: np.random.Generator) -> tuple[int, int]:
    """Return rows and columns: mostly some words, now and then enough to be busy for long."""
    if random.random() < 0.15:
        return size(random, 24), size(random, 160)
    return size(random, 10), size(random, 70)


def _gemm(edge: int, depthwise: bool, random: np.random.Generator, space: Space) -> Case:
    """Return a GEMM that works for long enough that others overtake it, or a short one."""
    shape = GemmSize(size(random, 24), size(random, 2 * edge), size(random, 3 * edge))
    mode = random_mode(random, edge, depthwise=depthwise)
    return build(random, space, fitting(shape, mode, edge), mode, edge)


def _classic(edge: int, random: np.random.Generator, space: Space) -> Case:
    """Return a GEMM without a mode word."""
    return classic(random, space, 16, edge)


def _token(
    memory: simple_cases.StoreWindow, edge: int, random: np.random.Generator, space: Space
) -> Case:
    """Return a GEMM with argmax, the ARGMAX behind it, and the row of the table that it names."""
    shape = GemmSize(1, size(random, 2 * edge), size(random, 2 * edge))
    case = build(random, space, shape, argmax_mode(random, edge), edge)
    case.words += instruction(Opcode.ARGMAX, imm={"base": int(random.integers(1, 8))})
    row_bytes = size(random, 64)
    memory.take(shape.n * up(row_bytes))
    place = space.matrix(1, row_bytes)
    case.words += instruction(
        Opcode.EMBED,
        dst=place.word,
        m=1,
        n=row_bytes,
        imm={"base": int(random.integers(1, 8))},
        prefix={"cp": place.prefix_pitch},
    )
    return case


def _heads(random: np.random.Generator) -> Heads:
    """Return a few heads of a few positions near the start of a cache."""
    return Heads(
        count=int(random.integers(1, 4)),
        lanes=int(random.choice((1, 15, 16, 17, 32))),
        positions=size(random, 20),
        pos=int(random.integers(0, 40)),
        window=int(random.integers(1, 40)) if random.random() < 0.3 else 0,
    )


def _append_and_read(
    memory: simple_cases.StoreWindow | None, edge: int, random: np.random.Generator, space: Space
) -> Case:
    """Return a KV_APPEND and a KV_READ of the cache up to what was appended."""
    heads = _heads(random)
    case = kv_append(memory, edge, random, space, replace(heads, window=0))
    written = case.words[-1]
    positions = heads.pos + heads.positions
    place = space.matrix(heads.count, heads.tiles(edge, positions))
    case.words += instruction(
        Opcode.KV_READ,
        flags=["V"] if written.flags & 1 else [],
        dst=place.word,
        m=written.m,
        n=written.n,
        k=positions,
        imm=written.imm,
        prefix={"cp": place.prefix_pitch},
    )
    return case


def _set_base(random: np.random.Generator, _: Space) -> Case:
    """Return a SET that moves a base a little."""
    register = SetReg[f"BASE{random.integers(1, 8)}"]
    if random.random() < 0.5:
        return set_register(register, OUTPUT + WORD * int(random.integers(64)))
    [word] = set_register(register, WORD * int(random.integers(8))).words
    return Case([replace(word, flags=1)])


def _set_position(random: np.random.Generator, _: Space) -> Case:
    """Return a SET of POS or WINDOW."""
    register = SetReg.POS if random.random() < 0.7 else SetReg.WINDOW
    return set_register(register, int(random.integers(0, 70)))


def _makers(
    random: np.random.Generator,
    memory: simple_cases.StoreWindow,
    config: ChipConfig,
    in_memory: bool,
) -> list[Generator]:
    """Return what draws the cases; each as often as it is to come."""
    edge = config.tile

    def rows(make: Generator, **extra: object) -> Generator:
        return lambda random, space: make(random, space, extent=_extent(random), **extra)  # type: ignore[call-arg]

    load, store = (
        rows(simple_cases.dma_load, memory=memory),
        rows(partial(simple_cases.dma_store, memory)),
    )
    cache = memory if in_memory else None

    def read(random: np.random.Generator, space: Space) -> Case:
        return kv_read(in_memory, edge, random, space, _heads(random), memory)

    def append(random: np.random.Generator, space: Space) -> Case:
        return kv_append(cache, edge, random, space, _heads(random))

    def rope(random: np.random.Generator, space: Space) -> Case:
        return simple_cases.rope(
            random, space, (size(random, 6), 2 * size(random, 20)), size(random, 3)
        )

    def gather(random: np.random.Generator, space: Space) -> Case:
        return embed(random, space, rows=size(random, 8), row_bytes=size(random, 90), memory=memory)

    return [
        *[load] * 4,
        *[store] * 4,
        *[partial(_gemm, edge, config.depthwise)] * 5,
        partial(_classic, edge),
        partial(_token, memory, edge),
        partial(_append_and_read, cache, edge),
        *(append, read, gather, gather),
        *[rows(simple_cases.softmax)] * 2,
        *(rows(simple_cases.layernorm), rows(simple_cases.rmsnorm), rope),
        *[rows(simple_cases.vec)] * 4,
        *(rows(simple_cases.gelu), rows(simple_cases.silu)),
        *(_set_base, _set_position),
    ]


def _dynamic(random: np.random.Generator, case: Case, array_dim: int) -> Case:
    """Return the case with a dimension of its last word that follows the position, if it may."""
    word = case.words[-1]
    kinds = OPCODES[Opcode(word.opcode)].fields
    names = [name for name in ("m", "n", "k") if name in kinds and kinds[name].kind == "dyn"]
    if not names:
        return case
    name = str(random.choice(names))
    value, v = int(getattr(word, name)), int(random.integers(2))
    if value >= DYNAMIC:
        return case
    cap = up(value) + WORD * int(random.integers(2))
    changed = replace(word, **{name: DYNAMIC | v << 11 | cap // WORD})
    words = [*case.words[:-1], changed]
    if random.random() < 0.6:  # else as long as the position happens to say
        position = max(value + v - 1 - int(random.integers(2)), 0)
        words = [
            *set_register(SetReg.POS, position).words,
            *set_register(SetReg.WINDOW, 0).words,
            *words,
        ]
    try:
        check_legal(words, array_dim)
    except ValueError:
        return case
    return replace(case, words=words)


def _cases(
    random: np.random.Generator,
    makers: Sequence[Generator],
    space: SharedSpace,
    memory: Memory,
    count: int,
    array_dim: int,
) -> Iterator[Case]:
    """Yield cases without fills, now and then several of a kind, so that queues fill.

    A list of rows, which cannot be any bytes, is loaded.
    """
    make = makers[0]
    while count:
        if random.random() < 0.65:
            make = makers[int(random.integers(len(makers)))]
        space.next_case()
        try:
            case = make(random, space)
        except NoRoomError:
            continue
        word = case.words[-1]
        if word.opcode == Opcode.EMBED and word.imm >> 4 == EmbedIndex.LIST:
            at = INPUT + LISTS * int(random.integers(64))
            case.words[:0] = loads(case.fills, memory, at)[0]
        if random.random() < 0.25:
            case = _dynamic(random, case, array_dim)
        check_legal(case.words, array_dim)
        yield replace(case, fills=[])
        count -= 1


# --------------------------------------------------------------------------------------------------
# Programs
# --------------------------------------------------------------------------------------------------
def _record(around: Surroundings, draft: Draft) -> Recorded:
    """Run a draft without barriers on the model."""
    words, _, stream = draft.join()
    image = Memory(around.memory.snapshot())
    image.stage(PROGRAM, b"".join(word.encode() for word in words))
    image.stage(STREAM, stream)
    start = StartState(PROGRAM, len(words), STREAM, len(stream), **draft.registers)
    machine = Machine(around.config, image.data, around.sram.copy(), races=False)
    return Recorded(words, start, machine.run(start), around.config)


def _refused(recorded: Recorded) -> int | None:
    """Return the word that is refused or disturbs itself, None if all are right."""
    if recorded.result.error is not None:
        return recorded.result.error.instr
    for race in recorded.races({}, all_of_them=True).races:
        if race.older == race.younger and race.kind not in ("RAW", "WAR", "WAW"):
            return race.younger
    return None


def _dull(recorded: Recorded) -> float:
    """Return the share of instructions whose result has hardly any different bytes."""
    values: dict[int, set[int]] = {}
    lengths: Counter[int] = Counter()
    for write in recorded.result.sram_writes:
        values.setdefault(write.instr, set()).update(np.unique(write.data).tolist())
        lengths[write.instr] += write.data.size
    long = [index for index in values if lengths[index] > 2 * WORD]
    return sum(len(values[index]) <= 3 for index in long) / max(len(long), 1)


def complete(around: Surroundings, draft: Draft) -> Dependent:
    """Return the program of a draft, without what is refused in it, with its barriers.

    The bytes that it works on must be there; what it makes of them is not used up.
    """
    recorded = _record(around, draft)
    while (wrong := _refused(recorded)) is not None:
        owner = draft.join()[1][wrong]
        if owner < 0:
            raise ValueError(f"{recorded.result.error}: the program cannot end")
        draft = draft.without(owner)
        recorded = _record(around, draft)
    words = insert(recorded.words, weakest(recorded))
    return Dependent(draft, words, draft.join()[2], hazards(recorded), _dull(recorded))


def _under_loop(random: np.random.Generator, cases: int) -> tuple[int, int]:
    """Return the cases (first, past the last) that a LOOP goes over, eight at most."""
    first = int(random.integers(cases - 1))
    return first, int(random.integers(first + 1, min(first + 9, cases) + 1))


def looped(random: np.random.Generator, around: Surroundings, draft: Draft) -> Dependent:
    """Return the program of a draft with a LOOP: elsewhere if all that was under it is refused."""
    found = complete(around, draft)
    while found.draft.loop is None:
        loop = _under_loop(random, len(found.draft.cases))
        found = complete(around, replace(found.draft, loop=loop))
    return found


def draw(
    random: np.random.Generator, around: Surroundings, *, loop: bool, cases: int = 24
) -> Dependent:
    """Return a random program of about so many cases, with or without a LOOP over some of them."""
    words = around.config.sram_bytes // WORD
    piece = int(random.choice((1024, 2048, 4096)))
    low = int(random.integers(words - piece))
    space = SharedSpace(random, words, low=low, high=low + piece)
    memory = SharedMemory(random, int(random.choice((1 << 13, 1 << 14, 1 << 15))))
    in_memory = bool(random.integers(2))
    makers = _makers(random, memory, around.config, in_memory)
    made = tuple(_cases(random, makers, space, around.memory, cases, around.config.array_dim))
    over = _under_loop(random, cases) if loop else None
    registers: MachineStart = {
        "kv_in_memory": in_memory,
        "loop_left": int(random.integers(1, 4)),
        "pos": int(random.integers(0, 60)),
        "kv_cap": CAPACITY,
        "bases": BASES,
    }
    draft = Draft(made, over, registers)
    return looped(random, around, draft) if loop else complete(around, draft)
