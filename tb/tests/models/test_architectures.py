# SPDX-License-Identifier: Apache-2.0
"""Random small folders of every architecture on the RTL: every token is golden's."""

from __future__ import annotations

import shutil
from typing import get_args

import cocotb

from golden.session import GoldenSession
from npu.compiler.model import Place
from npu.driver import generate
from tb.bench.dut import Dut
from tb.bench.environment import Bench, full
from tb.bench.knobs import Knobs
from tb.models.random_decoders import RandomDecoder, random_decoder
from tb.models.resident_model import Resident
from tb.tests.models.generation import QUIET
from weights.architectures import ARCHITECTURES

TAGS = ("models", "formats", "random", "long")

SHORT, FULL = 3, 80
"""Folders of a run; in the full form at least four of each architecture."""
PLACES: tuple[Place, ...] = get_args(Place)
"""Of the cache."""


@cocotb.test
async def test_architectures(dut: Dut) -> None:
    """Folders with odd shapes, read, quantised and run: writes, tensors and tokens are golden's."""
    bench = await Bench.start(dut)
    families, first = list(ARCHITECTURES), int(bench.random.integers(len(ARCHITECTURES)))
    count, different = FULL if full() else SHORT, 0
    for number in range(count):
        family, seed = (
            families[(first + number) % len(families)],
            int(bench.random.integers(1 << 32)),
        )
        folder = bench.run_dir / f"{number}-{family}"
        try:
            drawn = random_decoder(family, seed, folder)
            await _check(bench, drawn)
        except Exception as error:
            where = f"random_decoder({family!r}, {seed}) in {folder}"
            raise AssertionError(f"{where}: {error}") from error
        shutil.rmtree(folder)
        different += len(set(drawn.tokens))
    assert different > 2 * count, f"{different} different tokens of {count} models say little"


async def _check(bench: Bench, drawn: RandomDecoder) -> None:
    """Run a prompt and a step in detail, then the same prompt and all tokens by one start."""
    prompt, tokens = drawn.prompt, drawn.tokens
    resident = Resident.place(bench, drawn.model, PLACES[int(bench.random.integers(len(PLACES)))])
    golden, chunk = GoldenSession(drawn.model), 16 if bench.random.integers(2) else None
    await bench.set_knobs(Knobs())
    await resident.prompt_in_detail(prompt, golden, chunk)
    await resident.step_in_detail(tokens[0], golden)
    await bench.set_knobs(QUIET)
    generated = await generate.greedy(resident.chip, resident.plan(prompt), len(tokens))
    assert generated.ids == tokens, f"{generated.ids} != {tokens}"
