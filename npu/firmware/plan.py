# SPDX-License-Identifier: Apache-2.0
"""A plan as a program for a RISC-V core takes it: an image and a C header.

The image is the memory from `IMAGE` on: the parts of the plan, and for a decoder the texts of all
tokens. The header defines `npu_plan` and `npu_bases`, of the types in
`firmware/include/npu_plan_types.h`, and for a decoder `npu_job` of `firmware/lib/plan.h`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from npu.compiler import CompiledModel
from npu.driver.generate import check_count
from npu.firmware.plan_types import c_text, initialiser
from npu.graph.evaluate import run as run_on_host
from npu.graph.form import Array
from npu.graph.inputs import check_inputs
from npu.planner.decoder_plan import plan_of_decoder
from npu.planner.placement import check_prompt
from npu.runtime.decoder import PROMPT, TOKENS
from npu.runtime.plan import Action, Plan
from npu.runtime.plan_files import record_with_image
from npu.runtime.prepare import Bases, Prepared, bases_from, prepare
from npu.runtime.tensor_rows import to_rows
from spec.regs import NO_TOKEN
from weights.sink import behind_sink
from weights.tokenizer import ByteTokenizer, Tokenizer

IMAGE = 1 << 20
"""Where an image begins; programs lie below."""
ROOM = 1 << 28
"""End of the memory that a core beside the chip has."""
LINE = 64
"""Bytes of a text in a line of C."""


class PlanError(ValueError):
    """A plan that a core cannot run, or that does not fit the memory beside it."""


@dataclass(frozen=True)
class FirmwarePlan:
    """A model and a prompt, ready to run.

    Attributes:
        image: bytes of memory from IMAGE on.
        header: text of npu_plan.h.
        end: first address that nobody uses.
        results: address where the tokens of a decoder appear, or of the arena of a network.
    """

    image: bytes
    header: str
    end: int
    results: int


def token_texts(tokenizer: Tokenizer, prompt: Sequence[int], vocab: int) -> list[bytes]:
    """Return what each token adds to a text when it comes first behind the prompt.

    A token of a part of a UTF-8 sequence reads as U+FFFD unless tokens are bytes.
    """
    if isinstance(tokenizer, ByteTokenizer):
        return [bytes([token]) for token in range(vocab)]
    before = tokenizer.decode(prompt)
    longer = (tokenizer.decode([*prompt, token]) for token in range(vocab))
    return [text.removeprefix(before).encode() for text in longer]


def firmware_plan(
    compiled: CompiledModel,
    tokenizer: Tokenizer,
    prompt: str,
    count: int,
    end: int | None = None,
) -> FirmwarePlan:
    """Lay out a model, a prompt and the texts of tokens for a program.

    Args:
        compiled: the model.
        tokenizer: text to ids and back.
        prompt: the text to go on with.
        count: tokens at most.
        end: token after which it is over; None for none.

    Raises:
        PromptError: prompt or count do not fit the context.
        PlanError: all of it does not fit the memory.
    """
    ids = behind_sink(tokenizer.encode(prompt), compiled.sink)
    check_prompt(ids, compiled.shape.vocab, compiled.shape.context - compiled.first)
    plan = plan_of_decoder(compiled, len(ids))
    check_count(count, compiled.first + len(ids), compiled.shape.context)
    prepared = prepare(plan, bases_from(plan, IMAGE))
    texts = token_texts(tokenizer, ids, compiled.shape.vocab)
    places = np.cumsum([0, *map(len, texts)], dtype="<u4")
    text_at = -(-prepared.end // 16) * 16
    text_bytes = text_at + places.nbytes
    pieces = [
        *prepared.memory,
        (prepared.address(PROMPT), np.array(ids, "<u4").tobytes()),
        (text_at, places.tobytes()),
        (text_bytes, b"".join(texts)),
    ]
    image = _image(pieces)
    text = prompt.encode("utf-8", "surrogateescape")
    job = f"""
