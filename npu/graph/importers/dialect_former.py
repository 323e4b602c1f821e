# SPDX-License-Identifier: Apache-2.0
"""Operators of the standard in a form that it has taken back."""

from __future__ import annotations

import numpy as np

from npu.graph.form import GraphError
from npu.graph.importers.onnx_dialects import ForeignNode, operator


@operator("GroupNormalization", domain="")
def _group_norm(one: ForeignNode) -> None:
    """Normalise groups of channels with a gain and a bias per group, as versions 18 to 20 do."""
    x, groups = one.input(0), int(one.attributes["num_groups"])
    channels = one.shape(x)[1]
    if groups < 1 or channels % groups:
        raise GraphError(f"num_groups {groups}, allowed a divisor of {channels} channels")
    group = one.constant(np.arange(channels) // (channels // groups))
    given = [one.add("Gather", [one.input(index), group], axis=0) for index in (1, 2)]
    said = {name: one.attributes.get(name) for name in ("epsilon", "stash_type")}
    one.give("GroupNormalization", [x, *given], num_groups=groups, **said)
