# SPDX-License-Identifier: Apache-2.0
"""Does every tensor of a block carry information? A check of test data, not of hardware.

Weights that quantise to nothing, saturated activations or a constant tensor make a comparison
worthless: a broken stage would still agree. `check_block` reports every such tensor by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from golden import decoder
from golden.gelu import apply_table
from golden.softmax import visible
from weights.model import Linear, Norm

if TYPE_CHECKING:
    from weights.model import AnyLinear, Block, QuantizedModel, Rescale

Tensor = npt.NDArray[Any]
Tensors = Mapping[str, Tensor]

MIN_DISTINCT = 16
MAX_SATURATED = 0.02
PERTURBATION_STEPS = 8
"""A perturbed entry moves by 1..8 steps. A step is 1/32 of the tensor's standard deviation, at
least 1; of a bias one unit of the layer's output, of a gain 1/16 of it; of numerators and sums
2^9 and 2^12."""
MAX_BIAS_STEP = 1 << 24
"""Keeps perturbed biases far from the limits of int32 where a layer's factor is tiny."""
LIMITS = {"weight": (-127, 127), "gain": (0, (1 << 15) - 1), "rope": (-(1 << 14), 1 << 14)}
"""Ranges of parameters that are narrower than their dtype."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One tensor that does not contribute as it should.

    Attributes:
        tensor: its name.
        problem: what was found and what is allowed.

    """

    tensor: str
    problem: str

    def __str__(self) -> str:
        """Return the finding as one line."""
        return f"{self.tensor}: {self.problem}"


@dataclass(frozen=True, slots=True, eq=False)
class TensorStage:
    """One tensor, the tensors it is made of, and how.

    Attributes:
        output: name of the tensor.
        inputs: names of its input tensors.
        compute: the integer reference, from all tensors by name.

    """

    output: str
    inputs: tuple[str, ...]
    compute: Callable[[Tensors], Tensor]


def distinct(name: str, values: Tensor, expected: int) -> list[Finding]:
    """Report a tensor with fewer than MIN_DISTINCT different values.

    `expected` is the number of entries that are free to vary; below twice MIN_DISTINCT nothing is
    asked of the tensor.
    """
    count = int(np.unique(values).size)
    if expected < 2 * MIN_DISTINCT or count >= MIN_DISTINCT:
        return []
    return [Finding(name, f"{count} distinct values, allowed at least {MIN_DISTINCT}")]


def saturated(name: str, values: Tensor) -> list[Finding]:
    """Report a tensor of which MAX_SATURATED or more lies at the limits of its dtype."""
    info = np.iinfo(values.dtype)
    share = float(np.mean((values == info.min) | (values == info.max)))
    if share < MAX_SATURATED:
        return []
    return [Finding(name, f"{share:.1%} saturated, allowed less than {MAX_SATURATED:.0%}")]


def perturbed(
    values: Tensor,
    rng: np.random.Generator,
    step: Tensor | None = None,
    limits: tuple[int, int] | None = None,
) -> Tensor:
    """Return the tensor with every entry moved by +-(1..8) steps inside `limits`.

    The limits default to those of the dtype. An entry at a limit moves inwards, so every entry
    changes.
    """
    info = np.iinfo(values.dtype)
    low, high = (int(info.min), int(info.max)) if limits is None else limits
    old = values.astype(np.int64)
    unit = np.array(max(1, round(float(old.std()) / 32)), np.int64) if step is None else step
    moved = rng.integers(1, PERTURBATION_STEPS + 1, values.shape) * unit
    signed = np.where(rng.integers(0, 2, values.shape) == 1, moved, -moved)
    outside = (old + signed < low) | (old + signed > high)
    return np.clip(np.where(outside, old - signed, old + signed), low, high).astype(values.dtype)


