# SPDX-License-Identifier: Apache-2.0
"""The cases of the ONNX suite on the chip: which of them run there, and what they lose."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from npu.graph.form import Array
from tessera import onnx_backend


@dataclass(frozen=True)
class SuiteCase:
    """A case of the suite.

    Attributes:
        name: of the case.
        model: of ONNX.
        inputs, outputs: of the first data set.
    """

    name: str
    model: Any
    inputs: list[Any]
    outputs: list[Any]

    @property
    def operator(self) -> str:
        """Of a model of one node, else ""."""
        nodes = self.model.graph.node
        return str(nodes[0].op_type) if len(nodes) == 1 else ""


@dataclass(frozen=True)
class ChipResult:
    """What a case gave on device NPU.

    Attributes:
        name, operator: of the case.
        reason: why it runs on the host, "" on the chip.
        error: the largest difference over the largest magnitude of its output.
        steps: the largest difference.
        integers: whether all outputs are integers.
        alike: whether outputs have the suite's shapes and types.
    """

    name: str
    operator: str
    reason: str
    error: float
    steps: float
    integers: bool
    alike: bool


def suite(kind: str) -> Iterator[SuiteCase]:
    """Yield the cases of a kind, "node" or "pytorch-converted", in their order."""
    import onnx
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = load_model_tests(kind=kind)
    for case in cases:
        if case.data_sets:
            inputs, outputs = case.data_sets[0]
            yield SuiteCase(case.name, case.model, list(inputs), list(outputs))
        elif case.model_dir:
            folder = Path(case.model_dir)
            data = folder / "test_data_set_0"
            model = onnx.load(folder / "model.onnx")
            yield SuiteCase(case.name, model, _stored(data, "input"), _stored(data, "output"))


def _stored(folder: Path, kind: str) -> list[Any]:
    import onnx

    found = []
    for number in range(len(list(folder.glob(f"{kind}_*.pb")))):
        tensor = onnx.TensorProto()
        tensor.ParseFromString((folder / f"{kind}_{number}.pb").read_bytes())
        found.append(onnx.numpy_helper.to_array(tensor))
    return found


def on_chip(case: SuiteCase) -> ChipResult:
    """Run a case on device NPU."""
    rep = onnx_backend.prepare(case.model, onnx_backend.CHIP)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            found = rep.run(case.inputs)
        except Exception:
            # What the evaluator of ONNX cannot run is none of the chip's affair.
            if not rep.reason:
                raise
    if rep.reason:
        return ChipResult(case.name, case.operator, rep.reason, 0.0, 0.0, False, True)
    error = steps = 0.0
    integers = alike = True
    for one, other in zip(found, case.outputs, strict=False):
        value, wanted = np.asarray(one), np.asarray(other)
        alike &= value.shape == wanted.shape and value.dtype == wanted.dtype
        integers &= wanted.dtype.kind in "iu"
        apart = _apart(value, wanted)
        largest = np.abs(wanted[np.isfinite(wanted)].astype(np.float64)).max(initial=0.0) or 1.0
        steps, error = max(steps, apart), max(error, apart / float(largest))
    return ChipResult(case.name, case.operator, "", error, steps, integers, alike)


def _apart(value: Array, wanted: Array) -> float:
    """Return the largest difference, infinite where only one of two is a number."""
    with np.errstate(all="ignore"):
        apart = np.abs(value.astype(np.float64) - wanted.astype(np.float64))
    apart = np.where(value == wanted, 0.0, apart)
    return float(np.nan_to_num(apart, nan=np.inf).max(initial=0.0))
