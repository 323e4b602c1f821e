# SPDX-License-Identifier: Apache-2.0
"""A compiled model and a prompt as a program for a RISC-V core takes them: an image and a C header.

The image is the memory from `IMAGE` on: stream, tables, programs, the prompt's tokens and the texts
of all tokens. The header defines `npu_plan` of `firmware/lib/plan.h`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from npu.compiler import CompiledModel
from npu.driver.chip import start_accesses
from npu.planner.placement import Placement
from npu.regs import NO_TOKEN
from weights.tokenizer import ByteTokenizer, Tokenizer

IMAGE = 1 << 20
"""Where an image begins; programs lie below."""
ROOM = 1 << 28
"""End of the memory that a core beside the chip has."""
LINE = 64
"""Bytes of a text in a line of C."""


class PlanError(ValueError):
    """A model that does not fit the memory beside a core."""


@dataclass(frozen=True)
class FirmwarePlan:
    """A model and a prompt, ready to run.

    Attributes:
        image: bytes of memory from IMAGE on.
        header: text of npu_plan.h.
        end: first address that nobody uses.
        tokens: address where the tokens appear.
    """

    image: bytes
    header: str
    end: int
    tokens: int


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
    ids = tokenizer.encode(prompt)
    placement = Placement(compiled, IMAGE)
    plan = placement.plan(ids)
    plan.check_count(count)
    texts = token_texts(tokenizer, ids, plan.vocab)
    places = np.cumsum([0, *map(len, texts)], dtype="<u4")
    text_at = -(-placement.end // 16) * 16
    text_bytes = text_at + places.nbytes
    pieces = [
        *placement.pieces,
        (text_at, places.tobytes()),
        (text_bytes, b"".join(texts)),
    ]
    last = max(address + len(data) for address, data in pieces)
    if last > ROOM:
        raise PlanError(
            f"plan: given a model and texts of {last - IMAGE:,} bytes, allowed 1 to "
            f"{ROOM - IMAGE:,}, the memory from {IMAGE:#x} on"
        )
    launch = replace(plan.greedy, loop_left=count - 1, eos=NO_TOKEN if end is None else end)
    image = bytearray(last - IMAGE)
    for address, data in pieces:
        image[address - IMAGE : address - IMAGE + len(data)] = data
    writes = "\n".join(
        f"    {{{one.address:#05x}u, {one.value:#010x}u}}," for one in start_accesses(launch)
    )
    text = prompt.encode("utf-8", "surrogateescape")
    header = f"""/* SPDX-License-Identifier: Apache-2.0 */
/* Written by `npu compile --plan`; belongs to the image that was written with it. */
#include "plan.h"

static const struct npu_write npu_plan_writes[] = {{
{writes}
}};

static const struct npu_plan npu_plan = {{
    .array_dim = {compiled.limits.array_dim}u,
    .writes = npu_plan_writes,
    .write_count = sizeof(npu_plan_writes) / sizeof(npu_plan_writes[0]),
    .tokens = (volatile uint32_t *){plan.tokens:#010x}u,
    .count = {count}u,
    .end = {NO_TOKEN if end is None else end:#x}u,
    .prompt =
{_c_text(text)},
    .prompt_bytes = {len(text)}u,
    .text_at = (const uint32_t *){text_at:#010x}u,
    .texts = (const char *){text_bytes:#010x}u,
    .vocab = {plan.vocab}u,
}};
"""
    return FirmwarePlan(bytes(image), header, max(last, placement.end), plan.tokens)


def _c_text(data: bytes) -> str:
    """Return bytes as literals of C, all but plain characters in octal."""
    plain = set(range(32, 127)) - {ord('"'), ord("\\"), ord("?")}
    lines = [data[i : i + LINE] for i in range(0, len(data), LINE)]
    quoted = ("".join(chr(b) if b in plain else f"\\{b:03o}" for b in line) for line in lines)
    return "\n".join(f'        "{line}"' for line in quoted)