def stages(model: QuantizedModel, layer: int) -> list[TensorStage]:
    """Return the data flow of one block from position 0 on, and how each tensor is computed."""
    params, shape = model.blocks[layer], model.shape
    wide = {
        "proj",
        "down",
        *("qk" if shape.head_norms else ""),
        *(("gate", "up") if params.wide else ()),
    }

    def norm(name: str, source: str) -> TensorStage:
        constants: Norm | Rescale = getattr(params, name)
        if not isinstance(constants, Norm):
            return TensorStage(name, (source,), lambda t: decoder.norm(model, t[source], constants))
        apply = decoder.part_norm if name in ("o_norm", "down_norm") else decoder.norm
        return TensorStage(
            name,
            (source, f"{name}.gain"),
            lambda t: apply(model, t[source], replace(constants, gain=t[f"{name}.gain"])),
        )

    def linear(name: str, source: str) -> TensorStage:
        layer_, part = _linears(model, layer)[name]
        apply = decoder.linear16 if name in wide else decoder.linear8

        def compute(t: Tensors) -> Tensor:
            piece = _columns(layer_, part, t[f"{name}.weight"], t[f"{name}.bias"])
            result: Tensor = apply(t[source], piece)
            return result

        return TensorStage(name, (source, f"{name}.weight", f"{name}.bias"), compute)

    def rotation(name: str, source: str, heads: int) -> TensorStage:
        return TensorStage(
            name, (source, "rope"), lambda t: decoder.rotated(t[source], t["rope"], heads)
        )

    def table(name: str, source: str) -> TensorStage:
        return TensorStage(name, (source, "table"), lambda t: apply_table(t[source], t["table"]))

    def added(part: str, normed: str, name: str, x: str) -> list[TensorStage]:
        y = normed if shape.part_norms else part
        add = TensorStage(name, (x, y), lambda t: decoder.residual_add(t[x], t[y]))
        return [norm(normed, part), add] if shape.part_norms else [add]

    def weights(name: str, index: int) -> TensorStage:
        return TensorStage(
            name, ("scores",), lambda t: decoder.attention_weights(model, layer, t["scores"])[index]
        )

    q, k = "q", "k"
    attended = []
    if shape.head_norms:
        attended += [norm("q_norm", q), norm("k_norm", k)]
        q, k = "q_norm", "k_norm"
    if model.rope is not None:
        attended += [rotation("q_rope", q, shape.heads), rotation("k_rope", k, shape.kv_heads)]
        q, k = "q_rope", "k_rope"
    bent = [
        TensorStage("near", ("gate",), lambda t: decoder.coarse(t["gate"], params)),
        table("ratio", "near"),
        TensorStage("silu", ("gate", "ratio"), lambda t: decoder.bent(t["gate"], t["ratio"])),
    ]
    if params.gate is None:
        inner = [linear("up", "norm2"), table("act", "up")]
    else:
        inner = [
            linear("gate", "norm2"),
            *(bent if params.wide else [table("silu", "gate")]),
            linear("up", "norm2"),
            TensorStage("act", ("silu", "up"), lambda t: decoder.gated(t["silu"], t["up"], params)),
        ]
    start = [TensorStage("stream", ("x",), lambda t: decoder.streamed(t["x"], params))]
    x = "stream" if params.stream_shift else "x"
    return [
        *(start if params.stream_shift else []),
        norm("norm1", x),
        *(linear(name, "norm1") for name in "qkv"),
        *attended,
        TensorStage(
            "scores", (q, k), lambda t: decoder.attention_scores(model, t[q], t[k], params)
        ),
        weights("numer", 0),
        weights("sums", 1),
        TensorStage(
            "ctx",
            ("numer", "sums", "v"),
            lambda t: decoder.attention_context(model, t["numer"], t["sums"], t["v"]),
        ),
        linear("proj", "ctx"),
        *added("proj", "o_norm", "resid1", x),
        norm("norm2", x if shape.parallel else "resid1"),
        *inner,
        linear("down", "act"),
        *added("down", "down_norm", "resid2", "resid1"),
    ]


def _linears(model: QuantizedModel, layer: int) -> dict[str, tuple[AnyLinear, slice]]:
    """Return the layers by the names of their outputs, each as columns of what the model stores."""
    params = model.blocks[layer]
    queries, keys = (
        model.shape.q_columns,
        model.shape.kv_columns,
    )
    found = {
        "q": (params.qkv, slice(queries)),
        "k": (params.qkv, slice(queries, queries + keys)),
        "v": (params.qkv, slice(queries + keys, None)),
        "proj": (params.proj, slice(None)),
        "up": (params.up, slice(None)),
        "down": (params.down, slice(None)),
    }
    if params.gate is not None:
        found["gate"] = (params.gate, slice(None))
    return found


def _norms(params: Block) -> dict[str, Norm]:
    """Return the norms of a block by the names of their results."""
    names = ("norm1", "norm2", "q_norm", "k_norm", "o_norm", "down_norm")
    found = {name: getattr(params, name) for name in names}
    return {name: norm for name, norm in found.items() if isinstance(norm, Norm)}


