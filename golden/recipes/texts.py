# SPDX-License-Identifier: Apache-2.0
"""What the programs of firmware/examples print, computed from what they are to compute.

`vectors` and `recipes` work on random numbers that C and this module draw alike (`Xorshift`);
hashes are FNV-1a of 32 bits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.recipes import bytelm_fp32, bytelm_int8, digits, layers
from golden.recipes.operations import (
    Float32,
    Int64,
    byte,
    exp,
    exp_q16_16,
    gelu,
    gelu_byte,
    inverse_root,
    inverse_root_q16_16,
    products,
    scaled_bytes,
    sums,
)
from weights.firmware.models import ADD_SHIFT, OUTPUT_SHIFT, ByteLm, ByteLmInt8, DigitsInt8

Array = npt.NDArray[Any]
VECTOR = 37
"""Elements of the vectors in `vectors`."""
POSITION = 16
"""Of the token whose time the programs of the transformer measure."""
LINEAR_IN, LINEAR_OUT, KEYS = 64, 24, 17
"""Sizes of the layers in `recipes`."""


class Xorshift:
    """Marsaglia's xorshift of 32 bits from state 1, and numbers of its words."""

    def __init__(self) -> None:
        self.state = 1

    def word(self) -> int:
        """Return the next word."""
        x = self.state
        x ^= x << 13 & 0xFFFFFFFF
        x ^= x >> 17
        x ^= x << 5 & 0xFFFFFFFF
        self.state = x
        return x

    def signed(self, count: int, bits: int) -> Int64:
        """Return the upper bits of `count` words as signed numbers."""
        words = np.array([self.word() for _ in range(count)], np.uint32)
        return (words.view(np.int32) >> np.int32(32 - bits)).astype(np.int64)

    def floats(self, count: int) -> Float32:
        """Return float32 of either sign from 1/8 to below 4."""
        words = [self.word() for _ in range(count)]
        patterns = [w & 0x807FFFFF | (124 + (w >> 23 & 255) % 5) << 23 for w in words]
        return np.array(patterns, np.uint32).view(np.float32)


def fnv(values: Iterable[int]) -> int:
    """Return FNV-1a over bytes, or over words in their place."""
    value = 2166136261
    for item in values:
        value = (value ^ item) * 16777619 & 0xFFFFFFFF
    return value


def _hashed(name: str, array: Array) -> str:
    return f"{name} hash {fnv(array.tobytes()):08x}\n"


def _word(name: str, value: Int64 | Float32 | np.generic) -> str:
    array = np.asarray(value)
    bits = array.view(np.uint32) if array.dtype == np.float32 else array & 0xFFFFFFFF
    return f"{name} {int(bits):08x}\n"


def _bytes(array: Int64) -> Array:
    return array.astype(np.int8)


def _words(array: Int64) -> Array:
    return array.astype(np.int32)


def vectors() -> str:
    """Return the text of `vectors`."""
    draw = Xorshift()
    a, b = draw.signed(VECTOR + 3, 8), draw.signed(VECTOR + 3, 8)
    text = _word("VMAC", (a[1 : VECTOR + 1] * b[3:]).sum())
    text += _hashed("VMUL", _bytes(scaled_bytes(a[3:], np.array(98765))))
    b[7:11] = a[5:9]
    text += _hashed("LDVEC, STVEC", _bytes(b))
    words = draw.signed(VECTOR, 20)
    powers = exp_q16_16(words)
    text += _word("VREDUCE", words.sum()) + _word("VMAX", words.max())
    text += _hashed("VEXP", _words(powers)) + _word("VRSQRT", inverse_root_q16_16(powers[:1])[0])
    x, y = draw.floats(VECTOR), draw.floats(VECTOR)
    ones = np.ones_like(x)
    text += _word("FVMAC", products(x[None], y)[0]) + _word("FVREDUCE", sums(x))
    text += _word("FVMAX", x.max()) + _hashed("FVEXP", exp(x))
    text += _word("FVRSQRT", inverse_root(exp(x)[:1])[0]) + _hashed("FVGELU", gelu(x))
    text += _hashed("FVRELU", np.where(x > 0, x, 0 * ones))
    scalar = x[0] * y[0]
    text += _hashed("FVMUL", x * scalar) + _hashed("FVDIV", x / scalar)
    text += _hashed("FVSUB_SCALAR", x - scalar)
    text += _hashed("FVADD", x + y) + _hashed("FVSUB", x - (x + y))
    return text


