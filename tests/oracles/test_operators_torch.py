# SPDX-License-Identifier: Apache-2.0
"""Operators of the library against torch in float32, written from its own functions.

Real numbers of the graph agree to 1e-4; what golden makes of the integers, and so the chip, lies
within the bound of the operator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

from golden.graph import run
from npu.graph.library import OPERATORS, Size
from npu.graph.library.attention import lengths_of
from npu.graph.library.masks import WINDOW
from npu.planner.operator_plan import BuiltOperator, build_operator
from tb.stimulus.operator_sizes import operator_sizes

Tensors = dict[str, torch.Tensor]
SEEDS = range(12)


class Given:
    """Inputs, parameters and sizes of an operator."""

    def __init__(self, one: BuiltOperator, sizes: Mapping[str, Size]) -> None:
        """Take them from the graph of real numbers."""
        self.values = {name: torch.from_numpy(value) for name, value in one.inputs.items()}
        for name, tensor in one.graph.tensors.items():
            if tensor.data is not None:
                self.values[name] = torch.from_numpy(np.array(tensor.data))
        self.sizes: dict[str, Any] = {**one.operator.sizes, **sizes}

    def __call__(self, name: str) -> torch.Tensor:
        """Return an input or a parameter."""
        return self.values[name]

    def all(self, *names: str) -> tuple[torch.Tensor, ...]:
        """Return several of them."""
        return tuple(self.values[name] for name in names)


def _seen(given: Given, rows: int, keys: int) -> torch.Tensor:
    """Return the mask by its name, from torch's own triangles; a drawn one is a parameter."""
    ones = torch.ones(rows, keys, dtype=torch.bool)
    match given.sizes["mask"]:
        case "causal":
            return torch.tril(ones, diagonal=keys - rows)
        case "window":
            last = keys - rows
            return torch.tril(ones, diagonal=last) & torch.triu(ones, diagonal=last - WINDOW + 1)
        case "random":
            return given("mask").reshape(rows, keys) == 0 if "mask" in given.values else ones
    return ones


def _attended(given: Given, seen: torch.Tensor) -> torch.Tensor:
    query, key, value = given.all("query", "key", "value")
    return functional.scaled_dot_product_attention(
        query, key, value, attn_mask=seen, enable_gqa=query.shape[1] != key.shape[1]
    )


def _attention_scores(given: Given) -> Tensors:
    query, key = given.all("query", "key")
    return {"scores": query @ key.mT / query.shape[-1] ** 0.5}


def _masked_softmax(given: Given) -> Tensors:
    logits = given("logits")
    seen = _seen(given, *logits.shape[-2:])
    return {"weights": torch.softmax(logits.masked_fill(~seen, -torch.inf), -1)}


def _context(given: Given) -> Tensors:
    weights, value = given.all("weights", "value")
    return {"context": weights @ value}


def _attention(given: Given) -> Tensors:
    seen = _seen(given, given("query").shape[2], given("key").shape[2])
    return {"context": _attended(given, seen)}


def _qkv_projection(given: Given) -> Tensors:
    if given.sizes["packed"]:
        parts = (given("x") @ given("w_qkv")).chunk(3, -1)
        return dict(zip(("query", "key", "value"), parts, strict=True))
    return {name: given("x") @ given(f"w_{name}") for name in ("query", "key", "value")}


def _cache_update(given: Given) -> Tensors:
    lengths = lengths_of(given.sizes["heads"], given.sizes["length"], given.sizes["spread"])
    found = {}
    for name in ("key", "value"):
        cache, new = given(f"{name}_cache").clone(), given(f"new_{name}")
        for head, length in enumerate(lengths):
            cache[:, head, length : length + new.shape[2]] = new[:, head]
        found[f"{name}s"] = cache
    return found


def _decode_attention(given: Given) -> Tensors:
    made = _cache_update(given)
    lengths = lengths_of(given.sizes["heads"], given.sizes["length"], given.sizes["spread"])
    query, window = given("query"), given.sizes["window"]
    found = torch.zeros_like(query)
    for head, length in enumerate(lengths):
        for row in range(query.shape[2]):
            end = length + row + 1
            first = max(0, end - window) if window else 0
            key, value = (made[name][:, head, first:end] for name in ("keys", "values"))
            one = query[:, head, row : row + 1]
            found[:, head, row : row + 1] = functional.scaled_dot_product_attention(one, key, value)
    return {"context": found, **made}


def _mlp(given: Given) -> Tensors:
    return {"mlp": functional.relu(given("x") @ given("up")) @ given("down")}


def _gated(given: Given, x: torch.Tensor, linear: int = 0) -> torch.Tensor:
    gate = x @ given("w_gate")
    gate = gate if linear else functional.silu(gate)
    return (x @ given("w_up") * gate) @ given("w_down")


def _swiglu(given: Given) -> Tensors:
    return {"mlp": _gated(given, given("x"), given.sizes["linear"])}


def _silu(given: Given) -> Tensors:
    return {"activated": functional.silu(given("x"))}


def _gelu(given: Given) -> Tensors:
    x = given("x")
    quick = given.sizes["quick"]
    return {"activated": x * torch.sigmoid(1.702 * x) if quick else functional.gelu(x)}


def _bias_add(given: Given) -> Tensors:
    return {"sum": given("x") + given("bias")}


def _residual_add(given: Given) -> Tensors:
    return {"sum": given("x") + given("y")}


