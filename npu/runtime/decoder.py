# SPDX-License-Identifier: Apache-2.0
"""The plan of a decoder: what follows from a few numbers, programs, stream and tables.

Its programs have loops and sizes that depend on the position, so that their words do not show all
that they touch. Instead everything that the plan says follows from `Decoder`: whoever reads a plan
makes it again and compares.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from npu.driver.generate import PromptError
from npu.driver.generate import PromptPlan as Generation
from npu.graph.form import Element, Graph, Tensor, TensorType
from npu.image import StreamShare
from npu.runtime.accesses import Taken, prefixed, taken, transfers
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
from npu.runtime.plan_checks import check_shares
from npu.runtime.schema import EntryError, words
from npu.runtime.tensor_rows import tensor_bytes
from spec.isa.generated import OPCODES as OPCODE_FIELDS
from spec.isa.generated import EmbedIndex, Flag, Opcode, SetReg
from spec.isa.instruction import Instruction
from spec.isa.legality import check as illegal
from spec.isa.operands import WORD, Limits, has_flag, up
from spec.regs import MachineStart, StartState

PART = 4096
"""Alignment of tables among the constants, and of tensors in the arena."""
PROMPT, TOKENS, LOGITS, CACHE = "prompt", "tokens", "logits", "cache"
"""Tensors in the arena: ids of the prompt, ids that the chip picks, scores, keys and values."""
IDS_BASE, TOKENS_BASE, LOGITS_BASE = 0, 1, 5
SINK = "sink"
"""The table of keys and values of position 0: behind it a text begins at position 1."""
TABLES = {"tokens": 2, "positions": 3, "rope": 4, SINK: 6}
"""Base register of each table."""
GENERATE, PREFILL, STEP = "generate", "prefill", "step"
PROGRAMS = ((GENERATE,), (GENERATE, PREFILL, STEP))
"""What there is: a program from the prompt to the last token; also those that leave logits."""
OPCODES = (
    *(Opcode.DMA_LOAD, Opcode.DMA_STORE, Opcode.EMBED, Opcode.KV_APPEND, Opcode.KV_READ),
    *(Opcode.GEMM, Opcode.VEC, Opcode.SOFTMAX, Opcode.LAYERNORM, Opcode.RMSNORM, Opcode.ROPE),
    *(Opcode.GELU, Opcode.SILU, Opcode.ARGMAX, Opcode.NOP, Opcode.BARRIER, Opcode.PFX),
    *(Opcode.SET, Opcode.LOOP, Opcode.END),
)
SETTABLE = (SetReg.STREAM, SetReg.POS, SetReg.WINDOW)
CACHE_REGISTERS = ("kv_base", "kv_layer", "kv_head", "kv_voff", "kv_cap")
"""What says where keys and values lie."""
OF_A_RUN = ("bases", "pos", "token", "loop_left", "eos")
"""Start values that do not follow from the model."""


@dataclass(frozen=True)
class Decoder:
    """What the plan of a decoder is made from.

    Attributes:
        rows: tokens of the prompt, at positions `first` and up.
        context: positions that there are.
        vocab: token ids that there are.
        tables: name and bytes of each table, in order.
        cache_bytes: of keys and values in memory; 0 if they lie in SRAM.
        registers: start values of window and cache, by their names in StartState; `kv_base` of a
            cache in memory counts from the beginning of the arena.
        sram_bytes: of each program.
    """

    rows: int
    context: int
    vocab: int
    tables: tuple[tuple[str, int], ...]
    cache_bytes: int
    registers: Mapping[str, int]
    sram_bytes: tuple[int, ...]

    @property
    def programs(self) -> tuple[str, ...]:
        """Names of the programs."""
        return PROGRAMS[len(self.sram_bytes) > 1]

    @property
    def first(self) -> int:
        """The position that a text begins at."""
        return int(SINK in dict(self.tables))

    @property
    def most(self) -> int:
        """Tokens that fit behind the prompt; the last one is not fed back."""
        return self.context - self.first - self.rows + 1

    def record(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        found = asdict(self)
        return found | {
            "tables": [{"name": name, "bytes": size} for name, size in self.tables],
            "sram_bytes": list(self.sram_bytes),
        }

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> Decoder:
        """Return the decoder that `record` was made from."""
        tables = tuple((one["name"], one["bytes"]) for one in record["tables"])
        return cls(**{**record, "tables": tables, "sram_bytes": tuple(record["sram_bytes"])})


def check_ids(decoder: Decoder, ids: Sequence[int]) -> None:
    """Raise PromptError unless a prompt holds token ids, as many as the plan is for."""
    if len(ids) != decoder.rows:
        raise PromptError(f"prompt: given {len(ids)} tokens, allowed {decoder.rows}, the plan's")
    for index, token in enumerate(ids):
        if not 0 <= token < decoder.vocab:
            allowed = f"0 to {decoder.vocab - 1}"
            raise PromptError(f"prompt: given token id {token} at index {index}, allowed {allowed}")


def constants_of(tables: Mapping[str, bytes]) -> bytes:
    """Return tables behind one another, each at a multiple of PART."""
    return b"".join(data + bytes(-len(data) % PART) for data in tables.values())


def decoder_plan(
    decoder: Decoder,
    name: str,
    images: Sequence[bytes],
    limits: Limits,
    stream: bytes,
    shares: Sequence[StreamShare],
    constants: bytes,
    origin: Origin | None = None,
) -> Plan:
    """Return the plan of a decoder.

    Args:
        decoder: what it is made from.
        name: of the network.
        images: its programs, in the order of `decoder.programs`.
        limits: of the chip.
        stream: parameters of all programs.
        shares: what they consist of.
        constants: its tables, as `constants_of` has them.
        origin: where it comes from.

    Raises:
        EntryError: the numbers do not fit one another, or a program leaves what is its own.
    """
    _check_numbers(decoder, len(images), len(constants))
    types = _types(decoder)
    tensors, arena = _places(decoder, types)
    places = {one.name: one.offset for one in tensors}
    segments = tuple(
        _segment(decoder, number, image, len(stream), places) for number, image in enumerate(images)
    )
    plan = Plan(
        Graph(name, (PROMPT,), (TOKENS,), {each: Tensor(each, types[each]) for each in types}, ()),
        (
            PlanStep(Action.PACK, PROMPT, (PROMPT,), (PROMPT,)),
            PlanStep(Action.LAUNCH, 0, segments[0].reads, segments[0].writes),
            PlanStep(Action.UNPACK, TOKENS, (TOKENS,), (TOKENS,)),
        ),
        segments,
        limits,
        stream,
        tuple(shares),
        constants,
        arena,
        tensors,
        origin or Origin(),
        decoder,
    )
    for number, segment in enumerate(segments):
        _check_program(plan, segment, f"segments[{number}]")
    return plan


def check_taken(plan: Plan) -> None:
    """Raise EntryError if a share of a decoder's stream is taken by none of its programs."""
    pieces = [one for segment in plan.segments for one in taken(segment.program, plan.limits)]
    # Behind a loop the stream begins again.
    used = {one.offset % max(1, len(plan.stream)) for one in pieces if one.bytes}
    check_shares(plan, used)


