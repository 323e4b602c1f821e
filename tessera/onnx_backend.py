# SPDX-License-Identifier: Apache-2.0
"""The chip as a backend of ONNX: whatever drives an `onnx.backend.base.Backend` drives it.

Device "CPU" runs everything on the host, as operations of the host run. Device "NPU" runs on
the chip (the instruction model, which has every bit) what the chip can do, and the rest on the
host. A network in floats is calibrated on `calibrate`, or on the inputs of its first run, and runs
on the host if its integers lose more than `tolerance` there: a backend promises what ONNX computes.

    from tessera import onnx_backend

    rep = onnx_backend.prepare(model, device="NPU")
    outputs = rep.run([x])
    print(rep.reason or rep.report)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.base import Backend, BackendRep

from npu.compiler.errors import CompileError
from npu.graph.form import Array, GraphError
from npu.graph.importers import read
from npu.graph.importers.onnx_run import Runner, runner
from npu.graph.inputs import Samples
from npu.planner.build_plan import CompileOptions, build_plan
from npu.runtime.network_account import report_of
from npu.runtime.plan import Plan
from npu.runtime.report import NetworkReport
from tessera.golden_chip import run_on_golden
from tessera.onnx_parameters import parameters_of

HOST, CHIP = "CPU", "NPU"
DEVICES = (HOST, CHIP)
TOLERANCE = 0.04
"""Of the largest output of a network in floats."""


class TesseraRep(BackendRep):  # type: ignore[misc]
    """A model that can be run.

    Attributes:
        reason: why all of it runs on the host, "" if some of it runs on the chip or nothing has
            run yet.
        error: of the outputs on the inputs of the first run, over the largest of each; None for
            networks that are quantised already, and before the first run.
        report: places and costs of a model that runs on the chip, None otherwise.
    """

    def __init__(
        self,
        model: Any,  # noqa: ANN401
        device: str,
        calibrate: Samples | str | None = None,
        tolerance: float = TOLERANCE,
    ) -> None:
        """Take a model that the checker accepts."""
        self.model = model
        self.device = device
        self.calibrate = calibrate
        self.tolerance = tolerance
        self.error: float | None = None
        self.reason = "" if device == CHIP else f"device {HOST}"
        self._host: Runner | None = None
        self._plan: Plan | None = None
        self._bound: tuple[tuple[str, bytes], ...] | None = None

    @property
    def report(self) -> NetworkReport | None:
        """Places and costs."""
        return None if self._plan is None else report_of(self._plan)

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:  # noqa: ANN401
        """Run the model.

        Args:
            inputs: one per input of the model in their order, fewer if the last ones have defaults;
                or by name.
            kwargs: nothing is taken.

        Raises:
            GraphError: there are too many inputs, or one has a name that does not exist.
        """
        if kwargs:
            raise GraphError(f"run: given {', '.join(kwargs)}, allowed inputs alone")
        given = self._by_name(inputs)
        if self.device == CHIP:
            found = self._on_chip(given)
            if found is not None:
                return found
        return self._on_host(given)

    def _on_host(self, given: dict[str, Any]) -> tuple[Any, ...]:
        if self._host is None:
            self._host = runner(self.model)
        return tuple(self._host(given))

    def _by_name(self, inputs: Any) -> dict[str, Any]:  # noqa: ANN401
        every = [one.name for one in self.model.graph.input]
        if isinstance(inputs, Mapping):
            unknown = [name for name in inputs if name not in every]
            if unknown:
                raise GraphError(f"input {unknown[0]!r}: allowed {', '.join(every)}")
            return {name: _array(value) for name, value in inputs.items()}
        values = list(inputs) if isinstance(inputs, list | tuple) else [inputs]
        # Old models name their weights among the inputs; who has no other values leaves them out.
        weights = {one.name for one in self.model.graph.initializer}
        names = [name for name in every if name not in weights]
        if len(values) > len(names):
            names = every
        if len(values) > len(names):
            raise GraphError(f"inputs: given {len(values)}, allowed {len(names)}")
        return {name: _array(value) for name, value in zip(names, values, strict=False)}

    def _on_chip(self, given: dict[str, Any]) -> tuple[Array, ...] | None:
        """Return the outputs, None if the host has to make them all; `reason` says why."""
        try:
            self._compile(given)
            assert self._plan is not None
            names = self._plan.graph.inputs
            found = run_on_golden(self._plan, {name: np.asarray(given[name]) for name in names})
        except (GraphError, CompileError) as error:
            self._plan, self._bound, self.reason = None, None, str(error)
            return None
        return tuple(
            # Plans hold bfloat16 in float32.
            np.asarray(found.outputs[name], onnx.helper.tensor_dtype_to_np_dtype(kind))
            for name, kind in zip(self._plan.graph.outputs, self._kinds(), strict=True)
        )

    def _kinds(self) -> list[int]:
        return [one.type.tensor_type.elem_type for one in self.model.graph.output]

    def _compile(self, given: dict[str, Any]) -> None:
        """Compile the model for the shapes of its inputs, and for the parameters among them.

        Raises GraphError or CompileError if nothing of it can run on the chip.
        """
        for name, value in given.items():
            if not isinstance(value, np.ndarray | np.generic):
                raise GraphError(f"input {name!r}: given {type(value).__name__}, allowed arrays")
        fixed = parameters_of(self.model) & set(given)
        bound = tuple(
            (name, np.asarray(value).tobytes() if name in fixed else str(np.shape(value)).encode())
            for name, value in sorted(given.items())
        )
        if bound == self._bound:
            return
        constants = {name: np.asarray(given[name]) for name in fixed}
        shapes = {name: np.shape(value) for name, value in given.items() if name not in fixed}
        graph = read(self.model, shapes=shapes, constants=constants)
        samples = self.calibrate
        if samples is None:
            samples = {name: np.asarray(given[name])[None] for name in graph.inputs}
        built = build_plan(graph, CompileOptions(calibrate=samples))
        plan = built.plan
        if not plan.segments:
            reasons = {op.place.reason for op in plan.graph.operations if op.place}
            raise GraphError("; ".join(sorted(reasons)) or "there is nothing to compute")
        quantised = any(one.type.quantisation for one in built.passes["import"].tensors.values())
        self.error = None if quantised else self._loss(plan, given)
        if self.error is not None and self.error > self.tolerance:
            raise GraphError(
                f"its integers lose {self.error:.1%} of the largest output, allowed "
                f"{self.tolerance:.1%}"
            )
        self._plan, self._bound, self.reason = plan, bound, ""

    def _loss(self, plan: Plan, given: dict[str, Any]) -> float:
        """Return how far the chip is from the host, over the largest output."""
        inputs = {name: np.asarray(given[name]) for name in plan.graph.inputs}
        found = run_on_golden(plan, inputs).outputs
        worst = 0.0
        for name, exact in zip(plan.graph.outputs, self._on_host(given), strict=True):
            wanted = np.asarray(exact, np.float64)
            with np.errstate(invalid="ignore"):
                apart = np.abs(np.asarray(found[name], np.float64) - wanted)
            apart = np.nan_to_num(np.where(found[name] == wanted, 0.0, apart), nan=np.inf)
            largest = np.abs(wanted[np.isfinite(wanted)]).max(initial=0.0) or 1.0
            worst = max(worst, float(apart.max(initial=0.0)) / float(largest))
        return worst


def _array(value: Any) -> Any:  # noqa: ANN401
    """Return a tensor of ONNX as an array; numpy has not all of its types."""
    return numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value


class TesseraBackend(Backend):  # type: ignore[misc]
    """The chip, and the host beside it."""

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Return whether there is such a device."""
        return device in DEVICES

    @classmethod
    def is_compatible(cls, model: Any, device: str = HOST, **kwargs: Any) -> bool:  # noqa: ANN401
        """Return whether a model can be prepared."""
        del kwargs
        return cls.supports_device(device) and isinstance(model, onnx.ModelProto)

    @classmethod
    def prepare(
        cls,
        model: Any,  # noqa: ANN401
        device: str = HOST,
        **kwargs: Any,  # noqa: ANN401
    ) -> TesseraRep:
        """Return a model ready to run.

        Args:
            model: an `onnx.ModelProto`.
            device: "CPU" or "NPU".
            kwargs: calibrate, samples as `tessera.load` takes them; tolerance, the most that a
                network in floats may lose, over its largest output.

        Raises:
            GraphError: the model is none, or an argument is unknown.
        """
        if not isinstance(model, onnx.ModelProto):
            raise GraphError(f"model: given {type(model).__name__}, allowed onnx.ModelProto")
        if not cls.supports_device(device):
            raise GraphError(f"device: given {device!r}, allowed {', '.join(DEVICES)}")
        unknown = sorted(set(kwargs) - {"calibrate", "tolerance"})
        if unknown:
            raise GraphError(f"prepare: given {unknown[0]!r}, allowed calibrate, tolerance")
        try:
            onnx.checker.check_model(model)
        except (onnx.checker.ValidationError, ValueError) as error:
            reason = " ".join(str(error).split())
            raise GraphError(f"model: the checker of onnx refuses it: {reason}") from None
        return TesseraRep(model, device, **kwargs)

    @classmethod
    def run_model(
        cls,
        model: Any,  # noqa: ANN401
        inputs: Any,  # noqa: ANN401
        device: str = HOST,
        **kwargs: Any,  # noqa: ANN401
    ) -> tuple[Any, ...]:
        """Prepare a model and run it once."""
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(
        cls,
        node: Any,  # noqa: ANN401
        inputs: Any,  # noqa: ANN401
        device: str = HOST,
        outputs_info: Sequence[tuple[Any, tuple[int, ...]]] | None = None,
        **kwargs: Any,  # noqa: ANN401
    ) -> tuple[Any, ...]:
        """Run a single node on its inputs, in their order.

        Args:
            node: an `onnx.NodeProto`.
            inputs: an array for each name that is given.
            device: "CPU" or "NPU".
            outputs_info: type and shape of each output, unless they can be inferred.
            kwargs: as `prepare`.
        """
        names = list(dict.fromkeys(name for name in node.input if name))
        arrays = [np.asarray(one) for one in inputs]
        if len(arrays) != len(names):
            raise GraphError(f"inputs: given {len(arrays)}, allowed {len(names)}")
        of = onnx.helper.np_dtype_to_tensor_dtype
        declare = onnx.helper.make_tensor_value_info
        declared = [
            declare(name, of(one.dtype), one.shape) for name, one in zip(names, arrays, strict=True)
        ]
        if outputs_info is None:
            results = [onnx.helper.make_empty_tensor_value_info(name) for name in node.output]
        else:
            results = [
                declare(name, of(np.dtype(kind)), shape)
                for name, (kind, shape) in zip(node.output, outputs_info, strict=True)
            ]
        graph = onnx.helper.make_graph([node], "node", declared, results)
        sets = [
            onnx.helper.make_opsetid(
                node.domain, kwargs.pop("opset_version", None) or onnx.defs.onnx_opset_version()
            )
        ]
        model = onnx.helper.make_model(graph, opset_imports=sets)
        if outputs_info is None:
            model = onnx.shape_inference.infer_shapes(model)
        return cls.prepare(model, device, **kwargs).run(arrays)


supports_device = TesseraBackend.supports_device
is_compatible = TesseraBackend.is_compatible
prepare = TesseraBackend.prepare
run_model = TesseraBackend.run_model
run_node = TesseraBackend.run_node