def _columns(layer: AnyLinear, part: slice, weight: Tensor, bias: Tensor) -> Linear:
    """Return some columns of a linear layer with other weights and biases."""
    return Linear(weight, bias, layer.mult[part], layer.shift[part])


def _parameters(
    model: QuantizedModel, layer: int, rows: int
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Return the parameter tensors by the names of `stages`, and one output step of each bias."""
    params = model.blocks[layer]
    tensors: dict[str, Tensor] = {
        f"{name}.gain": norm.gain for name, norm in _norms(params).items()
    }
    tensors["table"] = params.table
    if model.rope is not None:
        tensors["rope"] = model.rope[model.shape.table_of(layer), :rows]
    steps: dict[str, Tensor] = {}
    for name, (linear, part) in _linears(model, layer).items():
        tensors[f"{name}.weight"] = np.ascontiguousarray(linear.weight[:, part])
        tensors[f"{name}.bias"] = linear.bias[part]
        scale = np.exp2(linear.shift[part].astype(np.float64)) / linear.mult[part]
        steps[f"{name}.bias"] = np.ceil(np.minimum(scale, MAX_BIAS_STEP)).astype(np.int64)
    for name, norm in _norms(params).items():
        steps[f"{name}.gain"] = np.maximum(norm.gain.astype(np.int64) >> 4, 1)
    steps["numer"], steps["sums"] = np.array(1 << 9, np.int64), np.array(1 << 12, np.int64)
    return tensors, steps


def check_block(
    model: QuantizedModel, layer: int, x: npt.NDArray[np.int16], *, seed: int = 1
) -> list[Finding]:
    """Check every tensor of one block on the residual stream x (S, H) int16 from position 0 on.

    Each tensor, heads pooled, must have MIN_DISTINCT different values and less than MAX_SATURATED
    of its entries at the limits, and must change when any one of its input tensors (activations,
    weights, biases, gains, tables) is perturbed. Masked scores and numerators do not count, and a
    row's largest numerator is 65535 by definition, so numerators and sums are exempt from the
    saturation rule; where every row sees itself only (sequence 1 or window 1) scores and numerators
    are exempt from all of it, as there is nothing to weigh.

    Returns:
        the findings, empty if the data are fit for a comparison.

    """
    found = decoder.block(model, layer, x).tensors()
    parameters, steps = _parameters(model, layer, x.shape[0])
    tensors: dict[str, Tensor] = {"x": x, **parameters, **found}
    rng = np.random.default_rng(seed)
    mask = visible(x.shape[0], x.shape[0], causal=True, window=model.shape.window_of(layer))
    findings = _values({"x": x, **found}, mask)
    alone = int(mask.sum()) == x.shape[0]
    for stage in stages(model, layer):
        if not np.array_equal(stage.compute(tensors), tensors[stage.output]):
            raise AssertionError(f"stage {stage.output} does not reproduce the block's tensor")
        for name in stage.inputs:
            if alone and stage.output in ("numer", "sums"):
                continue
            limits = LIMITS.get(name.rpartition(".")[2])
            moved = perturbed(tensors[name], rng, steps.get(name), limits)
            changed = tensors | {name: moved}
            if np.array_equal(stage.compute(changed), tensors[stage.output]):
                findings.append(Finding(stage.output, f"does not change when {name} is perturbed"))
    return findings


def _values(tensors: Tensors, mask: npt.NDArray[np.bool_]) -> list[Finding]:
    """Check distinct and saturated values of tensors; `mask` (S, S) says who sees whom."""
    rows = mask.shape[0]
    pairs = int(mask.sum()) - rows
    findings: list[Finding] = []
    for name, tensor in tensors.items():
        values, free = tensor, tensor.size
        if name in ("scores", "numer"):
            heads, values = tensor.shape[0], tensor[:, mask]
            free = heads * pairs if name == "numer" or not pairs else values.size
        elif name == "sums":
            free = tensor.shape[0] * int((mask.sum(axis=1) > 1).sum())
        elif name == "ctx" and not pairs:
            free = tensors["v"].size  # all query heads of a K/V head then have its values
        findings += distinct(name, values, free)
        exempt = name in ("numer", "sums") or (name == "scores" and not pairs)
        findings += [] if exempt else saturated(name, values)
    return findings
