# SPDX-License-Identifier: Apache-2.0
"""Does every tensor of a block carry information? A check of test data, not of hardware.

Weights that quantise to nothing, saturated activations or a constant tensor make a comparison
worthless: a broken stage would still agree. `check_block` reports every such tensor by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from golden import gpt2
from golden.gelu import apply_table
from golden.softmax import numerators16

if TYPE_CHECKING:
    from weights.model import Linear, Norm, QuantizedModel

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
LIMITS = {"weight": (-127, 127), "gain": (0, (1 << 15) - 1)}
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
class Stage:
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


def stages(model: QuantizedModel, layer: int) -> list[Stage]:
    """Return the data flow of one block, the integer reference of each tensor."""
    params, heads = model.blocks[layer], model.heads

    def norm(name: str, source: str, constants: Norm) -> Stage:
        return Stage(
            name,
            (source, f"{name}.gain"),
            lambda t: gpt2.norm(t[source], replace(constants, gain=t[f"{name}.gain"])),
        )

    def linear(name: str, source: str, layer_: Linear, part: slice, wide: bool) -> Stage:
        apply = gpt2.linear16 if wide else gpt2.linear8

        def compute(t: Tensors) -> Tensor:
            piece = _columns(layer_, part, t[f"{name}.weight"], t[f"{name}.bias"])
            result: Tensor = apply(t[source], piece)
            return result

        return Stage(name, (source, f"{name}.weight", f"{name}.bias"), compute)

    def add(name: str, x: str, y: str) -> Stage:
        return Stage(name, (x, y), lambda t: gpt2.residual_add(t[x], t[y]))

    hidden = model.hidden
    return [
        norm("ln1", "x", params.norm1),
        *(
            linear(name, "ln1", params.qkv, slice(i * hidden, (i + 1) * hidden), False)
            for i, name in enumerate("qkv")
        ),
        Stage("scores", ("q", "k"), lambda t: gpt2.attention_scores(t["q"], t["k"], heads, params)),
        Stage("numer", ("scores",), lambda t: _softmax(t["scores"])[0]),
        Stage("sums", ("scores",), lambda t: _softmax(t["scores"])[1]),
        Stage(
            "ctx",
            ("numer", "sums", "v"),
            lambda t: gpt2.attention_context(t["numer"], t["sums"], t["v"]),
        ),
        linear("proj", "ctx", params.proj, slice(None), True),
        add("resid1", "x", "proj"),
        norm("ln2", "resid1", params.norm2),
        linear("fc_pre", "ln2", params.up, slice(None), False),
        Stage("fc", ("fc_pre", "gelu_table"), lambda t: apply_table(t["fc_pre"], t["gelu_table"])),
        linear("down", "fc", params.down, slice(None), True),
        add("resid2", "resid1", "down"),
    ]


def _columns(layer: Linear, part: slice, weight: Tensor, bias: Tensor) -> Linear:
    """Return some columns of a linear layer with other weights and biases."""
    return type(layer)(weight, bias, layer.mult[part], layer.shift[part])


def _softmax(scores: Tensor) -> tuple[Tensor, Tensor]:
    """Return causal numerators (h, S, S) and sums (h, S) of scores (h, S, S)."""
    pairs = [numerators16(head, causal=True) for head in scores]
    return np.stack([e for e, _ in pairs]), np.stack([total for _, total in pairs])


def _parameters(model: QuantizedModel, layer: int) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Return the parameter tensors by the names of `stages`, and one output step of each bias."""
    params, hidden = model.blocks[layer], model.hidden
    tensors: dict[str, Tensor] = {
        "ln1.gain": params.norm1.gain,
        "ln2.gain": params.norm2.gain,
        "gelu_table": params.table,
    }
    steps: dict[str, Tensor] = {}
    linears = [
        (name, params.qkv, slice(i * hidden, (i + 1) * hidden)) for i, name in enumerate("qkv")
    ]
    linears += [
        ("proj", params.proj, slice(None)),
        ("fc_pre", params.up, slice(None)),
        ("down", params.down, slice(None)),
    ]
    for name, linear, part in linears:
        tensors[f"{name}.weight"] = np.ascontiguousarray(linear.weight[:, part])
        tensors[f"{name}.bias"] = linear.bias[part]
        scale = np.exp2(linear.shift[part].astype(np.float64)) / linear.mult[part]
        steps[f"{name}.bias"] = np.ceil(np.minimum(scale, MAX_BIAS_STEP)).astype(np.int64)
    for name in ("ln1.gain", "ln2.gain"):
        steps[name] = np.maximum(tensors[name].astype(np.int64) >> 4, 1)
    steps["numer"], steps["sums"] = np.array(1 << 9, np.int64), np.array(1 << 12, np.int64)
    return tensors, steps


def check_block(
    model: QuantizedModel, layer: int, x: npt.NDArray[np.int16], *, seed: int = 1
) -> list[Finding]:
    """Check every tensor of one block on the residual stream x (S, H) int16.

    Each tensor, heads pooled, must have MIN_DISTINCT different values and less than MAX_SATURATED
    of its entries at the limits, and must change when any one of its input tensors (activations,
    weights, biases, gains, tables) is perturbed. Masked scores and numerators do not count, and a
    row's largest numerator is 65535 by definition, so numerators and sums are exempt from the
    saturation rule; at sequence 1 scores and numerators are exempt from all of it, as there is
    nothing to weigh.

    Returns:
        the findings, empty if the data are fit for a comparison.

    """
    trace = gpt2.block(model, layer, x)
    parameters, steps = _parameters(model, layer)
    tensors: dict[str, Tensor] = {"x": x, **parameters}
    tensors |= {item.name: getattr(trace, item.name) for item in fields(trace)}
    rng = np.random.default_rng(seed)
    findings = _values(trace, x, model.heads)
    single = x.shape[0] == 1
    for stage in stages(model, layer):
        if not np.array_equal(stage.compute(tensors), tensors[stage.output]):
            raise AssertionError(f"stage {stage.output} does not reproduce the block's tensor")
        for name in stage.inputs:
            if single and stage.output in ("numer", "sums"):
                continue
            limits = LIMITS.get(name.rpartition(".")[2])
            moved = perturbed(tensors[name], rng, steps.get(name), limits)
            changed = tensors | {name: moved}
            if np.array_equal(stage.compute(changed), tensors[stage.output]):
                findings.append(Finding(stage.output, f"does not change when {name} is perturbed"))
    return findings


def _values(trace: gpt2.BlockTrace, x: npt.NDArray[np.int16], heads: int) -> list[Finding]:
    """Check distinct and saturated values of the input and of every tensor of a trace."""
    rows = x.shape[0]
    lower = np.tril_indices(rows)
    below = np.tril_indices(rows, -1)
    findings = distinct("x", x, x.size) + saturated("x", x)
    for item in fields(trace):
        values: Tensor = getattr(trace, item.name)
        free = values.size
        if item.name == "scores":
            values = values[:, *lower]
            free = 0 if rows == 1 else values.size
        elif item.name == "numer":
            free, values = heads * below[0].size, values[:, *lower]
        elif item.name == "sums":
            free = heads * (rows - 1)
        findings += distinct(item.name, values, free)
        exempt = item.name in ("numer", "sums") or (item.name == "scores" and rows == 1)
        findings += [] if exempt else saturated(item.name, values)
    return findings