def recipes() -> str:
    """Return the text of `recipes`."""
    draw = Xorshift()
    weight = draw.floats(LINEAR_OUT * LINEAR_IN).reshape(LINEAR_OUT, LINEAR_IN)
    bias, x, gain = draw.floats(LINEAR_OUT), draw.floats(LINEAR_IN), draw.floats(LINEAR_IN)
    scores = draw.floats(KEYS)
    text = _hashed("linear FP32", layers.linear(weight, bias, x))
    text += _hashed("softmax FP32", layers.softmax(scores))
    text += _hashed("softmax FP32 by reciprocal", layers.softmax(scores, by_reciprocal=True))
    text += _hashed("RMSNorm FP32", layers.rmsnorm(x, 1e-5))
    text += _hashed("RMSNorm FP32 with gains", layers.rmsnorm(x, 1e-5, gain))

    rows = draw.signed(LINEAR_OUT * LINEAR_IN, 8).reshape(LINEAR_OUT, LINEAR_IN)
    small = draw.signed(LINEAR_IN, 8)
    pairs = [(draw.signed(1, 12)[0], draw.word() >> 19) for _ in range(LINEAR_OUT)]
    biases, factors = np.array(pairs, np.int64).T
    stream, q_scores = draw.signed(LINEAR_IN, 18), draw.signed(KEYS, 19)
    totals = rows @ small + biases
    out = byte(layers.requantised(totals, factors, OUTPUT_SHIFT))
    text += _hashed("linear INT8", _bytes(out))
    text += _hashed("linear INT8 with GELU", _bytes(gelu_byte(out)))
    stream[:LINEAR_OUT] += layers.requantised(totals, factors, ADD_SHIFT)
    text += _hashed("linear INT8 added", _words(stream))
    text += _hashed("softmax INT8", _bytes(layers.softmax_bytes(q_scores) - 128))
    return text + _hashed("RMSNorm INT8", _bytes(layers.rmsnorm_bytes(stream, 1 << 16, 28)))


def _line(number: int, next_token: int, words: Array, prompt: str) -> str:
    text = f"{number:2d} next {next_token:02x} logits {fnv(words.tolist()):08x}"
    return f"{text}  {prompt}\n"


def _tokens(prompt: str) -> npt.NDArray[np.int64]:
    return np.array([list(prompt.encode())], np.int64)


def prompts_fp32(model: ByteLm, prompts: Sequence[str]) -> str:
    """Return the text of `bytelm_fp32` without an input; the model is in the program's form."""
    text = ""
    for number, prompt in enumerate(prompts):
        logits = bytelm_fp32.forward(model, _tokens(prompt))[0, -1]
        text += _line(number, int(logits.argmax()), logits.view(np.uint32), prompt)
    return text


def prompts_int8(model: ByteLmInt8, prompts: Sequence[str]) -> str:
    """Return the text of `bytelm_int8` without an input."""
    text = ""
    for number, prompt in enumerate(prompts):
        logits = bytelm_int8.forward(model, _tokens(prompt))[0, -1]
        text += _line(number, int(logits.argmax()), logits & 0xFFFFFFFF, prompt)
    return text


def _continued(
    run: bytelm_fp32.ByteLmFp32 | bytelm_int8.ByteLmIntegers, prompt: str, length: int
) -> str:
    tokens = list(prompt.encode())
    for position in range(length):
        logits = run.step(np.array(tokens[position : position + 1]))
        if position + 1 >= len(tokens):
            tokens.append(int(logits[0].argmax()))
    return bytes(tokens).decode("latin-1") + "\n"


