# SPDX-License-Identifier: Apache-2.0
"""The integer references against torch and transformers, whose formulas nobody here wrote.

Needs the optional group `oracles`; run by itself: python -m pytest tests/oracles.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from transformers import (
    AutoModelForCausalLM,
    GPT2Config,
    LlamaConfig,
    MistralConfig,
    PreTrainedConfig,
    Qwen2Config,
)

from golden import decoder, layernorm, softmax
from golden.gelu import GELU_TABLE_MAX_ERROR, gelu_table
from golden.gemm import accumulate, combined, gemm, per_row
from tests.python.golden import golden_float
from tests.python.golden.golden_support import ROPE_THETA, integers, random_model, seeded
from weights.model import QuantizedModel

Array = npt.NDArray[np.float64]


def tensor(x: npt.NDArray[Any]) -> torch.Tensor:
    """Return an array as a float64 tensor."""
    return torch.from_numpy(x.astype(np.float64))


def array(x: torch.Tensor) -> Array:
    """Return a tensor as a float64 array."""
    result: Array = x.detach().numpy().astype(np.float64)
    return result


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint16])
def test_products(dtype: type[np.integer[Any]]) -> None:
    """Sums equal torch's integer product."""
    rng = seeded(800)
    a, b = integers(rng, dtype, (33, 70)), integers(rng, np.int8, (70, 19))
    exact = torch.from_numpy(a.astype(np.int64)) @ torch.from_numpy(b.astype(np.int64))
    assert np.array_equal(combined(accumulate(a, b)), exact.numpy())


def test_softmax_and_context() -> None:
    """Probabilities and unnormalised P.V against torch.softmax of the same scores."""
    rng = seeded(801)
    scores = np.clip(np.rint(rng.normal(0, 150, (64, 64))), -32768, 32767).astype(np.int16)
    v = integers(rng, np.int8, (64, 16))
    mask = torch.ones(64, 64, dtype=torch.bool).tril()
    logits = (tensor(scores) * (np.log(2) / 64)).masked_fill(~mask, -torch.inf)
    p = torch.softmax(logits, dim=-1)
    error = np.abs(softmax.probabilities(scores, causal=True) - 256 * array(p))
    assert error.max() <= softmax.PROBABILITY_MAX_ERROR
    numer, sums = softmax.numerators16(scores, causal=True)
    context = array(p @ tensor(v))
    assert np.abs(gemm(numer, v, per_row(sums)) - context).max() <= 0.5 + 0.0055 * 128


@pytest.mark.parametrize("rms", [False, True])
def test_norms(rms: bool) -> None:
    """LayerNorm and RMSNorm within their bound of torch.nn.functional."""
    rng = seeded(802)
    x = np.clip(np.rint(rng.normal(300, 4000, (50, 64))), -32768, 32767).astype(np.int16)
    gain = rng.integers(9000, 27000, 64).astype(np.uint16)
    shift, bias = np.full(64, 23, np.uint8), integers(rng, np.int8, (64,)) // 8
    eps_term = 40960
    eps = eps_term / 64**2
    weight = 2.0**14 * gain.astype(np.float64) / 2.0**23
    functional = torch.nn.functional
    if rms:
        plain = functional.rms_norm(tensor(x), (64,), eps=eps)
        y = array(plain * tensor(weight) + tensor(bias))
    else:
        plain = functional.layer_norm(tensor(x), (64,), eps=eps)
        y = array(functional.layer_norm(tensor(x), (64,), tensor(weight), tensor(bias), eps))
    result = layernorm.norm8(x, eps_term, gain, shift, bias.astype(np.int8), rms=rms)
    bound = layernorm.output_bound(2**14 * array(plain), gain, shift)
    assert np.all(np.abs(result - np.clip(y, -128, 127)) <= bound)


def test_gelu() -> None:
    """Every table entry against torch's exact GELU."""
    x = np.arange(256, dtype=np.uint8).view(np.int8)
    exact = array(torch.nn.functional.gelu(tensor(x) * 0.03)) / 0.02
    error = np.abs(gelu_table(0.03, 0.02) - np.clip(exact, -128, 127))
    assert error.max() <= GELU_TABLE_MAX_ERROR


MODELS: list[dict[str, Any]] = [
    {"family": "gpt2"},
    {"family": "llama", "kv_heads": 2, "ffn": 100},
    {"family": "llama", "heads": 2, "head_dim": 128},
    {"family": "mistral", "kv_heads": 1, "head_dim": 32, "window": 5},
    {"family": "mistral", "window": 0},
    {"family": "qwen2", "heads": 7, "kv_heads": 1, "head_dim": 16, "hidden": 112},
    {"family": "qwen2", "kv_heads": 2, "vocab": 301},
]


