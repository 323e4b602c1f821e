# SPDX-License-Identifier: Apache-2.0
"""The network with its own K/V cache gives the bits of a full recomputation; generation ends."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from golden import decoder
from golden.decoder import ContextFullError
from golden.session import GoldenSession, generate, greedy
from tests.python.golden.golden_support import random_model, seeded
from weights.model import QuantizedModel

Wrong = Any
"""A value of the wrong type, which the types of the package would refuse before it runs."""
CONTEXT = 40
MODELS: list[dict[str, Any]] = [
    {"family": "gpt2", "vocab": 257},
    {"family": "gpt2", "heads": 3, "hidden": 48, "window": 6, "vocab": 31},
    {"family": "llama", "heads": 4, "kv_heads": 4, "vocab": 509},
    {"family": "llama", "heads": 8, "kv_heads": 2, "head_dim": 64},
    {"family": "llama", "heads": 2, "kv_heads": 1, "head_dim": 128, "hidden": 48},
    {"family": "mistral", "heads": 4, "kv_heads": 2, "head_dim": 32, "window": 7},
    {"family": "mistral", "heads": 4, "kv_heads": 1, "window": 1},
    {"family": "mistral", "heads": 2, "kv_heads": 2, "window": CONTEXT - 1},
    {"family": "qwen2", "heads": 7, "kv_heads": 1, "head_dim": 16, "vocab": 301},
    {"family": "qwen2", "heads": 14, "kv_heads": 2, "head_dim": 16, "hidden": 80},
]
NAMES = [" ".join(str(value) for value in kind.values()) for kind in MODELS]


@cache
def model_of(number: int) -> QuantizedModel:
    """Return one of MODELS."""
    return random_model(900 + number, ffn=96, context=CONTEXT, **MODELS[number])


def tokens(model: QuantizedModel, length: int) -> list[int]:
    """Return random token ids over the whole vocabulary."""
    ids: list[int] = seeded(length).integers(0, model.shape.vocab, length).tolist()
    return ids


def assert_same(given: npt.NDArray[np.int16], wanted: npt.NDArray[np.int16]) -> None:
    """Compare logits bit for bit."""
    assert given.dtype == wanted.dtype == np.int16
    assert np.array_equal(given, wanted)


@pytest.mark.parametrize("number", range(len(MODELS)), ids=NAMES)
def test_prompts_of_every_length(number: int) -> None:
    """A prompt of 1..context tokens, then steps up to the context's end, against recomputation."""
    model = model_of(number)
    ids = tokens(model, CONTEXT)
    wanted = decoder.forward(model, ids)
    for prompt in range(1, CONTEXT + 1):
        session = GoldenSession(model)
        assert_same(session.prefill(ids[:prompt]), wanted[:prompt])
        assert session.length == prompt
        for position in range(prompt, min(CONTEXT, prompt + 4)):
            assert_same(session.step(ids[position]), wanted[position])


@pytest.mark.parametrize("number", range(len(MODELS)), ids=NAMES)
def test_all_steps(number: int) -> None:
    """The whole context token by token, and in pieces of any length."""
    model = model_of(number)
    ids = tokens(model, CONTEXT)
    wanted = decoder.forward_trace(model, ids)
    single, pieces = GoldenSession(model), GoldenSession(model)
    for position, token in enumerate(ids):
        assert_same(single.step(token), wanted.logits[position])
    for start, end in ((0, 1), (1, 17), (17, 33), (33, 35), (35, CONTEXT)):
        assert_same(pieces.prefill(ids[start:end]), wanted.logits[start:end])
    for session in (single, pieces):
        for layer, (seen, block) in enumerate(zip(session.cache, wanted.blocks, strict=True)):
            assert np.array_equal(seen.k, block.keys), layer
            assert np.array_equal(seen.v, block.v), layer


@pytest.mark.parametrize("number", range(len(MODELS)), ids=NAMES)
def test_every_tensor_of_a_step(number: int) -> None:
    """A step's tensors are the rows of a full recomputation's, all keys included."""
    model = model_of(number)
    ids = tokens(model, 23)
    session = GoldenSession(model)
    session.prefill(ids[:20])
    step, whole = session.extend(ids[20:]), decoder.forward_trace(model, ids)
    for given, wanted in zip(step.blocks, whole.blocks, strict=True):
        for name, tensor in given.tensors().items():
            full = wanted.tensors()[name]
            rows = full[:, 20:] if name in ("scores", "numer", "sums") else full[20:]
            assert tensor.dtype == full.dtype
            assert np.array_equal(tensor, rows), name
    assert np.array_equal(step.final, whole.final[20:])


