# SPDX-License-Identifier: Apache-2.0
"""The integer decoder against float64 and against microcode.

Each stage lies within its stated error of float64, the whole near the real decoder that it stands
for, and a program on the instruction-level model gives the same bits.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from golden import decoder
from golden.gelu import GELU_TABLE_MAX_ERROR
from golden.layernorm import OUTPUT_MAX_ERROR, Q_MAX_ABSOLUTE_ERROR, RSQRT_MAX_RELATIVE_ERROR
from golden.requantize import REQUANTIZE_MAX_ERROR
from golden.softmax import NUMERATOR_U16_MAX_ERROR, RECIPROCAL_MAX_RELATIVE_ERROR
from spec.isa.operands import up
from tests.python.golden import golden_float
from tests.python.golden import golden_programs as gp
from tests.python.golden.golden_support import ACT_SCALE, random_model, seeded
from weights.model import AnyLinear, Norm, QuantizedModel, Rescale, Sink
from weights.synthetic import random_model as quantised_model
from weights.synthetic import shape_of

Array = npt.NDArray[np.float64]
Wrong = Any
"""A value of the wrong type, which the types of the package would refuse before it runs."""
LENGTHS = [1, 2, 7, 16, 17, 64, 65, 128]
MODELS: dict[str, dict[str, Any]] = {
    "gpt2": {"family": "gpt2"},
    "llama, groups of 2": {"family": "llama", "kv_heads": 2, "ffn": 130},
    "mistral, one K/V head": {"family": "mistral", "kv_heads": 1, "window": 9},
    "qwen2, groups of 7": {"family": "qwen2", "heads": 7, "kv_heads": 1, "head_dim": 32},
    "wide heads": {"family": "llama", "heads": 2, "head_dim": 128, "vocab": 301},
    "parallel": {"family": "gpt_neox", "parallel": True, "ffn": 96},
    "norms of heads, windows and tables": {
        "family": "llama",
        "kv_heads": 2,
        "head_norms": "head",
        "windows": (9, 0, 5),
        "tables": (1, 0, 1),
    },
    "norms of rows and behind parts alone": {
        "family": "llama",
        "kv_heads": 1,
        "head_norms": "row",
        "pre_norms": False,
        "part_norms": True,
    },
    "norms of everything, learned positions": {
        "family": "gpt2",
        "head_norms": "head",
        "part_norms": True,
        "parallel": True,
    },
}


@cache
def model_of(name: str, seed: int = 600, layers: int = 2) -> QuantizedModel:
    """Return one of MODELS."""
    kind = dict(MODELS[name])
    kind |= {key: kind[key][:layers] for key in ("windows", "tables") if key in kind}
    return random_model(seed, layers=layers, **kind)


def tokens(seed: int, length: int) -> list[int]:
    """Return random token ids."""
    ids: list[int] = seeded(seed).integers(0, 256, length).tolist()
    return ids


def linear_exact(x: npt.NDArray[np.signedinteger[Any]], layer: AnyLinear, bits: int) -> Array:
    """Return (x @ weight + bias) * mult / 2^shift in float64, clipped to `bits` bits."""
    y = (x.astype(np.float64) @ layer.weight.astype(np.float64) + layer.bias) * layer.mult
    divisor = np.exp2(layer.shift.astype(np.float64))
    result: Array = np.clip(y / divisor, -(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    return result


def check_norm(
    x: npt.NDArray[np.signedinteger[Any]],
    params: Norm | Rescale | None,
    rms: bool,
    y: npt.NDArray[np.int8] | npt.NDArray[np.int16] | None,
    bits: int = 8,
) -> None:
    """Compare a norm of rows, or of the heads in them, with float64; or a change of unit."""
    if params is None:
        assert y is None
        return
    assert y is not None
    assert y.dtype == np.dtype(f"i{bits // 8}")
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    if isinstance(params, Rescale):
        exact = np.clip(x * (params.mult / 2.0**params.shift), low, high)
        assert np.abs(y - exact).max() <= REQUANTIZE_MAX_ERROR
        return
    x, y = x.reshape(-1, params.size), y.reshape(-1, params.size)
    exact = golden_float.norm(params, 1.0, rms=rms)(x.astype(np.float64))
    slope = params.gain / np.exp2(params.shift.astype(np.float64))
    bound = Q_MAX_ABSOLUTE_ERROR * slope + RSQRT_MAX_RELATIVE_ERROR * np.abs(exact - params.bias)
    assert np.all(np.abs(y - np.clip(exact, low, high)) <= bound + OUTPUT_MAX_ERROR + 1e-9)


def check_attention(model: QuantizedModel, layer: int, trace: decoder.BlockTrace) -> None:
    """Compare rotation, scores, softmax and context of every head with float64."""
    params, dim, length = model.blocks[layer], model.shape.head_dim, len(trace.q)
    q = (trace.q if trace.q_norm is None else trace.q_norm).astype(np.float64)
    k = (trace.k if trace.k_norm is None else trace.k_norm).astype(np.float64)
    if model.rope is not None:
        assert trace.q_rope is not None
        assert trace.k_rope is not None
        for plain, turned in ((q, trace.q_rope), (k, trace.k_rope)):
            by_head = plain.reshape(length, -1, dim).transpose(1, 0, 2)
            exact = golden_float.rotate(
                by_head, model.shape.tables[layer] if model.shape.tables else 0
            )
            exact = np.clip(exact.transpose(1, 0, 2).reshape(plain.shape), -128, 127)
            # The table's own error is half a unit of 2^-14 in each of two products.
            assert np.abs(turned - exact).max() <= REQUANTIZE_MAX_ERROR + 128 / 2**14
        q, k = trace.q_rope.astype(np.float64), trace.k_rope.astype(np.float64)
    assert (trace.q_rope is None) == (trace.k_rope is None) == (model.rope is None)
    windows = model.shape.windows or (model.shape.window,) * model.shape.layers
    mask = golden_float.visible(length, windows[layer])
    for head in range(model.shape.heads):
        own = slice(head * dim, (head + 1) * dim)
        shared = head // (model.shape.heads // model.shape.kv_heads)
        other = slice(shared * dim, (shared + 1) * dim)
        scores = q[:, own] @ k[:, other].T * params.score_mult / 2.0**params.score_shift
        error = np.abs(trace.scores[head] - np.clip(scores, -32768, 32767))
        assert error.max() <= REQUANTIZE_MAX_ERROR
        s = np.where(mask, trace.scores[head], -np.inf)
        e = 65535 * np.exp2((s - s.max(axis=1, keepdims=True)) / 64)
        assert np.abs(trace.numer[head] - e).max() <= NUMERATOR_U16_MAX_ERROR
        assert not trace.numer[head][~mask].any()
        total = trace.numer[head].sum(axis=1, dtype=np.int64)
        assert np.array_equal(trace.sums[head], total)
        context = trace.numer[head].astype(np.float64) @ trace.v[:, other] / total[:, None]
        bound = 0.5 + RECIPROCAL_MAX_RELATIVE_ERROR * np.abs(context)
        assert np.all(np.abs(trace.ctx[:, own] - context) <= bound)


def check_feed_forward(model: QuantizedModel, layer: int, trace: decoder.BlockTrace) -> None:
    """Compare the activation, and the product of a gated feed-forward, with float64."""
    params = model.blocks[layer]
    if params.gate is None:
        assert trace.gate is trace.silu is None
        exact = golden_float.gelu(trace.up.astype(np.float64) * ACT_SCALE) / ACT_SCALE
        assert np.abs(trace.act - np.clip(exact, -128, 127)).max() <= GELU_TABLE_MAX_ERROR
        return
    assert trace.gate is not None
    assert trace.silu is not None
    error = np.abs(trace.gate - linear_exact(trace.norm2, params.gate, 8))
    assert error.max() <= REQUANTIZE_MAX_ERROR
    exact = golden_float.silu(trace.gate.astype(np.float64) * ACT_SCALE) / ACT_SCALE
    assert np.abs(trace.silu - np.clip(exact, -128, 127)).max() <= 0.5
    factor = params.product_mult / 2.0**params.product_shift
    exact = np.clip(trace.silu.astype(np.float64) * trace.up * factor, -128, 127)
    assert np.abs(trace.act - exact).max() <= REQUANTIZE_MAX_ERROR


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("length", [1, 2, 17, 65, 128])
def test_every_stage_against_float64(name: str, length: int) -> None:
    """Each tensor from the integer tensors before it, within the constant of its module."""
    model = model_of(name)
    rms = model.shape.norm == "rmsnorm"
    x = decoder.embed(model, tokens(601, length))
    for layer in range(model.shape.layers):
        params = model.blocks[layer]
        trace = decoder.block(model, layer, x)
        check_norm(x, params.norm1, rms, trace.norm1)
        exact = linear_exact(trace.norm1, params.qkv, 16)
        starts = np.cumsum([trace.q.shape[1], trace.k.shape[1]])
        for part, real in zip("qkv", np.split(exact, starts, axis=1), strict=True):
            tensor = getattr(trace, part)
            wide = bool(model.shape.head_norms) and part != "v"
            assert tensor.dtype == (np.int16 if wide else np.int8)
            limit = 1 << (15 if wide else 7)
            assert np.abs(tensor - np.clip(real, -limit, limit - 1)).max() <= REQUANTIZE_MAX_ERROR
        check_norm(trace.q, params.q_norm, rms, trace.q_norm)
        check_norm(trace.k, params.k_norm, rms, trace.k_norm)
        check_attention(model, layer, trace)
        check_feed_forward(model, layer, trace)
        for output, source, layer_, bits in (
            ("proj", trace.ctx, params.proj, 16),
            ("up", trace.norm2, params.up, 8),
            ("down", trace.act, params.down, 16),
        ):
            error = np.abs(getattr(trace, output) - linear_exact(source, layer_, bits))
            assert error.max() <= REQUANTIZE_MAX_ERROR, output
        check_norm(trace.proj, params.o_norm, rms, trace.o_norm, 16)
        check_norm(trace.down, params.down_norm, rms, trace.down_norm, 16)
        attended, inner = trace.proj, trace.down
        if model.shape.part_norms:
            assert trace.o_norm is not None
            assert trace.down_norm is not None
            attended, inner = trace.o_norm, trace.down_norm
        assert np.array_equal(trace.resid1, np.clip(x.astype(int) + attended, -32768, 32767))
        check_norm(x if model.shape.parallel else trace.resid1, params.norm2, rms, trace.norm2)
        total = trace.resid1.astype(int) + inner
        assert np.array_equal(trace.resid2, np.clip(total, -32768, 32767))
        x = trace.resid2


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("length", [1, 17, 128])
def test_the_network_is_near_the_real_one(name: str, length: int) -> None:
    """Residual streams and logits follow the float64 network that the integers stand for.

    The distance is that of int8 activations, 2 to 5 percent per layer and up to 9 at a single
    position; an operation that did something else would be most of the stream away.
    """
    model = model_of(name, 602, 3)
    ids = tokens(603, length)
    trace = decoder.forward_trace(model, ids)
    streams, logits = golden_float.forward(model, ids)
    residual = model.scales["residual"]
    limit = 0.15
    for layer, (integer, real) in enumerate(
        zip(decoder.residuals(model, ids), streams, strict=True)
    ):
        error = np.sqrt(np.mean((integer * residual - real) ** 2)) / real.std()
        assert error < (limit if layer else 1e-9), (layer, error)
        assert layer == 0 or not np.array_equal(integer, trace.residuals[layer - 1])
    real = logits / model.scales["logits"]
    assert np.sqrt(np.mean((trace.logits - real) ** 2)) / real.std() < limit + 0.02
    assert np.array_equal(trace.logits, decoder.forward_rows(model, np.array([ids]))[0])
    assert np.array_equal(trace.logits, decoder.forward(model, ids))
    assert trace.logits.dtype == np.int16


@pytest.mark.parametrize("name", ["llama, groups of 2", "norms of heads, windows and tables"])
def test_a_text_behind_a_constant_position(name: str) -> None:
    """With the first row's own keys and values as the constants, the rest of a text is the same."""
    model = model_of(name)
    ids = tokens(609, 40)
    whole = decoder.forward_trace(model, ids)
    rows = [(block.keys[0], block.v[0]) for block in whole.blocks]
    assert not np.array_equal(whole.blocks[0].keys[1], whole.blocks[0].k[1])
    sink = Sink(ids[0], *(np.stack(part) for part in zip(*rows, strict=True)))
    behind = replace(model, sink=sink)
    assert np.array_equal(decoder.forward(behind, ids[1:]), whole.logits[1:])
    assert np.array_equal(
        decoder.forward_rows(behind, np.array([ids[1:]] * 2))[1], whole.logits[1:]
    )
    assert [past.k.shape for past in decoder.beginning(model)] == [(0, 32)] * 2
    for past, (k, v) in zip(decoder.beginning(behind), rows, strict=True):
        assert np.array_equal(past.k, k[None])
        assert np.array_equal(past.v, v[None])


