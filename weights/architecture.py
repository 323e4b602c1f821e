# SPDX-License-Identifier: Apache-2.0
"""What a file of weights/architectures says about one architecture, and the tools to say it with.

An architecture is known once weights/architectures/NAME.py defines ARCHITECTURE; nothing else
knows any architecture by name.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from weights.checkpoint import (
    CheckpointError,
    CheckpointShape,
    Float32,
    Group,
    Tensors,
    expected_tensors,
    in_line,
)

Factors = Mapping[str, float | npt.NDArray[np.float64]]
"""Numbers, or one for every column, by parts of a Checkpoint."""

MAX_SIZE = 1 << 24
"""The largest dimension of a config; what a chip takes is less and is the compiler's business."""
MAX_LAYERS = 1024
"""The most layers of a config: the deepest models have about two hundred, and DeepNet a thousand.

A damaged number is refused here, for what is made of each layer takes time and memory.
"""
FULL, SLIDING = "full_attention", "sliding_attention"
"""Kinds of attention by layer."""
NEUTRAL: dict[str, tuple[object, ...]] = {
    "add_cross_attention": (False,),
    "alibi": (False,),
    "attention_chunk_size": (None,),
    "attention_multiplier": (None,),
    "attn_logit_softcapping": (None,),
    "clip_qkv": (None,),
    "embedding_multiplier": (None, 1),
    "final_logit_softcapping": (None,),
    "is_encoder_decoder": (False,),
    "logit_scale": (None, 1),
    "logits_scaling": (None, 1),
    "no_rope_layers": (None,),
    "num_experts": (None,),
    "num_local_experts": (None,),
    "qk_layernorm": (False,),
    "quantization_config": (None,),
    "query_pre_attn_scalar": (None,),
    "residual_multiplier": (None, 1),
    "use_bidirectional_attention": (False,),
    "use_qk_norm": (False,),
}
"""Options of decoders that change the computation, and the values with which they do not."""


class Config:
    """The content of config.json; what is not allowed is refused with field, given and allowed.

    Every method names the default that transformers gives the field if it is absent.
    """

    def __init__(
        self,
        content: dict[str, Any],
        source: str,
        places: dict[str, str] | None = None,
        file: str = "config.json",
    ) -> None:
        """Take the content.

        Args:
            content: of config.json, or made of what stands in its place.
            source: what messages call the checkpoint.
            places: what they call a field that is not from there.
            file: what they call the place of all other fields.
        """
        self.content = content
        self.source = source
        self.places = places or {}
        self.file = file

    def place(self, field: str) -> str:
        """Return what messages call a field."""
        return self.places.get(field, f"{self.file} {field}")

    def refusal(self, field: str, allowed: str, given: object = None) -> CheckpointError:
        """Return the error for a field; `given` replaces the value of config.json."""
        shown = self.content.get(field) if given is None else given
        return CheckpointError(
            f"{self.source}: {in_line(self.place(field))}: given {shown!r}, allowed {allowed}"
        )

    def size(self, field: str, default: int, most: int = MAX_SIZE) -> int:
        """Return a dimension, 1 to `most`."""
        given = self.content.get(field, default)
        if type(given) is not int or not 1 <= given <= most:
            raise self.refusal(field, f"int >= 1 and <= {most}", given)
        return given

    def layers(self, field: str, default: int) -> int:
        """Return the number of layers, 1 to MAX_LAYERS."""
        return self.size(field, default, MAX_LAYERS)

    def optional_size(self, field: str, default: int | None) -> int | None:
        """Return a dimension that may be null."""
        if self.content.get(field, default) is None:
            return None
        return self.size(field, default or 0)

    def epsilon(self, field: str, default: float) -> float:
        """Return the epsilon of the norms."""
        given = self.content.get(field, default)
        if isinstance(given, bool) or not isinstance(given, int | float) or not 0 < given < 1:
            raise self.refusal(field, "a number between 0 and 1", given)
        return float(given)

    def number(self, field: str, default: float) -> float:
        """Return a factor, a number above 0."""
        given = self.content.get(field, default)
        if type(given) not in (int, float) or not 0 < given < math.inf:
            raise self.refusal(field, "a number above 0", given)
        return float(given)

    def cap(self, field: str, default: float) -> float:
        """Return a number above 0, 0 where it is null."""
        return (
            0.0 if self.content.get(field, default or None) is None else self.number(field, default)
        )

    def flag(self, field: str, default: bool) -> bool:
        """Return a choice between two."""
        given = self.content.get(field, default)
        if not isinstance(given, bool):
            raise self.refusal(field, "True or False", given)
        return given

    def choice(self, field: str, default: str, allowed: tuple[str, ...]) -> str:
        """Return one of several names."""
        given = self.content.get(field, default)
        if given not in allowed:
            raise self.refusal(field, str(list(allowed)), given)
        return str(given)

    def fixed(self, field: str, *allowed: object) -> None:
        """Refuse an option unless it is absent or has one of the values allowed."""
        given = self.content.get(field, allowed[0])
        if not any(type(given) is type(one) and given == one for one in _spelled(allowed)):
            raise self.refusal(field, " or ".join(map(repr, allowed)), given)

    def layer_types(self, layers: int) -> list[str] | None:
        """Return the kind of attention that layer_types gives to each layer, None if absent."""
        given = self.content.get("layer_types")
        if given is None:
            return None
        kinds = given if isinstance(given, list) else []
        if len(kinds) != layers or any(kind not in (FULL, SLIDING) for kind in kinds):
            raise self.refusal("layer_types", f"{layers} of {[FULL, SLIDING]}")
        return kinds


