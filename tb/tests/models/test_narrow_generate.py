# SPDX-License-Identifier: Apache-2.0
"""Models with narrow weights generate on the RTL: tokens, logits, tensors are the network's.

The integer network multiplies with expanded weights and knows nothing of shares and side bytes.
"""

from __future__ import annotations

from collections.abc import Iterator

import cocotb

from golden import session
from golden.session import GoldenSession
from npu.driver import generate
from spec.isa.weight_formats import NARROW
from tb.bench.dut import Dut
from tb.bench.environment import Bench, full
from tb.models.resident_model import Resident
from tb.models.sample_model import TEXT
from tb.tests.models.generation import QUIET, ids_of_text
from weights.formats.recipe import parse_recipe
from weights.model import QuantizedModel
from weights.quantize import quantize_checkpoint
from weights.recipe import FINETUNES
from weights.shipped import CHECKPOINTS, FINETUNED

TAGS = ("models", "formats", "long")

PROMPT, TOKENS, ALL_TOKENS = 7, 20, 64
MIXED = "qkv=mxfp6e2,up=mxfp6e2,o=int4g32,down=nf4g16,head=int4"
SAMPLE = {"gpt2": ("int4g32,head=mxfp6e2",), "llama": (MIXED,)}
"""Recipes of the short form."""


def _recipes(family: str) -> tuple[str, ...]:
    """Return what is run of a family: in the full form every format, for the head too."""
    if not full():
        return SAMPLE[family]
    return (MIXED, "ternary", *(f"{fmt.asm},head={fmt.asm}" for fmt in NARROW))


def _models() -> Iterator[tuple[str, QuantizedModel]]:
    """Yield name and network of everything that generates."""
    for family in SAMPLE:
        for recipe in _recipes(family):
            folder = CHECKPOINTS / f"{family}-tiny"
            yield f"{family} {recipe}", quantize_checkpoint(str(folder), parse_recipe(recipe))
    for name, finetune in FINETUNES.items():
        if full() and (FINETUNED / name).is_dir():
            own = parse_recipe(finetune.weights)
            yield name, quantize_checkpoint(str(FINETUNED / name), own)


@cocotb.test
async def test_narrow_greedy(dut: Dut) -> None:
    """Tokens by one start, in LOOP, go on as on the network."""
    bench = await Bench.start(dut, QUIET)
    count, first = ALL_TOKENS if full() else TOKENS, int(bench.random.integers(len(TEXT) - PROMPT))
    prompt = list(TEXT.encode()[first : first + PROMPT])
    for name, model in _models():
        resident = Resident.place(bench, model)
        generated = await generate.greedy(resident.chip, resident.plan(prompt), count)
        expected = session.generate(model, prompt, count)
        assert generated.ids == expected, f"{name}, {prompt}: {generated.ids} != {expected}"


@cocotb.test
async def test_narrow_in_detail(dut: Dut) -> None:
    """A prompt and steps, each tensor compared with the network's and each write with the model."""
    bench = await Bench.start(dut)
    for family in SAMPLE:
        for recipe in _recipes(family):
            folder = CHECKPOINTS / f"{family}-tiny"
            model = quantize_checkpoint(str(folder), parse_recipe(recipe))
            resident, golden = Resident.place(bench, model), GoldenSession(model)
            await resident.prompt_in_detail(ids_of_text(17), golden)
            for token in ids_of_text(19)[17:]:
                await resident.step_in_detail(token, golden)