@pytest.mark.parametrize("name", MODELS)
def test_logits_of_a_prefix_do_not_depend_on_what_follows(name: str) -> None:
    """Causality, exactly."""
    model = model_of(name)
    ids = tokens(605, 40)
    assert np.array_equal(decoder.forward(model, ids)[:23], decoder.forward(model, ids[:23]))


def test_a_window_forgets() -> None:
    """What lies outside every window on the way to a position does not reach it, what is in does.

    Through 2 layers of a window of 9 a position depends on itself and the 16 before it.
    """
    model = model_of("mistral, one K/V head")
    ids = tokens(606, 40)
    for changed, reaches in ((39 - 17, False), (39 - 16, True)):
        other = list(ids)
        other[changed] ^= 1
        same = np.array_equal(decoder.forward(model, ids)[39], decoder.forward(model, other)[39])
        assert same is not reaches


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("at_once", [1, 64, 10_000])
def test_many_rows_at_once(name: str, at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sequences that are computed together have the logits of each by itself."""
    monkeypatch.setattr(decoder, "ROWS_AT_ONCE", at_once)
    model = model_of(name)
    rows = seeded(607).integers(0, model.shape.vocab, (5, 33))
    logits = decoder.forward_rows(model, rows)
    assert logits.dtype == np.int16
    assert np.array_equal(logits, np.stack([decoder.forward(model, row.tolist()) for row in rows]))


@pytest.mark.parametrize("name", MODELS)
def test_a_block_behind_a_past_is_the_rest_of_a_whole_one(name: str) -> None:
    """Keys and values of earlier positions are all that later ones need, in every block."""
    model = model_of(name)
    x = decoder.embed(model, tokens(610, 40))
    for layer in range(model.shape.layers):
        whole = decoder.block(model, layer, x)
        past = decoder.KeyValues(whole.keys[:23], whole.v[:23])
        rest = decoder.block(model, layer, x[23:], past).tensors()
        for part, tensor in whole.tensors().items():
            if part not in ("scores", "numer", "sums"):
                assert np.array_equal(rest[part], tensor[23:]), (layer, part)
        x = whole.resid2


def test_each_layer_has_its_window_and_table() -> None:
    """With those of another layer its logits are others."""
    model = model_of("norms of heads, windows and tables")
    ids = tokens(611, 40)
    logits = decoder.forward(model, ids)
    changes: list[dict[str, Any]] = [
        {"windows": (0, 0)},
        {"windows": (9, 9)},
        {"windows": (0, 9)},
        {"tables": (1, 1)},
        {"tables": (0, 1)},
    ]
    for change in changes:
        other = replace(model, shape=replace(model.shape, **change))
        assert not np.array_equal(decoder.forward(other, ids), logits), change
    # A window of the whole model counts where layers have none.
    same = replace(model, shape=replace(model.shape, windows=(), window=9))
    alike = replace(model, shape=replace(model.shape, windows=(9, 9)))
    assert np.array_equal(decoder.forward(same, ids), decoder.forward(alike, ids))


@pytest.mark.parametrize("length", LENGTHS)
def test_microcode_gives_the_same_bits(length: int) -> None:
    """A block as a program on the instruction-level model: every tensor that stays in SRAM."""
    model = random_model(606, layers=1)
    params = model.blocks[0]
    x = decoder.embed(model, tokens(607, length))
    trace = decoder.block(model, 0, x)
    bench = gp.ProgramBench(gp.block_program(length, params), gp.block_stream(params))
    bench.put(gp.X, x)
    result = bench.run()
    assert result.error is None
    assert result.races == []
    assert result.stream_offset == len(bench.stream)
    qkv = np.concatenate([trace.q, trace.k, trace.v], axis=1)
    for name, address, tensor in (
        ("qkv", gp.QK, qkv),
        ("ctx", gp.CT, trace.ctx),
        ("norm2", gp.N1, trace.norm2),
        ("act", gp.FF, trace.act),
        ("resid2", gp.X, trace.resid2),
    ):
        found = bench.get(address, (tensor.shape[0], tensor.shape[1]), tensor.dtype.type)
        assert np.array_equal(found, tensor), name
    numer = bench.get(gp.SC + 0x8000, (length, length), np.uint16, 2 * up(length, 16))
    assert np.array_equal(numer, trace.numer[3])
    assert np.array_equal(bench.get(gp.SU + 0x800, (length, 4), np.uint32)[:, 0], trace.sums[3])


def test_embedding() -> None:
    """Rows of both tables, saturating, from a position on; without positions the tokens' alone."""
    model = random_model(608)
    ids = [5, 255, 5]
    assert model.wpe is not None
    expected = np.clip(model.wte[ids].astype(int) + model.wpe[7:10], -32768, 32767)
    assert np.array_equal(decoder.embed(model, ids, 7), expected)
    rotating = model_of("wide heads")
    ids = [5, 300, 5]
    assert np.array_equal(decoder.embed(rotating, ids, 7), rotating.wte[ids])


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([[1, 2], [3]], r"forward_rows: given ids of shape \(0, 0\)"),
        ([1, 2], r"forward_rows: given ids of shape \(2,\) at position 0, allowed rows of 1 or"),
        ([[1, 301]], r"forward_rows: given ids 1..301, allowed 0..300"),
        ([[0] * 129], r"forward_rows: context full: given 129 ids at position 0, .* 128 of 128"),
    ],
)
def test_rows_are_refused(ids: Wrong, message: str) -> None:
    """Rows that are none, unknown tokens and too long rows."""
    with pytest.raises(ValueError, match=message):
        decoder.forward_rows(model_of("wide heads"), ids)