def _spelled(values: tuple[object, ...]) -> tuple[object, ...]:
    """Return the values of an option with an integer also as a float, and None for False."""
    floats = tuple(float(one) for one in values if type(one) is int)
    return (*values, *floats, *((None,) if False in values else ()))


@dataclass(frozen=True, slots=True)
class Stored:
    """A tensor of a file and the tensors of a Checkpoint that it holds.

    Attributes:
        name: in the file, without the architecture's prefix.
        parts: names in the Checkpoint; several lie beside one another along the last axis.
        transposed: a matrix is (out, in), as torch.nn.Linear has it.
        order: which column of the file, or element of a vector, each column of the parts is; None:
            as they lie.
        skipped: rows in front that stand for nothing.
        within: axes of size 1 in front of all others.
        offset: is added to what the file has.
        copies: further tensors of the Checkpoint, each the same as all parts.
    """

    name: str
    parts: tuple[str, ...]
    transposed: bool = False
    order: npt.NDArray[np.int64] | None = field(default=None, compare=False)
    skipped: int = 0
    within: int = 0
    offset: float = 0.0
    copies: tuple[str, ...] = ()

    def size(self, expected: Mapping[str, tuple[int, ...]]) -> tuple[int, ...]:
        """Return the shape in the file, from the shapes of the parts."""
        sizes = [expected[part] for part in self.parts]
        whole = (*sizes[0][:-1], sum(size[-1] for size in sizes))
        if self.skipped:
            whole = (whole[0] + self.skipped, *whole[1:])
        return (1,) * self.within + (whole[::-1] if self.transposed else whole)

    def read(self, stored: Float32, expected: Mapping[str, tuple[int, ...]]) -> Group:
        """Return the tensors of a Checkpoint of that in the file."""
        stored = stored.reshape(stored.shape[self.within :])
        whole = (stored.T if self.transposed else stored)[self.skipped :]
        if self.order is not None:
            whole = whole[..., self.order]
        if self.offset:
            whole = whole + np.float32(self.offset)
        ends = np.cumsum([expected[part][-1] for part in self.parts])[:-1]
        found = dict(zip(self.parts, np.split(whole, ends, axis=-1), strict=True))
        return found | dict.fromkeys(self.copies, whole)

    def written(self, tensors: Tensors) -> Float32:
        """Return the tensor in the file.

        Raises:
            ValueError: a copy is another tensor.
        """
        whole = np.concatenate([tensors[part] for part in self.parts], axis=-1)
        for name in self.copies:
            if not np.array_equal(tensors[name], whole):
                raise ValueError(f"{name}: given another tensor, allowed {self.parts[0]}'s")
        if self.offset:
            whole = whole - np.float32(self.offset)
        if self.order is not None:
            whole = whole[..., np.argsort(self.order)]
        gone = np.zeros((self.skipped, *whole.shape[1:]), np.float32)
        whole = np.concatenate([gone, whole]) if self.skipped else whole
        whole = np.ascontiguousarray(whole.T if self.transposed else whole)
        return whole.reshape((1,) * self.within + whole.shape)


