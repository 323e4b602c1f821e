# SPDX-License-Identifier: Apache-2.0
"""Every byte of a compiled stream has a name, and few of them are not necessary."""

from dataclasses import replace

import pytest

from npu.compiler import CompiledBlock, compile_block, overhead, pieces
from spec.isa.operands import up
from weights.synthetic import random_model, shape_of

MOST = 1.03


def _block(hidden: int, heads: int, ffn: int, *, fused: bool = True) -> CompiledBlock:
    shape = shape_of("gpt2", hidden=hidden, heads=heads, layers=1, ffn=ffn, vocab=64, context=32)
    return compile_block(random_model(shape, 3), 0, 4, fused=fused)


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize(("hidden", "heads", "ffn"), [(32, 2, 64), (64, 4, 256), (96, 3, 400)])
def test_multiples_of_16_are_packed_tightly(hidden: int, heads: int, ffn: int, fused: bool) -> None:
    """At most 1.03 bytes of the stream per necessary byte; nothing but headers is in excess."""
    block = _block(hidden, heads, ffn, fused=fused)
    parts = pieces(block)
    assert sum(part.bytes for part in parts) == len(block.stream)
    assert {part.what for part in parts if part.bytes != part.necessary} == {"header"}
    assert overhead(parts) <= MOST


def test_necessary_bytes_of_a_block() -> None:
    """Weights, 8 bytes per output channel, 4 per norm channel, and the activation table."""
    parts = pieces(_block(64, 4, 256))
    necessary = dict.fromkeys(("weights", "channels", "norm channels", "table", "header"), 0)
    for part in parts:
        necessary[part.what] += part.necessary
    assert necessary == {
        "weights": 64 * 192 + 64 * 64 + 2 * 64 * 256,
        "channels": 8 * (192 + 64 + 256 + 64),
        "norm channels": 4 * (64 + 64),
        "table": 256,
        "header": 0,
    }


def test_padding_is_seen() -> None:
    """A width that is no multiple of 16 pays for the rest of its tiles."""
    ffn = 70
    parts = {(part.share, part.what): part for part in pieces(_block(32, 2, ffn))}
    weights = parts["h.0.up", "weights"]
    assert (weights.bytes, weights.necessary) == (32 * up(ffn), 32 * ffn)
    channels = parts["h.0.up", "channels"]
    assert (channels.bytes, channels.necessary) == (8 * up(ffn), 8 * ffn)


def test_shares_that_do_not_fit_are_refused() -> None:
    """A share of another length than its instruction takes cannot be accounted for."""
    block = _block(32, 2, 64)
    first, *rest = block.shares
    with pytest.raises(ValueError, match=r"share h\.0\.norm1: parts of 192 bytes, it has 256"):
        pieces(replace(block, shares=(replace(first, bytes=256), *rest)))
