# SPDX-License-Identifier: Apache-2.0
"""What stands between attention and attention: activations, sums, and the two kinds of MLP."""

from __future__ import annotations

from npu.graph.library.sketch import Sketch

QUICK = 1.702
"""The factor of the sigmoid that stands for the normal distribution in QuickGELU."""


def bias_add(draw: Sketch, *, rows: int = 24, width: int = 48) -> tuple[str, ...]:
    """Rows of x (rows, width) plus a bias per column."""
    x = draw.given("x", rows, width)
    return (draw.stage("sum", "add", x, draw.vector("bias", width)),)


def residual_add(draw: Sketch, *, rows: int = 24, width: int = 48) -> tuple[str, ...]:
    """The sum of x and y, both (rows, width)."""
    x, y = draw.given("x", rows, width), draw.given("y", rows, width)
    return (draw.stage("sum", "add", x, y),)


def silu(draw: Sketch, *, rows: int = 24, width: int = 48) -> tuple[str, ...]:
    """Elements of x (rows, width) times their sigmoid."""
    x = draw.given("x", rows, width)
    return (draw.stage("activated", "table", x, functions=["silu"], parameters=[]),)


def gelu(draw: Sketch, *, rows: int = 24, width: int = 48, quick: int = 0) -> tuple[str, ...]:
    """Elements of x (rows, width) times the share of a normal distribution below them.

    `quick` takes the sigmoid of 1.702 times the element instead.
    """
    x = draw.given("x", rows, width)
    if quick:
        return (draw.stage("activated", "table", x, functions=["swish"], parameters=[QUICK]),)
    return (draw.stage("activated", "table", x, functions=["gelu"], parameters=[]),)


def mlp(draw: Sketch, *, rows: int = 16, width: int = 48, hidden: int = 96) -> tuple[str, ...]:
    """Two linear layers of x (rows, width) with a ReLU between them."""
    return (mlp_of(draw, draw.given("x", rows, width), hidden),)


def mlp_of(draw: Sketch, x: str, hidden: int) -> str:
    """Add a multilayer perceptron with ReLU; return its result."""
    width = draw.shape(x)[-1]
    up = draw.stage("hidden", "matmul", x, draw.weights("up", width, hidden))
    active = draw.stage("activated", "table", up, functions=["relu"], parameters=[])
    return draw.stage("mlp", "matmul", active, draw.weights("down", hidden, width))


def swiglu(
    draw: Sketch, *, rows: int = 16, width: int = 48, hidden: int = 96, linear: int = 0
) -> tuple[str, ...]:
    """A gated MLP of x (rows, width): down(up(x) * silu(gate(x))), without SiLU if `linear`."""
    return (swiglu_of(draw, draw.given("x", rows, width), hidden, linear),)


def swiglu_of(draw: Sketch, x: str, hidden: int, linear: int = 0) -> str:
    """Add a gated multilayer perceptron; return its result."""
    width = draw.shape(x)[-1]
    up = draw.stage("up", "matmul", x, draw.weights("w_up", width, hidden))
    gate = draw.stage("gate", "matmul", x, draw.weights("w_gate", width, hidden))
    if not linear:
        gate = draw.stage("activated_gate", "table", gate, functions=["silu"], parameters=[])
    gated = draw.stage("gated", "mul", up, gate)
    return draw.stage("mlp", "matmul", gated, draw.weights("w_down", hidden, width))
