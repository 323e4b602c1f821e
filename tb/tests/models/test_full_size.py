# SPDX-License-Identifier: Apache-2.0
"""GPT-2 small in its full size on the RTL: 768 channels, 12 layers, 12 heads, 50,257 tokens.

The weights are random, in memory there are some 220 MB. One step streams all 124 M of them. The
short form is a third as wide, with one layer and as many tokens as make one of more than 15 bits.
"""

from __future__ import annotations

from dataclasses import replace

import cocotb
import numpy as np
import numpy.typing as npt

from golden.contribution import check_block
from golden.session import GoldenSession
from tb.bench.dut import Dut
from tb.bench.environment import Bench, full
from tb.models.resident_model import Resident, check_logits
from tb.tests.models.generation import QUIET
from weights.synthetic import random_gpt2, shape_of

TAGS = ("models", "long")

MEMORY_MIB = 256
WIDTH, LAYERS, TOKENS, CHECKED_LAYER = 768, 12, 50_257, 3
SHORT = (256, 1, 36_000, 0)


@cocotb.test
async def test_full_size_step(dut: Dut) -> None:
    """One step of GPT-2 small at position 20: all logits, the token, and the cache."""
    bench = await Bench.start(dut, QUIET)
    width, layers, vocab, checked = (WIDTH, LAYERS, TOKENS, CHECKED_LAYER) if full() else SHORT
    sizes = {"layers": layers, "heads": width // 64, "ffn": 4 * width, "vocab": vocab}
    shape = shape_of("gpt2", hidden=width, **sizes, context=1024)
    model = random_gpt2(shape, int(cocotb.RANDOM_SEED))
    resident = Resident.place(bench, model, "memory")
    ids = bench.random.integers(0, model.shape.vocab, 20).tolist()
    golden = GoldenSession(model)
    past = golden.extend(ids)
    findings = check_block(model, checked, past.residuals[checked])
    assert not findings, "; ".join(map(str, findings))
    resident.stage_cache(golden.cache)
    launch = resident.launch(resident.compiled.decode(logits=True))
    for _ in range(2 if full() else 1):
        position = golden.length
        token, golden, expected = _with_high_answer(bench, golden)
        actual = await resident.logits(replace(launch, pos=position, token=token))
        check_logits(f"position {position}", expected, actual)
        answer = int(bench.memory.array(launch.bases[1], (1,), np.uint32)[0])
        assert answer == int(expected.argmax()), f"token {answer}, expected {expected.argmax()}"
        await resident.check_cache(golden)


def _with_high_answer(
    bench: Bench, past: GoldenSession
) -> tuple[int, GoldenSession, npt.NDArray[np.int16]]:
    """Return a token, the session with it, and its logits: the answer needs 16 bits."""
    while True:
        golden = GoldenSession(past.model)
        golden.cache = list(past.cache)
        token = int(bench.random.integers(past.model.shape.vocab))
        logits = golden.step(token)
        if logits.argmax() >= 1 << 15:
            return token, golden, logits
