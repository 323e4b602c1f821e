# SPDX-License-Identifier: Apache-2.0
"""StableHLO files that are damaged or ask for what a graph cannot hold: one line that says so."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from npu.graph.form import GraphError
from npu.graph.verify import verify
from tests.needs import needs

needs("graphs")

import jax
import jax.numpy as jnp

from npu.graph.importers import stablehlo

Wrong = Any
"""A value of the wrong type."""


def _network(x: Any) -> Any:  # noqa: ANN401
    w = np.ones((3, 3, 4, 6), np.float32)
    y = jax.lax.conv_general_dilated(
        x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    y = jnp.take(jax.nn.gelu(y), np.array([0, 2]), axis=1)
    return jax.nn.softmax(y).mean((1, 2)) @ np.ones((6, 3), np.float32), jnp.sort(y, -1)


SHAPE = jax.ShapeDtypeStruct((1, 8, 8, 4), np.float32)
TEXT = str(jax.jit(_network).lower(SHAPE).compiler_ir("stablehlo"))
EXPORT = jax.export.export(jax.jit(_network))(SHAPE)
BYTECODE = bytes(EXPORT.mlir_module_serialized)
SERIALISED = bytes(EXPORT.serialize())


def refused(source: Wrong, message: str) -> None:
    """Check the message of a GraphError: one line, the file in front."""
    with pytest.raises(GraphError, match=message) as caught:
        stablehlo.read(source, name="net.mlir")
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("net.mlir: ")


def module(body: str, arguments: str = "%a: tensor<2xf32>", result: str = "tensor<2xf32>") -> str:
    """Return the text of a module whose @main ends with %r."""
    return (
        f"module {{ func.func @main({arguments}) -> {result} {{ {body} return %r : {result} }} }}"
    )


def _quantised() -> str:
    kind = "tensor<2x!quant.uniform<i8:f32, 0.1:3>>"
    return module(
        f"%r = stablehlo.uniform_dequantize %a : ({kind}) -> tensor<2xf32>", f"%a: {kind}"
    )


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (b"", "empty, allowed StableHLO text or bytecode"),
        (b"\0" * 64, "functions none, allowed a module with @main|cannot"),
        (b"\xff\xfe\x00\x01", r"begins with b'\\xff\\xfe\\x00\\x01', allowed text, bytecode"),
        ("", "functions none, allowed a module with @main"),
        ("module {", "allowed text of a StableHLO module"),
        ("module { func.func @f() { return } }", "functions @f, allowed a module with @main"),
        (TEXT[: len(TEXT) // 2], "allowed text of a StableHLO module"),
        (TEXT.replace("stablehlo.add", "stablehlo.plus"), "allowed text of a StableHLO module"),
        (BYTECODE[:50], "bytecode cannot be read"),
        (BYTECODE[:-1], "bytecode cannot be read"),
        (BYTECODE[:4] + b"\xfd" + BYTECODE[5:], "bytecode cannot be read: .*version"),
        (SERIALISED[:100], "allowed text of a StableHLO module"),
        (SERIALISED[:-300], "allowed the serialised form of jax.export|cannot be read"),
        (_quantised(), r"quantised types \(!quant\) cannot be read, allowed int8 dot_general"),
        (3, "given int, allowed a module, text, bytes or a path"),
        (Path("/nowhere/net.mlir"), "No such file"),
        (
            module(
                "%r = stablehlo.abs %a : tensor<2xf8E5M2>",
                "%a: tensor<2xf8E5M2>",
                "tensor<2xf8E5M2>",
            ),
            "arg0: type tensor<2xf8E5M2>, allowed tensors of f32, .*convert them to f32",
        ),
        (
            module(
                "%r = stablehlo.abs %a : tensor<?x3xf32>",
                "%a: tensor<?x3xf32>",
                "tensor<?x3xf32>",
            ),
            r"input .*: free dimensions in \?x3, allowed fixed ones: give --shape .*=1,3",
        ),
        (
            module(
                "%r = stablehlo.constant dense<0.0> : tensor<99999x99999xf32>",
                result="tensor<99999x99999xf32>",
            ),
            "constant.*: type tensor<99999x99999xf32>, allowed up to 16 axes and 268,435,456",
        ),
        (
            module(
                '%r = stablehlo.composite "tessera.layer_norm" %a {decomposition = @d} : '
                "(tensor<2xf32>) -> tensor<2xf32>"
            )[:-1]
            + " func.func private @d(%a: tensor<2xf32>) -> tensor<2xf32> "
            + "{ return %a : tensor<2xf32> } }",
            "stablehlo.composite composite: attribute epsilon is missing",
        ),
        (
            module(
                '%r = stablehlo.composite "tessera.swish" %a {decomposition = @d} : '
                "(tensor<2xf32>) -> tensor<2xf32>"
            )[:-1]
            + " func.func private @d(%a: tensor<2xf32>) -> tensor<2xf32> "
            + "{ return %a : tensor<2xf32> } }",
            "composite 'tessera.swish', allowed tessera.layer_norm",
        ),
        (
            module(
                "%r = func.call @f(%a) : (tensor<2xf32>) -> tensor<2xf32>",
            )[:-1]
            + " func.func private @f(%a: tensor<2xf32>) -> tensor<2xf32> "
            + "{ %r = func.call @f(%a) : (tensor<2xf32>) -> tensor<2xf32> "
            + "return %r : tensor<2xf32> } }",
            "calls 64 deep, allowed less",
        ),
        (
            module(
                '%r = "stablehlo.all_reduce"(%a) ({ ^bb0(%x: tensor<f32>, %y: tensor<f32>): '
                "%s = stablehlo.add %x, %y : tensor<f32> stablehlo.return %s : tensor<f32> }) "
                "{replica_groups = dense<0> : tensor<1x1xi64>} : (tensor<2xf32>) -> tensor<2xf32>"
            ),
            "all_reduce all_reduce: stablehlo.all_reduce, allowed operations of StableHLO without",
        ),
    ],
)
def test_a_wrong_file_is_refused_in_one_line(source: Wrong, message: str) -> None:
    """With the file, the operation, what was given and what is allowed."""
    refused(source, message)


def test_shapes_that_do_not_fit_are_refused() -> None:
    """More axes than the input has, other sizes than the fixed ones."""
    text = module(
        "%r = stablehlo.abs %a : tensor<?x3xf32>", "%a: tensor<?x3xf32>", "tensor<?x3xf32>"
    )
    for shape in ((2,), (2, 4), (2, 3, 1)):
        with pytest.raises(GraphError, match=r"shape \[2.*\], allowed \?x3"):
            stablehlo.read(text, shapes={"arg0": shape}, name="net.mlir")


def test_functions_that_jax_cannot_lower_are_refused() -> None:
    """Whatever the function raises is in the message."""
    with pytest.raises(GraphError, match=r"matrix: jax cannot lower it: .*dot_general"):
        stablehlo.from_jax(
            lambda x: x @ x, (jax.ShapeDtypeStruct((2, 3), np.float32),), name="matrix"
        )


def test_an_array_is_no_list_of_arguments() -> None:
    """It would be taken apart into its rows."""
    with pytest.raises(GraphError, match=r"example_args: given ndarray, allowed a list of argum"):
        stablehlo.from_jax(lambda x: x, np.zeros((2, 3)), name="same")  # type: ignore[arg-type]


def damaged(data: bytes, seed: int) -> bytes:
    """Cut a file, or flip some of its bits."""
    chance, changed = random.Random(seed), bytearray(data)
    if chance.random() < 0.3:
        return bytes(changed[: chance.randrange(len(changed))])
    for _ in range(chance.choice([1, 1, 2, 5])):
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


@pytest.mark.parametrize(
    ("source", "seed"),
    [
        *((TEXT.encode(), seed) for seed in range(100)),
        *((BYTECODE, seed) for seed in range(8)),
        *((SERIALISED, seed) for seed in range(4)),
    ],
    ids=lambda one: str(one) if isinstance(one, int) else one[:2].hex(),
)
def test_a_damaged_file_is_a_graph_or_an_error(source: bytes, seed: int) -> None:
    """Never a traceback, never the end of the process."""
    try:
        verify(stablehlo.read(damaged(source, seed), name="net.mlir"))
    except GraphError as error:
        assert "\n" not in str(error)


def test_without_jax_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """For files and for functions."""
    for name in ("jax", "jaxlib", "jaxlib.mlir"):
        monkeypatch.setitem(sys.modules, name, None)
    refused(TEXT, r"StableHLO needs jax: pip install -e \.\[graphs\]")
    with pytest.raises(GraphError, match=r"pip install -e \.\[graphs\]"):
        stablehlo.from_jax(_network, (SHAPE,))
