# SPDX-License-Identifier: Apache-2.0
"""What a StableHLO operation says is read or refused: no attribute is passed over."""

from __future__ import annotations

import inspect
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from npu.graph.evaluate import evaluate
from npu.graph.form import Array, GraphError
from npu.graph.importers import stablehlo, stablehlo_step
from npu.graph.importers.stablehlo_step import Step
from npu.graph.importers.unmapped import UnmappedError
from tests.needs import needs

needs("graphs")

import jax
from jax.extend import backend
from jaxlib.mlir.dialects import chlo
from jaxlib.mlir.dialects import stablehlo as dialect


def definitions() -> dict[str, frozenset[str]]:
    """Return the attributes of all mapped operations, as jaxlib defines them."""
    found: dict[str, frozenset[str]] = {}
    for module in (dialect, chlo):
        for one in vars(module).values():
            name = getattr(one, "OPERATION_NAME", "")
            if name in stablehlo.HANDLERS and name not in found:
                found[name] = frozenset(_attributes(one))
    return found


def _attributes(kind: type) -> list[str]:
    """Return the properties of a class of jaxlib that read an attribute, and no operand."""
    return [
        name
        for base in kind.__mro__
        for name, value in vars(base).items()
        if isinstance(value, property)
        and inspect.isfunction(value.fget)
        and f'self.operation.attributes["{name}"]' in inspect.getsource(value.fget)
    ]


def test_definitions_are_found() -> None:
    """All mapped operations have one, and what is known of some of them stands there."""
    found = definitions()
    assert found.keys() == stablehlo.HANDLERS.keys()
    assert found["stablehlo.add"] == frozenset()
    assert found["stablehlo.dot_general"] == {
        *("algorithm", "dot_dimension_numbers", "precision_config")
    }


def test_what_says_nothing_is_there_and_little() -> None:
    """Attributes that no mapping must know are defined, but for one that jax adds."""
    known = {(name, one) for name, attributes in definitions().items() for one in attributes}
    listed = {(op, one) for op, names in stablehlo_step._SAYS_NOTHING.items() for one in names}
    assert listed - known == {("stablehlo.custom_call", "error_message")}
    assert len(listed) < len(known) / 3