def _check_numbers(decoder: Decoder, images: int, constants: int) -> None:
    most = decoder.context - decoder.first
    if not 1 <= decoder.rows <= most:
        raise EntryError("decoder.rows", decoder.rows, f"1 to {most}, the context")
    if images != len(decoder.programs):
        allowed = f"{len(decoder.programs)}: {', '.join(decoder.programs)}"
        raise EntryError("segments", words(f"{images}"), allowed)
    if len(decoder.sram_bytes) != len(decoder.programs):
        given = words(f"{len(decoder.sram_bytes)} numbers")
        raise EntryError("decoder.sram_bytes", given, f"{len(decoder.programs)}, of its programs")
    for number, (name, _) in enumerate(decoder.tables):
        if name not in TABLES or name in dict(decoder.tables[:number]):
            allowed = f"{', '.join(TABLES)}, each once"
            raise EntryError(f"decoder.tables[{number}].name", name, allowed)
    size = sum(up(size, PART) for _, size in decoder.tables)
    if size != constants:
        raise EntryError("decoder.tables", words(f"{size} bytes"), f"{constants}, the constants")
    known = [name for name in MachineStart.__annotations__ if name not in OF_A_RUN]
    for name in decoder.registers:
        if name not in known:
            raise EntryError(f"decoder.registers.{name}", name, ", ".join(known))
    for name in CACHE_REGISTERS:
        if decoder.cache_bytes and name not in decoder.registers:
            given = words("nothing")
            raise EntryError(f"decoder.registers.{name}", given, "a number: a cache is in memory")
    cached = bool(decoder.registers.get("kv_in_memory", 0))
    if cached != bool(decoder.cache_bytes):
        allowed = "more than 0" if cached else "0, it lies in SRAM"
        raise EntryError("decoder.cache_bytes", decoder.cache_bytes, allowed)


