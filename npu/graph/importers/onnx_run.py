# SPDX-License-Identifier: Apache-2.0
"""Runs models of ONNX: in onnxruntime, else in the evaluator of onnx what that has right.

The evaluator of onnx is written to be read. It takes attributes and inputs that it then does not
look at, such as the lengths of an LSTM's sequences, and gives other numbers. `onnx_reference.txt`
lists what has been compared; what is not on it takes onnxruntime. There it runs operator by
operator, as the model has them, in the thread that calls.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import onnx
from onnx.helper import get_attribute_value
from onnx.reference import ReferenceEvaluator

from npu.graph.form import GraphError
from npu.graph.host_evaluators import MissingError
from npu.graph.importers.onnx_load import nodes_of

try:
    import onnxruntime
except ImportError:
    onnxruntime = None

Runner: TypeAlias = Callable[[Mapping[str, Any]], list[Any]]
"""Takes inputs by name, returns outputs in the order of the model."""
_LIST = Path(__file__).with_name("onnx_reference.txt")
_QUIET = 4
"""Of onnxruntime's levels of severity: what kills."""
_NOT_OF_NUMPY = ("bfloat16", "float8", "float4", "int4)", "int2)")
"""Neither taken nor given."""
_FAILURES = ("Fail", "NotImplemented")
"""What is no fault of the values."""


def runner(model: onnx.ModelProto) -> Runner:
    """Return what runs a model.

    Raises:
        GraphError: nobody here can run it.
        MissingError: onnxruntime could, and is not installed.
    """
    untried = [name for node in nodes_of(*model.graph.node) if (name := _untried(node, model))]
    other = None if untried else cache(lambda: _in_reference(model))
    if onnxruntime is not None:
        try:
            return _in_runtime(model, other)
        except Exception as error:  # a class of its own for each status, without a common one
            if other is None:
                raise GraphError(f"onnxruntime: {_words(error)}") from None
    if other is None:
        raise MissingError(
            f"{untried[0]} takes onnxruntime, which is not installed: pip install -e .[graphs]"
        )
    return other()


def _in_runtime(model: onnx.ModelProto, other: Callable[[], Runner] | None) -> Runner:
    """Return what runs a model in onnxruntime, and elsewhere what that fails at."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.enable_cpu_mem_arena = options.enable_mem_pattern = False
    options.log_severity_level = _QUIET
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    for one in (*session.get_inputs(), *session.get_outputs()):
        if any(name in one.type for name in _NOT_OF_NUMPY):
            raise GraphError(f"{one.name!r} is {one.type}, allowed types of numpy")

    def run(inputs: Mapping[str, Any]) -> list[Any]:
        # What numpy calls a scalar is no tensor there.
        given = {
            name: np.asarray(value) if isinstance(value, np.generic) else value
            for name, value in inputs.items()
        }
        try:
            return list(session.run(None, given))
        except Exception as error:
            if other is not None and type(error).__name__ in _FAILURES:
                return other()(inputs)
            raise GraphError(f"onnxruntime: {_words(error)}") from None

    return run


def _in_reference(model: onnx.ModelProto) -> Runner:
    try:
        session = ReferenceEvaluator(model)
    except Exception as error:  # for an attribute that is missing, one without a type of its own
        raise GraphError(f"the reference evaluator of onnx: {_words(error)}") from None

    def run(inputs: Mapping[str, Any]) -> list[Any]:
        try:
            with np.errstate(all="ignore"):
                return list(session.run(None, dict(inputs)))
        except Exception as error:  # whatever numpy and its operators raise
            what = f"{type(error).__name__}: {_words(error)}"
            raise GraphError(f"the reference evaluator of onnx: {what}") from None

    return run


def _words(error: Exception) -> str:
    return " ".join(str(error).split())[:300]


@cache
def tried() -> Mapping[str, frozenset[str]]:
    """Return what the evaluator of onnx has right.

    Returns:
        For operators, as Name-version of the operator set that they come from, the names of
        attributes that may be other than left out; # and a number stand for an input beyond those
        that must be given.
    """
    lines = _LIST.read_text(encoding="ascii").splitlines()
    words = [line.split() for line in lines if line and not line.startswith("#")]
    return {name: frozenset(allowed) for name, *allowed in words}


def spoken(node: onnx.NodeProto, version: int) -> tuple[str, frozenset[str]]:
    """Return a node in the words of the list: its operator, and what it says beyond that."""
    domain = "" if node.domain == "ai.onnx" else node.domain
    try:
        schema = onnx.defs.get_schema(node.op_type, version, domain)
    except onnx.defs.SchemaError:
        return f"{domain}.{node.op_type}", frozenset()
    said = {one.name for one in node.attribute if not _as_left_out(one, schema)}
    least = schema.min_input
    said |= {f"#{at}" for at, name in enumerate(node.input) if name and at >= least}
    if least != schema.max_input and len(schema.inputs) == 1:
        said = {one for one in said if not one.startswith("#")}
    name = f"{domain}.{node.op_type}".strip(".")
    return f"{name}-{schema.since_version}", frozenset(said)


def _as_left_out(attribute: onnx.AttributeProto, schema: onnx.defs.OpSchema) -> bool:
    known = schema.attributes.get(attribute.name)
    if known is None or not known.default_value.name:
        return False
    return bool(get_attribute_value(attribute) == get_attribute_value(known.default_value))


def _untried(node: onnx.NodeProto, model: onnx.ModelProto) -> str:
    """Return what is not on the list of a node, "" if all is."""
    domain = "" if node.domain == "ai.onnx" else node.domain
    versions = {
        "" if one.domain == "ai.onnx" else one.domain: one.version for one in model.opset_import
    }
    name, said = spoken(node, versions.get(domain, 1))
    if name not in tried():
        return name
    more = sorted(said - tried()[name])
    return f"{name} with {more[0]}" if more else ""


def arrays(found: Sequence[Any]) -> list[Any]:
    """Return results as arrays. Raises GraphError for what is no tensor."""
    for value in found:
        if not isinstance(value, np.ndarray | np.generic):
            raise GraphError(f"a result is a {type(value).__name__}, allowed tensors")
    return [np.asarray(value) for value in found]
