# SPDX-License-Identifier: Apache-2.0
"""The whole suite of ONNX: on the host what its own evaluator passes, on the chip what is right.

`make regress` runs it; a sample is in tests/python/importers/test_onnx_backend.py.
"""

from __future__ import annotations

import unittest
import warnings
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest

from tests.needs import needs

needs("graphs")

from onnx.backend.base import Backend, BackendRep
from onnx.backend.test import BackendTest
from onnx.reference import ReferenceEvaluator

from dev import onnx_suite_page
from dev.onnx_suite import ChipResult, on_chip, suite
from npu.graph.importers.onnx_load import nodes_of
from npu.graph.importers.onnx_run import spoken, tried
from tessera.onnx_backend import TesseraBackend
from tests.python.importers.graph_node_cases import BORDER, FLOAT, INTEGER
from tests.python.importers.onnx_form_grids import forms

TOLERANCE, WIDE = 0.02, 0.04
"""Of the largest output, and for what nearly cancels."""
CANCELS = {"test_matmul_1d_3d", "test_mvn_expanded", "test_mvn_expanded_ver18"}
HOST = {
    "node": 1378,
    "expanded": 473,
    "pytorch-converted": 82,
    "pytorch-operator": 35,
    "simple": 21,
}
"""Cases that the evaluator of ONNX passes in its own harness; with Pillow some more."""


class _PlainRep(BackendRep):  # type: ignore[misc]
    def __init__(self, model: Any) -> None:  # noqa: ANN401
        self.session = ReferenceEvaluator(model)

    def run(self, inputs: Any, **_: Any) -> tuple[Any, ...]:  # noqa: ANN401
        return tuple(self.session.run(None, dict(zip(self.session.input_names, inputs))))  # noqa: B905


class _PlainBackend(Backend):  # type: ignore[misc]
    """The evaluator of ONNX and nothing else."""

    @classmethod
    def supports_device(cls, device: str) -> bool:
        return device == "CPU"

    @classmethod
    def prepare(cls, model: Any, device: str = "CPU", **_: Any) -> _PlainRep:  # noqa: ANN401
        del device
        return _PlainRep(model)


def _tests(backend: Any) -> Iterator[tuple[str, unittest.TestCase]]:  # noqa: ANN401
    """Yield kind and test of each case that needs no download."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = BackendTest(backend, __name__).test_cases
    kinds = {"Node": "node", "PyTorchConverted": "pytorch-converted"}
    kinds |= {"PyTorchOperator": "pytorch-operator", "Simple": "simple"}
    for title, group in cases.items():
        kind = kinds.get(title.removeprefix("OnnxBackend").removesuffix("ModelTest"))
        if kind is None:
            continue
        for name in unittest.defaultTestLoader.getTestCaseNames(group):
            yield ("expanded" if kind == "node" and "_expanded" in name else kind), group(name)


@cache
def _passed(backend: Any) -> dict[str, frozenset[str]]:  # noqa: ANN401
    """Return the names of the cases that pass, by kind."""
    found: dict[str, set[str]] = {}
    for kind, test in _tests(backend):
        result = unittest.TestResult()
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            test.run(result)
        if result.wasSuccessful() and not result.skipped:
            found.setdefault(kind, set()).add(test.id().rpartition(".")[2])
    return {kind: frozenset(names) for kind, names in found.items()}


LOST = (
    # Numbers that nobody can foresee, or letters that the machine's locale does not have.
    *("training_dropout", "strnorm"),
    # Sums in another order than that of the values, and borders of another type.
    *("attention_4d_causal_fp16", "attention_4d_diff_heads_mask4d_padded_kv", "dft_", "stft"),
    *("attention_4d_with_past_and_present_qk_matmul_bias_", "reduce_max_empty_set_bool"),
    # onnxruntime reads the standard otherwise.
    *("maxunpool_export_with_output_shape", "convinteger_with_padding"),
    *("resize_downsample_scales_cubic_align", "resize_downsample_scales_linear_align"),
    # Neither in onnxruntime nor compared.
    *("bf16_expanded", "no_saturate_FLOAT", "celu_bfloat16_expanded", "swiglu_alpha_expanded"),
)
"""Parts of names of cases that only the evaluator of ONNX passes."""


def test_on_the_host_passes_what_the_evaluator_passes() -> None:
    """The same cases by name, but for some with a reason, and as many as it has always been."""
    ours, plain = _passed(TesseraBackend), _passed(_PlainBackend)
    for kind, least in HOST.items():
        assert least <= len(plain[kind]) <= 1.02 * least, kind
        lost = plain[kind] - ours[kind]
        assert [name for name in sorted(lost) if not any(one in name for one in LOST)] == []


@cache
def _results(kind: str) -> tuple[ChipResult, ...]:
    return tuple(map(on_chip, suite(kind)))


@pytest.mark.parametrize("kind", ["node", "pytorch-converted"])
def test_on_the_chip_a_case_is_right_or_has_a_reason(kind: str) -> None:
    """Floats within 2 % of the largest output, integers equal or one apart; else the host."""
    for one in _results(kind):
        if one.reason:
            continue
        assert one.alike, one
        if one.integers:
            assert one.steps <= (0 if "Integer" in one.operator else 1), one
        else:
            assert one.error <= (WIDE if one.name in CANCELS else TOLERANCE), one


def test_as_many_cases_run_on_the_chip_as_it_has_operations_for() -> None:
    """Nothing hides on the host."""
    placed = Counter(
        "integer" if one.operator in INTEGER else "float" if one.operator in FLOAT else "other"
        for one in _results("node")
        if not one.reason
    )
    assert placed["integer"] == 12
    assert placed["float"] >= 200
    borders = [one for one in _results("node") if one.operator in BORDER]
    assert len(borders) >= 6
    converted = [one for one in _results("pytorch-converted") if one.operator == "Conv"]
    assert sum(not one.reason for one in converted) == 19


def test_the_page_tells_what_was_measured() -> None:
    """Every case of the chip with its error, everything else with its reason."""
    page = onnx_suite_page.PAGE.read_text(encoding="utf-8")
    made = onnx_suite_page.text({kind: _results(kind) for kind in onnx_suite_page.KINDS})
    assert onnx_suite_page.differences(page, made) == []


def test_what_is_listed_is_in_the_suite_or_among_the_forms() -> None:
    """Nothing is believed that nothing has tried."""
    models = [one.model for one in forms()]
    for kind in ("node", "simple", "pytorch-converted", "pytorch-operator"):
        models += [one.model for one in suite(kind)]
    known: dict[str, set[str]] = {}
    for model in models:
        versions = {one.domain.removeprefix("ai.onnx"): one.version for one in model.opset_import}
        versions |= {one.domain: one.version for one in model.opset_import}
        for node in nodes_of(*model.graph.node):
            domain = "" if node.domain == "ai.onnx" else node.domain
            name, said = spoken(node, versions.get(domain, 1))
            known.setdefault(name, set()).update(said)
    assert tried().keys() <= known.keys()
    for name, allowed in tried().items():
        assert allowed <= known[name], name