@pytest.mark.parametrize("number", range(len(MODELS)), ids=NAMES)
def test_the_past_matters(number: int) -> None:
    """Another token before gives other logits, unless a window of one hides it."""
    model = model_of(number)
    ids = tokens(model, 10)
    first, second = GoldenSession(model), GoldenSession(model)
    first.prefill(ids[:-1])
    second.prefill([*ids[:-2], (ids[-2] + 1) % model.shape.vocab])
    same = np.array_equal(first.step(ids[-1]), second.step(ids[-1]))
    assert same == (model.shape.window == 1)


@pytest.mark.parametrize("number", range(len(MODELS)), ids=NAMES)
def test_generation(number: int) -> None:
    """Greedy tokens are those of recomputing everything for each of them; EOS ends them."""
    model = model_of(number)
    ids = tokens(model, 5)
    sequence = list(ids)
    for _ in range(12):
        sequence.append(int(decoder.forward(model, sequence)[-1].argmax()))
    produced = sequence[5:]
    assert generate(model, ids, 12) == produced
    assert generate(model, ids, 1) == produced[:1]
    for eos in set(produced):
        assert generate(model, ids, 12, eos) == produced[: produced.index(eos) + 1]
    unused = next(token for token in range(model.shape.vocab) if token not in produced)
    assert generate(model, ids, 12, unused) == produced


def test_lowest_token_of_equals() -> None:
    """Ties go to the lowest id, in `greedy` and in a model whose channels are all alike."""
    assert greedy(np.array([3, 7, -1, 7], np.int16)) == 1
    assert greedy(np.full(5, -32768, np.int16)) == 0
    model = model_of(0)
    head = replace(
        model.head, weight=np.repeat(model.head.weight[:, :1], model.shape.vocab, axis=1)
    )
    head = replace(head, mult=np.full_like(head.mult, 1 << 14), shift=np.full_like(head.shift, 24))
    assert generate(replace(model, head=head), [256], 3) == [0, 0, 0]


def test_up_to_the_last_position() -> None:
    """A context holds prompt and all tokens but the last; one more is refused with numbers."""
    model = model_of(3)
    ids = tokens(model, 30)
    produced = generate(model, ids, 11)
    assert len(produced) == 11
    with pytest.raises(ContextFullError) as caught:
        generate(model, ids, 12)
    assert str(caught.value) == (
        "generate: context full: given a prompt of 30 and 12 tokens to produce, allowed at most 11 "
        "with a context of 40"
    )
    assert list(caught.value.produced) == produced
    assert generate(model, ids, 12, produced[-1])[-1] == produced[-1]
    assert len(generate(model, tokens(model, CONTEXT), 1)) == 1


@pytest.mark.parametrize(
    ("ids", "count", "message"),
    [
        ([], 3, r"embed: given ids of shape \(0,\) at position 0, allowed 1 or more ids"),
        ([1, 256], 3, r"embed: given ids 1..256, allowed 0..255"),
        ([-1], 3, r"embed: given ids -1..-1, allowed 0..255"),
        ([1.5], 3, r"embed: given ids of dtype float64, allowed integers"),
        (
            range(41),
            3,
            r"embed: context full: given 41 ids at position 0, allowed at most 40 of 40",
        ),
        ([1], 0, r"generate: count: given 0, allowed 1 and more"),
        ([1], True, r"generate: count: given True, allowed 1 and more"),
        ([1], 2.0, r"generate: count: given 2.0, allowed 1 and more"),
    ],
)
def test_refusals(ids: Wrong, count: Wrong, message: str) -> None:
    """Prompts that are none or too long, unknown tokens and counts below one."""
    with pytest.raises(ValueError, match=message):
        generate(model_of(3), ids, count)


def test_a_refused_piece_changes_nothing() -> None:
    """A session goes on after an error as if it had not been asked."""
    model = model_of(5)
    ids = tokens(model, CONTEXT)
    session = GoldenSession(model)
    session.prefill(ids[:37])
    with pytest.raises(ContextFullError, match=r"given 4 ids at position 37, allowed at most 3 of"):
        session.prefill(ids[:4])
    with pytest.raises(ValueError, match=r"given ids 256..256, allowed 0..255"):
        session.step(256)
    assert_same(session.prefill(ids[37:]), decoder.forward(model, ids)[37:])
    with pytest.raises(ContextFullError, match=r"context full: all 40 positions are taken"):
        session.step(0)
