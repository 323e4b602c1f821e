# SPDX-License-Identifier: Apache-2.0
"""References of the recipes against exact sums and float64, and what the small models are worth."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest

from golden.recipes import bytelm_fp32, bytelm_int8, digits, layers, operations
from tests.python.driver.firmware_support import float_model, int8_model
from weights.corpus import Corpus, read_corpus, windows
from weights.firmware.bytelm import CHECKPOINTS, load_bytelm, without_gains
from weights.firmware.bytelm_card import RECORD_FILE, card_text
from weights.firmware.bytelm_float import bits_per_byte, forward, gelu
from weights.firmware.bytelm_int8 import load_scales, measure
from weights.firmware.digits import load_digits
from weights.firmware.prompts import PROMPTS

WINDOWS = 60
"""Held-out windows of 32 bytes for the quality figures."""
MAX_LOSS = 0.015
MIN_AGREEMENT = 0.91


@pytest.fixture
def rng() -> np.random.Generator:
    """Return seeded random numbers."""
    return np.random.default_rng(13)


def floats(rng: np.random.Generator, *shape: int) -> npt.NDArray[np.float32]:
    """Return normal float32 of very different sizes."""
    return (rng.normal(size=shape) * 2.0 ** rng.integers(-12, 12, shape)).astype(np.float32)


def test_products_round_once_a_term_in_order(rng: np.random.Generator) -> None:
    """Exact fractions, rounded to double after each term, then to float32."""
    weight, x = floats(rng, 5, 40), floats(rng, 3, 40)
    given = operations.products(weight, x)
    for row in range(3):
        for out in range(5):
            total = 0.0
            for a, b in zip(weight[out].tolist(), x[row].tolist(), strict=True):
                total = float(Fraction(total) + Fraction(a) * Fraction(b))
            assert given[row, out] == np.float32(total)
    assert np.array_equal(operations.squares(x), [operations.products(r[None], r)[0] for r in x])
    assert np.array_equal(
        operations.sums(x), operations.products(np.ones((1, 40), np.float32), x)[:, 0]
    )


def test_integer_operations(rng: np.random.Generator) -> None:
    """QMUL wraps, CLAMP saturates, VMUL floors: Python's integers."""
    a, b = (rng.integers(-(2**31), 2**31, 1000) for _ in range(2))
    wrapped = [
        ((int(x) * int(y)) // 256 + 2**31) % 2**32 - 2**31 for x, y in zip(a, b, strict=True)
    ]
    assert operations.high_product(a, b).tolist() == wrapped
    small, scale = rng.integers(-128, 128, 1000), rng.integers(-(2**20), 2**20, 1000)
    floored = [
        max(-128, min(127, int(x) * int(y) // 65536)) for x, y in zip(small, scale, strict=True)
    ]
    assert operations.scaled_bytes(small, scale).tolist() == floored


@pytest.mark.parametrize("by_reciprocal", [False, True])
def test_float_layers(rng: np.random.Generator, by_reciprocal: bool) -> None:
    """Both softmaxes and RMSNorm within a few units of float32 of float64."""
    x = rng.normal(size=(50, 32)).astype(np.float32) * 4
    wide = np.exp((x - x.max(axis=-1, keepdims=True)).astype(np.float64))
    expected = wide / wide.sum(axis=-1, keepdims=True)
    assert np.allclose(layers.softmax(x, by_reciprocal), expected, rtol=6e-7, atol=0)
    gain = rng.normal(size=32).astype(np.float32)
    mean = np.square(x.astype(np.float64)).mean(axis=-1, keepdims=True)
    expected = x / np.sqrt(mean + 1e-5) * gain
    assert np.allclose(layers.rmsnorm(x, 1e-5, gain), expected, rtol=4e-7, atol=0)


def test_byte_softmax(rng: np.random.Generator) -> None:
    """Rows of 1 to 32 scores: sums 255 +- 2, each within 1.2 of 255 times float64."""
    for n in range(1, 33):
        scores = np.rint(rng.normal(0, rng.uniform(0, 4), (200, n)) * 65536).astype(np.int64)
        given = layers.softmax_bytes(scores)
        power = np.exp((scores - scores.max(axis=-1, keepdims=True)) / 65536)
        assert given.min() >= 0
        assert given.max() <= 255
        assert np.abs(given.sum(axis=-1) - 255).max() <= 2
        exact = 255 * power / power.sum(axis=-1, keepdims=True)
        assert np.abs(given - exact).max() < 1.2


def test_byte_rmsnorm(rng: np.random.Generator) -> None:
    """Streams of all sizes: at most 1.9 steps below, 0.9 above float64 where a byte holds it."""
    sizes = 2.0 ** rng.uniform(6, 24, (300, 1))
    x = np.rint(rng.normal(size=(300, 64)) * sizes).astype(np.int64)
    exact = 28 * x / np.sqrt(np.square(x.astype(np.float64)).mean(axis=-1, keepdims=True))
    error = layers.rmsnorm_bytes(x, 1, 28) - np.clip(exact, -128, 127)
    assert error.min() > -1.9
    assert error.max() < 0.9
    assert np.array_equal(
        layers.rmsnorm_bytes(np.zeros((1, 64), np.int64), 1, 28), np.zeros((1, 64))
    )


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    """Return the text."""
    return read_corpus()


@pytest.fixture(scope="module")
def held_out(corpus: Corpus) -> npt.NDArray[np.int64]:
    """Return (WINDOWS, 32) tokens that no training step saw."""
    return windows(corpus.held_out, 32, WINDOWS)


def test_quality(held_out: npt.NDArray[np.int64]) -> None:
    """FP32 is the float64 network; integers lose little, and mostly expect the same byte."""
    real = forward(load_bytelm(), held_out)
    fp32 = bytelm_fp32.forward(float_model(), held_out)
    assert np.abs(fp32 - real).max() < 1e-4
    integers = bytelm_int8.real_logits(bytelm_int8.forward(int8_model(), held_out))
    bits, bits_int8 = bits_per_byte(real, held_out), bits_per_byte(integers, held_out)
    agreement = float((integers.argmax(axis=-1) == real.argmax(axis=-1)).mean())
    print(f"float64 {bits:.4f}, INT8 {bits_int8:.4f} bits per byte, agreement {agreement:.2%}")
    assert bits < 2.3
    assert bits_int8 / bits - 1 < MAX_LOSS
    assert agreement > MIN_AGREEMENT


def test_prompts_have_the_same_next_byte() -> None:
    """FP32 as the float64 network on all prompts, INT8 on nearly all."""
    same = 0
    for prompt in PROMPTS:
        tokens = np.array([list(prompt.encode())], np.int64)
        real = forward(load_bytelm(), tokens)[0, -1].argmax()
        assert bytelm_fp32.forward(float_model(), tokens)[0, -1].argmax() == real
        same += bytelm_int8.forward(int8_model(), tokens)[0, -1].argmax() == real
    assert len(PROMPTS) == 20
    assert same >= 18


def test_a_token_sees_only_what_was_before_it() -> None:
    """A text's logits do not change when it goes on."""
    tokens = np.array([list(b"The parser accepts")], np.int64)
    for model_forward in (
        lambda t: bytelm_fp32.forward(float_model(), t),
        lambda t: bytelm_int8.forward(int8_model(), t),
    ):
        assert np.array_equal(model_forward(tokens)[:, :9], model_forward(tokens[:, :9]))


def test_gelu_of_the_float_network() -> None:
    """Held against the correctly rounded one."""
    x = np.linspace(-6, 6, 4001)
    assert np.allclose(gelu(x), operations.gelu(x.astype(np.float32)), atol=1e-6)


def test_the_checkpoint_belongs_together(corpus: Corpus) -> None:
    """The card is that of the record, the scales those of the weights."""
    folder = CHECKPOINTS / "bytelm"
    record = json.loads((folder / RECORD_FILE).read_text(encoding="utf-8"))
    assert (folder / "README.md").read_text(encoding="utf-8") == card_text(record)
    model = load_bytelm()
    assert sum(array.size for array in model.tensors.values()) == 134_592
    scales = load_scales()
    text = windows(corpus.train, model.shape.context, 40)
    for name, largest in measure(without_gains(model), text).items():
        assert 0.3 * scales[name] < largest < 1.5 * scales[name], name


def test_digits() -> None:
    """The integer perceptron is right on held-out pictures."""
    model = load_digits()
    right = digits.logits(model, model.images).argmax(axis=1) == model.labels
    assert len(right) == 100
    assert right.mean() >= 0.95
