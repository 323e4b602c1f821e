# SPDX-License-Identifier: Apache-2.0
"""Composites of StableHLO: those of `tessera.jax` become one operation, others their definition."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from npu.graph.form import Attribute, Element, GraphError, Quantisation, TensorType
from npu.graph.importers.stablehlo_elementwise import composite_scale
from npu.graph.importers.stablehlo_step import Handler, Step

_VERSIONS = (0, 1)
"""Of the composites of `tessera.jax`; text without one has 0."""


class CompositeOptions(dict[str, Any]):
    """Attributes of a composite as Python has them; remembers which a mapping has asked for."""

    def __init__(self, step: Step) -> None:
        given = step.attribute("composite_attributes") if step.has("composite_attributes") else ()
        super().__init__({one.name: _plain(step, one.name, one.attr) for one in given})
        self.asked: set[str] = set()

    def get(self, name: str, default: Any = None) -> Any:  # noqa: ANN401
        """Return an attribute, or what it is if it is not there."""
        self.asked.add(name)
        return super().get(name, default)


def _plain(step: Step, name: str, attribute: Any) -> Any:  # noqa: ANN401
    if hasattr(attribute, "value"):
        return attribute.value
    try:
        return np.array(attribute)
    except (ValueError, TypeError, BufferError):
        raise step.error(f"attribute {name} is {attribute}, allowed numbers and strings") from None


def _option(step: Step, options: CompositeOptions, name: str, default: Any = None) -> Any:  # noqa: ANN401
    found = options.get(name, default)
    if found is None:
        raise step.error(f"attribute {name} is missing")
    return found


def _single(value: float) -> float:
    """Return a number as jax computes with it: attributes are float64, tensors float32."""
    return float(np.float32(value))


def _axis(step: Step, axis: int) -> int:
    rank = len(step.shape(0))
    if not -rank <= axis < rank:
        raise step.error(f"axis {axis}, allowed {-rank}..{rank - 1}")
    return axis % rank


def _norm(kind: str) -> Callable[[Step, CompositeOptions], str]:
    def mapped(step: Step, options: CompositeOptions) -> str:
        return step.emit(
            kind,
            axes=int(_option(step, options, "axes", 1)),
            epsilon=_single(_option(step, options, "epsilon")),
        )

    return mapped


def _softmax(step: Step, options: CompositeOptions) -> str:
    return step.emit("softmax", axis=_axis(step, int(_option(step, options, "axis", -1))))


def _table(*functions: str) -> Callable[[Step, CompositeOptions], str]:
    def mapped(step: Step, options: CompositeOptions) -> str:
        return step.emit("table", functions=functions, parameters=())

    return mapped


def _gelu(step: Step, options: CompositeOptions) -> str:
    name = "gelu_tanh" if options.get("approximate", False) else "gelu"
    return step.emit("table", functions=(name,), parameters=())


def _attention(step: Step, options: CompositeOptions) -> str:
    attributes: dict[str, Attribute] = {
        "scale": _single(_option(step, options, "scale")),
        "causal": bool(options.get("causal", False)),
        "offset": int(options.get("offset", 0)),
        "window": int(options.get("window", 0)),
        "softcap": _single(options.get("softcap", 0.0)),
    }
    return step.emit("attention", None, **attributes)


def _rope(step: Step, options: CompositeOptions) -> str:
    return step.emit(
        "rope",
        interleaved=bool(options.get("interleaved", False)),
        heads_axis=_axis(step, int(_option(step, options, "heads_axis"))),
    )


def _quantisation(step: Step, options: CompositeOptions, rank: int) -> Quantisation:
    if len(step.inputs) > 2:
        raise step.error(f"{len(step.inputs)} inputs, allowed a tensor and scales")
    given: Any = step.build.value(step.inputs[1]) if len(step.inputs) > 1 else None
    if given is None:
        given = _option(step, options, "scale")
    scales = np.asarray(given, dtype=np.float64).reshape(-1)
    kept = tuple(composite_scale(float(np.float32(one)), "scale") for one in scales)
    zero = int(options.get("zero", 0))
    axis = options.get("axis")
    if axis is None:
        if len(kept) != 1:
            raise step.error(f"{len(kept)} scales without axis, allowed 1")
        return Quantisation(kept, zero)
    axis = int(axis) % rank if rank else 0
    if rank == 0 or step.shape(0)[axis] != len(kept):
        raise step.error(f"{len(kept)} scales along axis {axis} of {list(step.shape(0))}")
    return Quantisation(kept, zero, axis)


def _quantize(step: Step, options: CompositeOptions) -> str:
    if step.type.element not in (Element.I8, Element.U8, Element.I16, Element.I32):
        raise step.error(f"result is {step.type.element}, allowed int8, uint8, int16, int32")
    quantisation = _quantisation(step, options, len(step.type.shape))
    found = TensorType(step.type.shape, step.type.element, quantisation)
    return step.build.quantise(step.inputs[0], step.wish, found, step.source)


def _dequantize(step: Step, options: CompositeOptions) -> str:
    name = step.inputs[0]
    quantisation = _quantisation(step, options, len(step.type.shape))
    known = step.build.type(name).quantisation
    if known is not None and known != quantisation:
        raise step.error(f"scales {quantisation}, the integers were made with {known}")
    return step.build.dequantise(name, step.source, quantisation)


def _port_matmul(step: Step, options: CompositeOptions) -> str:
    attributes: dict[str, Attribute] = {
        "format": str(_option(step, options, "format")),
        "group": int(options.get("group", 0)),
        "exact": bool(options.get("exact", False)),
    }
    return step.emit("portmatmul", None, **attributes)


COMPOSITES: dict[str, Callable[[Step, CompositeOptions], str]] = {
    "tessera.layer_norm": _norm("layernorm"),
    "tessera.rms_norm": _norm("rmsnorm"),
    "tessera.softmax": _softmax,
    "tessera.gelu": _gelu,
    "tessera.silu": _table("silu"),
    "tessera.attention": _attention,
    "tessera.rope": _rope,
    "tessera.quantize": _quantize,
    "tessera.dequantize": _dequantize,
    "tessera.port_matmul": _port_matmul,
}


def composite(step: Step) -> str | tuple[str, ...]:
    """Map a composite."""
    name = str(step.attribute("name").value)
    if name not in COMPOSITES:
        if name.startswith("tessera."):
            raise step.error(f"composite {name!r}, allowed {', '.join(COMPOSITES)}")
        return step.reader.inline(step, "decomposition")
    if step.number("version") not in _VERSIONS:
        raise step.error(f"{name} of version {step.number('version')}, allowed 0 and 1")
    options = CompositeOptions(step)
    try:
        made = COMPOSITES[name](step, options)
        for one in sorted(options.keys() - options.asked):
            raise step.error(f"attribute {one} of {name} is not mapped")
        return made
    except GraphError as error:
        text = str(error)
        raise (error if text.startswith(step.build.file) else step.error(text)) from None


HANDLERS: dict[str, Handler] = {"stablehlo.composite": composite}
