# SPDX-License-Identifier: Apache-2.0
"""DistilBERT: BERT without token types, of half as many layers (Sanh et al., 2019)."""

from __future__ import annotations

import re

from weights.architecture import Architecture, Config, Stored
from weights.checkpoint import CheckpointShape
from weights.encoder import LINEARS, EncoderShape
from weights.reference import GELU, GELU_TANH

LAYERS = {
    "attention.q_lin": "q",
    "attention.k_lin": "k",
    "attention.v_lin": "v",
    "attention.out_lin": "o",
    "sa_layer_norm": "norm1",
    "ffn.lin1": "up",
    "ffn.lin2": "down",
    "output_layer_norm": "norm2",
}


def parse(config: Config) -> EncoderShape:
    """Return the dimensions; defaults are those of transformers' DistilBertConfig."""
    hidden, heads = config.size("dim", 768), config.size("n_heads", 12)
    if hidden % heads:
        raise config.refusal("dim", f"a multiple of n_heads = {heads}", hidden)
    return EncoderShape(
        family="distilbert",
        norm="layernorm",
        hidden=hidden,
        layers=config.layers("n_layers", 6),
        heads=heads,
        kv_heads=heads,
        head_dim=hidden // heads,
        ffn=config.size("hidden_dim", 3072),
        vocab=config.size("vocab_size", 30522),
        context=config.size("max_position_embeddings", 512),
        epsilon=1e-12,
        activation=config.choice("activation", "gelu", (*GELU, *GELU_TANH)),
        biases=LINEARS,
        tied=True,
    )


def write(shape: CheckpointShape) -> dict[str, object]:
    """Return the config."""
    return {
        "dim": shape.hidden,
        "n_layers": shape.layers,
        "n_heads": shape.heads,
        "hidden_dim": shape.ffn,
        "vocab_size": shape.vocab,
        "max_position_embeddings": shape.context,
        "activation": shape.activation,
    }


def stored(shape: CheckpointShape) -> list[Stored]:
    """Return the tensors."""
    blocks = {
        f"transformer.layer.{layer}.{name}": f"h.{layer}.{part}"
        for layer in range(shape.layers)
        for name, part in LAYERS.items()
    }
    return [
        Stored("embeddings.word_embeddings.weight", ("embed",)),
        Stored("embeddings.position_embeddings.weight", ("positions",)),
        *(
            Stored(f"{name}.{kind}", (f"{part}.{kind}",), kind == "weight" and "norm" not in part)
            for name, part in {"embeddings.LayerNorm": "norm0", **blocks}.items()
            for kind in ("weight", "bias")
        ),
    ]


ENCODERS = (
    Architecture(
        family="distilbert",
        classes=("DistilBertModel", "DistilBertForMaskedLM"),
        prefix="distilbert.",
        buffers=re.compile(r"embeddings\.position_ids|vocab_\w+\.\w+"),
        layers_field="n_layers",
        parse=parse,
        write=write,
        stored=stored,
    ),
)
