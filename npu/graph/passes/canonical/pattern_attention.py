# SPDX-License-Identifier: Apache-2.0
"""Attention: two products with a softmax between them, in any layout and grouping of heads.

The way from the scores to the softmax is asked what it does: its value at 0 is the mask, its slope
the scale, its limits a soft cap, and where each element comes from is the layout.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from npu.graph.form import Array, Element, Names, Operation
from npu.graph.passes.canonical.attention_check import AttentionParts, moves_between, same
from npu.graph.passes.canonical.attention_masks import softmax_behind, with_mask
from npu.graph.passes.canonical.attention_moves import HeadAxes, heads_of, places
from npu.graph.passes.canonical.edit import Replacement
from npu.graph.passes.canonical.region import ASIDE, ELEMENTWISE, GraphView, Region

_SCORES = (ELEMENTWISE | ASIDE) - {"compare", "and", "or", "not_", "mod", "pow"}
# What jax, torch and onnx write for minus infinity.
_HIDDEN = -1e4
_ABSORBS = -float(1 << 26)
"""Below it float32 has steps of 8 and more, in which most scores disappear."""


@dataclass(frozen=True)
class Scores:
    """What happens to products of queries and keys in front of the softmax.

    Attributes:
        scale: factor.
        softcap: c in c * tanh(x / c), 0 for none.
        bias: what is added, of the shape of the products (..., rows, keys); -inf where hidden.
        absorbed: of that shape, whether float32 loses the product beside what is added.
    """

    scale: float
    softcap: float
    bias: Array
    absorbed: Array


def attentions(view: GraphView, root: Operation, names: Names) -> Replacement | None:
    """Replace the product of a softmax with values."""
    if root.kind != "matmul" or len(root.used) != 2:
        return None
    if any(view.graph.type(name).element != Element.F32 for name in (*root.used, *root.outputs)):
        return None
    for side in (0, 1):
        found = softmax_behind(view, root.inputs[side])
        if found is None or found.softmax["axis"] != len(view.shape(found.softmax.outputs[0])) - 1:
            continue
        softmax, plain = found.softmax, found.view
        if plain.readers(softmax.outputs[0]) != 1:
            return None
        for scores in _score_products(plain, softmax):
            edit = _attention(plain, root, side, softmax, scores, names)
            masked = None if edit is None else with_mask(edit, found.mask)
            if masked is not None:
                return masked
    return None


def _score_products(view: GraphView, softmax: Operation) -> Iterator[Region | Operation]:
    """Yield the product in front of a softmax: itself, or the way from it."""
    made = view.maker(softmax.inputs[0])
    if made is None:
        return
    if made.kind == "matmul":
        yield made
        return
    for region in view.regions(made, _SCORES):
        if view.maker(region.entry, "matmul") is not None:
            yield region
            return


def _attention(
    view: GraphView,
    root: Operation,
    side: int,
    softmax: Operation,
    way: Region | Operation,
    names: Names,
) -> Replacement | None:
    product = way if isinstance(way, Operation) else view.maker(way.entry)
    if product is None or len(product.used) != 2:
        return None
    if any(view.graph.type(name).element != Element.F32 for name in product.used):
        return None
    steps = () if isinstance(way, Operation) else way.operations
    score = product.outputs[0]
    shape = view.shape(score)
    found = _asked(view, steps, score, softmax.inputs[0])
    if found is None or len(shape) < 2:
        return None
    # Where each probability that the second product reads comes from among the scores.
    moved = places(view, root.inputs[side], score)
    if moved is None:
        return None
    turned = bool(root["transpose_a" if side == 0 else "transpose_b"])
    keys_last = turned if side == 1 else not turned
    if not keys_last:
        moved = moved.swapaxes(-1, -2)
    rows_read = _rows_read(moved, shape)
    if rows_read is None:
        return None
    between = moves_between(view, root.inputs[side], softmax.outputs[0])
    whole = AttentionParts(root, side, product, steps, softmax, tuple(between))
    for one in heads_of(view, (*steps, *between), rows_read, shape, found.bias):
        edit = _built(view, root, side, product, one, found, names)
        if edit is None:
            continue
        lost = edit
        if found.absorbed.any():
            lost = _built(view, root, side, product, one, found, names, absorb=True) or edit
        # What float32 loses, the numbers that are compared here may still have.
        if same(view, edit, whole) or (lost is not edit and same(view, lost, whole)):
            return lost
    return None


def _rows_read(moved: Array, shape: tuple[int, ...]) -> Array | None:
    """Return which row of scores each row read behind the softmax is, the same for all images.

    None if images, heads or keys stand elsewhere.
    """
    if moved.size != int(np.prod(shape)) or moved.shape[-1] != shape[-1]:
        return None
    rows, keys = shape[-2:]
    whole = moved.reshape(-1, rows, keys)
    read = whole[0, :, 0] // keys
    wanted = np.arange(moved.size).reshape(-1, rows, keys)[:, read] if read.max() < rows else None
    return read if wanted is not None and np.array_equal(whole, wanted) else None


def _asked(view: GraphView, steps: tuple[Operation, ...], score: str, end: str) -> Scores | None:
    """Ask the way from the scores to the softmax what it does."""
    shape = view.shape(score)
    if not steps:
        return Scores(1.0, 0.0, np.zeros(shape), np.zeros(shape, bool))
    origin = places(view, end, score)
    if origin is None or origin.size != int(np.prod(shape)):
        return None

    def answer(value: float) -> Array:
        made = view.computed(steps, {score: np.full(shape, value)})[end]
        flat = np.empty(origin.size)
        flat[origin.reshape(-1)] = made.reshape(-1)
        return flat.reshape(shape)

    zero = answer(0.0)
    # A row that finite numbers hide as a whole is seen whole: a softmax knows differences only.
    top = zero.max(axis=-1, keepdims=True)
    level = np.where((top < _HIDDEN) & np.isfinite(top), top, 0.0)
    hidden = zero - level < _HIDDEN
    if hidden.all():
        return None
    bias = np.where(hidden, -np.inf, zero - level)
    rise = (answer(1e-3)[~hidden] - zero[~hidden]) / 1e-3
    scale = float(np.median(rise))
    high = float(answer(1e12)[~hidden][0] - zero[~hidden][0])
    softcap = 0.0 if abs(high) > 1e9 * abs(scale) else abs(high)
    scale = _nearest(scale, _numbers(view, steps))
    absorbed = np.broadcast_to(level < _ABSORBS, shape)
    return Scores(scale, softcap, bias, absorbed) if scale > 0 else None


def _numbers(view: GraphView, steps: tuple[Operation, ...]) -> list[float]:
    """Return the numbers that a scale may be: products and quotients of those on the way."""
    numbers = [one for one in view.numbers(Region("", steps)) if one] or [1.0]
    near = {1.0, *numbers, *(1.0 / one for one in numbers)}
    return [*near, *(a * b for a in near for b in near)]


def _nearest(value: float, choices: list[float]) -> float:
    """Return the choice that a measured number stands for, itself if there is none."""
    best = min(choices, key=lambda one: abs(one - value))
    return best if abs(best - value) <= 1e-4 * abs(value) else value


def _built(
    view: GraphView,
    root: Operation,
    side: int,
    product: Operation,
    heads: HeadAxes,
    found: Scores,
    names: Names,
    *,
    absorb: bool = False,
) -> Replacement | None:
    """Build the operation with the moves around it; `absorb` takes the queries of such rows away.

    Float32 does so where it adds a number beside which scores are nothing.
    """
    edit = Replacement(view, root, names)
    edit.source = " + ".join(dict.fromkeys((product.source, "softmax", root.source)))
    q = _rows(edit, product.inputs[0], bool(product["transpose_a"]))
    k = _rows(edit, product.inputs[1], not product["transpose_b"])
    v = _rows(
        edit,
        root.inputs[1 - side],
        bool(root["transpose_b" if side == 0 else "transpose_a"]) ^ (side == 1),
    )
    inputs = [heads.queries(edit, q)]
    if absorb:
        kept = 1 - heads.mask(found.absorbed.astype(np.float32))[..., :1]
        size = edit.type(inputs[0]).shape
        rows = edit.constant(np.broadcast_to(kept, size).astype(np.float32), f"{root.name}.rows")
        inputs = [edit.step("mul", [inputs[0], rows])]
    for name in (k, v):
        inputs.append(heads.keys(edit, name))
    causal, offset, window, mask = _mask(heads.mask(found.bias))
    if mask is not None:
        inputs.append(edit.constant(mask, f"{root.name}.mask"))
    made = edit.step(
        "attention", inputs, scale=float(found.scale), causal=causal, offset=offset,
        window=window, softcap=float(found.softcap),
    )  # fmt: skip
    made = heads.back(edit, made)
    if side == 1:
        rank = len(edit.type(made).shape)
        made = edit.transpose(made, (*range(rank - 2), rank - 1, rank - 2))
    return edit.named(edit.reshape(made, view.shape(root.outputs[0])))


def _rows(edit: Replacement, name: str, turned: bool) -> str:
    """Return an operand with its rows in front of what is summed over."""
    rank = len(edit.type(name).shape)
    return edit.transpose(name, (*range(rank - 2), rank - 1, rank - 2)) if turned else name


def _mask(bias: Array) -> tuple[bool, int, int, Array | None]:
    """Return causal, offset and window of a bias (B, H, S, T), and what is left as a mask."""
    if not bias.any():
        return False, 0, 0, None
    small = bias
    for axis in (0, 1):
        if bool((small == small[(slice(None),) * axis + (slice(0, 1),)]).all()):
            small = small[(slice(None),) * axis + (slice(0, 1),)]
    hidden = np.isneginf(small)
    if small.shape[:2] == (1, 1) and not small[~hidden].any():
        found = _causal(~hidden[0, 0])
        if found is not None:
            return True, *found, None
        return False, 0, 0, ~hidden
    if not hidden.any():
        return False, 0, 0, small.astype(np.float32)
    return False, 0, 0, np.where(hidden, -np.inf, small).astype(np.float32)


def _causal(seen: Array) -> tuple[int, int] | None:
    """Return offset and window of what queries see (S, T), None if it is no such thing."""
    rows, keys = seen.shape
    place, key = np.arange(rows)[:, None], np.arange(keys)[None, :]
    last = [int(np.flatnonzero(row).max(initial=-1)) for row in seen]
    offsets = {end - row for row, end in enumerate(last) if 0 <= end < keys - 1}
    if len(offsets) != 1:
        return None
    (offset,) = offsets
    causal = key <= place + offset
    if np.array_equal(seen, causal):
        return offset, 0
    counts = seen.sum(axis=1)
    window = int(counts.max())
    if np.array_equal(seen, causal & (key > place + offset - window)):
        return offset, window
    return None
