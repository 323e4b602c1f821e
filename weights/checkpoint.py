# SPDX-License-Identifier: Apache-2.0
"""A float decoder in one form, whatever its architecture: dimensions and named tensors.

Every architecture of weights/architectures is mapped to this form; the reference forward pass,
calibration, equalisation and the quantiser know no other. Tensors are made when they are asked for,
a layer at a time: from what is stored, or from another form that they rewrite.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from weights.rotation import Rotation
from weights.shape import Shape

Float32 = npt.NDArray[np.float32]
Tensors = Mapping[str, Float32]
Group = dict[str, Float32]
"""Tensors of a layer, or the tables of tokens and positions, or a norm, or the head."""
Sizes = Mapping[str, tuple[int, ...]]
TABLES = ("embed", "positions", "types")
"""Tensors of which rows are added up in front of the first layer."""
SHOWN, LONGEST = 3, 60
"""Names that an error about missing ones shows, and letters of each."""


Advance = Callable[[str, int, int], object]
"""Is told what is under way, how many parts of it are done, and of how many."""


class CheckpointError(ValueError):
    """A checkpoint is not found, incomplete, of another kind or damaged."""


def in_line(name: str) -> str:
    """Return a name out of a file as a message has it: what is no letter or sign, as its code."""
    return name if name.isprintable() else repr(name)[1:-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointShape(Shape):
    """The shape of a float decoder, with the constants that computing in floats needs.

    Attributes:
        epsilon: of the norms; a LayerNorm has a bias.
        activation: a name that weights.reference.activation knows.
        biases: the layers of a block that have a bias, of q, k, v, o, gate, up and down, and the
            head if it has one.
        rope_theta: with `rope` the base of the rotary embedding of q and k, lanes t and
            t + head_dim / 2 being a pair.
        tied: the head is the transposed token table.
        one_norm: both norms of a block are one, which files have once.
        rotations: the tables that `tables` numbers; () for one that turns whole heads, unscaled.
        score_cap: scores s become c tanh(s / c) before what is hidden is left out; 0: they do not.
        logit_cap: the same of logits.
    """

    epsilon: float
    activation: str
    biases: tuple[str, ...] = ()
    rope_theta: float = 0.0
    tied: bool = False
    one_norm: bool = False
    rotations: tuple[Rotation, ...] = ()
    score_cap: float = 0.0
    logit_cap: float = 0.0

    def __post_init__(self) -> None:
        """Check what the parts demand of one another."""
        if self.heads % self.kv_heads:
            raise CheckpointError(
                f"Shape: heads: given {self.heads}, "
                f"allowed a multiple of kv_heads = {self.kv_heads}"
            )
        if self.rope and self.head_dim % 2:
            raise CheckpointError(
                f"Shape: head_dim: given {self.head_dim}, allowed an even number (rotary pairs)"
            )

    def rotation(self, number: int) -> Rotation:
        """Return what makes the table of a number."""
        if self.rotations:
            return self.rotations[number]
        return Rotation(self.rope_theta, self.head_dim)


AnyShape = TypeVar("AnyShape", bound=Shape)


def shortened(source: str, shape: AnyShape, context: int | None) -> AnyShape:
    """Return a shape with fewer positions, None for all; a window that sees them all is none.

    Raises:
        CheckpointError: it does not have as many.
    """
    if context is None:
        return shape
    if not 1 <= context <= shape.context:
        allowed = f"1 to {shape.context:,}, the positions of the model"
        raise CheckpointError(f"{source}: --context: given {context:,}, allowed {allowed}")
    by_layer = [shape.window_of(layer) for layer in range(shape.layers)]
    windows = tuple(size if size < context else 0 for size in by_layer)
    alike = len(set(windows)) == 1
    return replace(
        shape,
        context=context,
        window=windows[0] * alike,
        windows=() if alike else windows,
    )


def check_generation(shape: CheckpointShape) -> None:
    """Raise CheckpointError for a decoder that has what the programs of generation lack."""
    if shape.score_cap:
        raise CheckpointError(
            f"{shape.family}: given a cap of scores, which generation has no program for, allowed "
            "as a network: npu compile --shape tokens=1,64"
        )


def silent(what: str, done: int, total: int) -> None:
    """Tell nobody."""


def group_of(name: str) -> str:
    """Return the name of the group of a tensor; that of layer l is "h.{l}"."""
    first, *others = name.split(".")
    if first == "h":
        return f"h.{others[0]}"
    return TABLES[0] if first in TABLES else first


class GroupedTensors(Mapping[str, Float32]):
    """Tensors that are made when they are asked for, a group at a time.

    The group of the last one is kept: who goes through a model layer by layer makes every layer
    once and holds one.
    """

    def __init__(self, sizes: Sizes, make: Callable[[str], Group]) -> None:
        """Take name and shape of every tensor, and what makes those of a group."""
        self.sizes, self.group = dict(sizes), make
        self.digests: dict[str, str] = {}
        self._kept: tuple[str, Group] = ("", {})

    def __getitem__(self, name: str) -> Float32:
        """Return a tensor. Raises CheckpointError if it is damaged."""
        if name not in self.sizes:
            raise KeyError(name)
        group = group_of(name)
        if group != self._kept[0]:
            self._kept = ("", {})  # gone before the next one comes
            self._kept = (group, self.group(group))
        return self._kept[1][name]

    def __contains__(self, name: object) -> bool:
        """Whether there is such a tensor, which is not made."""
        return name in self.sizes

    def __iter__(self) -> Iterator[str]:
        """Yield the names."""
        return iter(self.sizes)

    def __len__(self) -> int:
        """Return the number of tensors."""
        return len(self.sizes)


def tensors_of(tensors: Tensors, group: str) -> Group:
    """Return the tensors of a group in a map of its own."""
    if isinstance(tensors, GroupedTensors):
        return tensors.group(group)
    return {name: tensor for name, tensor in tensors.items() if group_of(name) == group}


@dataclass(frozen=True, slots=True, eq=False)
class Checkpoint:
    """A float model.

    Attributes:
        shape: its dimensions.
        tensors: float32 arrays as `expected_tensors` names them; matrices of a layer are (in, out).
        source: where it came from, for messages.
        folder: the folder that was read, None for a file, or a model built in memory.
        file: the file that was read if it holds all that a folder does (GGUF), or a folder of
            another context, so that nothing is read or kept beside it but the tokenizer.
    """

    shape: CheckpointShape
    tensors: Tensors
    source: str
    folder: Path | None = None
    file: Path | None = None

    def __post_init__(self) -> None:
        """Check the parts, and that they fit together."""
        check_tensors(self.source, self.shape.family, expected_tensors(self.shape), self.tensors)

    def linear(self, name: str) -> tuple[Float32, Float32]:
        """Return weight (in, out) and bias (out,), 0 if it has none, of "h.{l}.q" and the like."""
        weight = self.tensors[f"{name}.weight"]
        return weight, self.vector(f"{name}.bias", weight.shape[1])

    def norm(self, name: str) -> tuple[Float32, Float32]:
        """Return gain (H,) and bias (H,) of "h.{l}.norm1", "h.{l}.norm2" or "norm"."""
        gain = self.tensors[f"{name}.weight"]
        return gain, self.vector(f"{name}.bias", gain.size)

    def vector(self, name: str, size: int) -> Float32:
        """Return a tensor, or zeros where the architecture has none of this name."""
        return self.tensors[name] if name in self.tensors else np.zeros(size, np.float32)

    @property
    def place(self) -> Path | None:
        """The folder or file that was read, where the tokenizer is."""
        return self.file or self.folder

    @property
    def sizes(self) -> dict[str, tuple[int, ...]]:
        """Name and shape of every tensor."""
        return sizes_of(self.tensors)

    @property
    def parameters(self) -> int:
        """Numbers in all tensors."""
        return sum(math.prod(size) for size in self.sizes.values())

    @property
    def head(self) -> Float32:
        """The head's matrix (H, V)."""
        return self.tensors["embed"].T if self.shape.tied else self.tensors["head"]


