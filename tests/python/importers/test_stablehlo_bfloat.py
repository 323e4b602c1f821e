# SPDX-License-Identifier: Apache-2.0
"""StableHLO of bfloat16 is read as float32, which has all of its numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from npu.graph.evaluate import evaluate
from npu.graph.form import Array, Element, GraphError
from npu.graph.importers.stablehlo import read
from npu.graph.verify import verify
from tests.needs import needs

needs("graphs")

import jax
import jax.numpy as jnp

HALF = jnp.bfloat16


def random(*shape: int) -> Array:
    """Return seeded normal numbers."""
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "product": lambda x: (x.astype(HALF) @ jnp.asarray(random(32, 7), HALF)).astype(jnp.float32),
    "softmax": lambda x: jax.nn.softmax(x.astype(HALF)).astype(jnp.float32),
    "many constants": lambda x: (x.astype(HALF) + jnp.asarray(random(6, 32), HALF)).sum(1),
    "host": lambda x: jnp.sort(x.astype(HALF), axis=1),
    "region": lambda x: jax.lax.reduce(
        x.astype(HALF), HALF(0), lambda a, b: a + jnp.abs(b), dimensions=(1,)
    ),
    "attention": lambda x: jax.nn.dot_product_attention(*[x.astype(HALF).reshape(1, 6, 4, 8)] * 3),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_bfloat16_give_what_jax_does(name: str) -> None:
    """Within what its eight bits of precision leave; nothing in the graph is of another type."""
    function, x = FUNCTIONS[name], random(6, 32)
    module = jax.jit(function).lower(x).compiler_ir("stablehlo")
    before = str(module)
    graph = read(module)
    verify(graph)
    assert str(module) == before, "the module of the caller stays as it is"
    assert {one.type.element for one in graph.tensors.values()} <= {Element.F32, Element.BOOL}
    (found,) = evaluate(graph, {graph.inputs[0]: x}).values()
    want = np.asarray(function(x)).astype(np.float32)
    assert found.dtype == np.float32 and found.shape == want.shape
    assert np.abs(found - want).max() <= 0.03 * np.abs(want).max()


@pytest.mark.parametrize("count", [3, 300])
def test_constants_are_read_to_the_bit(count: int) -> None:
    """Written as decimal numbers or as bytes, infinite ones too."""
    values = np.concatenate([random(count), [np.inf, -np.inf, 3e38, 1e-40]]).astype(np.float32)
    held = jnp.asarray(values, HALF)
    graph = read(jax.jit(lambda x: x + held).lower(jnp.zeros(count + 4, HALF)).as_text())
    (found,) = (one.data for one in graph.tensors.values() if one.data is not None)
    np.testing.assert_array_equal(found, np.asarray(held).astype(np.float32))
    assert graph.type(graph.inputs[0]).element == Element.F32


def test_bits_of_bfloat16_are_refused() -> None:
    """They are others in float32."""
    text = str(
        jax.jit(lambda x: jax.lax.bitcast_convert_type(x.astype(HALF), jnp.uint16))
        .lower(random(3))
        .compiler_ir("stablehlo")
    )
    with pytest.raises(GraphError, match=r"bitcast_convert: the bits of bf16, allowed its numbers"):
        read(text)
