# SPDX-License-Identifier: Apache-2.0
"""BERT and RoBERTa: learned positions, token types, LayerNorm behind every part, biases, GELU.

Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers" (2018). RoBERTa (Liu et al.,
2019) and XLM-RoBERTa number positions from behind the id of their padding.
"""

from __future__ import annotations

import re
from functools import partial

from weights.architecture import Architecture, Config, Stored
from weights.checkpoint import CheckpointShape
from weights.encoder import LINEARS, EncoderShape
from weights.reference import GELU, GELU_TANH

LAYERS = {
    "attention.self.query": "q",
    "attention.self.key": "k",
    "attention.self.value": "v",
    "attention.output.dense": "o",
    "attention.output.LayerNorm": "norm1",
    "intermediate.dense": "up",
    "output.dense": "down",
    "output.LayerNorm": "norm2",
}
HEADS = re.compile(
    r"embeddings\.(position_ids|token_type_ids)|pooler\.dense\.\w+|(cls|lm_head)\..+"
)
"""What reads the rows of all places, and no encoder has."""


def parse(config: Config, family: str, offset: bool) -> EncoderShape:
    """Return the dimensions; defaults are those of transformers' BertConfig.

    Args:
        config: the content of config.json.
        family: model_type.
        offset: positions begin behind the id of the padding.
    """
    config.fixed("position_embedding_type", "absolute")
    config.fixed("is_decoder", False)
    hidden, heads = config.size("hidden_size", 768), config.size("num_attention_heads", 12)
    if hidden % heads:
        raise config.refusal("hidden_size", f"a multiple of num_attention_heads = {heads}", hidden)
    rows = config.size("max_position_embeddings", 512)
    first = _first(config, rows) if offset else 0
    return EncoderShape(
        family=family,
        norm="layernorm",
        hidden=hidden,
        layers=config.layers("num_hidden_layers", 12),
        heads=heads,
        kv_heads=heads,
        head_dim=hidden // heads,
        ffn=config.size("intermediate_size", 3072),
        vocab=config.size("vocab_size", 50265 if offset else 30522),
        context=rows - first,
        epsilon=config.epsilon("layer_norm_eps", 1e-12),
        activation=config.choice("hidden_act", "gelu", (*GELU, *GELU_TANH)),
        biases=LINEARS,
        tied=True,
        types=config.size("type_vocab_size", 2),
        first=first,
    )


def _first(config: Config, rows: int) -> int:
    """Return the row of the first position."""
    padding = config.content.get("pad_token_id", 1)
    if type(padding) is not int or not 0 <= padding < rows - 1:
        raise config.refusal("pad_token_id", f"int >= 0 and < {rows - 1}", padding)
    return padding + 1


def write(shape: CheckpointShape) -> dict[str, object]:
    """Return the config."""
    assert isinstance(shape, EncoderShape)
    found: dict[str, object] = {
        "hidden_size": shape.hidden,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "intermediate_size": shape.ffn,
        "vocab_size": shape.vocab,
        "max_position_embeddings": shape.first + shape.context,
        "layer_norm_eps": shape.epsilon,
        "hidden_act": shape.activation,
        "type_vocab_size": shape.types,
    }
    return found | ({"pad_token_id": shape.first - 1} if shape.first else {})


def stored(shape: CheckpointShape) -> list[Stored]:
    """Return the tensors."""
    blocks = {
        f"encoder.layer.{layer}.{name}": f"h.{layer}.{part}"
        for layer in range(shape.layers)
        for name, part in LAYERS.items()
    }
    return [
        Stored("embeddings.word_embeddings.weight", ("embed",)),
        Stored("embeddings.position_embeddings.weight", ("positions",)),
        Stored("embeddings.token_type_embeddings.weight", ("types",)),
        *(
            Stored(f"{name}.{kind}", (f"{part}.{kind}",), kind == "weight" and "norm" not in part)
            for name, part in {"embeddings.LayerNorm": "norm0", **blocks}.items()
            for kind in ("weight", "bias")
        ),
    ]


def _architecture(family: str, name: str, prefix: str, *, offset: bool) -> Architecture:
    tasks = ("Model", "ForMaskedLM", *(() if offset else ("ForPreTraining",)))
    return Architecture(
        family=family,
        classes=tuple(f"{name}{task}" for task in tasks),
        prefix=prefix,
        buffers=HEADS,
        layers_field="num_hidden_layers",
        parse=partial(parse, family=family, offset=offset),
        write=write,
        stored=stored,
    )


ENCODERS = (
    _architecture("bert", "Bert", "bert.", offset=False),
    _architecture("roberta", "Roberta", "roberta.", offset=True),
    _architecture("xlm-roberta", "XLMRoberta", "roberta.", offset=True),
)