def text_fp32(model: ByteLm, prompt: str) -> str:
    """Return what `bytelm_fp32` prints for an input: it and its continuation, bytes as latin-1."""
    return _continued(bytelm_fp32.ByteLmFp32(model), prompt, model.shape.context)


def text_int8(model: ByteLmInt8, prompt: str) -> str:
    """Return what `bytelm_int8` prints for an input."""
    return _continued(bytelm_int8.ByteLmIntegers(model), prompt, model.shape.context)


def _one_token(run: bytelm_fp32.ByteLmFp32 | bytelm_int8.ByteLmIntegers, table: Array) -> str:
    """Return the first line of a program with ONE_TOKEN, whose cache holds rows of the table."""
    shape = (1, POSITION, run.shape.heads, run.shape.head_dim)
    rows = np.arange(POSITION)
    run.keys[:, :, :POSITION] = table[ord("a") + rows].reshape(shape)
    run.values[:, :, :POSITION] = table[ord("A") + rows].reshape(shape)
    run.position = POSITION
    logits = run.step(np.array([ord("e")]))[0]
    words = logits.view(np.uint32) if logits.dtype == np.float32 else logits & 0xFFFFFFFF
    return f"next {int(logits.argmax()):02x} logits {fnv(words.tolist()):08x}\n"


def one_token_fp32(model: ByteLm) -> str:
    """Return what `bytelm_fp32` prints of the token at position 16, but for its time."""
    return _one_token(bytelm_fp32.ByteLmFp32(model), model.tensors["wte"])


def one_token_int8(model: ByteLmInt8) -> str:
    """Return what `bytelm_int8` prints of the token at position 16, but for its time."""
    return _one_token(bytelm_int8.ByteLmIntegers(model), model.wte)


def mnist(model: DigitsInt8, count: int) -> str:
    """Return the text of `mnist` for the first `count` samples."""
    logits = digits.logits(model, model.images[:count])
    found, text = logits.argmax(axis=1), ""
    for i, (label, digit) in enumerate(zip(model.labels[:count], found, strict=True)):
        text += f"picture {i:2d} of a {label} is a {digit}, logit {logits[i, digit]}\n"
    right = int((found == model.labels[:count]).sum())
    return text + f"{right} of {count} right\n"


class _Accumulator:
    """facc: FMACC and FRSTACC."""

    def __init__(self) -> None:
        self.value = np.float64(0)

    def add(self, a: np.float32, b: np.float32 | float) -> None:
        """Add an exact product."""
        self.value = self.value + np.float64(a) * np.float64(b)

    def take(self) -> np.float32:
        """Return the sum as float32, and start anew."""
        result, self.value = np.float32(self.value), np.float64(0)
        return result


def _decimal(x: np.float32) -> str:
    bits = int(x.view(np.uint32))
    fixed = int(abs(np.float64(x)) * 2**24)
    fraction = (fixed & 0xFFFFFF) * 1000000 >> 24
    return f"{'-' if x < 0 else ''}{fixed >> 24}.{fraction:06d} ({bits:08x})"


def newton() -> str:
    """Return the text of `newton`."""
    facc = _Accumulator()

    def total(*terms: tuple[np.float32, np.float32 | float]) -> np.float32:
        for a, b in terms:
            facc.add(a, b)
        return facc.take()

    text, x = "x^3 - 2x - 5 = 0\n", np.float32(2)
    five, two, three, one = (np.float32(value) for value in (5, 2, 3, 1))
    for _ in range(5):
        square = total((x, x))
        value = total((square, x), (x, -two), (five, -one))
        change = value / total((square, three), (two, -one))
        x = total((x, one), (change, -one))
        text += _decimal(x) + "\n"
    for number in (2.0, 3.0, 0.5, 10.0):
        a, y = np.float32(number), np.float32(0.5)
        for _ in range(8):
            near_one = total((a, total((y, y))))
            y = total((y, total((three, 0.5), (near_one, -0.5))))
        root = inverse_root(np.array([a]))[0]
        text += f"1/sqrt of {_decimal(a)}: {_decimal(y)}, FRSQRT {_decimal(root)}\n"
    return text
