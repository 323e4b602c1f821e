# SPDX-License-Identifier: Apache-2.0
"""Networks in several segments: skip connections around splits and around what the host does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from golden.graph import run
from npu.graph.build import Builder
from npu.graph.form import Array
from npu.planner.build_plan import Built, CompileOptions, build_plan
from npu.runtime.plan import Action, Plan
from npu.runtime.replay import By
from tessera.rtl_chip import run_on_rtl
from tests.python.compiler.small_networks import Net, first, samples

ROWS, WIDTH = 4, 16
"""Of every tensor, so that any two can be added."""
KINDS = (
    "fed by segments alone",
    "fed by segments and host",
    "fed by several segments",
    "feeds several segments",
    "around a segment",
    "around the host",
)
"""How segments can feed one another without the host between."""


def segmented(seed: int) -> tuple[Built, dict[str, Array]]:
    """Return a network of products, sums and functions, some of them on the host, and its input.

    Each operation takes any of the tensors before it; segments end at random places as well.
    """
    random = np.random.default_rng(seed)
    net = Net(Builder(f"segmented-{seed}"), random)
    live = [net.input("x", ROWS, WIDTH)]
    for _ in range(int(random.integers(5, 12))):
        one, other = (str(name) for name in random.choice(live, 2))
        match int(random.integers(4)):
            case 0:
                live.append(net.build.add("add", [one, other]))
            case 1:
                live.append(net.table(one, "tanh"))
            case _:
                live.append(net.linear(live[-1], WIDTH))
    read = {name for one in net.build.operations for name in one.used}
    graph = net.build.finish([name for name in live[1:] if name not in read])
    inputs = samples(graph, seed)

    def built(host: Sequence[str] = (), split: Sequence[str] = ()) -> Built:
        return build_plan(graph, CompileOptions(calibrate=inputs, host=host, split=split))

    def some(names: Sequence[str], most: int) -> list[str]:
        count = min(len(names), int(random.integers(0, most + 1)))
        return [str(one) for one in random.choice(names, count, replace=False)] if count else []

    host = some([one.name for one in built().passes["canonical"].operations], 2)
    words = [name for one in built(host).plan.segments for name in one.first_word]
    return built(host, some(words, 3)), first(inputs)


def equals_golden(seed: int, by: By) -> None:
    """Check that the RTL makes of a network what golden makes of its graph."""
    built, inputs = segmented(seed)
    try:
        found = run_on_rtl(built.plan, inputs, by=by).run
        for name, value in run(built.passes["fuse"], inputs).items():
            np.testing.assert_array_equal(found.outputs[name], value, err_msg=name)
    except Exception as error:
        call = f"equals_golden({seed}, {by!r})"
        error.add_note(f"repeat: python -c 'from {__name__} import *; {call}'")
        raise


def kinds_of(plan: Plan) -> set[str]:
    """Return how segments of a plan feed one another without the host between."""
    packed = {step.of for step in plan.steps if step.action is Action.PACK}
    found: set[str] = set()
    made: dict[str, int] = {}
    readers: Counter[str] = Counter()
    for number, step in enumerate(plan.steps):
        if step.action is not Action.LAUNCH:
            continue
        inner = [name for name in step.reads if name in made and name not in packed]
        readers.update(inner)
        if inner:
            alone = not packed & set(step.reads)
            found.add("fed by segments alone" if alone else "fed by segments and host")
        if len({made[name] for name in inner}) > 1:
            found.add("fed by several segments")
        for name in inner:
            between = {one.action for one in plan.steps[made[name] + 1 : number]}
            if Action.LAUNCH in between:
                found.add("around a segment")
            if Action.HOST in between:
                found.add("around the host")
        made |= dict.fromkeys(step.writes, number)
    if any(count > 1 for count in readers.values()):
        found.add("feeds several segments")
    return found
