# SPDX-License-Identifier: Apache-2.0
"""The shipped Llama generates on the RTL: tokens, logits, tensors are the network's."""

from __future__ import annotations

import cocotb

from tb.bench.dut import Dut
from tb.tests.models import generation

TAGS = ("models", "long")


@cocotb.test
async def test_llama_greedy(dut: Dut) -> None:
    """Prompts of several lengths go on as on the network, one start for all tokens."""
    await generation.greedy_equals_network(dut, "llama")


@cocotb.test
async def test_llama_sampled(dut: Dut) -> None:
    """The host draws each token from logits that are the network's, every one of them."""
    await generation.sampled_equals_network(dut, "llama")


@cocotb.test
async def test_llama_context(dut: Dut) -> None:
    """The context is used to its last position; what goes beyond is refused, the next runs."""
    await generation.context_is_used_up(dut, "llama")


@cocotb.test
async def test_llama_in_detail(dut: Dut) -> None:
    """A prompt and single steps: every tensor, cache entry, logit and SRAM write is compared."""
    await generation.steps_equal_in_detail(dut, "llama")
