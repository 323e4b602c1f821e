# SPDX-License-Identifier: Apache-2.0
"""What a TFLite operator says is read or refused: no option and no input is passed over."""

from __future__ import annotations

import inspect
import re
from dataclasses import replace

import pytest

from npu.graph.form import GraphError
from npu.graph.importers import tflite_file, tflite_reader
from npu.graph.importers.tflite_model import parse
from npu.graph.importers.tflite_reader import ModelReader, TfliteNode
from tests.needs import needs
from tests.python.importers.tflite_cases import CASES, TfliteCase, ints, model
from tests.python.importers.tflite_writer import OPTIONS, Writer

needs("graphs")

import tflite

_FIELD = re.compile(
    r"def (\w+)\(self.*?\):(?:(?!\n    def ).|\n(?!    def ))*?_tab\.Offset\((\d+)\)"
)
_WAYS = ("AsNumpy", "Length", "IsNone")


def fields(table: str) -> dict[int, str]:
    """Return the fields of a table of the schema by number, as its generated reader has them."""
    found = _FIELD.findall(inspect.getsource(getattr(tflite, table)))
    named = [(name, int(place)) for name, place in found if not name.endswith(_WAYS)]
    return {(place - 4) // 2: name for name, place in named}


def snake(name: str) -> str:
    """Return a name of the generated reader as the schema has it."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def node(operator: str, table: str, number: int, monkeypatch: pytest.MonkeyPatch) -> TfliteNode:
    """Return an operator with one option, set to 1, and one input; nothing of it is read."""
    monkeypatch.setitem(OPTIONS, operator, (table, {"it": (number, "b")}))
    writer = Writer()
    x, y = writer.tensor("x", (2, 3)), writer.tensor("y", (2, 3))
    writer.operator(operator, (x,), (y,), it=1)
    parsed = parse(writer.write((x,), (y,)), "file")
    reader = ModelReader(parsed, "file", tflite_file.HANDLERS, {})
    reader.inputs()
    return TfliteNode(reader, parsed.operators[0], 0)


@pytest.mark.parametrize("operator", sorted(OPTIONS.keys() & tflite_file.HANDLERS.keys()))
def test_a_mapping_that_reads_nothing_refuses_all(
    operator: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each option of the schema, and each input, is refused until it is asked for."""
    monkeypatch.setattr(tflite_reader, "_SAYS_NOTHING", {})
    table, _ = OPTIONS[operator]
    for number in fields(table):
        one = node(operator, table, number, monkeypatch)
        one.input(0)
        with pytest.raises(GraphError, match=f"field {number} of its options is not mapped"):
            one.refuse_unread()
        one.option(number, "b")
        one.refuse_unread()
    one = node(operator, table, 30, monkeypatch)
    one.option(30, "b")
    with pytest.raises(GraphError, match="input 0 is not mapped"):
        one.refuse_unread()


def test_what_says_nothing_is_in_the_schema() -> None:
    """By number and name."""
    for operator, listed in tflite_reader._SAYS_NOTHING.items():
        known = fields(OPTIONS[operator][0])
        assert listed == {number: snake(known[number]) for number in listed}, operator


@pytest.mark.parametrize("name", [name for name, one in CASES.items() if one.operator in OPTIONS])
def test_a_younger_option_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The operator is named, and the number of the field; with a value of 0 it says nothing."""
    case = CASES[name]
    table, known = OPTIONS[case.operator]
    monkeypatch.setitem(OPTIONS, case.operator, (table, {**known, "younger": (30, "b")}))
    for value in (0, 1):
        options = {**case.options, "younger": value}
        changed = replace(case, options=options)
        if not value:
            tflite_file.read(model(changed))
            continue
        with pytest.raises(GraphError, match=f"{case.operator}.*field 30 of its options is not"):
            tflite_file.read(model(changed))


def test_an_input_too_many_is_refused() -> None:
    """The operator is named, and the number of the input."""
    case = TfliteCase("RELU", ((2, 3),), ((2, 3),), (ints(1),))
    with pytest.raises(GraphError, match=r"\(RELU\).*input 1 is not mapped"):
        tflite_file.read(model(case))