@pytest.mark.parametrize("operator", sorted(stablehlo.HANDLERS))
def test_a_mapping_that_reads_nothing_refuses_all(
    operator: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each attribute of the definition, until it is asked for."""
    monkeypatch.setattr(stablehlo_step, "_SAYS_NOTHING", {})
    for name in definitions()[operator]:
        operation: Any = SimpleNamespace(name=operator, attributes={name: 7, "mhlo.note": 1})
        reader: Any = None
        step = Step(reader, operation, (), (), "y")
        with pytest.raises(UnmappedError, match=f"attribute {name} = 7 is not mapped"):
            step.refuse_unread()
        assert step.attribute(name) == 7
        step.refuse_unread()


def module(
    operation: str, taken: str = "%x: tensor<4x4xf32>", made: str = "tensor<4x4xf32>"
) -> str:
    """Return a module of one operation that makes %y."""
    return f"""module {{
      func.func private @same(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {{
        return %x : tensor<4x4xf32>
      }}
      func.func @main({taken}) -> {made} {{
        %y = {operation}
        return %y : {made}
      }}
    }}"""


_SQUARE = "(tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>"
_FLAGS = ("%x: tensor<4x4xf32>", "tensor<4x4xi1>")
_IMAGES = (
    "stablehlo.convolution(%x, %x) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], "
    "window = {{{window}}} {{batch_group_count = {groups} : i64, feature_group_count = 1 : i64}} "
    ": (tensor<2x2x2x2xf32>, tensor<2x2x2x2xf32>) -> tensor<{made}xf32>"
)


def _convolution(window: str, made: str, groups: int = 1) -> tuple[str, str, str]:
    text = _IMAGES.format(window=window, made=made, groups=groups)
    return text, "%x: tensor<2x2x2x2xf32>", f"tensor<{made}xf32>"


def _product(kind: str, primitives: int = 1) -> str:
    return (
        "stablehlo.dot_general %x, %x, contracting_dims = [1] x [0], "
        "precision = [DEFAULT, DEFAULT], "
        f"algorithm = <lhs_precision_type = {kind}, rhs_precision_type = {kind}, "
        "accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, "
        f"num_primitive_operations = {primitives}, allow_imprecise_accumulation = false> "
        f": {_SQUARE}"
    )


def _accuracy(operation: str, mode: str) -> str:
    return (
        f"stablehlo.{operation} %x {{result_accuracy = #stablehlo.result_accuracy<"
        f"mode = #stablehlo.result_accuracy_mode<{mode}>>}} : tensor<4x4xf32>"
    )


_EXACT = sorted(name for name, given in definitions().items() if "result_accuracy" in given)
REFUSED: dict[str, tuple[str, ...]] = {
    "algorithm": (_product("bf16"),),
    "algorithm ": (_product("bf16", 3),),
    "batch_group_count": _convolution("stride = [1, 1]", "1x1x1x2", 2),
    "lhs_dilation": _convolution("lhs_dilate = [2, 1]", "2x2x1x2"),
    "padding": _convolution("pad = [[-1, 1], [0, 0]]", "2x1x1x2"),
    "window_reversal": _convolution("reverse = [true, false]", "2x1x1x2"),
    "compare_type": ("stablehlo.compare LT, %x, %x, TOTALORDER : "
        "(tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xi1>", *_FLAGS),
    "interior_padding": ("stablehlo.pad %x, %p, low = [0, 0], high = [0, 0], interior = [1, 0] "
        ": (tensor<4x4xf32>, tensor<f32>) -> tensor<7x4xf32>",
        "%x: tensor<4x4xf32>, %p: tensor<f32>", "tensor<7x4xf32>"),
    **{f"result_accuracy {name}": (_accuracy(name.split(".")[1], "HIGHEST"),) for name in _EXACT},
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_mapping_does_not_know_runs_on_the_host(name: str) -> None:
    """The reason names the attribute and its value."""
    attribute = name.split()[0]
    (one,) = stablehlo.read(module(*REFUSED[name])).operations
    assert one.kind == "host"
    assert f"{one.source}: attribute {attribute} = " in one["reason"]
    assert one["reason"].endswith(" is not mapped")


TAKEN: dict[str, tuple[str, ...]] = {
    "floats alone": (_product("f32"),),
    "exact": (f"stablehlo.dot %x, %x, precision = [HIGHEST, HIGH] : {_SQUARE}",),
    "compared as they are": ("stablehlo.compare LT, %x, %x, FLOAT : "
        "(tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xi1>", *_FLAGS),
    "default accuracy": (_accuracy("tanh", "DEFAULT"),),
    "sorted": ("\"stablehlo.gather\"(%x, %p) {dimension_numbers = #stablehlo.gather<offset_dims = "
        "[1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, "
        "slice_sizes = array<i64: 1, 4>, indices_are_sorted = true} "
        ": (tensor<4x4xf32>, tensor<2x1xi32>) -> tensor<2x4xf32>",
        "%x: tensor<4x4xf32>, %p: tensor<2x1xi32>", "tensor<2x4xf32>"),
    "one piece": ("stablehlo.concatenate %x, dim = 0 : (tensor<4x4xf32>) -> tensor<4x4xf32>",),
    "a note": ('stablehlo.custom_call @Sharding(%x) {backend_config = "", mhlo.sharding = '
        '"{replicated}"} : (tensor<4x4xf32>) -> tensor<4x4xf32>',),
    "other words": ('stablehlo.composite "mine.same" %x {composite_attributes = {mask = 1 : i64}, '
        "decomposition = @same, version = 7 : i32} : (tensor<4x4xf32>) -> tensor<4x4xf32>",),
}  # fmt: skip


def _given(text: str) -> list[Array]:
    draw = np.random.default_rng(3)
    drawn = [draw.standard_normal((4, 4)).astype(np.float32)]
    return drawn + ([np.array([[1], [3]], np.int32)] if "%p" in text else [])


@pytest.mark.parametrize("name", TAKEN)
def test_what_says_no_more_than_the_mapping_is_mapped(name: str) -> None:
    """And means what jax makes of it."""
    text = module(*TAKEN[name])
    graph = stablehlo.read(text)
    assert "host" not in {one.kind for one in graph.operations}
    given = _given(text)
    found = evaluate(graph, dict(zip(graph.inputs, given, strict=True)))[graph.outputs[0]]
    device = jax.devices("cpu")[0]
    inlined = text.replace(TAKEN[name][0], "func.call @same(%x) : (tensor<4x4xf32>) -> "
        "tensor<4x4xf32>") if name in ("a note", "other words") else text  # fmt: skip
    compiled = backend.get_backend("cpu").compile_and_load(inlined, [device])
    (wanted,) = compiled.execute([jax.device_put(one, device) for one in given])
    np.testing.assert_allclose(found, np.asarray(wanted), rtol=1e-5, atol=1e-6)


def _composite(name: str, attributes: str = "", version: int = 1, inputs: int = 1) -> str:
    kinds = ", ".join(["tensor<4x4xf32>"] * inputs)
    return module(
        f'stablehlo.composite "tessera.{name}" {", ".join(["%x"] * inputs)} {{composite_attributes '
        f"= {{{attributes}}}, decomposition = @same, version = {version} : i32}} "
        f": ({kinds}) -> tensor<4x4xf32>"
    )


UNKNOWN = {
    "attribute younger, allowed those of its definition": module(
        "stablehlo.add %x, %x {younger = 1 : i64} : tensor<4x4xf32>"
    ),
    "attribute younger, allowed those": module(
        "stablehlo.cbrt %x {younger = 1 : i64} : tensor<4x4xf32>"
    ),
    "attribute mask of tessera.silu is not mapped": _composite("silu", "mask = 1 : i64"),
    "attribute scale of tessera.softmax is not mapped": _composite(
        "softmax", "axis = -1 : i64, scale = 2.0 : f64"
    ),
    "tessera.silu of version 2, allowed 0 and 1": _composite("silu", version=2),
}


@pytest.mark.parametrize("message", UNKNOWN)
def test_what_nobody_knows_is_refused(message: str) -> None:
    """By name: jax itself would pass over it, too."""
    with pytest.raises(GraphError, match=message) as caught:
        stablehlo.read(UNKNOWN[message])
    assert "\n" not in str(caught.value)
