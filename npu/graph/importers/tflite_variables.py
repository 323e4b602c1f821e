# SPDX-License-Identifier: Apache-2.0
"""Variables of TFLite, which live from run to run: states of the graph.

What is read before it is assigned is what the run before has left. CALL_ONCE names the subgraph
that says with what variables begin; without it they begin with zeros.
"""

from __future__ import annotations

from npu.graph.form import TensorType
from npu.graph.importers.tflite_reader import Handler, TfliteNode, Variable
from npu.graph.text import type_text


def handle(node: TfliteNode) -> None:
    """Map VAR_HANDLE: the name of a variable."""
    names = [node.options.text(field) for field in (0, 1)] if node.options is not None else []
    node.output()
    node.reader.handles[node.operator.outputs[0]] = "/".join(filter(None, names))


def read(node: TfliteNode) -> str:
    """Map READ_VARIABLE: what was assigned in this run, or what the run before has left."""
    name, variable = _variable(node)
    tensor = node.output()
    if tensor.trouble or tensor.element is None or min(tensor.shape, default=0) < 0:
        raise node.error(f"{tensor.trouble or 'free dimensions'}, allowed a type with its sizes")
    kind = TensorType(tensor.shape, tensor.element, tensor.quantisation)
    if not variable.value:
        wish = name or node.reader.label(node.operator.outputs[0])
        variable.input = variable.value = node.build.add_input(wish, kind)
    _check_type(node, kind, node.build.type(variable.value))
    return variable.value


def assign(node: TfliteNode) -> None:
    """Map ASSIGN_VARIABLE: the value from here on, or in the beginning."""
    _, variable = _variable(node)
    if node.reader.begins:
        # A constant of that subgraph takes no name here.
        data = node.input(1).data
        what = "what a variable begins with"
        variable.initial = node.constant(1, what) if data is None else data
        return
    value = node.name(1)
    if variable.value:
        _check_type(node, node.build.type(value), node.build.type(variable.value))
    variable.value = value


def call_once(node: TfliteNode) -> None:
    """Map CALL_ONCE: what variables begin with."""
    if node.reader.begins:
        raise node.error("in a subgraph that is called once, allowed in the first subgraph")
    node.reader.begin(node.option(0))


def _variable(node: TfliteNode) -> tuple[str, Variable]:
    node.input(0)
    place = node.operator.inputs[0]
    if place not in node.reader.handles:
        raise node.error("input 0 is no variable, allowed the result of a VAR_HANDLE before")
    name = node.reader.handles[place]
    return name, node.reader.variables.setdefault(name, Variable())


def _check_type(node: TfliteNode, given: TensorType, held: TensorType) -> None:
    if given != held:
        raise node.error(
            f"given {type_text(given)} for a variable of {type_text(held)}, allowed one type"
        )


HANDLERS: dict[str, Handler] = {
    "VAR_HANDLE": handle,
    "READ_VARIABLE": read,
    "ASSIGN_VARIABLE": assign,
    "CALL_ONCE": call_once,
}
