# SPDX-License-Identifier: Apache-2.0
"""The K/V cache: a position computed once is as good as all of them computed again."""

from __future__ import annotations

from dataclasses import replace

import cocotb
import numpy as np

from golden.session import GoldenSession
from npu.compiler import compile_model
from tb.bench.dut import Dut
from tb.bench.environment import Bench, full
from tb.models.resident_model import Resident, check_logits
from tb.tests.models.generation import QUIET, checkpoint
from weights.synthetic import random_model, shape_of

TAGS = ("models", "long")

MEMORY_MIB = 64
LENGTHS = (1, 2, 16, 33, 128)
"""Around tile borders and at both ends of the context."""


async def cached_equals_recomputed(dut: Dut, family: str) -> None:
    """Logits after n tokens at once equal those after n - 1 tokens and a step, and the network's.

    The tokens of each length are other ones, so that entries left by an earlier prompt are wrong.
    """
    bench = await Bench.start(dut, QUIET)
    model = checkpoint(family)
    resident = Resident.place(bench, model)
    decode = resident.launch(resident.compiled.decode(logits=True))
    for length in range(1, model.shape.context + 1) if full() else LENGTHS:
        ids = bench.random.integers(0, model.shape.vocab, length).tolist()
        golden = GoldenSession(model)
        expected = golden.prefill(ids)[-1]
        what = f"prompt of {length}"
        if length > 1:
            program = resident.compiled.prefill(length - 1, logits=True)
            await resident.logits(resident.launch(program, ids[:-1]))
        step = replace(decode, pos=length - 1, token=ids[-1])
        check_logits(f"{what}, last token by a step", expected, await resident.logits(step))
        await resident.check_cache(golden)
        program = resident.compiled.prefill(length, logits=True)
        again = await resident.logits(resident.launch(program, ids))
        check_logits(f"{what}, all at once", expected, again)
        await resident.check_cache(golden)


@cocotb.test
async def test_kv_cache_gpt2(dut: Dut) -> None:
    """Every length of a prompt of GPT-2: cached and recomputed logits are equal."""
    await cached_equals_recomputed(dut, "gpt2")


@cocotb.test
async def test_kv_cache_mistral(dut: Dut) -> None:
    """Every length of a prompt of Mistral with its window: cached and recomputed are equal."""
    await cached_equals_recomputed(dut, "mistral")


@cocotb.test
async def test_kv_cache_places(dut: Dut) -> None:
    """The same program in memory serves a cache in SRAM and one in memory."""
    bench = await Bench.start(dut, QUIET)
    model = checkpoint("llama")
    in_memory = Resident.place(bench, model, "memory")
    compiled = compile_model(model, bench.limits, cache="sram")
    in_sram = Resident(bench, model, compiled, in_memory.placement)
    assert compiled.decode(logits=True).program == in_memory.compiled.decode(logits=True).program
    prompt = in_memory.launch(in_memory.compiled.prefill(33, logits=True))
    step = in_memory.launch(in_memory.compiled.decode(logits=True))
    for resident in (in_memory, in_sram, in_memory):
        registers = resident.compiled.registers(resident.placement.cache)
        base, place = registers["kv_base"], registers["kv_in_memory"]
        first, following = (
            replace(launch, kv_base=base, kv_in_memory=place) for launch in (prompt, step)
        )
        ids = bench.random.integers(0, model.shape.vocab, 35).tolist()
        bench.memory.stage(prompt.bases[0], np.array(ids, "<u4"))
        golden = GoldenSession(model)
        expected = golden.prefill(ids[:33])[-1]
        check_logits("prompt", expected, await resident.logits(first))
        await resident.check_cache(golden)
        for token in ids[33:]:
            launch = replace(following, pos=golden.length, token=token)
            check_logits("step", golden.step(token), await resident.logits(launch))
            await resident.check_cache(golden)


@cocotb.test
async def test_kv_cache_staged(dut: Dut) -> None:
    """A step at a far position on keys and values that the host has put into memory."""
    bench = await Bench.start(dut)
    shape = shape_of("llama", layers=2, heads=4, kv_heads=2, head_dim=16, context=1024, vocab=300)
    model = random_model(shape, 11)
    resident = Resident.place(bench, model, "memory")
    ids = bench.random.integers(0, model.shape.vocab, model.shape.context).tolist()
    for position in (model.shape.context - 1, 512, 777):
        golden = GoldenSession(model)
        golden.extend(ids[:position])
        resident.stage_cache(golden.cache)
        await resident.step_in_detail(ids[position], golden)