def _types(decoder: Decoder) -> dict[str, TensorType]:
    types = {
        PROMPT: TensorType((decoder.rows,), Element.U32),
        TOKENS: TensorType((decoder.most,), Element.U32),
    }
    if decoder.cache_bytes:
        types[CACHE] = TensorType((decoder.cache_bytes,), Element.U8)
    if PREFILL in decoder.programs:
        types[LOGITS] = TensorType((decoder.vocab,), Element.I16)
    return types


def _places(
    decoder: Decoder, types: Mapping[str, TensorType]
) -> tuple[tuple[PlannedTensor, ...], int]:
    """Return the tensors, the cache first, and the bytes of all of them.

    They lie at the same places for prompts of all lengths.
    """
    sizes = {name: tensor_bytes(kind) for name, kind in types.items()}
    sizes |= {PROMPT: up(4 * decoder.context), TOKENS: up(4 * (decoder.context + 1))}
    found, at = [], 0
    for name in (CACHE, PROMPT, TOKENS, LOGITS):
        if name in types:
            found.append(PlannedTensor(name, types[name], at, sizes[name], 0, 0))
            at = up(at + sizes[name], PART)
    return tuple(found), at


def _segment(
    decoder: Decoder, number: int, image: bytes, stream: int, places: Mapping[str, int]
) -> PlannedSegment:
    name = decoder.programs[number]
    reads = {GENERATE: (PROMPT,), PREFILL: (PROMPT,), STEP: ()}[name]
    writes = (TOKENS,) if name == GENERATE else (LOGITS, TOKENS)
    bases = {
        IDS_BASE: Base(BaseArea.ARENA, places[PROMPT]),
        TOKENS_BASE: Base(BaseArea.ARENA, places[TOKENS]),
    }
    for table, (at, _) in _tables(decoder).items():
        bases[TABLES[table]] = Base(BaseArea.CONSTANTS, at)
    if LOGITS in places:
        bases[LOGITS_BASE] = Base(BaseArea.ARENA, places[LOGITS])
    registers = dict(decoder.registers)
    if name == GENERATE:
        registers["loop_left"] = decoder.most - 1
    if decoder.cache_bytes:
        reads, writes = (CACHE, *reads), (CACHE, *writes)
    return PlannedSegment(
        (), image, "", {}, dict(sorted(bases.items())), stream, decoder.sram_bytes[number],
        reads, writes, registers,
    )  # fmt: skip


def _tables(decoder: Decoder) -> dict[str, tuple[int, int]]:
    """Return offset among the constants, and bytes, of each table."""
    found, at = {}, 0
    for table, size in decoder.tables:
        found[table] = at, size
        at += up(size, PART)
    return found


def _check_program(plan: Plan, segment: PlannedSegment, path: str) -> None:
    """Instructions are legal, take what was made for them, and copies lie in one tensor."""
    program = segment.program
    for index, word, prefix in prefixed(program):
        where = f"{path}.program[{index}]"
        wrong = illegal(word, prefix, plan.limits)
        if wrong is not None:
            raise EntryError(where, words(f"{wrong[0].name}: {wrong[1]}"), "a legal instruction")
        opcode = Opcode(word.opcode)
        if opcode not in OPCODES or (opcode == Opcode.SET and word.dst not in SETTABLE):
            raise EntryError(where, words(opcode.name), "what decoders are made of")
    if not program or program[-1].opcode != Opcode.END:
        raise EntryError(f"{path}.program", words("no END"), "END as the last word")
    shares = {one.offset: one for one in plan.shares}
    for one in _whole(plan, program, shares):
        # Behind a loop the stream begins again.
        offset = one.offset % max(1, len(plan.stream))
        if not one.is_of(shares.get(offset)):
            raise EntryError(f"{path}.program[{one.word}]", words(str(one)), "its own share")
    assert plan.decoder is not None
    areas = [(one.offset, one.bytes) for one in plan.tensors]
    sinks = [area for name, area in _tables(plan.decoder).items() if name == SINK]
    for copy in transfers(program):
        base = segment.bases.get(copy.register)
        inside = base is not None and any(
            offset <= base.offset + copy.first and base.offset + copy.end <= offset + size
            for offset, size in (areas if base.area is BaseArea.ARENA else sinks)
        ) and not (copy.writes and base.area is not BaseArea.ARENA)  # fmt: skip
        if not inside:
            given = f"BASE{copy.register} {copy.first} to {copy.end - 1}"
            raise EntryError(f"{path}.program[{copy.word}]", words(given), "bytes of one tensor")
    _check_turns(program, path)
    for index, word, _ in prefixed(program):
        _check_memory(plan.decoder, plan.limits, word, f"{path}.program[{index}]")


