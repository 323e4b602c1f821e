# SPDX-License-Identifier: Apache-2.0
"""The plan of a compiled decoder."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version

from npu.compiler import CompiledModel
from npu.runtime.decoder import Decoder, constants_of, decoder_plan
from npu.runtime.plan import Origin, Plan
from spec.isa.operands import up


def plan_of_decoder(
    model: CompiledModel, rows: int, *, logits: bool = False, name: str = "decoder"
) -> Plan:
    """Return the plan for prompts of `rows` tokens.

    Args:
        model: compiled.
        rows: of the prompt.
        logits: also programs that leave logits, for sampling on the host.
        name: of the network.

    Raises:
        CompileError: a prompt of so many rows fits nowhere.
    """
    programs = [model.generate(rows)]
    if logits:
        programs += [model.prefill(rows, logits=True), model.decode(logits=True)]
    used = [up(one.sram_bytes) for one in programs]
    return plan_of_images(model, rows, [one.program.image() for one in programs], used, name)


def plan_of_images(
    model: CompiledModel,
    rows: int,
    images: Sequence[bytes],
    sram_bytes: Sequence[int],
    name: str = "decoder",
) -> Plan:
    """Return the plan of a decoder with given programs and the bytes of SRAM that each uses."""
    cache, shape = model.cache, model.shape
    return decoder_plan(
        Decoder(
            rows,
            shape.context,
            shape.vocab,
            tuple((table, len(data)) for table, data in model.sections.items()),
            cache.bytes if cache.in_memory else 0,
            model.registers(),
            tuple(sram_bytes),
        ),
        name,
        images,
        model.limits,
        model.stream,
        model.shares,
        constants_of(model.sections),
        Origin(file=name, compiler=f"tessera-npu {version('tessera-npu')}"),
    )
