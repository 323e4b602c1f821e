# SPDX-License-Identifier: Apache-2.0
"""Weights of two and four bits of a file are narrow in the stream, and the results are the same."""

from __future__ import annotations

import numpy as np
import pytest

from tests.needs import needs

needs("graphs")

from onnx.reference import ReferenceEvaluator

from golden.graph import run as golden_run
from npu.compiler.weight_tiles import fewest_bits
from npu.planner.build_plan import CompileOptions, build_plan
from spec.isa.generated import WeightFormat
from spec.isa.operands import Limits
from tessera.golden_chip import run_on_golden
from tests.python.compiler.narrow_networks import COLUMNS, KINDS, narrow_network


@pytest.mark.parametrize("window", [0, 1, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_narrow_weights_of_a_file_are_narrow_in_the_stream(kind: str, window: int) -> None:
    """A half and a quarter of the bytes; on a chip without narrow formats the bytes of int8."""
    model, inputs = narrow_network(kind, window=window)
    (wanted,) = ReferenceEvaluator(model).run(None, inputs)
    narrow = build_plan(model, CompileOptions(limits=Limits()))
    wide = build_plan(model, CompileOptions(limits=Limits(narrow_formats=False)))
    (found,) = run_on_golden(narrow.plan, inputs).outputs.values()
    (golden,) = golden_run(narrow.passes["fuse"], inputs).values()
    np.testing.assert_array_equal(found, golden)
    assert np.abs(found.astype(int) - wanted).max() <= 1
    formats = {share.format for share in narrow.plan.shares}
    assert formats == {kind.removeprefix("u")}
    assert {share.format for share in wide.plan.shares} == {""}
    sizes = [sum(share.bytes for share in built.plan.shares) for built in (narrow, wide)]
    channels = 8 * -(-COLUMNS // 16) * 16
    bits = 4 if "4" in kind else 2
    assert (sizes[0] - channels) * 8 == (sizes[1] - channels) * bits


@pytest.mark.parametrize(
    ("low", "high", "fmt"),
    [
        (-2, 1, WeightFormat.INT2),
        (-3, 1, WeightFormat.INT4),
        (-2, 2, WeightFormat.INT4),
        (-8, 7, WeightFormat.INT4),
        (-9, 7, WeightFormat.INT8),
        (-8, 8, WeightFormat.INT8),
    ],
)
def test_the_fewest_bits_that_hold_weights(low: int, high: int, fmt: WeightFormat) -> None:
    """Both ends count."""
    assert fewest_bits(np.array([[low, 0], [0, high]], np.int8)) == fmt