@dataclass(frozen=True, slots=True)
class GgufForm:
    """How GGUF files hold an architecture; names of tensors are known to the package gguf.

    Attributes:
        fields: of config.json, by keys of metadata without the architecture's name.
        name: what general.architecture has; "" for the family.
        marked: a key that tells it from another architecture with the same name.
        optional: keys that may be missing.
        fixed: values that a key may have, where only some are computed.
        ignored: keys that change nothing.
        present: fields of config.json that are true, each with a tensor, if that is there.
        absent: fields that are true if it is not.
        completed: more fields, or others instead, made of the fields that were found; those may be
            of any type yet.
        rotary: positions are rotated, and the fields of heads are those of LLaMA.
        partial: fewer lanes of a head than all may be rotated.
        permuted: rows of q and k have the lanes of a rotary pair side by side.
        stored: the tensors under their names in folders, where converters lay them out otherwise.
    """

    fields: Mapping[str, str]
    name: str = ""
    marked: str = ""
    optional: tuple[str, ...] = ("vocab_size",)
    fixed: Mapping[str, tuple[object, ...]] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()
    present: tuple[tuple[str, str], ...] = ()
    absent: tuple[tuple[str, str], ...] = ()
    completed: Callable[[Mapping[str, Any]], dict[str, Any]] = lambda content: {}
    rotary: bool = False
    partial: bool = False
    permuted: bool = False
    stored: Callable[[CheckpointShape], list[Stored]] | None = None

    @property
    def required(self) -> list[str]:
        """Keys that must be there."""
        return [key for key in self.fields if key not in self.optional]


