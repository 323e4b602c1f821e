# SPDX-License-Identifier: Apache-2.0
"""The integer GPT-2 against float64 and against microcode.

Each stage lies within its stated error of float64, the whole near the real GPT-2 it stands for, and
a program on the instruction-level model gives the same bits.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from golden import gpt2
from golden.gelu import GELU_TABLE_MAX_ERROR
from golden.layernorm import OUTPUT_MAX_ERROR, Q_MAX_ABSOLUTE_ERROR, RSQRT_MAX_RELATIVE_ERROR
from golden.requantize import REQUANTIZE_MAX_ERROR
from golden.softmax import NUMERATOR_U16_MAX_ERROR, RECIPROCAL_MAX_RELATIVE_ERROR
from tests.python import golden_float
from tests.python import golden_programs as gp
from tests.python.golden_support import GELU_SCALE, random_model, seeded
from weights.model import Linear, Norm

Array = npt.NDArray[np.float64]
LENGTHS = [1, 2, 7, 16, 17, 64, 65, 128]


def tokens(seed: int, length: int) -> list[int]:
    """Return random token ids."""
    ids: list[int] = seeded(seed).integers(0, 256, length).tolist()
    return ids


def linear_exact(x: npt.NDArray[np.int8], layer: Linear, bits: int) -> Array:
    """Return (x @ weight + bias) * mult / 2^shift in float64, clipped to `bits` bits."""
    y = (x.astype(np.float64) @ layer.weight.astype(np.float64) + layer.bias) * layer.mult
    divisor = np.exp2(layer.shift.astype(np.float64))
    result: Array = np.clip(y / divisor, -(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    return result


def check_norm(x: npt.NDArray[np.int16], params: Norm, y: npt.NDArray[np.int8]) -> None:
    """Compare a norm with float64."""
    exact = golden_float.norm(params, 1.0)(x.astype(np.float64))
    slope = params.gain / np.exp2(params.shift.astype(np.float64))
    bound = Q_MAX_ABSOLUTE_ERROR * slope + RSQRT_MAX_RELATIVE_ERROR * np.abs(exact - params.bias)
    assert np.all(np.abs(y - np.clip(exact, -128, 127)) <= bound + OUTPUT_MAX_ERROR + 1e-9)


@pytest.mark.parametrize("length", LENGTHS)
def test_every_stage_against_float64(length: int) -> None:
    """Each tensor from the integer tensors before it, within the constant of its module."""
    model = random_model(600)
    x = gpt2.embed(model, tokens(601, length))
    for layer in range(model.layers):
        params = model.blocks[layer]
        trace = gpt2.block(model, layer, x)
        check_norm(x, params.norm1, trace.ln1)
        qkv = np.concatenate([trace.q, trace.k, trace.v], axis=1)
        error = np.abs(qkv - linear_exact(trace.ln1, params.qkv, 8))
        assert error.max() <= REQUANTIZE_MAX_ERROR
        for head in range(model.heads):
            part = slice(head * model.head_dim, (head + 1) * model.head_dim)
            q, k, v = (t[:, part].astype(np.float64) for t in (trace.q, trace.k, trace.v))
            scores = q @ k.T * params.score_mult / 2.0**params.score_shift
            error = np.abs(trace.scores[head] - np.clip(scores, -32768, 32767))
            assert error.max() <= REQUANTIZE_MAX_ERROR
            s = np.where(np.tri(length, dtype=np.bool_), trace.scores[head], -np.inf)
            e = 65535 * np.exp2((s - s.max(axis=1, keepdims=True)) / 64)
            assert np.abs(trace.numer[head] - e).max() <= NUMERATOR_U16_MAX_ERROR
            total = trace.numer[head].sum(axis=1, dtype=np.int64)
            assert np.array_equal(trace.sums[head], total)
            context = trace.numer[head].astype(np.float64) @ v / total[:, None]
            bound = 0.5 + RECIPROCAL_MAX_RELATIVE_ERROR * np.abs(context)
            assert np.all(np.abs(trace.ctx[:, part] - context) <= bound)
        for name, source, layer_, bits in (
            ("proj", trace.ctx, params.proj, 16),
            ("fc_pre", trace.ln2, params.up, 8),
            ("down", trace.fc, params.down, 16),
        ):
            error = np.abs(getattr(trace, name) - linear_exact(source, layer_, bits))
            assert error.max() <= REQUANTIZE_MAX_ERROR, name
        exact = golden_float.gelu(trace.fc_pre.astype(np.float64) * GELU_SCALE) / GELU_SCALE
        assert np.abs(trace.fc - np.clip(exact, -128, 127)).max() <= GELU_TABLE_MAX_ERROR
        assert np.array_equal(trace.resid1, np.clip(x.astype(int) + trace.proj, -32768, 32767))
        check_norm(trace.resid1, params.norm2, trace.ln2)
        total = trace.resid1.astype(int) + trace.down
        assert np.array_equal(trace.resid2, np.clip(total, -32768, 32767))
        x = trace.resid2


@pytest.mark.parametrize("length", [1, 17, 128])
def test_the_network_is_near_the_real_one(length: int) -> None:
    """Residual streams and logits follow the float64 network that the integers stand for.

    The distance is that of int8 activations (2 to 4 percent of the stream measured); an operation
    that did something else would be an order of magnitude away.
    """
    model = random_model(602, layers=3)
    ids = tokens(603, length)
    trace = gpt2.forward_trace(model, ids)
    streams, logits = golden_float.forward(model, ids)
    residual = model.scales["residual"]
    for layer, (integer, real) in enumerate(zip(trace.residuals, streams, strict=True)):
        error = np.sqrt(np.mean((integer * residual - real) ** 2)) / real.std()
        assert error < (0.06 if layer else 1e-9), (layer, error)
        assert layer == 0 or not np.array_equal(integer, trace.residuals[layer - 1])
    real = logits / model.scales["logits"]
    assert np.sqrt(np.mean((trace.logits - real) ** 2)) / real.std() < 0.08
    assert np.array_equal(trace.logits, gpt2.forward(model, ids))
    assert trace.logits.dtype == np.int16


def test_logits_of_a_prefix_do_not_depend_on_what_follows() -> None:
    """Causality, exactly."""
    model = random_model(604)
    ids = tokens(605, 40)
    assert np.array_equal(gpt2.forward(model, ids)[:23], gpt2.forward(model, ids[:23]))


@pytest.mark.parametrize("length", LENGTHS)
def test_microcode_gives_the_same_bits(length: int) -> None:
    """A block as a program on the instruction-level model: every tensor that stays in SRAM."""
    model = random_model(606, layers=1)
    params = model.blocks[0]
    x = gpt2.embed(model, tokens(607, length))
    trace = gpt2.block(model, 0, x)
    bench = gp.Bench(gp.block_program(length, params), gp.block_stream(params))
    bench.put(gp.X, x)
    result = bench.run()
    assert result.error is None
    assert result.races == []
    assert result.stream_offset == len(bench.stream)
    qkv = np.concatenate([trace.q, trace.k, trace.v], axis=1)
    for name, address, tensor in (
        ("qkv", gp.QK, qkv),
        ("ctx", gp.CT, trace.ctx),
        ("ln2", gp.N1, trace.ln2),
        ("fc", gp.FF, trace.fc),
        ("resid2", gp.X, trace.resid2),
    ):
        found = bench.get(address, (tensor.shape[0], tensor.shape[1]), tensor.dtype.type)
        assert np.array_equal(found, tensor), name
    numer = bench.get(gp.SC + 0x8000, (length, length), np.uint16, 2 * gp.up(length, 16))
    assert np.array_equal(numer, trace.numer[3])
    assert np.array_equal(bench.get(gp.SU + 0x800, (length, 4), np.uint32)[:, 0], trace.sums[3])


def test_embedding() -> None:
    """Rows of both tables, saturating, from a position on."""
    model = random_model(608)
    ids = [5, 255, 5]
    expected = np.clip(model.wte[ids].astype(int) + model.wpe[7:10], -32768, 32767)
    assert np.array_equal(gpt2.embed(model, ids, 7), expected)


@pytest.mark.parametrize(("ids", "pos"), [([], 0), ([256], 0), ([-1], 0), ([1, 2], 127), ([1], -1)])
def test_embedding_refuses(ids: list[int], pos: int) -> None:
    """Unknown tokens and positions outside the context."""
    with pytest.raises(ValueError, match="embed: given"):
        gpt2.embed(random_model(608), ids, pos)