def real_config(model: QuantizedModel) -> PreTrainedConfig:
    """Return the config of the real decoder that the integer model stands for."""
    eps = golden_float.norm(model.final_norm, model.scales["residual"]).eps
    if model.shape.family == "gpt2":
        return GPT2Config(
            vocab_size=model.shape.vocab,
            n_positions=model.shape.context,
            n_embd=model.shape.hidden,
            n_layer=model.shape.layers,
            n_head=model.shape.heads,
            n_inner=model.shape.ffn,
            activation_function="gelu",
            layer_norm_epsilon=eps,
            tie_word_embeddings=False,
        )
    kinds = {"llama": LlamaConfig, "mistral": MistralConfig, "qwen2": Qwen2Config}
    options: dict[str, Any] = {
        "vocab_size": model.shape.vocab,
        "max_position_embeddings": model.shape.context,
        "hidden_size": model.shape.hidden,
        "num_hidden_layers": model.shape.layers,
        "num_attention_heads": model.shape.heads,
        "num_key_value_heads": model.shape.kv_heads,
        "intermediate_size": model.shape.ffn,
        "rms_norm_eps": eps,
        "rope_parameters": {"rope_type": "default", "rope_theta": ROPE_THETA},
        "tie_word_embeddings": False,
    }
    if model.shape.family == "mistral":
        options["sliding_window"] = model.shape.window or None
    if model.shape.family != "qwen2":
        options["head_dim"] = model.shape.head_dim
    config: PreTrainedConfig = kinds[model.shape.family](**options, attn_implementation="eager")
    return config


def transformers_model(model: QuantizedModel) -> torch.nn.Module:
    """Return the real decoder that the integer model stands for, in float64."""
    network: torch.nn.Module = AutoModelForCausalLM.from_config(real_config(model))
    network.double().eval()
    residual, plain = model.scales["residual"], model.shape.family == "gpt2"
    embedding = "transformer.wte" if plain else "model.embed_tokens"
    state: dict[str, npt.NDArray[Any]] = {
        f"{embedding}.weight": model.wte.astype(np.float64) * residual
    }
    if model.wpe is not None:
        state["transformer.wpe.weight"] = model.wpe.astype(np.float64) * residual

    def put(name: str, part: golden_float.FloatNorm | golden_float.FloatLinear) -> None:
        turned = not plain and isinstance(part, golden_float.FloatLinear)
        state[f"{name}.weight"] = part.weight.T if turned else part.weight
        if f"{name}.bias" in network.state_dict():
            state[f"{name}.bias"] = part.bias
        else:
            assert not part.bias.any(), name

    for layer in range(model.shape.layers):
        block = golden_float.block(model, layer)
        linears = block.linears
        if plain:
            at = f"transformer.h.{layer}"
            qkv = [linears[name] for name in "qkv"]
            joined = golden_float.FloatLinear(
                np.concatenate([part.weight for part in qkv], axis=1),
                np.concatenate([part.bias for part in qkv]),
            )
            names = {"proj": "attn.c_proj", "up": "mlp.c_fc", "down": "mlp.c_proj"}
            put(f"{at}.attn.c_attn", joined)
            put(f"{at}.ln_1", block.norm1)
            put(f"{at}.ln_2", block.norm2)
        else:
            at = f"model.layers.{layer}"
            names = {name: f"self_attn.{name}_proj" for name in "qkv"}
            names |= {"proj": "self_attn.o_proj"}
            names |= {name: f"mlp.{name}_proj" for name in ("gate", "up", "down")}
            put(f"{at}.input_layernorm", block.norm1)
            put(f"{at}.post_attention_layernorm", block.norm2)
        for name, theirs in names.items():
            put(f"{at}.{theirs}", linears[name])
    rms = model.shape.norm == "rmsnorm"
    final = "transformer.ln_f" if plain else "model.norm"
    put(final, golden_float.norm(model.final_norm, residual, rms=rms))
    head = golden_float.linear(model.head, 1.0, model.scales["logits"])
    assert not head.bias.any()
    state["lm_head.weight"] = head.weight.T
    network.load_state_dict({name: tensor(value) for name, value in state.items()})
    return network


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("length", [1, 17, 128])
def test_whole_network(kind: dict[str, Any], length: int) -> None:
    """The integer network follows transformers' decoder, and our float64 network equals it."""
    model = random_model(803, layers=3, **kind)
    ids: list[int] = seeded(804).integers(0, model.shape.vocab, length).tolist()
    with torch.no_grad():
        result = transformers_model(model)(torch.tensor([ids]), output_hidden_states=True)
    logits = array(result.logits[0])
    streams, ours = golden_float.forward(model, ids)
    # transformers computes the angles in float32.
    exact = 1e-9 if model.rope is None else 2e-4
    assert np.abs(ours - logits).max() <= exact * logits.std()
    trace = decoder.forward_trace(model, ids)
    residual = model.scales["residual"]
    limit = 0.16 if length > 1 else 0.3
    for layer in range(model.shape.layers):
        real = array(result.hidden_states[layer][0])
        assert np.abs(streams[layer] - real).max() <= exact * real.std()
        error = np.sqrt(np.mean((trace.residuals[layer] * residual - real) ** 2)) / real.std()
        assert error < (limit if layer else 1e-9)
    unit = model.scales["logits"]
    assert np.sqrt(np.mean((trace.logits * unit - logits) ** 2)) / logits.std() < limit
    agreement = np.mean(trace.logits.argmax(axis=1) == logits.argmax(axis=1))
    # Of 17 positions one is 6 %.
    assert agreement >= {1: 0.0, 17: 0.7, 128: 0.8}[length], agreement
