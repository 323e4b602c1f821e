# SPDX-License-Identifier: Apache-2.0
"""Whether a plan can be run: what its programs say, word by word, against what it says of them.

What `plan_record` computes from a plan is compared elsewhere; here is what must be right before
anything can be computed, and what no entry says.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Container, Mapping

from npu.graph.form import Graph, GraphError, Operation
from npu.graph.macs import macs_of
from npu.image import StreamShare
from npu.runtime.accesses import is_static, prefixed, sram_bytes, taken, transfers
from npu.runtime.arena import check_disjoint, extents, touches, use_of
from npu.runtime.plan import Action, BaseArea, Plan, PlannedSegment
from npu.runtime.plan_record import step_records
from npu.runtime.schedule import steps_of
from npu.runtime.schema import EntryError, check_same, words
from npu.runtime.tensor_rows import tensor_bytes
from spec.isa.generated import Opcode, SetReg
from spec.isa.legality import check as illegal
from spec.isa.operands import WORD

ALLOWED = (
    *(Opcode.DMA_LOAD, Opcode.DMA_STORE, Opcode.GEMM, Opcode.VEC, Opcode.SOFTMAX),
    *(Opcode.LAYERNORM, Opcode.RMSNORM, Opcode.ROPE, Opcode.GELU, Opcode.SILU),
    *(Opcode.NOP, Opcode.BARRIER, Opcode.PFX, Opcode.SET, Opcode.END),
)
"""Opcodes whose accesses a program without loops shows."""
SETTABLE = (SetReg.STREAM, SetReg.POS, SetReg.WINDOW)
"""Registers that a program may set: no address of memory depends on them."""

BORDERS = (Action.PACK, Action.UNPACK)
HOST_BYTES, HOST_TIMES = 32 << 20, 64
"""What the host may make in any plan, and how many times as much as it is given."""
HOST_MACS, MACS_A_BYTE = 1 << 28, 1 << 12
"""What it may multiply or compare in any plan, and for each byte that it is given."""


def check_plan(plan: Plan) -> None:
    """Check a plan that is not known to come from the compiler.

    Raises:
        EntryError: the first entry that is wrong.
    """
    _check_steps(plan)
    used: set[int] = set()
    for number, segment in enumerate(plan.segments):
        path = f"segments[{number}]"
        _check_operations(plan, segment, path)
        _check_program(plan, segment, path)
        used |= _check_stream(plan, segment, path)
        _check_constants(plan, segment, path)
    check_shares(plan, used)
    _check_arena(plan)
    order = [step.of for step in plan.steps if step.action not in BORDERS]
    right = steps_of(plan.graph, plan.segments, order)
    check_same(step_records(plan.steps), step_records(right), "steps")
    _check_order(plan)


def check_host(plan: Plan) -> None:
    """Check that what the host makes and does is in proportion to what it is given.

    Raises:
        GraphError: a small plan would take much memory or time.
    """
    graph = plan.graph
    here = [op for op in graph.operations if not op.on_chip]
    constants = [name for name, one in graph.tensors.items() if one.constant]
    given = len(plan.stream) + len(plan.constants)
    given += sum(graph.type(name).bytes for name in (*graph.inputs, *constants))
    size = sum(graph.type(name).bytes for one in here for name in one.outputs)
    work = sum(_work(graph, one) for one in here)
    for what, found, most in (
        ("bytes", size, HOST_BYTES + HOST_TIMES * given),
        ("multiplications or comparisons", work, HOST_MACS + MACS_A_BYTE * given),
    ):
        if found > most:
            raise GraphError(
                f"{found:,} {what} of the host, allowed {most:,} for {given:,} bytes given"
            )


def _work(graph: Graph, op: Operation) -> int:
    window = math.prod(op["window"]) if op.kind.endswith("pool") else 0
    return macs_of(graph, op) + window * graph.type(op.outputs[0]).size


def _check_steps(plan: Plan) -> None:
    """Every segment and every operation of the host runs once."""
    elsewhere = {op.name: op for op in plan.graph.operations if not op.on_chip}
    done: Counter[object] = Counter()
    for number, step in enumerate(plan.steps):
        path = f"steps[{number}].of"
        match step.action:
            case Action.LAUNCH:
                if not isinstance(step.of, int) or step.of >= len(plan.segments):
                    raise EntryError(path, step.of, f"segments 0 to {len(plan.segments) - 1}")
            case Action.HOST | Action.PORT:
                if step.of not in elsewhere:
                    raise EntryError(
                        path, step.of, "an operation that the graph does not place on the chip"
                    )
            case _:
                if step.of not in plan.places:
                    raise EntryError(path, step.of, "a tensor of the plan")
        done[step.action, step.of] += 1
        if done[step.action, step.of] > 1 and step.action is not Action.PACK:
            raise EntryError(path, step.of, f"one {step.action.value} of it")
    for number in range(len(plan.segments)):
        if not done[Action.LAUNCH, number]:
            raise EntryError("steps", words("no launch"), f"one of segment {number}")
    for name in elsewhere:
        if not done[Action.HOST, name] + done[Action.PORT, name]:
            raise EntryError("steps", words("nothing"), f"a step for operation {name!r}")
    homes = Counter(name for one in plan.segments for name in one.operations)
    for number, one in enumerate(plan.segments):
        for index, name in enumerate(one.operations):
            path = f"segments[{number}].operations[{index}].name"
            found = plan.operations.get(name)
            if found is None or not found.on_chip or homes[name] > 1:
                raise EntryError(path, name, "an operation of the chip, in one segment")
    for name, found in plan.operations.items():
        if found.on_chip and not homes[name]:
            raise EntryError("segments", words("none"), f"one with operation {name!r}")


def _check_operations(plan: Plan, segment: PlannedSegment, path: str) -> None:
    """Words belong to operations one behind the other, from the first word on."""
    at = -1
    count = len(segment.image) // WORD
    for index, name in enumerate(segment.operations):
        first = segment.first_word.get(name)
        if first is None:
            continue
        if not at < first < count or (at < 0 and first):
            allowed = "0" if at < 0 else f"{at + 1} to {count - 1}"
            raise EntryError(f"{path}.operations[{index}].word", first, allowed)
        at = first
    del plan


def _check_program(plan: Plan, segment: PlannedSegment, path: str) -> None:
    """Every instruction is legal and shows all that it touches; END is the last one alone."""
    program = segment.program
    for index, word, prefix in prefixed(program):
        where = f"{path}.program[{index}]"
        wrong = illegal(word, prefix, plan.limits)
        if wrong is not None:
            raise EntryError(where, words(f"{wrong[0].name}: {wrong[1]}"), "a legal instruction")
        opcode = Opcode(word.opcode)
        if opcode not in ALLOWED or not is_static(word):
            raise EntryError(where, words(opcode.name), "what shows the memory that it touches")
        if opcode == Opcode.SET and word.dst not in SETTABLE:
            allowed = ", ".join(register.name for register in SETTABLE)
            raise EntryError(where, words(f"SET {SetReg(word.dst).name}"), f"SET {allowed}")
        if (opcode == Opcode.END) != (index == len(program) - 1):
            raise EntryError(where, words(opcode.name), "END as the last word and nowhere else")
    used = sram_bytes(program, plan.limits)
    if segment.sram_bytes != used:
        raise EntryError(f"{path}.sram_bytes", segment.sram_bytes, f"{used}, as the program uses")


def _check_stream(plan: Plan, segment: PlannedSegment, path: str) -> set[int]:
    """Every instruction takes what was made for it; at the end the stream stands where it may.

    Returns:
        Offsets of the shares that are taken.
    """
    shares: Mapping[int, StreamShare] = {one.offset: one for one in plan.shares}
    pieces = list(taken(segment.program, plan.limits))
    for one in pieces[:-1]:
        where = f"{path}.program[{one.word}]"
        if not one.is_of(shares.get(one.offset)):
            raise EntryError(where, words(str(one)), "the share of such an instruction")
    end = max(one.offset + one.bytes for one in pieces)
    if segment.stream_bytes != end:
        raise EntryError(
            f"{path}.stream_bytes", segment.stream_bytes, f"{end}, as its program reads"
        )
    if pieces[-1].offset not in (0, len(plan.stream)):
        where = f"{path}.program[{pieces[-1].word}]"
        given = f"the stream at {pieces[-1].offset} at the end"
        raise EntryError(where, words(given), f"0 or {len(plan.stream)}")
    return {one.offset for one in pieces[:-1]}


def check_shares(plan: Plan, used: Container[int]) -> None:
    """Every share of the stream is taken by a program.

    Args:
        plan: whose shares.
        used: offsets of what programs take.

    Raises:
        EntryError: the first one that is not taken.
    """
    for number, share in enumerate(plan.shares):
        if share.offset not in used:
            given = words(f"{share.bytes} bytes for {share.name!r}")
            raise EntryError(f"shares[{number}]", given, "what a program takes")


def _check_constants(plan: Plan, segment: PlannedSegment, path: str) -> None:
    """What is not in the arena is read from the constants, behind registers that are named."""
    copies = list(transfers(segment.program))
    used = {one.register for one in copies}
    for index, register in enumerate(sorted(segment.bases)):
        if register not in used:
            allowed = ", ".join(map(str, sorted(used))) or "none"
            raise EntryError(f"{path}.bases[{index}].register", register, f"{allowed}, as it uses")
        if segment.bases[register].offset:
            offset = segment.bases[register].offset
            raise EntryError(f"{path}.bases[{index}].offset", offset, "0 but for decoders")
    for name, value in segment.registers.items():
        raise EntryError(f"{path}.registers.{name}", value, "none but for decoders")
    for one in copies:
        base = segment.bases.get(one.register)
        where = f"{path}.program[{one.word}]"
        if base is None:
            bases = ", ".join(f"BASE{number}" for number in sorted(segment.bases))
            allowed = bases or "none: the segment names no base"
            raise EntryError(where, words(f"BASE{one.register}"), allowed)
        if base.area is BaseArea.CONSTANTS and (one.writes or one.end > len(plan.constants)):
            what = "store to" if one.writes else "load of"
            given = f"{what} constants {one.first} to {one.end - 1}"
            raise EntryError(where, words(given), f"loads of 0 to {len(plan.constants) - 1}")


def _check_arena(plan: Plan) -> None:
    """Tensors have places of their own, programs keep to them, and nothing is claimed in vain."""
    crossing = {name for one in plan.segments for name in (*one.reads, *one.writes)}
    for number, tensor in enumerate(plan.tensors):
        size = tensor_bytes(tensor.type)
        if tensor.name in crossing and tensor.bytes != size:
            raise EntryError(f"tensors[{number}].bytes", tensor.bytes, f"{size}, its rows")
        if tensor.last < tensor.first:
            raise EntryError(f"tensors[{number}].last", tensor.last, f"{tensor.first} and more")
    check_disjoint(plan.tensors, plan.arena)
    found = touches(plan)
    use = use_of(plan, found)
    for number, segment in enumerate(plan.segments):
        for what, given, right in (
            ("reads", segment.reads, use.reads[number]),
            ("writes", segment.writes, use.writes[number]),
        ):
            if given != right:
                raise EntryError(f"segments[{number}].{what}", list(given), f"{list(right)}")
    known = {one.name: one for one in use.tensors}
    ends = extents(found)
    for number, tensor in enumerate(plan.tensors):
        path = f"tensors[{number}]"
        right_times = known.get(tensor.name)
        if right_times is None:
            raise EntryError(f"{path}.name", tensor.name, "a tensor that a program touches")
        for what in ("first", "last"):
            time = getattr(right_times, what)
            if getattr(tensor, what) != time:
                raise EntryError(f"{path}.{what}", getattr(tensor, what), f"{time}, its use")
        end = -(-(ends[tensor.name][1] - tensor.offset) // WORD) * WORD
        if tensor.name not in crossing and tensor.bytes != end:
            raise EntryError(f"{path}.bytes", tensor.bytes, f"{end}, as programs touch")
    if list(plan.tensors) != list(use.tensors):
        raise EntryError("tensors", words("another order"), "by offset, then by time")
    top = max((one.offset + one.bytes for one in plan.tensors), default=0)
    if plan.arena != -(-top // 64) * 64:
        raise EntryError("arena.bytes", plan.arena, f"{-(-top // 64) * 64}, the end of its tensors")


def _check_order(plan: Plan) -> None:
    """Whatever a step reads is there."""
    graph = plan.graph
    host = {*graph.inputs, *(name for name, one in graph.tensors.items() if one.constant)}
    arena: set[str] = set()
    for number, step in enumerate(plan.steps):
        there = arena if step.action in (Action.LAUNCH, Action.UNPACK) else host
        for name in step.reads:
            if name not in there:
                raise EntryError(f"steps[{number}].reads", name, "a tensor that is there by then")
        if step.action in (Action.LAUNCH, Action.PACK):
            arena.update(step.writes)
        else:
            host.update(step.writes)
    for name in graph.outputs:
        if name not in host:
            raise EntryError("steps", words("none"), f"one that makes output {name!r}")
