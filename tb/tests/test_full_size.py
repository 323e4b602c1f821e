# SPDX-License-Identifier: Apache-2.0
"""GPT-2 small in its full size on the RTL: 768 channels, 12 layers, 12 heads, 50,257 tokens.

The weights are random, in memory there are some 220 MB. One step streams all 124 M of them.
"""

from __future__ import annotations

import cocotb
import numpy as np

from golden.contribution import check_block
from golden.session import Session
from tb.dut import Dut
from tb.environment import Bench, full
from tb.models.resident import Resident, check_logits
from tb.tests.generation import QUIET
from weights.synthetic import random_gpt2, shape_of

MEMORY_MIB = 256
CHECKED_LAYER = 5


@cocotb.test
async def test_full_size_step(dut: Dut) -> None:
    """One step of GPT-2 small at position 20: all 50,257 logits, the token, and the cache."""
    bench = await Bench.start(dut, QUIET)
    shape = shape_of("gpt2", hidden=768, layers=12, heads=12, ffn=3072, vocab=50_257, context=1024)
    model = random_gpt2(shape, int(cocotb.RANDOM_SEED))
    resident = Resident.place(bench, model, "memory")
    ids = bench.random.integers(0, model.vocab, 24).tolist()
    golden = Session(model)
    past = golden.extend(ids[:20])
    findings = check_block(model, CHECKED_LAYER, past.residuals[CHECKED_LAYER])
    assert not findings, "; ".join(map(str, findings))
    resident.stage_cache(golden.cache)
    launch = resident.launch(resident.compiled.decode(logits=True))
    for position in range(20, 22 if full() else 21):
        expected = golden.step(ids[position])
        actual = await resident.logits(launch.at(position, ids[position]))
        check_logits(f"position {position}", expected, actual)
        token = int(bench.memory.array(launch.bases[1], (1,), np.uint32)[0])
        assert token == int(expected.argmax()), f"token {token}, expected {expected.argmax()}"
        await resident.check_cache(golden)
