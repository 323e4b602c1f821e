# SPDX-License-Identifier: Apache-2.0
"""Matrices that GPTQ, AWQ and compressed-tensors pack into words of 32 bits, as float32.

Each is codes, a scale for every group of inputs of an output, and a zero point. What is read is
exactly (code - zero point) * scale.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from weights.architecture import Config
from weights.checkpoint import CheckpointError, Float32
from weights.stored.form import StoredTensor

FIELD = "quantization_config"
WORD = 32
BITS = (4, 8)
AWQ_COLUMNS = (0, 2, 4, 6, 1, 3, 5, 7)
"""Which column of eight each code of a word is, from the lowest bits on."""
BIAS = "bias"
UNSET = -1
"""What all entries of weight_g_idx are if inputs are in the order of groups."""
FLOATS = ("F64", "F32", "F16", "BF16")
Codes = npt.NDArray[np.int64]
Parts = Mapping[str, StoredTensor]


@dataclass(frozen=True, slots=True)
class Packing:
    """How a method stores a matrix.

    Attributes:
        parts: ends of names that take the place of "weight".
        optional: parts that may be missing.
        shape: (outputs, inputs) of a matrix.
        unpack: its numbers, (outputs, inputs).
    """

    parts: tuple[str, ...]
    optional: tuple[str, ...]
    shape: Callable[[Parts], tuple[int, int]]
    unpack: Callable[[Parts], Float32]


class _Options:
    """A map of options of config.json."""

    def __init__(self, config: Config, place: str) -> None:
        self.config, self.place = config, place
        given: Any = config.content
        for name in place.split("."):
            given = given.get(name)
            if not isinstance(given, dict):
                raise config.refusal(place, "a map", given)
        self.content: dict[str, Any] = given

    def choice(self, names: str, usual: Any, allowed: tuple[Any, ...]) -> Any:  # noqa: ANN401
        """Return an option that has one of some values; it may have one of several names."""
        name = next((one for one in names.split() if one in self.content), names.split()[0])
        given = self.content.get(name, usual)
        if not any(type(given) is type(one) and given == one for one in allowed):
            shown = " or ".join(map(repr, allowed))
            raise self.config.refusal(f"{self.place}.{name}", shown, given)
        return given

    def nothing(self, name: str, kind: str, usual: tuple[object, ...] = ()) -> None:
        """Refuse what changes matrices by a map that says how, unless it changes nothing.

        Args:
            name: of the option, absent, null, or a map.
            kind: the field of the map that says what is done; without a value nothing is.
            usual: its values with which nothing is done.
        """
        given = self.content.get(name)
        inner = given.get(kind) if isinstance(given, dict) else given
        if inner and inner not in usual:
            shown = " or ".join(["None", *(f"{{{kind!r}: {one!r}}}" for one in usual)])
            raise self.config.refusal(f"{self.place}.{name}", shown, given)

    def group(self, names: str) -> int:
        """Return the inputs of a group, 0 for all of them."""
        name = next((one for one in names.split() if one in self.content), names.split()[0])
        given = self.content.get(name)
        if type(given) is not int or not (given == -1 or 1 <= given <= 1 << 24):
            raise self.config.refusal(f"{self.place}.{name}", "int >= 1, or -1", given)
        return max(given, 0)


def packing_of(config: Config) -> Packing:
    """Return how a checkpoint is packed, from quantization_config.

    Raises:
        CheckpointError: another method than these, or an option that changes what numbers mean.
    """
    options = _Options(config, FIELD)
    method = options.choice("quant_method", None, tuple(METHODS))
    return METHODS[method](options)


def unpacked(
    tensors: Iterable[StoredTensor], packing: Packing, source: str, known: Callable[[str], bool]
) -> Iterator[StoredTensor]:
    """Yield tensors with a packed matrix as one, called "weight"; others as they are.

    Args:
        tensors: of all files.
        packing: how matrices are stored.
        source: for messages.
        known: says whether a model has a tensor of a name. What it lacks is left out if it is a
            bias of nothing but zeros beside a packed matrix: older AutoGPTQ gives each one.

    Raises:
        CheckpointError: parts of a matrix are missing or contradict one another.
    """
    groups: dict[str, dict[str, StoredTensor]] = {}
    biases: dict[str, StoredTensor] = {}
    for one in tensors:
        stem, _, part = one.name.rpartition(".")
        if part in packing.parts:
            groups.setdefault(stem, {})[part] = one
        elif part == BIAS and not known(one.name):
            biases[stem] = one
        else:
            yield one
    for stem, one in biases.items():
        if stem not in groups or one.dtype not in FLOATS or one.load().astype(np.float32).any():
            yield one
    for stem, parts in groups.items():
        for part in packing.parts:
            if part not in parts and part not in packing.optional:
                raise CheckpointError(
                    f"{source}: tensor '{stem}.{part}' is missing, allowed with "
                    f"{next(iter(parts.values())).name!r}"
                )
        load = partial(packing.unpack, parts)
        yield StoredTensor(f"{stem}.weight", packing.shape(parts), "F32", load)


def _gptq(options: _Options) -> Packing:
    """GPTQ: codes (K / 8, N) packed along inputs, zero points (G, N / 8) less one, scales (G, N).

    `g_idx` (K,) says which group an input belongs to.
    """
    source = options.config.source
    bits = options.choice("bits", None, BITS)
    less = options.choice("checkpoint_format format", "gptq", ("gptq", "gptq_v2")) == "gptq"
    options.choice("dynamic", None, (None, {}))
    group, each = options.group("group_size"), WORD // bits

    def shape(parts: Parts) -> tuple[int, int]:
        words, outputs = _matrix(source, parts["qweight"], "I32")
        return outputs, words * each

    def unpack(parts: Parts) -> Float32:
        outputs, inputs = shape(parts)
        groups = -(-inputs // (group or inputs))
        zeros = _zeros(source, parts["qzeros"], (groups, outputs), bits)
        scales = _scales(source, parts["scales"], (groups, outputs))
        owner = np.arange(inputs) // (group or inputs)
        if "g_idx" in parts:
            owner = _owners(source, parts["g_idx"], inputs, groups)
        codes = _codes(parts["qweight"].load().T, bits).T
        zeros = zeros + 1 & (1 << bits) - 1 if less else zeros
        return _real(codes - zeros[owner], scales[owner]).T

    return Packing(("qweight", "qzeros", "scales", "g_idx"), ("g_idx",), shape, unpack)


def _awq(options: _Options) -> Packing:
    """AWQ: codes (K, N / 8) and zero points (G, N / 8) packed along outputs, scales (G, N)."""
    source = options.config.source
    bits = options.choice("bits w_bit", None, BITS[:1])
    options.choice("version format", "gemm", ("gemm", "GEMM"))
    options.choice("zero_point", True, (True,))
    group, each = options.group("group_size q_group_size"), WORD // bits
    columns = np.argsort(AWQ_COLUMNS)

    def ordered(codes: Codes) -> Codes:
        return codes.reshape(len(codes), -1, each)[..., columns].reshape(codes.shape)

    def shape(parts: Parts) -> tuple[int, int]:
        inputs, words = _matrix(source, parts["qweight"], "I32")
        return words * each, inputs

    def unpack(parts: Parts) -> Float32:
        outputs, inputs = shape(parts)
        groups = -(-inputs // (group or inputs))
        zeros = ordered(_zeros(source, parts["qzeros"], (groups, outputs), bits))
        scales = _scales(source, parts["scales"], (groups, outputs))
        owner = np.arange(inputs) // (group or inputs)
        codes = ordered(_codes(parts["qweight"].load(), bits))
        return _real(codes - zeros[owner], scales[owner]).T

    return Packing(("qweight", "qzeros", "scales"), (), shape, unpack)


def _compressed(options: _Options) -> Packing:
    """compressed-tensors: codes (N, K / 8) packed along inputs, scales (N, G).

    Codes and zero points are stored with half their range added. Zero points are (N / 8, G) packed
    along outputs, `weight_shape` is (N, K), `weight_g_idx` as that of GPTQ.
    """
    source, config = options.config.source, options.config
    options.choice("format", None, ("pack-quantized",))
    options.choice("kv_cache_scheme", None, (None,))
    options.nothing("transform_config", "config_groups")
    options.nothing("sparsity_config", "format", ("dense",))
    groups_of = _Options(config, f"{FIELD}.config_groups")
    if len(groups_of.content) != 1:
        raise config.refusal(groups_of.place, "one group", list(groups_of.content))
    name = next(iter(groups_of.content))
    whole = _Options(config, f"{FIELD}.config_groups.{name}")
    for side in ("input_activations", "output_activations"):
        whole.choice(side, None, (None,))
    whole.choice("format", None, (None, "pack-quantized"))
    given = _Options(config, f"{whole.place}.weights")
    bits = given.choice("num_bits", None, BITS)
    given.choice("type", "int", ("int",))
    by_group = given.choice("strategy", None, ("group", "channel")) == "group"
    group = given.group("group_size") if by_group else 0
    symmetric = given.choice("symmetric", True, (True, False))
    each = WORD // bits

    def shape(parts: Parts) -> tuple[int, int]:
        outputs, words = _matrix(source, parts["weight_packed"], "I32")
        found = [int(one) for one in parts["weight_shape"].load().ravel()]
        if len(found) != 2 or found[0] != outputs or -(-found[1] // each) != words:
            raise CheckpointError(
                f"{source}: tensor {parts['weight_shape'].name!r}: given {found}, allowed "
                f"[{outputs}, up to {words * each}], as codes are packed"
            )
        return outputs, found[1]

    def unpack(parts: Parts) -> Float32:
        outputs, inputs = shape(parts)
        groups = -(-inputs // (group or inputs))
        scales = _scales(source, parts["weight_scale"], (outputs, groups)).T
        owner = np.arange(inputs) // (group or inputs)
        if "weight_g_idx" in parts and (parts["weight_g_idx"].load() != UNSET).any():
            owner = _owners(source, parts["weight_g_idx"], inputs, groups)
        codes = _codes(parts["weight_packed"].load(), bits)[:, :inputs].T
        if symmetric:
            return _real(codes - (1 << bits - 1), scales[owner]).T
        zeros = parts["weight_zero_point"]
        _expect(source, zeros, (-(-outputs // each), groups), "I32")
        return _real(codes - _codes(zeros.load().T, bits)[owner, :outputs], scales[owner]).T

    kept = ("weight_packed", "weight_scale", "weight_shape", "weight_zero_point", "weight_g_idx")
    return Packing(kept, kept[3 if symmetric else 4 :], shape, unpack)


METHODS: dict[str, Callable[[_Options], Packing]] = {
    "gptq": _gptq,
    "awq": _awq,
    "compressed-tensors": _compressed,
}
"""By quant_method."""


def _codes(words: npt.NDArray[Any], bits: int) -> Codes:
    """Return the codes of words (R, W) as (R, W * 32 / bits), the lowest bits first."""
    unsigned = np.ascontiguousarray(words).view(np.uint32).astype(np.int64)
    codes = unsigned[..., None] >> np.arange(0, WORD, bits) & (1 << bits) - 1
    return codes.reshape(len(words), -1)


def _real(whole: Codes, scales: Float32) -> Float32:
    """Return products that float32 holds exactly: at most 9 bits times at most 11 of FP16."""
    return whole.astype(np.float32) * scales


def _zeros(source: str, one: StoredTensor, shape: tuple[int, int], bits: int) -> Codes:
    """Return zero points (G, N) that are packed along outputs."""
    _expect(source, one, (shape[0], -(-shape[1] * bits // WORD)), "I32")
    return _codes(one.load(), bits)[:, : shape[1]]


def _scales(source: str, one: StoredTensor, shape: tuple[int, int]) -> Float32:
    _expect(source, one, shape, *FLOATS)
    return one.load().astype(np.float32)


def _owners(source: str, one: StoredTensor, inputs: int, groups: int) -> Codes:
    """Return the group of every input (K,)."""
    _expect(source, one, (inputs,), "I32", "I64")
    found = one.load().astype(np.int64)
    if found.min() < 0 or found.max() >= groups:
        raise CheckpointError(
            f"{source}: tensor {one.name!r}: given groups {found.min()} to {found.max()}, allowed "
            f"0 to {groups - 1}"
        )
    return found


def _matrix(source: str, one: StoredTensor, *dtypes: str) -> tuple[int, int]:
    """Return the shape of a tensor that must be a matrix."""
    if len(one.shape) != 2:
        raise CheckpointError(
            f"{source}: tensor {one.name!r}: given shape {one.shape}, allowed a matrix"
        )
    _expect(source, one, one.shape, *dtypes)
    return one.shape[0], one.shape[1]


def _expect(source: str, one: StoredTensor, shape: tuple[int, ...], *dtypes: str) -> None:
    """Raise CheckpointError unless a tensor has a shape and one of some types."""
    for what, given, allowed in (
        ("shape", one.shape, (shape,)),
        ("dtype", one.dtype, dtypes),
    ):
        if given not in allowed:
            raise CheckpointError(
                f"{source}: tensor {one.name!r}: given {what} {given}, allowed "
                f"{', '.join(map(str, allowed))}"
            )