def _whole(
    plan: Plan, program: Sequence[Instruction], shares: Mapping[int, StreamShare]
) -> list[Taken]:
    """Return what a program takes, products behind one another that share a head's columns as one.

    An instruction has no more than 61,439 columns, and results that go to memory are few at a time.
    """
    found: list[Taken] = []
    for one in list(taken(program, plan.limits))[:-1]:
        last = found[-1] if found else None
        share = last and shares.get(last.offset % max(1, len(plan.stream)))
        if last and share and last.bytes < share.bytes and one.follows(last):
            found[-1] = replace(last, bytes=last.bytes + one.bytes)
        else:
            found.append(one)
    return found


def _check_turns(program: Sequence[Instruction], path: str) -> None:
    """A turn leaves one token at most: there are no more tokens than one and the turns."""
    tokens = 0
    for index, word in enumerate(program):
        tokens += word.opcode == Opcode.ARGMAX
        if tokens > 1:
            allowed = "one between two LOOPs"
            raise EntryError(f"{path}.program[{index}]", words("another ARGMAX"), allowed)
        if word.opcode == Opcode.LOOP and program[index + 1].opcode != Opcode.END:
            given = words(Opcode(program[index + 1].opcode).name)
            raise EntryError(f"{path}.program[{index + 1}]", given, "END behind LOOP")
        if word.opcode in (Opcode.LOOP, Opcode.END):
            tokens = 0


def _check_memory(decoder: Decoder, limits: Limits, word: Instruction, where: str) -> None:
    """What an instruction touches beside copies: tokens, rows of a table, a layer's keys."""
    match word.opcode:
        case Opcode.ARGMAX:
            if word.imm != TOKENS_BASE:
                raise EntryError(where, words(f"BASE{word.imm}"), f"BASE{TOKENS_BASE}, of tokens")
        case Opcode.EMBED:
            _check_rows(decoder, word, where)
        case Opcode.KV_APPEND | Opcode.KV_READ if decoder.cache_bytes:
            sizes = decoder.registers
            last = (word.imm & 0xFF) + (word.imm >> 8)
            begin = sizes["kv_base"] + word.m * sizes["kv_layer"] + last * sizes["kv_head"]
            begin += sizes["kv_voff"] * has_flag(word, Flag.V)
            end = begin + up(sizes["kv_cap"], limits.edge) * up(word.n, limits.edge)
            if end > decoder.cache_bytes:
                given = words(f"bytes of the cache up to {end - 1}")
                raise EntryError(where, given, f"0 to {decoder.cache_bytes - 1}")


def _check_rows(decoder: Decoder, word: Instruction, where: str) -> None:
    """A table has a row for each token or position, as long as the program takes it.

    There may be several tables of rotations, one behind the other.
    """
    fields = OPCODE_FIELDS[Opcode.EMBED].imm
    register, index = fields["base"].get(word.imm), fields["index"].get(word.imm)
    by_position = index == EmbedIndex.POS
    count = decoder.context if by_position else decoder.vocab
    size = count * (word.k * WORD or up(word.n))
    allowed = [
        name
        for name, held in decoder.tables
        if (name != "tokens") == by_position
        and (held == size or (name == "rope" and held and held % size == 0))
        and word.n <= size // count
    ]
    if register not in [TABLES[name] for name in allowed]:
        given = words(f"{count} rows, {size} bytes, behind BASE{register}")
        raise EntryError(where, given, f"a table of {size} bytes")


def generation_of(
    decoder: Decoder, starts: Sequence[StartState], tokens: int, logits: int
) -> Generation:
    """Return how the driver generates with a plan at its addresses.

    Args:
        decoder: of the plan.
        starts: of its programs.
        tokens: address of the tokens.
        logits: address of the logits, 0 without them.
    """
    by_name = dict(zip(decoder.programs, starts, strict=True))
    return Generation(
        greedy=by_name[GENERATE],
        prompt=by_name.get(PREFILL),
        step=by_name.get(STEP),
        prompt_length=decoder.first + decoder.rows,
        context=decoder.context,
        vocab=decoder.vocab,
        tokens=tokens,
        logits=logits,
    )
