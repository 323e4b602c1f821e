# SPDX-License-Identifier: Apache-2.0
"""The dimensions of any transformer by its config.json alone, imported or not.

What is imported is read by its architecture. Of anything else the usual names of the fields are
known, and what a model is made of follows from which of them are there: a norm without a mean
names `rms_norm_eps`, rotary positions have a field of theirs, encoders have token types or patches.
That is enough for sizes and cycles, and for nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from weights.architecture import MAX_LAYERS, MAX_SIZE, Config
from weights.checkpoint import CheckpointError, CheckpointShape, check_generation, shortened
from weights.encoders import ENCODERS
from weights.importer import load_config, load_shape
from weights.shape import Shape
from weights.stored.folder import CONFIG, TEXT

# Encoders of sequence to sequence models come first: of these the encoder is read.
HIDDEN = ("d_model", "hidden_size", "n_embd", "dim")
LAYERS = ("encoder_layers", "num_hidden_layers", "n_layer", "num_layers", "n_layers")
HEADS = ("encoder_attention_heads", "num_attention_heads", "n_head", "num_heads", "n_heads")
KV_HEADS = ("num_key_value_heads", "num_kv_heads", "n_head_kv")
FFN = ("encoder_ffn_dim", "intermediate_size", "ffn_dim", "n_inner", "ffn_hidden_size")
CONTEXT = ("max_source_positions", "max_position_embeddings", "n_positions", "n_ctx", "max_seq_len")
ROTARY = ("rope_theta", "rope_parameters", "rotary_pct", "rotary_dim", "partial_rotary_factor")
GATED = ("silu", "swish")
"""Activations of feed-forwards with a gate."""
PATCHES, TYPES, ENCODER = "patch_size", "type_vocab_size", "encoder_layers"
"""Fields that only encoders have: of pictures, of text, of sequence to sequence."""


@dataclass(frozen=True, slots=True)
class Dimensions:
    """What config.json says of a model.

    Attributes:
        shape: its dimensions.
        tied: the head is the token table.
        encoder: it reads all positions at once and has no head.
        refusal: why it is not imported or not generated from, "" where it is.
    """

    shape: Shape
    tied: bool
    encoder: bool = False
    refusal: str = ""

    def __str__(self) -> str:
        """Say what it is taken for."""
        shape = self.shape
        parts = (
            "an encoder" if self.encoder else "a decoder",
            shape.norm,
            "gated feed-forward" if shape.gated else "feed-forward without gate",
            "rotary positions" if shape.rope else "learned positions",
        )
        return ", ".join(parts)


def load_dimensions(source: str, context: int | None = None) -> Dimensions:
    """Read the dimensions of a model from config.json alone.

    Args:
        source: as of `weights.importer.load_checkpoint`, or config.json itself.
        context: positions, None for those of config.json.

    Raises:
        CheckpointError: no model, a mixture of experts, a dimension that is not there or cannot
            be, or more positions than it has.
    """
    path = Path(source)
    if path.name == CONFIG and path.is_file():
        source = str(path.parent)
    config = load_config(source)
    content, inner = config.content, config.content.get(TEXT)
    if isinstance(inner, dict):
        config = Config(inner, source, {one: f"{CONFIG} {TEXT}.{one}" for one in inner})
    _check_experts(config)
    encoder = next((ENCODERS[one] for one in ENCODERS if one == content.get("model_type")), None)
    try:
        whole = load_shape(source) if encoder is None else encoder.shape(config)
    except CheckpointError as error:
        found = _by_usual_names(config, context)
        refusal = f"not imported yet: {str(error).removeprefix(f'{source}: ')}"
        return replace(found, shape=shortened(source, found.shape, context), refusal=refusal)
    shape = shortened(source, whole, context)
    if encoder is not None:
        refusal = f"not generated from: {encoder.uses}"
        return Dimensions(shape.plain(), tied=True, encoder=True, refusal=refusal)
    return Dimensions(shape.plain(), shape.tied, refusal=_refusal_of_generation(shape))


def _refusal_of_generation(shape: CheckpointShape) -> str:
    """Return why there is no program for a decoder, or ""."""
    try:
        check_generation(shape)
    except CheckpointError as error:
        return f"not generated from yet: {error}"
    return ""


def _check_experts(config: Config) -> None:
    """Refuse a mixture of experts."""
    for field, value in config.content.items():
        if "expert" in field and type(value) is int and value > 1:
            raise config.refusal(field, "1 or none: a mixture of experts is not estimated")


def _size(
    config: Config, names: Sequence[str], default: int | None = None, most: int = MAX_SIZE
) -> int:
    """Return the dimension that the first of some fields gives, at most `most`."""
    name = next((one for one in names if config.content.get(one) is not None), None)
    if name is not None:
        return config.size(name, 0, most)
    if default is None:
        raise CheckpointError(
            f"{config.source}: {config.file}: given none of {', '.join(names)}, allowed one of them"
        )
    return default


def _by_usual_names(config: Config, context: int | None) -> Dimensions:
    """Return the dimensions of a model that is not imported, windows left out."""
    content = config.content
    sequences = ENCODER in content
    encoder = sequences or PATCHES in content or TYPES in content
    if content.get("is_encoder_decoder") and not sequences:
        raise config.refusal("is_encoder_decoder", "False, or an encoder with encoder_layers")
    hidden, heads = _size(config, HIDDEN), _size(config, HEADS)
    one_head = content.get("multi_query") is True and not content.get("new_decoder_architecture")
    kv_heads = 1 if one_head else _size(config, KV_HEADS, heads)
    if heads % kv_heads:
        raise config.refusal(KV_HEADS[0], f"a divisor of {heads} heads", kv_heads)
    if content.get("head_dim") is None and hidden % heads:
        raise config.refusal(HIDDEN[1], f"a multiple of {heads} heads", hidden)
    rms = "rms_norm_eps" in content
    rope = rms or content.get("alibi") is False or any(one in content for one in ROTARY)
    shape = Shape(
        family=str(content.get("model_type")),
        norm="rmsnorm" if rms else "layernorm",
        hidden=hidden,
        layers=_size(config, LAYERS, most=MAX_LAYERS),
        heads=heads,
        kv_heads=kv_heads,
        head_dim=_size(config, ("head_dim",), hidden // heads),
        ffn=_size(config, FFN, 4 * hidden),
        vocab=0 if sequences or PATCHES in content else _size(config, ("vocab_size",)),
        context=_context(config, context),
        rope=rope and not encoder,
        gated=rms or content.get("hidden_act") in GATED,
    )
    return Dimensions(shape, content.get("tie_word_embeddings") is not False, encoder)


def _context(config: Config, given: int | None) -> int:
    """Return the positions of a model: of pictures a patch each, and one for the whole."""
    if PATCHES in config.content:
        return (config.size("image_size", 224) // config.size(PATCHES, 16)) ** 2 + 1
    return _size(config, CONTEXT, given)