static const struct npu_job npu_job = {{
    .plan = &npu_plan,
    .bases = &npu_bases,
    .count = {count}u,
    .end = {NO_TOKEN if end is None else end:#x}u,
    .prompt =
{_c_lines(text)},
    .prompt_bytes = {len(text)}u,
    .text_at = (const uint32_t *){text_at:#010x}u,
    .texts = (const char *){text_bytes:#010x}u,
}};
"""
    end_of_all = max(IMAGE + len(image), prepared.end)
    return FirmwarePlan(image, _header(prepared) + job, end_of_all, prepared.address(TOKENS))


def firmware_network(plan: Plan, inputs: Mapping[str, Array]) -> FirmwarePlan:
    """Lay out a network, and inputs in its arena, for a program.

    What a host does before the first launch is done here, with these inputs: quantising them,
    packing their pixels. What it does behind the last one is left out: the program finds integers.

    Args:
        plan: whose operations between the first launch and the last run in programs of the chip.
        inputs: of the graph by name.

    Raises:
        PlanError: the plan has other steps for a host or the command port, or does not fit the
            memory.
        GraphError: an input is wrong, or an operation of the host cannot be evaluated.
    """
    if plan.graph.states:
        names = ", ".join(one.input for one in plan.graph.states)
        raise PlanError(f"plan: given states {names}, allowed none: a core runs a network once")
    values = dict(check_inputs(plan.graph, inputs))
    plan = _alone(plan, values)
    prepared = prepare(plan, bases_from(plan, IMAGE))
    crossing = {str(step.of) for step in plan.steps if step.action is Action.PACK}
    pieces = list(prepared.memory)
    for name in crossing:
        pieces.append((prepared.address(name), to_rows(values[name], plan.graph.type(name))))
    image = _image(pieces)
    last = max(IMAGE + len(image), prepared.end)
    return FirmwarePlan(image, _header(prepared), last, prepared.bases.arena)


def _alone(plan: Plan, values: dict[str, Array]) -> Plan:
    """Return a plan without the host's steps at its ends, after those before the first launch."""
    launches = [index for index, one in enumerate(plan.steps) if one.action is Action.LAUNCH]
    first, last = (launches[0], launches[-1]) if launches else (len(plan.steps), -1)
    kept = []
    for number, step in enumerate(plan.steps):
        ours = step.action is Action.HOST
        if step.action is Action.PORT or (ours and (not launches or first < number < last)):
            raise PlanError(
                f"steps[{number}]: given {step.action.value} {step.of!r}, allowed a network whose "
                "operations between its inputs and its outputs all run in programs of the chip"
            )
        if ours and number < first:
            one = plan.operation(str(step.of))
            given = [_value(plan, name, values) for name in one.inputs]
            values.update(zip(one.outputs, run_on_host(plan.graph, one, given), strict=True))
        elif not ours:
            kept.append(step)
    _check_places(plan, first, last)
    return replace(plan, steps=tuple(kept))


def _check_places(plan: Plan, first: int, last: int) -> None:
    """Raise PlanError unless tensors may lie in the arena from before the first launch on.

    And up to behind the last launch: a core packs and unpacks nothing between the launches.
    """
    late = {one.of for one in plan.steps[first:] if one.action is Action.PACK}
    early = {one.of for one in plan.steps[: max(last, 0)] if one.action is Action.UNPACK}
    for one in plan.tensors:
        for other in plan.tensors:
            begin, end = other.offset, other.offset + other.bytes
            shared = begin < one.offset + one.bytes and one.offset < end
            disturbed = (one.name in late and other.first < one.first) or (
                one.name in early and other.last > one.last
            )
            if disturbed and shared:
                raise PlanError(
                    f"tensor {one.name!r}: given a place in the arena that {other.name!r} takes as "
                    "well, allowed one of its own from the first launch to the last"
                )


def _value(plan: Plan, name: str, values: Mapping[str, Array]) -> Array | None:
    return values.get(name, plan.graph.constant(name)) if name else None


def _image(pieces: Sequence[tuple[int, bytes]]) -> bytes:
    """Return memory from IMAGE on. Raises PlanError if there is not so much."""
    last = max(address + len(data) for address, data in pieces)
    if last > ROOM:
        raise PlanError(
            f"plan: given parts and texts of {last - IMAGE:,} bytes, allowed 1 to "
            f"{ROOM - IMAGE:,}, the memory from {IMAGE:#x} on"
        )
    image = bytearray(last - IMAGE)
    for address, data in pieces:
        image[address - IMAGE : address - IMAGE + len(data)] = data
    return bytes(image)


def _header(prepared: Prepared) -> str:
    bases = "\n".join(f"    .{name} = {prepared.bases.of(name):#010x}u," for name in Bases.names())
    return f"""/* SPDX-License-Identifier: Apache-2.0 */
/* A plan as C, for a program of a core; belongs to the image that was written with it. */
#include "plan.h"

static const struct npu_plan npu_plan = {initialiser(record_with_image(prepared.plan))};

static const struct npu_bases npu_bases = {{
{bases}
}};
"""


def _c_lines(data: bytes) -> str:
    """Return bytes as literals of C, one behind the other."""
    lines = [data[i : i + LINE] for i in range(0, max(1, len(data)), LINE)]
    return "\n".join(f"        {c_text(line)}" for line in lines)
