# SPDX-License-Identifier: Apache-2.0
"""The encoder of Whisper: two convolutions over a spectrogram, sine positions, LayerNorm first.

Radford et al., "Robust Speech Recognition via Large-Scale Weak Supervision" (2022). The decoder of
a model is left out.
"""

from __future__ import annotations

import re

from weights.architecture import Architecture, Config, Stored
from weights.checkpoint import CheckpointShape
from weights.signal_encoder import ACTIVATIONS, LINEARS, SignalShape

LAYERS = {
    "self_attn_layer_norm": "norm1",
    "self_attn.q_proj": "q",
    "self_attn.k_proj": "k",
    "self_attn.v_proj": "v",
    "self_attn.out_proj": "o",
    "final_layer_norm": "norm2",
    "fc1": "up",
    "fc2": "down",
}
FRONTS = {f"encoder.{name}": name for name in ("conv1", "conv2")}


def parse(config: Config) -> SignalShape:
    """Return the dimensions; defaults are those of transformers' WhisperConfig."""
    hidden, heads = config.size("d_model", 384), config.size("encoder_attention_heads", 6)
    if hidden % heads:
        raise config.refusal("d_model", f"a multiple of encoder_attention_heads = {heads}", hidden)
    rows = config.size("max_source_positions", 1500)
    return SignalShape(
        family="whisper",
        norm="layernorm",
        hidden=hidden,
        layers=config.layers("encoder_layers", 4),
        heads=heads,
        kv_heads=heads,
        head_dim=hidden // heads,
        ffn=config.size("encoder_ffn_dim", 1536),
        vocab=0,
        context=rows,
        epsilon=1e-5,
        activation=config.choice("activation_function", "gelu", ACTIVATIONS),
        biases=tuple(name for name in LINEARS if name != "k"),
        tied=True,
        signal=(config.size("num_mel_bins", 80), 2 * rows),
    )


def write(shape: CheckpointShape) -> dict[str, object]:
    """Return the config."""
    assert isinstance(shape, SignalShape)
    return {
        "d_model": shape.hidden,
        "encoder_layers": shape.layers,
        "encoder_attention_heads": shape.heads,
        "encoder_ffn_dim": shape.ffn,
        "max_source_positions": shape.context,
        "activation_function": shape.activation,
        "num_mel_bins": shape.signal[0],
        "is_encoder_decoder": True,
    }


def stored(shape: CheckpointShape) -> list[Stored]:
    """Return the tensors."""
    blocks = {
        f"encoder.layers.{layer}.{name}": f"h.{layer}.{part}"
        for layer in range(shape.layers)
        for name, part in LAYERS.items()
    }
    return [
        Stored("encoder.embed_positions.weight", ("positions",)),
        *(
            Stored(
                f"{name}.{kind}",
                (f"{part}.{kind}",),
                kind == "weight" and name in blocks and "norm" not in part,
            )
            for name, part in {**FRONTS, **blocks, "encoder.layer_norm": "norm"}.items()
            for kind in ("weight", "bias")
            if kind == "weight" or not part.endswith(".k")
        ),
    ]


ENCODERS = (
    Architecture(
        family="whisper",
        classes=("WhisperForConditionalGeneration", "WhisperModel"),
        prefix="model.",
        buffers=re.compile(r"decoder\..+|proj_out\.weight"),
        layers_field="encoder_layers",
        parse=parse,
        write=write,
        stored=stored,
        reads="sound",
        options=("is_encoder_decoder",),
    ),
)