def sizes_of(tensors: Tensors) -> dict[str, tuple[int, ...]]:
    """Return name and shape of every tensor."""
    if isinstance(tensors, GroupedTensors):
        return tensors.sizes
    return {name: tensor.shape for name, tensor in tensors.items()}


def rewritten(
    checkpoint: Checkpoint, make: Callable[[str], Group], shape: CheckpointShape | None = None
) -> Checkpoint:
    """Return a checkpoint whose groups of tensors are made, when they are asked for, by a function.

    Args:
        checkpoint: what they are made of.
        make: returns the tensors of a group; a tensor that is not finite is refused.
        shape: another one.
    """

    def checked(group: str) -> Group:
        found = make(group)
        for name, tensor in found.items():
            check_numbers(checkpoint.source, name, tensor)
        return found

    shape = shape or checkpoint.shape
    tensors = GroupedTensors(expected_tensors(shape), checked)
    return replace(checkpoint, shape=shape, tensors=tensors)


def with_layers(checkpoint: Checkpoint, change: Callable[[int, Group], None]) -> Checkpoint:
    """Return a checkpoint with the tensors of every layer changed, by a function of its number."""

    def make(group: str) -> Group:
        found = tensors_of(checkpoint.tensors, group)
        if group.startswith("h."):
            change(int(group.removeprefix("h.")), found)
        return found

    return rewritten(checkpoint, make)


