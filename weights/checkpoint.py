# SPDX-License-Identifier: Apache-2.0
"""A float decoder in one form, whatever its architecture: dimensions and named tensors.

Every architecture of weights/architectures is mapped to this form; the reference forward pass,
calibration, equalisation and the quantiser know no other.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from weights.rotation import Rotation
from weights.shape import Shape

Float32 = npt.NDArray[np.float32]
Tensors = dict[str, Float32]
SHOWN, LONGEST = 3, 60
"""Names that an error about missing ones shows, and letters of each."""


class CheckpointError(ValueError):
    """A checkpoint is not found, incomplete, of another kind or damaged."""


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
        found = self.tensors.get(name)
        return np.zeros(size, np.float32) if found is None else found

    @property
    def place(self) -> Path | None:
        """The folder or file that was read, where the tokenizer is."""
        return self.file or self.folder

    @property
    def head(self) -> Float32:
        """The head's matrix (H, V)."""
        return self.tensors["embed"].T if self.shape.tied else self.tensors["head"]


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
    """Return the SHA-256 of a checkpoint's dimensions and tensors, before any equalisation."""
    state = hashlib.sha256(_written(checkpoint.shape).encode())
    for name in sorted(checkpoint.tensors):
        state.update(name.encode())
        state.update(np.ascontiguousarray(checkpoint.tensors[name], "<f4").tobytes())
    return state.hexdigest()


def _found(names: Sequence[str]) -> str:
    """Return what an error about missing names adds: those that were found instead, shortened."""
    if not names:
        return ""
    shown = ", ".join(
        repr(name if len(name) <= LONGEST else f"{name[:LONGEST]}...") for name in names[:SHOWN]
    )
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"; found are {shown}{more} of other names"


def check_tensors(
    source: str, family: str, expected: Mapping[str, tuple[int, ...]], tensors: Tensors
) -> None:
    """Raise CheckpointError unless `tensors` is complete, of the right shapes, and finite."""
    missing = [name for name in expected if name not in tensors]
    others = sorted(tensors.keys() - expected.keys())
    if missing:
        raise CheckpointError(
            f"{source}: tensor {missing[0]!r} is missing ({len(missing)} of {len(expected)} are), "
            f"allowed shape {expected[missing[0]]}{_found(others)}"
        )
    for name in others:
        raise CheckpointError(
            f"{source}: tensor {name!r}: given shape {tensors[name].shape}, "
            f"but a {family} of this config has no tensor of this name"
        )
    for name, size in expected.items():
        tensor = tensors[name]
        if tensor.shape != size:
            raise CheckpointError(
                f"{source}: tensor {name!r}: given shape {tensor.shape}, allowed {size}"
            )
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