@dataclass(frozen=True, slots=True)
class Architecture:
    """An architecture of Hugging Face.

    Attributes:
        family: model_type of config.json.
        classes: what config.json may have in architectures.
        prefix: of stored names; files of the model without head leave it out.
        buffers: stored names, without prefix, that are no parameters.
        layers_field: the field of config.json with the number of layers, for messages.
        parse: config.json to CheckpointShape; refuses what the pipeline does not compute.
        write: CheckpointShape to config.json, without model_type and architectures.
        stored: every tensor of a file but the head, whose name is `head`, (V, H).
        options: of NEUTRAL, those that `parse` reads itself.
        factors: what is not in a file's tensors but multiplies them: by "h.{l}.q" and the like, or
            by "q" for all layers, or a norm, "embed" or "head".
        renamed: other names of stored tensors, without prefix, by what they are called elsewhere.
        gguf: how GGUF files hold it; None: they do not.
        linear: matrices of layers are stored (out, in), as torch.nn.Linear has them.
        reads: what an encoder is made for: text, pictures or sound.
        whole: model_type of a model of which this one is the part for text, "" for none; its
            config.json has the part's in text_config.
    """

    family: str
    classes: tuple[str, ...]
    prefix: str
    buffers: re.Pattern[str]
    layers_field: str
    parse: Callable[[Config], CheckpointShape]
    write: Callable[[CheckpointShape], dict[str, object]]
    stored: Callable[[CheckpointShape], list[Stored]]
    head: str = "lm_head.weight"
    options: tuple[str, ...] = ()
    factors: Callable[[Config, CheckpointShape], Factors] = lambda config, shape: {}
    renamed: Mapping[str, str] = field(default_factory=dict)
    gguf: GgufForm | None = None
    linear: bool = True
    reads: str = "text"
    whole: str = ""

    @property
    def uses(self) -> str:
        """Say of an encoder which commands are for it."""
        if self.reads == "text":
            return "an encoder: npu embed, npu compile"
        return f"an encoder of {self.reads}: npu compile, npu run"

    def shape(self, config: Config) -> CheckpointShape:
        """Return the dimensions that config.json gives.

        Raises:
            CheckpointError: another class of model, or an option that the pipeline does not have.
        """
        given = config.content.get("architectures") or [self.classes[0]]
        if not isinstance(given, list) or any(name not in self.classes for name in given):
            raise config.refusal("architectures", str(list(self.classes)))
        for name, allowed in NEUTRAL.items():
            if name not in self.options:
                config.fixed(name, *allowed)
        return self.parse(config)

    def layout(self, shape: CheckpointShape) -> list[Stored]:
        """Return every tensor of a file, a head of its own included."""
        head = [] if shape.tied else [Stored(self.head, ("head",), transposed=True)]
        if "head" in shape.biases:
            head.append(Stored(self.head.removesuffix("weight") + "bias", ("head.bias",)))
        return self.stored(shape) + head

    def sizes(self, shape: CheckpointShape) -> dict[str, tuple[int, ...]]:
        """Return name, without prefix, and shape of every tensor of a file."""
        expected = expected_tensors(shape)
        return {one.name: one.size(expected) for one in self.layout(shape)}

    def full_name(self, name: str) -> str:
        """Return a stored name with the prefix that it has."""
        outside = name.startswith(self.head.removesuffix("weight"))
        return name if outside else self.prefix + name

    def multiplied(
        self, config: Config, shape: CheckpointShape, tensors: Tensors, *, back: bool = False
    ) -> Group:
        """Return the tensors of a Checkpoint from those of a file, or with `back` those of it."""
        factors = dict(self.factors(config, shape))
        name = {"": "q", "head": "q_norm", "row": "q_norm"}[shape.head_norms]
        for layer in range(shape.layers if shape.rope else 0):
            rotation = shape.rotation(shape.table_of(layer))
            if rotation.attention_factor != 1:  # of q and of k: all of it is in q here
                lanes = np.where(rotation.turned(shape.head_dim), rotation.attention_factor**2, 1.0)
                heads = 1 if shape.head_norms == "head" else shape.heads
                factors[f"h.{layer}.{name}"] = np.tile(lanes, heads)
        return {name: _times(name, value, factors, back) for name, value in tensors.items()}


def _times(name: str, tensor: Float32, factors: Factors, back: bool) -> Float32:
    """Return a tensor multiplied by its factors, or divided by them."""
    whole = name.removesuffix(".weight").removesuffix(".bias")
    for key in {whole, whole.split(".")[-1]} & factors.keys():
        factor = factors[key]
        tensor = np.asarray(tensor / factor if back else tensor * factor, np.float32)
    return tensor


def stream_factors(
    shape: CheckpointShape, *, embedding: float = 1.0, logits: float = 1.0
) -> Factors:
    """Return factors that multiply embeddings and logits, of a tied head as well.

    What the head reads is multiplied, so that it may stay the token table.
    """
    return {"embed": embedding, "norm": logits / (embedding if shape.tied else 1.0)}


def attention_factor(shape: CheckpointShape, scale: float) -> Factors:
    """Return factors with which scores are q . k times a scale other than 1 / sqrt(head_dim)."""
    return {"q_norm" if shape.head_norms else "q": scale * math.sqrt(shape.head_dim)}