def expected_tensors(shape: CheckpointShape) -> dict[str, tuple[int, ...]]:
    """Return name and shape of every tensor of a model.

    "embed" (V, H); "positions" (C, H) where positions are learned; per block l "h.{l}." with the
    norms "norm1" and "norm2" (with `pre_norms`) and the layers "q", "k", "v", "o", "gate" (if
    gated), "up", "down", each with ".weight" and, if it has one, ".bias"; "q_norm" and "k_norm",
    (D,) or of the whole row, where `head_norms` says it; "o_norm" and "down_norm" (H,) with
    `part_norms`; the last norm "norm"; "head" (H, V) if untied, and "head.bias" (V,).
    """
    tensors: dict[str, tuple[int, ...]] = {"embed": (shape.vocab, shape.hidden)}
    if shape.positions:
        tensors["positions"] = (shape.context, shape.hidden)
    tensors |= block_tensors(shape)
    if not shape.tied:
        tensors["head"] = (shape.hidden, shape.vocab)
    if "head" in shape.biases:
        tensors["head.bias"] = (shape.vocab,)
    return tensors


def block_tensors(shape: CheckpointShape) -> dict[str, tuple[int, ...]]:
    """Return those of the blocks and of the last norm."""
    hidden, queries = shape.hidden, shape.q_columns
    keys = shape.kv_columns
    layers = {
        "q": (hidden, queries),
        "k": (hidden, keys),
        "v": (hidden, keys),
        "o": (queries, hidden),
        "gate": (hidden, shape.ffn),
        "up": (hidden, shape.ffn),
        "down": (shape.ffn, hidden),
    }
    if not shape.gated:
        del layers["gate"]
    parts = _norm_parts(shape)
    block: dict[str, tuple[int, ...]] = {
        f"{name}.{part}": (size,) for name, size in _norms(shape).items() for part in parts
    }
    for name, size in layers.items():
        block[f"{name}.weight"] = size
        if name in shape.biases:
            block[f"{name}.bias"] = size[1:]
    tensors = {
        f"h.{layer}.{name}": size for layer in range(shape.layers) for name, size in block.items()
    }
    return tensors | {f"norm.{part}": (hidden,) for part in parts}


def _norm_parts(shape: CheckpointShape) -> tuple[str, ...]:
    """Return what a norm consists of."""
    return ("weight", "bias") if shape.norm == "layernorm" else ("weight",)


def _norms(shape: CheckpointShape) -> dict[str, int]:
    """Return the norms of a block, and the length of the rows of each."""
    norms = {"norm1": shape.hidden, "norm2": shape.hidden} if shape.pre_norms else {}
    if shape.head_norms == "head":
        norms |= {"q_norm": shape.head_dim, "k_norm": shape.head_dim}
    if shape.head_norms == "row":
        norms |= {"q_norm": shape.q_columns, "k_norm": shape.kv_columns}
    if shape.part_norms:
        norms |= {"o_norm": shape.hidden, "down_norm": shape.hidden}
    return norms


