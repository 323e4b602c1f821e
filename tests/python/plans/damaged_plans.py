# SPDX-License-Identifier: Apache-2.0
"""The plans that are damaged: launches apart and together, products on the port, a decoder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

from npu.compiler import compile_model
from npu.compiler.network import compile_network
from npu.planner.build_plan import CompileOptions, build_plan
from npu.planner.decoder_plan import plan_of_decoder
from npu.planner.network_plan import plan_of
from npu.runtime.plan import Action, Plan
from npu.runtime.prepare import prepare
from tb.stimulus.random_graphs import random_graph
from tests.python.compiler.user_networks import built, model, samples
from tests.python.golden.golden_support import random_model

ROWS, CONTEXT, VOCAB = 20, 28, 96


def two() -> Plan:
    """Return a plan of two segments with operations of the host around them."""
    plan = built().plan
    assert [len(batch.launches) for batch in prepare(plan).batches] == [1, 1]
    assert any(step.action is Action.HOST for step in plan.steps)
    return plan


@cache
def three() -> Plan:
    """Return a plan with three launches that stand behind one another."""
    plan = build_plan(model(), CompileOptions(calibrate=samples(16), split=["c1", "p1"])).plan
    assert [len(batch.launches) for batch in prepare(plan).batches] == [3]
    return plan


@cache
def port() -> Plan:
    """Return a plan with a segment and products on the command port."""
    plan = plan_of(compile_network(random_graph(1003, operations=(4, 30), mixed=True)[0]))
    assert plan.segments
    assert any(step.action is Action.PORT for step in plan.steps)
    return plan


@cache
def decoder() -> Plan:
    """Return a plan of a decoder with its cache in memory."""
    network = random_model(5, "llama", context=CONTEXT, layers=1, vocab=VOCAB)
    return plan_of_decoder(compile_model(network, cache="memory"), ROWS, logits=True, name="llama")


PLANS: Mapping[str, Callable[[], Plan]] = {one.__name__: one for one in (two, three, port, decoder)}
