# SPDX-License-Identifier: Apache-2.0
"""ViT and DeiT: patches of a picture as rows, learned positions, LayerNorm before every part.

Dosovitskiy et al., "An Image is Worth 16x16 Words" (2020). DeiT (Touvron et al., 2021) has a second
learned row, which a teacher has trained.
"""

from __future__ import annotations

import re
from functools import partial

from weights.architecture import Architecture, Config, Stored
from weights.checkpoint import CheckpointShape
from weights.signal_encoder import ACTIVATIONS, LINEARS, SignalShape

LAYERS = {
    "layernorm_before": "norm1",
    "attention.attention.query": "q",
    "attention.attention.key": "k",
    "attention.attention.value": "v",
    "attention.output.dense": "o",
    "layernorm_after": "norm2",
    "intermediate.dense": "up",
    "output.dense": "down",
}
TOKENS = ("embeddings.cls_token", "embeddings.distillation_token")
PATCHES = "embeddings.patch_embeddings.projection"
HEADED = "ForImageClassification"


def parse(config: Config, family: str, tokens: int) -> SignalShape:
    """Return the dimensions; defaults are those of transformers' ViTConfig.

    Args:
        config: the content of config.json.
        family: model_type.
        tokens: learned rows in front.
    """
    hidden, heads = config.size("hidden_size", 768), config.size("num_attention_heads", 12)
    if hidden % heads:
        raise config.refusal("hidden_size", f"a multiple of num_attention_heads = {heads}", hidden)
    size, patch = config.size("image_size", 224), config.size("patch_size", 16)
    if size % patch:
        raise config.refusal("image_size", f"a multiple of patch_size = {patch}", size)
    config.fixed("pooler_act", "tanh")
    headed = any(name.endswith(HEADED) for name in config.content.get("architectures") or ())
    unbiased = () if config.flag("qkv_bias", True) else ("q", "k", "v")
    return SignalShape(
        family=family,
        norm="layernorm",
        hidden=hidden,
        layers=config.layers("num_hidden_layers", 12),
        heads=heads,
        kv_heads=heads,
        head_dim=hidden // heads,
        ffn=config.size("intermediate_size", 3072),
        vocab=0,
        context=tokens + (size // patch) ** 2,
        epsilon=config.epsilon("layer_norm_eps", 1e-12),
        activation=config.choice("hidden_act", "gelu", ACTIVATIONS),
        biases=tuple(name for name in LINEARS if name not in unbiased),
        tied=True,
        signal=(config.size("num_channels", 3), size, size),
        patch=patch,
        tokens=tokens,
        pooled=0 if headed else config.optional_size("pooler_output_size", None) or hidden,
        labels=_labels(config) if headed else 0,
    )


def _labels(config: Config) -> int:
    """Return the classes of a head: transformers leaves two of them out of config.json."""
    names = config.content.get("id2label")
    if names is None:
        return config.size("num_labels", 2)
    if not isinstance(names, dict) or not names:
        raise config.refusal("id2label", "a map from number to label")
    return len(names)


def write(shape: CheckpointShape) -> dict[str, object]:
    """Return the config."""
    assert isinstance(shape, SignalShape)
    found: dict[str, object] = {
        "hidden_size": shape.hidden,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "intermediate_size": shape.ffn,
        "layer_norm_eps": shape.epsilon,
        "hidden_act": shape.activation,
        "qkv_bias": "q" in shape.biases,
        "num_channels": shape.signal[0],
        "image_size": shape.signal[1],
        "patch_size": shape.patch,
    }
    if shape.labels:
        labels = {str(number): f"LABEL_{number}" for number in range(shape.labels)}
        name = "ViT" if shape.family == "vit" else "DeiT"
        found |= {"architectures": [f"{name}{HEADED}"], "id2label": labels}
    return found | ({"pooler_output_size": shape.pooled} if shape.pooled else {})


def stored(shape: CheckpointShape) -> list[Stored]:
    """Return the tensors."""
    assert isinstance(shape, SignalShape)
    blocks = {
        f"encoder.layer.{layer}.{name}": f"h.{layer}.{part}"
        for layer in range(shape.layers)
        for name, part in LAYERS.items()
    }
    ends = {"pooler.dense": "pooler"} if shape.pooled else {}
    ends |= {"classifier": "head"} if shape.labels else {}
    return [
        *(Stored(TOKENS[i], (f"token.{i}",), within=1) for i in range(shape.tokens)),
        Stored("embeddings.position_embeddings", ("positions",), within=1),
        *(Stored(f"{PATCHES}.{kind}", (f"patch.{kind}",)) for kind in ("weight", "bias")),
        *(
            Stored(f"{name}.{kind}", (f"{part}.{kind}",), kind == "weight" and "norm" not in part)
            for name, part in {**blocks, "layernorm": "norm", **ends}.items()
            for kind in ("weight", "bias")
            if kind == "weight" or part[-1] not in "qkv" or "q" in shape.biases
        ),
    ]


def _architecture(family: str, name: str, tokens: int) -> Architecture:
    return Architecture(
        family=family,
        classes=(f"{name}Model", f"{name}{HEADED}"),
        prefix=f"{family}.",
        buffers=re.compile(r"embeddings\.mask_token"),
        layers_field="num_hidden_layers",
        parse=partial(parse, family=family, tokens=tokens),
        write=write,
        stored=stored,
        reads="pictures",
    )


ENCODERS = (_architecture("vit", "ViT", 1), _architecture("deit", "DeiT", 2))
