# SPDX-License-Identifier: Apache-2.0
"""Rewrite a float model so that it computes the same function and quantises better.

Value channel j of a head meets the same row j of the output projection whatever the attention
does, so v_j / r_j with (row j of W_o) * r_j is the same network. r_j is chosen so that both sides
get equal ranges (alpha = 0.5; Nagel et al., "Data-Free Quantization Through Weight Equalization
and Bias Correction", 2019) and is rounded to a power of two, which makes the rewriting exact in
floating point, not only on paper.

The two matrices around the GELU of GPT-2 have no such pair: the GELU is not homogeneous.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from weights.importer import Checkpoint


def value_factors(checkpoint: Checkpoint, layer: int) -> npt.NDArray[np.float32]:
    """Return r (H,) float32, powers of two: sqrt(range of v_j / range of row j of W_o).

    The range of v_j is estimated without data by the standard deviation that its weights give it
    when the normalised inputs are uncorrelated: the length of gain * W_v[:, j]. Channels in which
    either side is zero keep r = 1.
    """
    hidden = checkpoint.shape.hidden
    gain = checkpoint.layer(layer, "ln_1.weight").astype(np.float64)
    value = checkpoint.layer(layer, "attn.c_attn.weight")[:, 2 * hidden :].astype(np.float64)
    output = checkpoint.layer(layer, "attn.c_proj.weight").astype(np.float64)
    given = np.sqrt(np.square(gain[:, None] * value).sum(axis=0))
    taken = np.sqrt(np.square(output).sum(axis=1))
    usable = (given > 0) & (taken > 0)
    ratio = np.where(usable, given, 1.0) / np.where(usable, taken, 1.0)
    middle = np.exp2(np.log2(ratio).mean())
    factors: npt.NDArray[np.float32] = np.where(
        usable, np.exp2(np.rint(0.5 * np.log2(ratio / middle))), 1.0
    ).astype(np.float32)
    return factors


def equalize(checkpoint: Checkpoint) -> Checkpoint:
    """Return an equal model whose value channels have balanced ranges in every layer."""
    hidden = checkpoint.shape.hidden
    tensors = dict(checkpoint.tensors)
    for layer in range(checkpoint.shape.layers):
        factors = value_factors(checkpoint, layer)
        weight = checkpoint.layer(layer, "attn.c_attn.weight").copy()
        bias = checkpoint.layer(layer, "attn.c_attn.bias").copy()
        weight[:, 2 * hidden :] /= factors
        bias[2 * hidden :] /= factors
        output = checkpoint.layer(layer, "attn.c_proj.weight") * factors[:, None]
        tensors[f"h.{layer}.attn.c_attn.weight"] = weight
        tensors[f"h.{layer}.attn.c_attn.bias"] = bias
        tensors[f"h.{layer}.attn.c_proj.weight"] = output
    return Checkpoint(
        checkpoint.family, checkpoint.shape, tensors, checkpoint.source, checkpoint.folder
    )
