# SPDX-License-Identifier: Apache-2.0
"""The tensors of a file whose layers are modules of PyTorch, from the names of the modules."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from weights.architecture import Stored
from weights.checkpoint import CheckpointShape, expected_tensors

Modules = Mapping[str, tuple[str, ...]]
"""Names of modules of a layer, each with the parts of a block that it holds side by side."""


def stored_layers(
    shape: CheckpointShape,
    modules: Modules,
    *,
    layer: str = "layers.{}",
    embed: str = "embed_tokens",
    norm: str = "norm",
    positions: str = "",
    skipped: int = 0,
    offset: float = 0.0,
    grouped: bool = False,
) -> list[Stored]:
    """Return every tensor of a file but the head.

    Args:
        shape: of the model.
        modules: of a layer.
        layer: what stands before them, with the number of the layer.
        embed: the module of the token table.
        norm: of the last norm.
        positions: of learned positions.
        skipped: rows of positions that stand for nothing, in front.
        offset: is added to the gains of norms.
        grouped: of q, k and v in one module, the queries of a K/V head stand beside it.
    """
    expected = expected_tensors(shape)
    tensors = [Stored(f"{embed}.weight", ("embed",))]
    if shape.positions:
        tensors.append(Stored(f"{positions}.weight", ("positions",), skipped=skipped))
    for number in range(shape.layers):
        ours, theirs = f"h.{number}", layer.format(number)
        for name, parts in modules.items():
            columns = _columns(shape, number, parts, grouped)
            for kind in ("weight", "bias"):
                names = tuple(f"{ours}.{part}.{kind}" for part in parts)
                if names[0] not in expected:
                    continue
                gain = kind == "weight" and len(expected[names[0]]) == 1
                twice = shape.one_norm and parts == ("norm1",)
                tensors.append(
                    Stored(
                        f"{theirs}.{name}.{kind}",
                        names,
                        transposed=len(expected[names[0]]) == 2,
                        order=columns,
                        offset=offset if gain else 0.0,
                        copies=(f"{ours}.norm2.{kind}",) if twice else (),
                    )
                )
    tensors += [
        Stored(f"{norm}.{kind}", (f"norm.{kind}",), offset=offset if kind == "weight" else 0.0)
        for kind in ("weight", "bias")
        if f"norm.{kind}" in expected
    ]
    return tensors


def _columns(
    shape: CheckpointShape, layer: int, parts: tuple[str, ...], grouped: bool
) -> npt.NDArray[np.int64] | None:
    """Return which stored column each column of some parts is, None where they lie as they are."""
    if not shape.rope and not grouped:
        return None
    straight = np.arange(shape.head_dim)
    turned = straight
    if shape.rope:
        turned = shape.rotation(shape.table_of(layer)).order(shape.head_dim)
    found, start = [], 0
    for part in parts:
        name = part.removesuffix("_norm")
        if name not in ("q", "k", "v"):
            return None
        count = shape.heads if name == "q" else shape.kv_heads
        if part != name and shape.head_norms == "head":
            count = 1
        heads = start + np.arange(count)
        start += count
        if grouped:
            group, slot = np.divmod(np.arange(count), shape.group if name == "q" else 1)
            before = 0 if name == "q" else shape.group + int(name == "v")
            heads = group * (shape.group + 2) + before + slot
        lanes = straight if name == "v" else turned
        found.append((heads[:, None] * shape.head_dim + lanes).ravel())
    columns = np.concatenate(found)
    return None if np.array_equal(columns, np.arange(columns.size)) else columns
