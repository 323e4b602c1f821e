# SPDX-License-Identifier: Apache-2.0
"""Narrow weights on their way through the compiler, against golden's expansion of what it packs."""

import numpy as np
import pytest

from golden import formats
from npu.compiler.errors import CompileError
from npu.compiler.linear_padding import columns, pad_inputs, pad_outputs
from npu.compiler.weight_tiles import format_of, weight_bytes
from spec.isa import WeightFormat
from spec.isa.weight_formats import GROUPED, MX, NARROW, StreamLayout
from tests.python.golden.golden_support import seeded
from weights.formats.linear import NarrowLinear
from weights.formats.recipe import Encoding
from weights.synthetic import random_narrow

KINDS = [(fmt, 0) for fmt in NARROW if fmt not in GROUPED | MX]
KINDS += [(fmt, 32) for fmt in NARROW if fmt in MX]
KINDS += [(fmt, group) for fmt in NARROW if fmt in GROUPED for group in (16, 32, 64, 128)]
SHAPES = [(1, 1), (16, 16), (17, 33), (130, 20), (200, 48), (520, 5)]


def expanded(layer: NarrowLinear, edge: int) -> np.ndarray:
    """Return what golden makes of the packed layer."""
    data = weight_bytes(layer, edge).tobytes()
    fmt, _ = format_of(layer)
    return formats.expand(fmt, data, layer.inputs, layer.outputs, edge, layer.group)


@pytest.mark.parametrize(
    ("fmt", "group", "edge"),
    [(*kind, edge) for kind in KINDS for edge in (16, 32) if not 0 < kind[1] < edge],
)
def test_golden_unpacks_what_the_compiler_packs(fmt: WeightFormat, group: int, edge: int) -> None:
    """Two ways to the weights: from codes in weights/, and from the stream in golden/."""
    rng = seeded(edge + group)
    for rows, outputs in SHAPES:
        layer = random_narrow(rng, Encoding(fmt, group), rows, outputs)
        packed = weight_bytes(layer, edge)
        layout = StreamLayout.of(*format_of(layer), edge)
        assert packed.shape == (-(-outputs // edge), 64 * layout.lines(rows))
        assert np.array_equal(expanded(layer, edge), layer.weight)
    assert len(np.unique(layer.weight)) > 2


@pytest.mark.parametrize(("fmt", "group"), KINDS)
def test_heads_are_padded_in_codes(fmt: WeightFormat, group: int) -> None:
    """Padded columns and rows hold weights of 0; the rest stays where it was."""
    rng = seeded(group + 1)
    layer = random_narrow(rng, Encoding(fmt, group), 96, 36)
    padded = pad_outputs(layer, 12)
    places = [column // 12 * 16 + column % 12 for column in range(36)]
    wanted = np.zeros((96, 48), np.int8)
    wanted[:, places] = layer.weight
    assert np.array_equal(padded.weight, wanted)
    assert np.array_equal(columns(layer, 5, 23).weight, layer.weight[:, 5:23])
    if fmt in GROUPED | MX:
        with pytest.raises(
            CompileError, match=f"^h: given {fmt.asm} with heads of 12, which are pad"
        ):
            pad_inputs("h", layer, 12)
    for head_dim in (12, 18):
        layer = random_narrow(rng, Encoding(fmt, group), 8 * head_dim, 36, head_dim)
        check_padded_inputs(layer, head_dim)
    if fmt not in GROUPED | MX:
        check_padded_inputs(random_narrow(rng, Encoding(fmt, group), 96, 36), 12)


def check_padded_inputs(layer: NarrowLinear, head_dim: int) -> None:
    """Rows of zeros behind each head, on the chip too; groups are those of the padded rows."""
    size = -(-head_dim // 16) * 16
    rows = [head * size + row for head in range(8) for row in range(head_dim)]
    wanted = np.zeros((8 * size, 36), np.int8)
    wanted[rows] = layer.weight
    found = pad_inputs("h", layer, head_dim)
    assert np.array_equal(found.weight, wanted)
    assert isinstance(found, NarrowLinear)
    assert np.array_equal(expanded(found, 16), wanted)