DIGESTED = (
    "family",
    "norm",
    "hidden",
    "layers",
    "heads",
    "kv_heads",
    "head_dim",
    "ffn",
    "vocab",
    "context",
    "epsilon",
    "activation",
    "gated",
    "biases",
    "rope_theta",
    "window",
    "tied",
)
"""What of a shape counts in a digest, in this order: scale files on disk depend on it."""
DIGESTED_IF_SET = (
    *("windows", "tables", "parallel", "head_norms", "pre_norms", "part_norms"),
    *("one_norm", "rotations", "score_cap", "logit_cap"),
)
"""What counts only where it is not as most decoders have it."""


def _written(shape: CheckpointShape) -> str:
    """Return a shape as every digest has it, however the class is written."""
    values = {name: getattr(shape, name) for name in DIGESTED}
    values["rope_theta"] = shape.rope_theta if shape.rope else None
    usual = {field.name: field.default for field in fields(CheckpointShape)}
    given = {name: getattr(shape, name) for name in DIGESTED_IF_SET}
    values |= {name: value for name, value in given.items() if value != usual[name]}
    return f"Shape({', '.join(f'{name}={value!r}' for name, value in values.items())})"


def digest(checkpoint: Checkpoint) -> str:
    """Return the SHA-256 of a checkpoint's dimensions and tensors, before any equalisation.

    Raises:
        CheckpointError: a tensor is damaged; those of a file are read here once.
    """
    written, tensors = _written(checkpoint.shape), checkpoint.tensors
    known = tensors.digests if isinstance(tensors, GroupedTensors) else {}
    if written not in known:
        state = hashlib.sha256(written.encode())
        for name in sorted(tensors):
            state.update(name.encode())
            state.update(np.ascontiguousarray(tensors[name], "<f4").data)
        known[written] = state.hexdigest()
    return known[written]


def _found(names: Sequence[str]) -> str:
    """Return what an error about missing names adds: those that were found instead, shortened."""
    if not names:
        return ""
    shown = ", ".join(
        repr(name if len(name) <= LONGEST else f"{name[:LONGEST]}...") for name in names[:SHOWN]
    )
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"; found are {shown}{more} of other names"


def check_tensors(source: str, family: str, expected: Sizes, tensors: Tensors) -> None:
    """Raise CheckpointError unless `tensors` is complete, of the right shapes, and finite.

    Numbers that are yet to be made are checked then.
    """
    check_sizes(source, family, expected, sizes_of(tensors))
    if not isinstance(tensors, GroupedTensors):
        for name in expected:
            check_numbers(source, name, tensors[name])


def check_sizes(source: str, family: str, expected: Sizes, given: Sizes) -> None:
    """Raise CheckpointError unless tensors are complete and of the right shapes."""
    missing = [name for name in expected if name not in given]
    others = sorted(given.keys() - expected.keys())
    if missing:
        raise CheckpointError(
            f"{source}: tensor {missing[0]!r} is missing ({len(missing)} of {len(expected)} are), "
            f"allowed shape {expected[missing[0]]}{_found(others)}"
        )
    for name in others:
        raise CheckpointError(
            f"{source}: tensor {name!r}: given shape {given[name]}, "
            f"but a {family} of this config has no tensor of this name"
        )
    for name, size in expected.items():
        if given[name] != size:
            raise CheckpointError(
                f"{source}: tensor {name!r}: given shape {given[name]}, allowed {size}"
            )


def check_numbers(source: str, name: str, tensor: Float32) -> None:
    """Raise CheckpointError unless a tensor is of finite float32 numbers."""
    if tensor.dtype != np.float32:
        raise CheckpointError(
            f"{source}: tensor {name!r}: given dtype {tensor.dtype}, allowed float32"
        )
    finite = np.isfinite(tensor)
    if not finite.all():
        index = tuple(int(i) for i in np.argwhere(~finite)[0])
        raise CheckpointError(
            f"{source}: tensor {name!r}: given {tensor[index]} at index {index}, "
            "allowed finite float32 numbers"
        )
