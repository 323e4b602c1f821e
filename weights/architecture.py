# SPDX-License-Identifier: Apache-2.0
"""What a file of weights/architectures says about one architecture, and the tools to say it with.

An architecture is known once weights/architectures/NAME.py defines ARCHITECTURE; nothing else
knows any architecture by name.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from weights.checkpoint import CheckpointError, CheckpointShape, expected_tensors

MAX_SIZE = 1 << 24
"""The largest dimension of a config; what a chip takes is less and is the compiler's business."""
ROPE_THETA = 10000.0
"""The base of rotary embeddings where config.json gives none."""
SCALINGS = ("linear", "dynamic")
"""Kinds of rotary scaling that change nothing inside the context if their factor is 1."""
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
    "partial_rotary_factor": (None, 1),
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
        self, content: dict[str, Any], source: str, places: dict[str, str] | None = None
    ) -> None:
        """Take the content.

        Args:
            content: of config.json, or made of what stands in its place.
            source: what messages call the checkpoint.
            places: what they call a field that is not from config.json.
        """
        self.content = content
        self.source = source
        self.places = places or {}

    def place(self, field: str) -> str:
        """Return what messages call a field."""
        return self.places.get(field, f"config.json {field}")

    def refusal(self, field: str, allowed: str, given: object = None) -> CheckpointError:
        """Return the error for a field; `given` replaces the value of config.json."""
        shown = self.content.get(field) if given is None else given
        return CheckpointError(
            f"{self.source}: {self.place(field)}: given {shown!r}, allowed {allowed}"
        )

    def size(self, field: str, default: int) -> int:
        """Return a dimension, 1 to MAX_SIZE."""
        given = self.content.get(field, default)
        if type(given) is not int or not 1 <= given <= MAX_SIZE:
            raise self.refusal(field, f"int >= 1 and <= {MAX_SIZE}", given)
        return given

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

    def rope_theta(self) -> float:
        """Return the base of a plain rotary embedding over whole heads.

        transformers 5 writes rope_parameters, earlier versions rope_theta and rope_scaling.
        """
        maps: list[tuple[str, dict[str, Any]]] = []
        if self.content.get("rope_theta") is not None:
            maps.append(("", {"rope_theta": self.content["rope_theta"]}))
        for field in ("rope_parameters", "rope_scaling"):
            given = self.content.get(field)
            if given is None:
                continue
            if not isinstance(given, dict):
                raise self.refusal(field, "null or a map")
            maps.append((f"{field}.", given))
        thetas = [self._theta(prefix, given) for prefix, given in maps]
        found = {theta for theta in thetas if theta is not None}
        if len(found) > 1:
            raise self.refusal("rope_theta", "one value throughout config.json", sorted(found))
        return found.pop() if found else ROPE_THETA

    def _theta(self, prefix: str, options: dict[str, Any]) -> float | None:
        """Return rope_theta of a map of rotary options, which may hold nothing that changes it."""
        factor = options.get("factor")
        by_one = type(factor) in (int, float) and factor == 1
        kinds = ("default", *SCALINGS) if by_one else ("default",)
        for key in ("rope_type", "type"):
            if options.get(key, "default") not in kinds:
                allowed = f"'default', or {' or '.join(map(repr, SCALINGS))} with factor 1"
                raise self.refusal(prefix + key, allowed, options[key])
        if factor is not None and not by_one:
            raise self.refusal(f"{prefix}factor", "1", factor)
        known = {"rope_type", "type", "rope_theta", "partial_rotary_factor", "factor"}
        for key in sorted(options.keys() - known):
            raise self.refusal(prefix + key, f"no options but {sorted(known)}", options[key])
        share = options.get("partial_rotary_factor", 1)
        if share != 1:
            raise self.refusal(f"{prefix}partial_rotary_factor", "1", share)
        theta = options.get("rope_theta")
        if theta is None:
            return None
        if type(theta) not in (int, float) or not 1 < theta < math.inf:
            raise self.refusal(f"{prefix}rope_theta", "a number above 1", theta)
        return float(theta)

    def layer_types(self, layers: int) -> str | None:
        """Return the kind of attention that layer_types gives to all layers, None if absent."""
        given = self.content.get("layer_types")
        if given is None:
            return None
        kinds = ("full_attention", "sliding_attention")
        one_kind = isinstance(given, list) and len(given) == layers and given[0] in kinds
        if not one_kind or any(kind != given[0] for kind in given):
            raise self.refusal("layer_types", f"{layers} times the same of {list(kinds)}")
        return str(given[0])


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
    """

    name: str
    parts: tuple[str, ...]
    transposed: bool = False

    def size(self, expected: dict[str, tuple[int, ...]]) -> tuple[int, ...]:
        """Return the shape in the file, from the shapes of the parts."""
        sizes = [expected[part] for part in self.parts]
        whole = (*sizes[0][:-1], sum(size[-1] for size in sizes))
        return whole[::-1] if self.transposed else whole


@dataclass(frozen=True, slots=True)
class GgufForm:
    """How GGUF files hold an architecture; names of tensors are known to the package gguf.

    Attributes:
        fields: of config.json, by keys of metadata without the architecture's name.
        optional: keys that may be missing.
        present: fields of config.json, each with the tensor that it stands for if there is one.
        rotary: positions are rotated, and the fields of heads are those of LLaMA.
        permuted: rows of q and k have the lanes of a rotary pair side by side.
    """

    fields: Mapping[str, str]
    optional: tuple[str, ...] = ("vocab_size",)
    present: tuple[tuple[str, str], ...] = ()
    rotary: bool = False
    permuted: bool = False

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
        gguf: how GGUF files hold it, under its family's name; None: they do not.
        linear: matrices of layers are stored (out, in), as torch.nn.Linear has them.
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
    gguf: GgufForm | None = None
    linear: bool = True

    def shape(self, config: Config) -> CheckpointShape:
        """Return the dimensions that config.json gives.

        Raises:
            CheckpointError: another class of model, or an option that the pipeline does not have.
        """
        given = config.content.get("architectures") or [self.classes[0]]
        if not isinstance(given, list) or any(name not in self.classes for name in given):
            raise config.refusal("architectures", str(list(self.classes)))
        for field, allowed in NEUTRAL.items():
            config.fixed(field, *allowed)
        return self.parse(config)

    def layout(self, shape: CheckpointShape) -> list[Stored]:
        """Return every tensor of a file, a head of its own included."""
        head = [] if shape.tied else [Stored(self.head, ("head",), transposed=True)]
        return self.stored(shape) + head

    def sizes(self, shape: CheckpointShape) -> dict[str, tuple[int, ...]]:
        """Return name, without prefix, and shape of every tensor of a file."""
        expected = expected_tensors(shape)
        return {one.name: one.size(expected) for one in self.layout(shape)}
