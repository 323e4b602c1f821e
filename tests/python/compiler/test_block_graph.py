# SPDX-License-Identifier: Apache-2.0
"""A GPT-2 block as a graph: golden's block, and as few instructions as by hand."""

from __future__ import annotations

from collections import Counter

import numpy as np
import numpy.typing as npt
import pytest

from golden import decoder
from golden.graph import run
from npu.compiler import compile_block
from npu.compiler.block_graph import INPUT, OUTPUT, block_graph
from npu.compiler.errors import CompileError
from npu.compiler.network import compile_network
from spec.isa.generated import Opcode
from spec.isa.operands import Limits
from tests.python.compiler.network_runs import run_compiled
from tests.python.golden.golden_support import random_model
from weights.model import QuantizedModel


def _model(hidden: int, heads: int, ffn: int) -> QuantizedModel:
    return random_model(11, hidden=hidden, heads=heads, ffn=ffn, layers=1)


def _input(model: QuantizedModel, rows: int) -> npt.NDArray[np.int16]:
    random = np.random.default_rng(rows)
    return random.integers(-30000, 30000, (rows, model.shape.hidden)).astype(np.int16)


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize(
    ("hidden", "heads", "ffn", "rows"),
    [(64, 4, 256, 16), (48, 2, 100, 70), (16, 2, 5, 1), (96, 3, 65, 17), (64, 1, 33, 128)],
)
def test_a_block_as_a_graph_is_golden(
    hidden: int, heads: int, ffn: int, rows: int, fused: bool
) -> None:
    """Heads of 8, 24, 32, 16 and 64 lanes: golden's block = golden graph = instruction model."""
    model = _model(hidden, heads, ffn)
    x = _input(model, rows)
    graph = block_graph(model, 0, rows, fused=fused)
    expected = decoder.block(model, 0, x).resid2
    np.testing.assert_array_equal(run(graph, {INPUT: x})[OUTPUT], expected)
    found = run_compiled(compile_network(graph), {INPUT: x}).outputs[OUTPUT]
    np.testing.assert_array_equal(found, expected)
    assert not np.array_equal(expected, x)


def test_a_fused_block_moves_nothing() -> None:
    """Heads are views: products and norms, one load and one store, nothing of VEC."""
    block = compile_block(_model(64, 4, 256), 0, 16)
    counts = Counter(word.opcode for word in block.program.instructions)
    assert counts[Opcode.GEMM] == 4 + 2 * 4
    assert counts[Opcode.LAYERNORM] == 2
    assert counts[Opcode.SOFTMAX] == 4
    assert counts[Opcode.DMA_LOAD] == counts[Opcode.DMA_STORE] == 1
    assert counts[Opcode.VEC] == counts[Opcode.SET] == 0


def test_what_no_longer_fits_goes_through_memory() -> None:
    """A chip with little SRAM takes the block all the same, as long as its heads fit."""
    model = _model(64, 4, 256)
    small, large = (
        compile_block(model, 0, 64, limits=limits)
        for limits in (Limits(sram_bytes=32 * 1024), Limits())
    )
    assert small.sram_bytes <= 32 * 1024 < large.sram_bytes
    with pytest.raises(CompileError, match="needs"):
        compile_block(model, 0, 64, limits=Limits(sram_bytes=10 * 1024))
