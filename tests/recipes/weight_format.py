# SPDX-License-Identifier: Apache-2.0
"""What `recipes/weight_format.patch` adds, INT2G: run in a copy of the tree with it."""

from __future__ import annotations

import numpy as np

from golden import formats
from npu.asm import assemble, disassemble
from npu.compiler.weight_tiles import weight_bytes
from spec.isa import WeightFormat, WeightGroup
from spec.isa.gemm import GemmForm
from tests.python.compiler.test_compiler_model import test_narrow_weights as check_narrow_weights
from tests.python.golden.golden_support import seeded
from weights.formats.element import expansion
from weights.formats.linear import NarrowLinear
from weights.formats.recipe import WORDS
from weights.formats.rounding import column_scale, rounded

INT2G = WeightFormat.named("int2g")


def test_every_code_with_every_factor() -> None:
    """W = rs(64 * q * b, 8) in the quantiser and in golden."""
    for code, q in enumerate((0, 1, -2, -1)):
        assert formats.decode(INT2G, code) == (64 * q, 0)
        wanted = [(64 * q * b + 128) >> 8 for b in range(256)]
        assert expansion(INT2G)[:, code].tolist() == wanted


def test_a_layer_is_rounded_packed_and_expanded() -> None:
    """Golden finds in the stream what the quantiser meant, near to what it was given."""
    given = seeded(1).normal(size=(150, 40)) * np.repeat([[1.0], [4.0], [0.3]], 50, axis=0)
    encoding = WORDS["int2g32"]
    scale = column_scale(encoding, given, np.ones(150))
    codes, side = rounded(encoding, given / scale)
    unit = np.full(40, 1 << 14, np.uint16)
    bias, shift = np.zeros(40, np.int32), np.full(40, 14, np.uint8)
    layer = NarrowLinear(INT2G, 32, codes, side, bias, unit, shift)
    for edge in (16, 32):
        stream = weight_bytes(layer, edge).tobytes()
        assert np.array_equal(formats.expand(INT2G, stream, 150, 40, edge, 32), layer.weight)
    assert np.corrcoef((layer.weight * scale).ravel(), given.ravel())[0, 1] > 0.9


def test_a_program_names_it() -> None:
    """Text to words and back; the format is on the second page."""
    text = "GEMM dst=0x1000 src0=0x0 M=1 N=48 K=96 B=stream fmt=int2g group=64 out=i32\n"
    words = assemble(text).instructions
    form = GemmForm.of(words[0])
    assert (form.format, form.group) == (INT2G, WeightGroup.G64)
    assert assemble(disassemble(words)).instructions == words


def test_a_model_in_it() -> None:
    """Quantised, compiled, packed and run: every tensor is that of golden's decoder."""
    check_narrow_weights("checkpoints/gpt2-tiny", "int2g32,head=int2g16", 16)
