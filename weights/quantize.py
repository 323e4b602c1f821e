# SPDX-License-Identifier: Apache-2.0
"""Turn a float decoder and its activation scales into integers.

Scheme: static per-tensor int8 activations, per-output-channel int8 weights, int32 accumulators, an
int16 residual stream at one scale, int16 scores in binary logarithms, int16 logits at one scale.
A tensor's real value is its integer times its scale.

Accumulators cannot overflow: a bias is limited to 2^30 by its channel's weight scale, and
128 * 127 * K < 2^30 for every inner length K that a layer can have (MAX_INPUTS).
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from spec.isa.operands import WORD
from weights.calibrate import (
    INT8_MAX,
    ActivationScales,
    cache_path,
    check_owner,
    model_of,
    norm_units,
    range_of,
    scales_for,
)
from weights.checkpoint import Advance, Checkpoint, CheckpointError, CheckpointShape, silent
from weights.covariance import CovarianceError, InputMoments, Moments, moments_for, owner_of
from weights.equalize import positive
from weights.fixed_point import MAX_FACTOR, MIN_FACTOR, multiplier, multipliers, to_int
from weights.formats.linear import NarrowLinear, joined
from weights.formats.recipe import INT8, Encoding, WeightRecipe
from weights.formats.rounding import (
    Feedback,
    column_scale,
    feedback,
    int8_scale,
    rounded,
    rounded_int8,
)
from weights.heap import give_back_free_memory
from weights.importer import load_checkpoint
from weights.kept_layers import KeptLayers
from weights.limits import INT16_MAX, WEIGHT_MAX
from weights.model import (
    RATIO_BITS,
    AnyLinear,
    Block,
    Linear,
    Norm,
    QuantizedModel,
    Rescale,
    Sink,
    largest_input,
)
from weights.reference import Floats, activation, rope_table
from weights.sink import sink_rows

RESIDUAL_MARGIN = 1.25
"""Headroom of the int16 scales over the largest magnitude that calibration saw."""
SCORE_FRACTION_BITS = 6
"""Scores count 2^-6 of a binary logarithm."""
NORM_UNITS = 1 << 14
"""The normalised row is Q5.14 before the per-channel multiplier."""
ROPE_ONE = 1 << 14
"""Cosines and sines are Q1.14."""
BIAS_LIMIT = 1 << 30
MAX_INPUTS = BIAS_LIMIT // (128 * WEIGHT_MAX)
"""The longest inner dimension for which 2^30 + 128 * 127 * K stays inside int32: 66,052."""
NEAR = 8.0 / INT8_MAX
"""One unit of the gate of a wide block where the ratio of the activation to it is looked up."""
AT_ONCE = 1 << 12
"""Tokens whose rows and columns are rounded at once: float64 copies of all take much memory."""

ENTRIES = ("norm1", "norm2")
"""What of a block reads the stream."""

Reals = npt.NDArray[np.float64]
N = TypeVar("N", Norm, Rescale)


class _Inputs:
    """What is known of the inputs of layers; the moments themselves are not held."""

    def __init__(self, name: str, moments: Mapping[str, Moments]) -> None:
        self.name, self._moments = name, moments

    @cached_property
    def digest(self) -> npt.NDArray[np.uint8]:
        """Of the moments."""
        return np.frombuffer(hashlib.sha256(self._moments[self.name].data).digest(), np.uint8)

    @cached_property
    def feedback(self) -> Feedback:
        """What the rounding needs of the moments."""
        return feedback(self._moments[self.name])


class _Rounding:
    """Rounds the weights of layers by what is known of their inputs, if anything is.

    Of one input at a time, as that of all takes much memory. A layer that was rounded before is
    found where such are kept.
    """

    def __init__(self, moments: Mapping[str, Moments] | None, kept: KeptLayers | None) -> None:
        self._moments, self._kept = moments, kept
        self._inputs: _Inputs | None = None

    def layer(
        self,
        where: str,
        weight: Reals,
        bias: Reals,
        out_scale: float,
        encoding: Encoding,
        inputs: str,
        head_dim: int = 0,
    ) -> AnyLinear:
        """Return `quantize_linear` of a layer that reads `inputs`."""
        if self._moments is None:
            return quantize_linear(where, weight, bias, out_scale, encoding, None, head_dim)
        if self._inputs is None or self._inputs.name != inputs:
            self._inputs = _Inputs(inputs, self._moments)
        known = self._inputs

        def make() -> AnyLinear:
            learned = known.feedback
            return quantize_linear(where, weight, bias, out_scale, encoding, learned, head_dim)

        if self._kept is None:
            return make()
        given = (weight, bias, np.array(out_scale), np.array(head_dim), known.digest)
        return self._kept.layer(encoding, given, make)


def quantize(
    checkpoint: Checkpoint,
    scales: ActivationScales,
    recipe: WeightRecipe | None = None,
    moments: InputMoments | None = None,
    advance: Advance = silent,
    kept: KeptLayers | None = None,
) -> QuantizedModel:
    """Return the integer model.

    Args:
        checkpoint: the float model.
        scales: its activations.
        recipe: the formats of the weights, None for int8.
        moments: of the inputs; with them the rounding errors of weights make up for one another,
            without them every weight is rounded to nearest.
        advance: is told of every layer.
        kept: layers that were rounded by moments before, and where these are kept.

    Raises:
        CheckpointError: a LayerNorm of q and k or behind a part has a negative gain, or a bias that
            is no int8 number of units.
        ScalesError: the scales belong to another checkpoint, or one is missing or zero.
        ValueError: a scale ratio cannot be expressed, or an inner dimension is too long.
    """
    check_owner(checkpoint, scales, "quantize")
    model = positive(model_of(checkpoint, scales))
    shape, recipe = checkpoint.shape, recipe or WeightRecipe()
    rounding = _rounding(moments, scales, kept)
    names = [name for name in ("embed", "positions") if name in model.tensors]
    # The row of position 0 is used by nobody where that position is a sink.
    skipped = {"positions": int(scales.sink is not None)}
    tops = [_largest(model.tensors[name][skipped.get(name, 0) :]) for name in names]
    shifts = _stream_shifts(scales, shape.layers)
    largest = max(range_of(scales, "residual") / 2.0 ** sum(shifts), *tops)
    residual = largest * RESIDUAL_MARGIN / INT16_MAX
    named = {"residual": residual}
    named["logits"] = range_of(scales, "logits") * RESIDUAL_MARGIN / INT16_MAX
    embeddings = [_integer_rows(model.tensors[name], residual) for name in names]
    blocks: list[Block] = []
    at_sink: list[tuple[Floats, Floats]] = []
    ahead = iter(()) if scales.sink is None else sink_rows(model, scales.sink)
    for layer, shift in enumerate(shifts):
        residual *= 2.0**shift
        at_sink.extend(itertools.islice(ahead, 1))
        block = _quantize_block(model, scales, layer, residual, named, recipe, rounding)
        blocks.append(replace(block, stream_shift=shift))
        advance("layers quantised", layer + 1, shape.layers)
        give_back_free_memory()  # that of its floats, which lies between the integers
    final = _norm(model, scales, "norm", residual)
    heads, encodings = _head_in_pieces(model, named["logits"]), itertools.repeat(recipe["head"])
    logits = _readers("norm", final, heads, encodings, rounding)
    return QuantizedModel(
        shape=replace(shape.plain(), wide=_wide(shape, scales)),
        wte=embeddings[0],
        wpe=embeddings[1] if len(embeddings) > 1 else None,
        rope=integer_rope(shape) if shape.rope else None,
        blocks=tuple(blocks),
        final_norm=final.norm,
        head=_joined(logits),
        scales=named,
        sink=None if scales.sink is None else _sink(shape, scales.sink, at_sink, named),
    )


def _stream_shifts(scales: ActivationScales, layers: int) -> list[int]:
    """Return by how many bits the unit of the stream grows in front of each layer.

    Where the layers' own ranges are known; each then has room for its range and those before.
    """
    names = [f"h.{layer}.residual" for layer in range(layers)]
    if any(name not in scales.ranges for name in names):
        return [0] * layers
    ranges = np.maximum.accumulate([range_of(scales, name) for name in names])
    # Counted from the last one, which has all of the range.
    bits = np.floor(np.log2(ranges[-1] / ranges)).astype(int)
    return [0, *(int(before - after) for before, after in itertools.pairwise(bits))]


def _largest(table: Floats) -> float:
    """Return the largest magnitude of a table."""
    return float(max(table.max(), -table.min()))


def _integer_rows(table: Floats, unit: float) -> npt.NDArray[np.int16]:
    """Return rows (R, H) in a unit."""
    rows = np.empty(table.shape, np.int16)
    for start in range(0, len(table), AT_ONCE):
        part = table[start : start + AT_ONCE].astype(np.float64) / unit
        rows[start : start + AT_ONCE] = to_int(part, np.int16, -INT16_MAX - 1, INT16_MAX)
    return rows


def _head_in_pieces(model: Checkpoint, unit: float) -> Iterator[tuple[Reals, Reals, float]]:
    """Yield weights, bias and output scale of AT_ONCE columns of the head after the other."""
    biases = model.vector("head.bias", model.shape.vocab)
    for start in range(0, model.shape.vocab, AT_ONCE):
        weight, bias = (part[..., start : start + AT_ONCE] for part in (model.head, biases))
        yield weight.astype(np.float64), bias.astype(np.float64), unit


def _sink(
    shape: CheckpointShape,
    token: int,
    rows: list[tuple[Floats, Floats]],
    named: dict[str, float],
) -> Sink:
    """Return keys and values of a token at position 0, in the units of those behind it."""

    def integers(rows: Floats, name: str) -> npt.NDArray[np.int8]:
        units = np.array([[named[f"h.{layer}.{name}"]] for layer in range(len(rows))])
        found: npt.NDArray[np.int8] = to_int(rows / units, np.int8, -INT8_MAX, INT8_MAX)
        return found

    keys, values = (np.stack(part) for part in zip(*rows, strict=True))
    key = "k_norm" if shape.head_norms else "k"
    return Sink(token, integers(keys, key), integers(values, "v"))


def integer_rope(shape: CheckpointShape) -> npt.NDArray[np.int16]:
    """Return (T, C, D / 2, 2) int16 cosine and sine of every table in Q1.14."""
    tables = [
        to_int(rope_table(shape, shape.context, number) * ROPE_ONE, np.int16, -ROPE_ONE, ROPE_ONE)
        for number in range(shape.table_count)
    ]
    return np.stack(tables)


def quantize_checkpoint(source: str, recipe: WeightRecipe | None = None) -> QuantizedModel:
    """Return the integer model of a folder or hub id, with the scales kept beside it.

    With a narrow recipe all weights are rounded with error compensation, by the moments kept there.
    """
    return quantize_loaded(load_checkpoint(source), recipe)


def quantize_loaded(
    checkpoint: Checkpoint, recipe: WeightRecipe | None = None, advance: Advance = silent
) -> QuantizedModel:
    """Return the integer model of a checkpoint, as `quantize_checkpoint` does.

    `advance` is told of every layer that is measured or quantised. What is rounded with error
    compensation is kept in the cache, and found there the next time.
    """
    scales = scales_for(checkpoint, advance)
    narrow = recipe is not None and recipe.narrow
    moments = moments_for(checkpoint, scales) if narrow else None
    kept = KeptLayers(cache_path(checkpoint).with_suffix(""))
    return quantize(checkpoint, scales, recipe, moments, advance, kept)


def _rounding(
    moments: InputMoments | None, scales: ActivationScales, kept: KeptLayers | None
) -> _Rounding:
    """Return what rounds the weights of a model.

    Raises:
        CovarianceError: the moments are of other scales.
    """
    if moments is None:
        return _Rounding(None, None)
    if moments.owner != owner_of(scales):
        raise CovarianceError("quantize: given moments of other scales, allowed those of the model")
    return _Rounding(moments.moments, kept)


def _real(model: Checkpoint, name: str) -> Reals:
    return model.tensors[name].astype(np.float64)


def _quantize_block(
    model: Checkpoint,
    scales: ActivationScales,
    layer: int,
    residual: float,
    named: dict[str, float],
    recipe: WeightRecipe,
    rounding: _Rounding,
) -> Block:
    """Return block `layer` and add the scales of its tensors to `named`."""
    at, shape = f"h.{layer}", model.shape
    gated = ("gate", "silu") if shape.gated else ()
    heads = ("q_norm", "k_norm") if shape.head_norms else ("q", "k")
    unit = {
        key: range_of(scales, f"{at}.{key}") / INT8_MAX
        for key in (*heads, "v", "up", "act", *gated)
    }
    unit["ctx"] = unit["v"]
    wide = _wide(shape, scales)
    if wide:
        unit |= {key: _int16_unit(scales, f"{at}.{key}") for key in ("gate", "up")}
        unit["silu"] = unit["gate"] * (1 << RATIO_BITS) / INT8_MAX
    if shape.head_norms:
        unit |= {key: _int16_unit(scales, f"{at}.{key}") for key in ("q", "k")}
    added = {"o": residual, "down": residual}
    if shape.part_norms:
        added = {key: _int16_unit(scales, f"{at}.{key}") for key in added}
        named |= {f"{at}.proj": added["o"], f"{at}.down": added["down"]}
    first, second = (_entry(model, scales, f"{at}.{key}", residual) for key in ENTRIES)
    if not shape.pre_norms:
        named |= {f"{at}.{key}": range_of(scales, f"{at}.{key}") / INT8_MAX for key in ENTRIES}
    q, k, v = _readers(
        f"{at}.norm1",
        first,
        [(*_matrix(model, layer, key), unit[key]) for key in ("q", "k", "v")],
        [recipe["qkv"]] * 3,
        rounding,
    )
    up, *gate = _readers(
        f"{at}.norm2",
        second,
        [(*_matrix(model, layer, key), unit[key]) for key in ("up", *gated[:1])],
        [recipe["up"], recipe["gate"]],
        rounding,
    )
    score = unit[heads[0]] * unit[heads[1]] * math.log2(math.e) / math.sqrt(shape.head_dim)
    score_mult, score_shift = multiplier(f"{at}.scores", score * (1 << SCORE_FRACTION_BITS))
    before, after = ("gate", "silu") if shape.gated else ("up", "act")
    product_mult, product_shift, act_limit = 0, 0, 0
    near_mult, near_shift = multiplier(f"{at}.near", unit["gate"] / NEAR) if wide else (0, 0)
    if shape.gated and not wide:
        product = unit["silu"] * unit["up"] / unit["act"]
        product_mult, product_shift = multiplier(f"{at}.product", product)

    def down_of(unit: float) -> AnyLinear:
        weight, bias = _matrix(model, layer, "down")
        weight *= unit  # in place: a copy is 92 MB of LLaMA 1.1B
        inputs = f"{at}.act"
        return rounding.layer(f"{at}.down", weight, bias, added["down"], recipe["down"], inputs)

    if wide:
        least = _int16_unit(scales, f"{at}.act")
        product = unit["silu"] * unit["up"]
        product_shift, act_limit, down = _wide_down(product, least, down_of)
        unit["act"] = unit["silu"] * unit["up"] * 2.0**product_shift
    else:
        down = down_of(unit["act"])
    proj_weight, proj_bias = _matrix(model, layer, "o")
    named.update({f"{at}.{key}": value for key, value in unit.items()})
    behind: dict[str, Any] = {}
    if shape.head_norms:
        for key in "qk":
            name = f"{key}_norm"
            behind[name] = _record(model, f"{at}.{name}", unit[key], unit[name])
    if shape.part_norms:
        for key, scale in added.items():
            behind[f"{key}_norm"] = _record(model, f"{at}.{key}_norm", scale, residual)
    return Block(
        norm1=first.norm,
        qkv=_joined([q, k, v]),
        score_mult=score_mult,
        score_shift=score_shift,
        proj=rounding.layer(
            f"{at}.proj",
            proj_weight * unit["ctx"],
            proj_bias,
            added["o"],
            recipe["o"],
            f"{at}.ctx",
            head_dim=shape.head_dim if shape.head_dim % WORD else 0,
        ),
        norm2=second.norm,
        up=up,
        table=ratio_table(shape.activation)
        if wide
        else activation_table(shape.activation, unit[before], unit[after]),
        down=down,
        gate=gate[0] if gate else None,
        product_mult=product_mult,
        product_shift=product_shift,
        wide=wide,
        near_mult=near_mult,
        near_shift=near_shift,
        act_limit=act_limit,
        **behind,
    )


def _int16_unit(scales: ActivationScales, name: str) -> float:
    """Return the real value of one unit of an int16 tensor."""
    return range_of(scales, name) * RESIDUAL_MARGIN / INT16_MAX


def _wide(shape: CheckpointShape, scales: ActivationScales) -> bool:
    """Whether the inner tensors of a feed-forward are int16: where large values carry much."""
    bounded = np.abs(_ratios(shape.activation)).max() <= 1.0
    return shape.gated and scales.sink is not None and bool(bounded)


def _wide_down(
    product: float, unit: float, down_of: Callable[[float], AnyLinear]
) -> tuple[int, int, AnyLinear]:
    """Return shift and limit of a wide product, and `down` behind it.

    Args:
        product: real value of one unit of silu times one of `up`.
        unit: that the shifted product is to have at least; INT16_MAX of it are its range.
        down_of: the layer for inputs of a unit.

    An accumulator cannot overflow: the limit is the largest with which any input stays inside
    int32, and the shift is so large that the limit cuts off nothing of the range.
    """
    shift = max(0, math.ceil(math.log2(unit / product)))
    while True:
        shifted = product * 2.0**shift
        down = down_of(shifted)
        limit = min(INT16_MAX, largest_input(down) - 1)  # below 0 there is one more
        if limit * shifted >= INT16_MAX * unit:
            return shift, limit, down
        shift += 1


def _matrix(model: Checkpoint, layer: int, name: str) -> tuple[Reals, Reals]:
    """Return weight (K, N) and bias (N,) of a layer as float64."""
    weight, bias = model.linear(f"h.{layer}.{name}")
    return weight.astype(np.float64), bias.astype(np.float64)


@dataclass(frozen=True, slots=True)
class _Entry(Generic[N]):
    """What makes an int8 row of the stream, and what the layers that read it make up for.

    Attributes:
        norm: a norm, or another unit.
        rows: (H,) the gain times the real value of one unit of every channel.
        beta: (H,) what is added behind the gain.
    """

    norm: N
    rows: Reals
    beta: Reals


def _norm(model: Checkpoint, scales: ActivationScales, name: str, residual: float) -> _Entry[Norm]:
    """Return a norm of the stream.

    Channel c of the normalised row is cut into int8 units of its own, t_c. The gain times t_c goes
    into row c of the next weights, and the beta, through them, into the next bias.
    """
    gain, beta = (part.astype(np.float64) for part in model.norm(name))
    hidden = model.shape.hidden
    unit = norm_units(name, scales, hidden)
    units_per_step = 1.0 / (NORM_UNITS * unit)
    mult, shift = multipliers(f"{name}.gain", units_per_step)
    norm = Norm(
        eps_term=round(model.shape.epsilon * hidden**2 / residual**2),
        gain=mult,
        shift=shift,
        bias=np.zeros(hidden, np.int8),
    )
    return _Entry(norm, gain * unit, beta)


def _entry(
    model: Checkpoint, scales: ActivationScales, name: str, residual: float
) -> _Entry[Norm] | _Entry[Rescale]:
    """Return the norm before a part, or without one the stream in int8 units."""
    if model.shape.pre_norms:
        return _norm(model, scales, name, residual)
    hidden, unit = model.shape.hidden, range_of(scales, name) / INT8_MAX
    rescale = Rescale(*multiplier(name, residual / unit), hidden)
    return _Entry(rescale, np.full(hidden, unit), np.zeros(hidden))


def _readers(
    name: str,
    entry: _Entry[Norm] | _Entry[Rescale],
    linears: Iterable[tuple[Reals, Reals, float]],
    encodings: Iterable[Encoding],
    rounding: _Rounding,
) -> list[AnyLinear]:
    """Return the layers that read an entry, each given as (weight, bias, output scale)."""
    return [
        rounding.layer(
            f"{name} -> linear {i}",
            entry.rows[:, None] * weight,
            bias + entry.beta @ weight,
            scale,
            encoding,
            name,
        )
        for i, ((weight, bias, scale), encoding) in enumerate(zip(linears, encodings, strict=False))
    ]


def _record(model: Checkpoint, name: str, before: float, after: float) -> Norm:
    """Return a norm with its gain and beta in it, between tensors of one unit each.

    Raises:
        CheckpointError: the beta is more than an int8 number of units.
    """
    gain, beta = (part.astype(np.float64) for part in model.norm(name))
    bias = np.rint(beta / after)
    if np.abs(bias).max() > INT8_MAX:
        raise CheckpointError(
            f"{model.source}: {name}.bias: given {np.abs(beta).max():.3g}, allowed up to "
            f"{INT8_MAX * after:.3g}, {INT8_MAX} units of the result"
        )
    factors = gain / (NORM_UNITS * after)
    heard = factors >= MIN_FACTOR
    mult, shift = multipliers(f"{name}.gain", np.where(heard, factors, 1.0))
    return Norm(
        eps_term=round(model.shape.epsilon * gain.size**2 / before**2),
        gain=np.where(heard, mult, 0).astype(np.uint16),
        shift=shift,
        bias=bias.astype(np.int8),
    )


def quantize_linear(
    where: str,
    weight: Reals,
    bias: Reals,
    out_scale: float,
    encoding: Encoding = INT8,
    learned: Feedback | None = None,
    head_dim: int = 0,
) -> AnyLinear:
    """Return y = sat(rs((x @ layer.weight + layer.bias) * mult, shift)), y at `out_scale`.

    Args:
        where: for messages.
        weight: (K, N) real weights times the real value of one unit of each input channel.
        bias: (N,) real.
        out_scale: the real value of one unit of the output.
        encoding: of the weights.
        learned: of the inputs, for error-compensated rounding; None: to nearest.
        head_dim: as of `NarrowLinear`.

    Raises:
        ValueError: K is above MAX_INPUTS, or a factor cannot be expressed.
    """
    if weight.shape[0] > MAX_INPUTS:
        raise ValueError(
            f"{where}: given {weight.shape[0]} inputs, allowed at most {MAX_INPUTS} "
            "(int32 accumulators)"
        )
    if encoding.format is None:
        scale = int8_scale(weight)
    else:
        importance = np.ones(weight.shape[0]) if learned is None else learned.importance
        scale = column_scale(encoding, weight, importance, head_dim)
    scale = np.where(scale > 0, scale, out_scale)
    scale = np.maximum(scale, np.abs(bias) / BIAS_LIMIT)
    scale = np.clip(scale, out_scale * MIN_FACTOR, out_scale * MAX_FACTOR)
    mult, shift = multipliers(where, scale / out_scale)
    integer_bias = to_int(bias / scale, np.int32, -BIAS_LIMIT, BIAS_LIMIT)
    if encoding.format is None:
        if learned is None:
            integers = to_int(weight / scale, np.int8, -WEIGHT_MAX, WEIGHT_MAX)
        else:
            integers = rounded_int8(weight / scale, learned)
        return Linear(integers, integer_bias, mult, shift)
    codes, side = rounded(encoding, weight / scale, learned, head_dim)
    return NarrowLinear(
        encoding.format, encoding.group, codes, side, integer_bias, mult, shift, head_dim
    )


def _joined(layers: list[AnyLinear]) -> AnyLinear:
    """Return one layer with the output channels of all."""
    narrow = [layer for layer in layers if isinstance(layer, NarrowLinear)]
    if narrow:
        return joined(narrow)
    return Linear(
        weight=np.concatenate([layer.weight for layer in layers], axis=1),
        bias=np.concatenate([layer.bias for layer in layers]),
        mult=np.concatenate([layer.mult for layer in layers]),
        shift=np.concatenate([layer.shift for layer in layers]),
    )


def _ratios(name: str) -> Reals:
    """Return activation(x) / x for the 256 inputs of a table in units of NEAR."""
    inputs = np.arange(256, dtype=np.uint8).view(np.int8).astype(np.float64) * NEAR
    inputs = np.where(inputs == 0, NEAR * 1e-6, inputs)
    ratios: Reals = activation(name, inputs) / inputs
    return ratios


def ratio_table(name: str) -> npt.NDArray[np.int8]:
    """Return the (256,) int8 table of activation(x) / x in units of 1/127, x in units of NEAR."""
    table: npt.NDArray[np.int8] = to_int(_ratios(name) * INT8_MAX, np.int8, -INT8_MAX, INT8_MAX)
    return table


def activation_table(name: str, in_scale: float, out_scale: float) -> npt.NDArray[np.int8]:
    """Return the (256,) int8 table of an activation, indexed by the input's bit pattern.

    Entry i is round_half_even(f(x * in_scale) / out_scale) limited to int8, x being i read as int8.
    """
    inputs = np.arange(256, dtype=np.uint8).view(np.int8).astype(np.float64)
    table: npt.NDArray[np.int8] = to_int(
        activation(name, inputs * in_scale) / out_scale, np.int8, -INT8_MAX - 1, INT8_MAX
    )
    return table
