# SPDX-License-Identifier: Apache-2.0
"""What frameworks put around the softmax of attention whose mask is made at run time.

A mask that no constant says is added in front of the softmax. Behind it PyTorch puts 0 where a row
that sees no key has become NaN, which is what attention in one operation makes of such a row.
Attention is looked for in a graph without either, and the mask becomes its input.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from npu.graph.form import Operation
from npu.graph.operations.constraints import is_mask_of_scores
from npu.graph.passes.canonical.edit import Replacement
from npu.graph.passes.canonical.region import ASIDE, GraphView, uniform


@dataclass(frozen=True)
class Masked:
    """A softmax in a graph without its mask and without its guard.

    Attributes:
        view: of that graph.
        softmax: in it.
        mask: what was added, "" for nothing.
    """

    view: GraphView
    softmax: Operation
    mask: str = ""


def softmax_behind(view: GraphView, name: str) -> Masked | None:
    """Return the softmax that makes a tensor, moves and a guard aside, and what it is masked by."""
    made = _behind_moves(view, name)
    guarded = None if made is None else _guarded(view, made)
    if made is not None and guarded is not None:
        view = _without(view, made, guarded)
        made = _behind_moves(view, guarded)
    if made is None or made.kind != "softmax":
        return None
    added = view.maker(made.inputs[0], "add")
    if added is None or view.readers(added.outputs[0]) != 1:
        return Masked(view, made)
    for mask, scores in (added.inputs, added.inputs[::-1]):
        if _is_mask(view, mask, scores):
            return Masked(_without(view, added, scores), made, mask)
    return Masked(view, made)


def with_mask(edit: Replacement, mask: str) -> Replacement | None:
    """Return attention with a mask as its input, None where the chip could not add it."""
    if not mask:
        return edit
    (place,) = (i for i, one in enumerate(edit.operations) if one.kind == "attention")
    op = edit.operations[place]
    query, key, value = (edit.type(name).shape for name in op.inputs[:3])
    if len(op.used) > 3 or op["causal"] or op["window"]:
        return None
    maker = edit.graph.producers().get(mask)
    if not is_mask_of_scores(edit.type(mask), maker, query, key, value):
        return None
    edit.operations[place] = replace(op, inputs=(*op.inputs[:3], mask))
    return edit


def _behind_moves(view: GraphView, name: str) -> Operation | None:
    """Return what makes a tensor, moves aside."""
    made = view.maker(name)
    while made is not None and made.kind in ASIDE:
        made = view.maker(made.inputs[0])
    return made


def _guarded(view: GraphView, op: Operation) -> str | None:
    """Return x if an operation puts 0 where x is NaN and nothing else asks for that."""
    if op.kind != "select":
        return None
    condition, zero, x = op.inputs
    asked = view.maker(condition, "compare")
    is_nan = asked is not None and asked["direction"] == "NE" and asked.inputs == (x, x)
    alone = view.readers(condition) == 1
    return x if is_nan and alone and uniform(view.graph.constant(zero)) == 0 else None


def _is_mask(view: GraphView, mask: str, scores: str) -> bool:
    """Say whether a tensor may be a mask of scores: not constant, the same for all heads."""
    shape = view.shape(mask)
    made = view.maker(mask)
    return (
        view.graph.constant(mask) is None
        and (made is None or made.kind == "select")
        and shape[-2:] == view.shape(scores)[-2:]
        and len(view.shape(scores)) == 4
    )


def _without(view: GraphView, op: Operation, name: str) -> GraphView:
    """Return a view of the graph in which an operation hands on one of its inputs.

    Of a guard the question whether there is NaN goes, too.
    """
    same = replace(op, kind="identity", inputs=(name,), attributes={})
    asked = view.maker(op.inputs[0], "compare") if op.kind == "select" else None
    graph = view.graph
    kept = (one for one in graph.operations if one is not asked)
    return GraphView(graph.with_operations(same if one is op else one for one in kept))