def _turned(x: torch.Tensor, position: int = 0) -> torch.Tensor:
    """Rotary embedding in complex numbers."""
    rows, depth = x.shape[-2:]
    waves = 10_000.0 ** (-torch.arange(0, depth, 2, dtype=torch.float64) / depth)
    angles = torch.outer(torch.arange(position, position + rows, dtype=torch.float64), waves)
    whole = torch.complex(*x.to(torch.float64).chunk(2, -1)) * torch.polar(
        torch.ones_like(angles), angles
    )
    return torch.cat([whole.real, whole.imag], -1).to(torch.float32)


def _rope(given: Given) -> Tensors:
    return {"turned": _turned(given("x"), given.sizes["position"])}


def _rmsnorm(given: Given) -> Tensors:
    x = given("x")
    return {"normed": functional.rms_norm(x, x.shape[-1:], given("normed_gain"), 1e-5)}


def _heads(x: torch.Tensor, depth: int) -> torch.Tensor:
    return x.unflatten(-1, (-1, depth)).transpose(1, 2)


def _encoder_block(given: Given) -> Tensors:
    x, depth = given("x"), given.sizes["depth"]
    heads = [_heads(x @ given(f"w_{name}"), depth) for name in ("query", "key", "value")]
    joined = functional.scaled_dot_product_attention(*heads).transpose(1, 2).flatten(2)
    attended = joined @ given("w_out") + given("b_out")
    width = x.shape[-1:]

    def norm(name: str, rows: torch.Tensor) -> torch.Tensor:
        gain, beta = given.all(f"{name}_gain", f"{name}_beta")
        return functional.layer_norm(rows, width, gain, beta, 1e-5)

    middle = norm("middle", x + attended)
    made = functional.relu(middle @ given("up")) @ given("down")
    return {"y": norm("y", middle + made)}


def _decoder_block(given: Given) -> Tensors:
    x, depth = given("x"), given.sizes["depth"]
    width, narrow = (given.sizes[name] * depth for name in ("heads", "groups"))
    normed = functional.rms_norm(x, x.shape[-1:], given("normed_gain"), 1e-5)
    if given.sizes["packed"]:
        parts = (normed @ given("w_qkv")).split((width, narrow, narrow), -1)
    else:
        parts = tuple(normed @ given(f"w_{name}") for name in ("query", "key", "value"))
    query, key, value = (_heads(one, depth) for one in parts)
    rows = x.shape[1]
    joined = functional.scaled_dot_product_attention(
        _turned(query), _turned(key), value, attn_mask=_seen(given, rows, rows), enable_gqa=True
    )
    attended = joined.transpose(1, 2).flatten(2) @ given("w_out") + given("b_out")
    middle = x + attended
    normed = functional.rms_norm(middle, middle.shape[-1:], given("normed_middle_gain"), 1e-5)
    return {"y": middle + _gated(given, normed)}


def _batched_matmul(given: Given) -> Tensors:
    return {"product": torch.bmm(given("a"), given("b"))}


def _convolved(given: Given, groups: int) -> Tensors:
    image, filters = given("x").permute(0, 3, 1, 2), given("filters").permute(3, 2, 0, 1)
    made = functional.conv2d(image, filters, groups=groups)
    return {"image": made.permute(0, 2, 3, 1)}


def _conv(given: Given) -> Tensors:
    return _convolved(given, 1)


def _grouped_conv(given: Given) -> Tensors:
    return _convolved(given, given.sizes["groups"])


def _depthwise_conv(given: Given) -> Tensors:
    return _convolved(given, given.sizes["channels"])


def _narrow_matmul(given: Given) -> Tensors:
    a, b = (x.to(torch.int32) for x in given.all("a", "b"))
    return {"product": a @ b}


def _narrow_scores(given: Given) -> Tensors:
    query, key = (x.to(torch.int32) for x in given.all("query", "key"))
    return {"scores": query @ key.mT}


def _narrow_context(given: Given) -> Tensors:
    weights, value = (x.to(torch.int32) for x in given.all("weights", "value"))
    return {"context": weights @ value}


ORACLES: dict[str, Callable[[Given], Tensors]] = {
    one.__name__.removeprefix("_"): one
    for one in (
        *(_attention_scores, _masked_softmax, _context, _attention, _qkv_projection),
        *(_cache_update, _decode_attention, _mlp, _swiglu, _silu, _gelu, _bias_add),
        *(_residual_add, _rope, _rmsnorm, _encoder_block, _decoder_block, _batched_matmul),
        *(_conv, _grouped_conv, _depthwise_conv, _narrow_matmul, _narrow_scores),
        _narrow_context,
    )
}


def test_every_operator_has_an_oracle() -> None:
    """One function of torch each."""
    assert set(ORACLES) == set(OPERATORS)


@pytest.mark.parametrize("name", OPERATORS)
def test_operator_is_near_torch(name: str) -> None:
    """At random sizes: real numbers to 1e-4, integers within the bound."""
    for seed in SEEDS:
        sizes = operator_sizes(name, np.random.default_rng(seed)) if seed else {}
        where = f"build_operator({name!r}, {sizes}, seed={seed})"
        one = build_operator(name, sizes, seed=seed)
        expected = {key: value.numpy() for key, value in ORACLES[name](Given(one, sizes)).items()}
        found = run(one.fused, one.inputs)
        assert set(expected) == set(found) == set(one.real)
        for key, value in expected.items():
            reach = float(np.abs(value).max())
            np.testing.assert_allclose(
                one.real[key], value, rtol=1e-4, atol=1e-4 * reach, err_msg=where
            )
            # Against torch itself, not against the graph that calibration has seen.
            one.real[key] = value
            assert one.error(key, found[key]) <= one.operator.bound, f"{where}: {key}"