def test_a_wide_block_by_integers() -> None:
    """Gate, ratio, activation, product and its limit element by element; the stream's new units."""

    def rounded(value: int, shift: int, bits: int) -> int:
        half = (1 << shift) >> 1
        return max(-(1 << bits - 1), min((1 << bits - 1) - 1, (value + half) >> shift))

    shape = shape_of("llama", hidden=32, heads=2, kv_heads=1, layers=1, ffn=48, context=16)
    model = quantised_model(shape, 3, sink=5)
    steep = replace(model.blocks[0], product_shift=9, act_limit=3000, stream_shift=2)
    model = replace(model, blocks=(steep,))
    x = seeded(7).integers(-32768, 32768, (6, 32)).astype(np.int16)
    trace = decoder.block(model, 0, x, decoder.beginning(model)[0])
    parts = trace.stream, trace.gate, trace.near, trace.ratio, trace.silu, trace.up, trace.act
    stream, gate, near, ratio, silu, up_, act = (one for one in parts if one is not None)
    assert stream.tolist() == [[rounded(int(v), 2, 16) for v in row] for row in x]
    pairs = zip(*(one.ravel().tolist() for one in (gate, near, ratio, silu, up_, act)), strict=True)
    for g, n, r, s, u, a in pairs:
        assert n == rounded(g * steep.near_mult, steep.near_shift, 8)
        assert r == int(steep.table[n % 256])
        assert s == rounded(g * r, 7, 16)
        assert a == max(-3001, min(3000, rounded(s * u, 9, 16)))
    assert (act.min(), act.max()) == (-3001, 3000)
    assert np.abs(act).min() < 3000
    assert trace.stream is not None
    np.testing.assert_array_equal(trace.resid1, decoder.residual_add(trace.stream, trace.proj))
