# SPDX-License-Identifier: Apache-2.0
"""Reads the text of a graph that `npu.graph.text` writes."""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from npu.graph.form import (
    LARGEST,
    RANK,
    Array,
    Element,
    Graph,
    GraphError,
    Operation,
    OperationPlace,
    Quantisation,
    State,
    Target,
    Tensor,
    TensorType,
)

_TOKEN = re.compile(
    r"""\s*(?:
    (?P<bytes>base64"[A-Za-z0-9+/=]*")
  | (?P<tensor>%(?:"(?:[^"\\]|\\.)*"|[A-Za-z0-9_.:/$-]+))
  | (?P<string>"(?:[^"\\]|\\.)*")
  | (?P<number>-?(?:inf\b|nan\b|\d+(?:\.\d+)?(?:e[+-]?\d+)?))
  | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
  | (?P<sign>[][{}(),:=])
  )""",
    re.VERBOSE,
)

_EDGE = 1 << 63
_DIGITS = 20
_SHOWN = 40
"""Letters of a token in an error."""


class _Statement:
    """The tokens of one statement, read from left to right."""

    def __init__(self, text: str, number: int, file: str) -> None:
        self._where = f"{file}:{number}" if file else f"line {number}"
        self._tokens: list[tuple[str, str]] = []
        position, text = 0, text.rstrip()
        while position < len(text):
            match = _TOKEN.match(text, position)
            if match is None or match.lastgroup is None:
                raise self.error(f"{text[position : position + 20]!r} is no part of a graph")
            self._tokens.append((match.lastgroup, match.group(match.lastgroup)))
            position = match.end()
        self._next = 0

    def error(self, message: str) -> GraphError:
        return GraphError(f"{self._where}: {message}")

    @property
    def token(self) -> tuple[str, str]:
        return self._tokens[self._next] if self._next < len(self._tokens) else ("end", "the end")

    @property
    def said(self) -> str:
        """The token, for an error."""
        return repr(self.token[1][:_SHOWN])

    def accept(self, text: str) -> bool:
        """Step over a word or sign if it comes next."""
        found = self.token[0] in ("word", "sign") and self.token[1] == text
        self._next += found
        return found

    def expect(self, text: str) -> None:
        if not self.accept(text):
            raise self.error(f"{self.said}, allowed {text!r}")

    def take(self, group: str) -> str:
        kind, text = self.token
        if kind != group:
            raise self.error(f"{self.said}, allowed a {group}")
        self._next += 1
        return text

    def string(self) -> str:
        return self._json(self.take("string"))

    def _json(self, text: str) -> str:
        try:
            return str(json.loads(text))
        except ValueError:
            raise self.error(f"{text[:_SHOWN]} is no string") from None

    def name(self) -> str:
        """Read a tensor's name, "" for `_`."""
        if self.accept("_"):
            return ""
        text = self.take("tensor")[1:]
        return self._json(text) if text.startswith('"') else text

    def integer(self) -> int:
        found = self._number(self.take("number"))
        if isinstance(found, float):
            raise self.error(f"{found!r}, allowed an integer")
        return found

    def _number(self, text: str) -> int | float:
        if not text.lstrip("-").isdigit():
            return math.nan if text.endswith("nan") else float(text)
        # No number of a graph has more bits; no float or array would hold it.
        if len(text) > _DIGITS or not -_EDGE <= int(text) < 2 * _EDGE:
            raise self.error(f"{text[:_DIGITS]}..., allowed integers of 64 bits")
        return int(text)

    def list(self, item: Any) -> list[Any]:  # noqa: ANN401
        """Read `[item, ...]`."""
        self.expect("[")
        found: list[Any] = []
        while not self.accept("]"):
            if found:
                self.expect(",")
            found.append(item())
        return found

    def value(self) -> Any:  # noqa: ANN401
        kind, text = self.token
        if kind == "bytes":
            return self.data()
        if kind == "string":
            return self.string()
        if kind == "number":
            return self._number(self.take("number"))
        if kind == "word" and text in ("true", "false"):
            self._next += 1
            return text == "true"
        return tuple(self.list(self.plain))

    def plain(self) -> Any:  # noqa: ANN401
        """Read a value that is no list: lists hold no lists."""
        if self.token[1] == "[":
            raise self.error("a list in a list, allowed numbers and strings")
        return self.value()

    def data(self) -> bytes:
        text = self.take("bytes")
        try:
            return base64.b64decode(text[len('base64"') : -1], validate=True)
        except binascii.Error:
            raise self.error("bytes that are no base64") from None

    def kind(self) -> TensorType:
        word = self.take("word")
        try:
            element = Element(word)
        except ValueError:
            raise self.error(
                f"element type {word[:_SHOWN]!r}, allowed {', '.join(Element)}"
            ) from None
        shape = tuple(self.list(self.integer))
        count = math.prod(max(size, 1) for size in shape)
        if len(shape) > RANK or count > LARGEST or min(shape, default=0) < 0:
            raise self.error(
                f"shape {str(list(shape))[:80]}, allowed up to {RANK} axes and {LARGEST:,} elements"
            )
        quantisation = None
        if self.accept("scale"):
            scales = tuple(map(float, self.list(lambda: self._number(self.take("number")))))
            self.expect("zero")
            zero = self.integer()
            axis = self.integer() if self.accept("axis") else None
            word = self.take("word") if self.accept("format") else ""
            quantisation = Quantisation(scales, zero, axis, word)
        return TensorType(shape, element, quantisation)

    def tensor(self) -> Tensor:
        name = self.name()
        self.expect(":")
        return Tensor(name, self.kind())

    def array(self, kind: TensorType) -> Array:
        """Read the elements of a type, as numbers or bytes."""
        dtype = kind.element.dtype
        if self.token[0] == "bytes":
            data = self.data()
            if len(data) != kind.size * dtype.itemsize:
                raise self.error(f"{len(data)} bytes, allowed {kind.size * dtype.itemsize}")
            return np.frombuffer(data, dtype.newbyteorder("<")).astype(dtype).reshape(kind.shape)
        values = self.list(self.plain)
        if len(values) != kind.size:
            raise self.error(f"{len(values)} numbers, allowed {kind.size}")
        try:
            return np.array(values, dtype=dtype).reshape(kind.shape)
        except (ValueError, OverflowError, TypeError):
            raise self.error(f"numbers that are no {kind.element.value}") from None

    def done(self) -> None:
        if self.token[0] != "end":
            raise self.error(f"{self.said} behind the end of the statement")


def _braces(line: _Statement, value: Any) -> dict[str, Any]:  # noqa: ANN401
    """Read `{name = value, ...}`."""
    found: dict[str, Any] = {}
    line.expect("{")
    while not line.accept("}"):
        if found:
            line.expect(",")
        name = line.take("word")
        line.expect("=")
        found[name] = value()
    return found


def _operation(line: _Statement) -> tuple[Operation, list[Tensor]]:
    results = [line.tensor()]
    while line.accept(","):
        results.append(line.tensor())
    line.expect("=")
    kind = line.take("word")
    line.expect("(")
    inputs: list[str] = []
    while not line.accept(")"):
        if inputs:
            line.expect(",")
        inputs.append(line.name())
    attributes = _braces(line, line.value) if line.token[1] == "{" else {}
    line.expect("name")
    name = line.string()
    source = line.string() if line.accept("source") else ""
    place = _place(line) if line.accept("place") else None
    integers = {}
    if line.accept("integers"):
        integers = _braces(line, lambda: line.array(line.kind()))
    outputs = tuple(one.name for one in results)
    return (
        Operation(name, kind, tuple(inputs), outputs, attributes, source, place, integers),
        results,
    )


def _state(line: _Statement, tensors: Mapping[str, Tensor]) -> State:
    given = line.name()
    line.expect("next")
    output = line.name()
    if not line.accept("first"):
        return State(given, output)
    if given not in tensors:
        raise line.error(f"state {given[:_SHOWN]!r}, allowed an input that is declared before")
    return State(given, output, line.array(tensors[given].type))


def _place(line: _Statement) -> OperationPlace:
    word = line.take("word")
    if word not in list(Target):
        raise line.error(f"place {word[:_SHOWN]!r}, allowed {', '.join(Target)}")
    return OperationPlace(Target(word), line.string())


def parse(text: str, *, file: str = "") -> Graph:
    """Read a graph from text.

    Args:
        text: as `npu.graph.text.write` makes it.
        file: named in errors.

    Raises:
        GraphError: naming the line.
    """
    name, inputs, outputs = "", [], []
    tensors: dict[str, Tensor] = {}
    operations: list[Operation] = []
    states: list[State] = []

    def declare(line: _Statement, found: Tensor) -> None:
        if found.name in tensors:
            raise line.error(f"tensor {found.name!r} is declared twice")
        tensors[found.name] = found

    # Only "\n" ends a statement: names may hold other separators that `splitlines` knows.
    for number, raw in enumerate(text.split("\n"), 1):
        if not raw.strip():
            continue
        line = _Statement(raw, number, file)
        if line.accept("graph"):
            name = line.string()
        elif line.accept("input"):
            declare(line, found := line.tensor())
            inputs.append(found.name)
        elif line.accept("output"):
            outputs.append(line.name())
        elif line.accept("state"):
            states.append(_state(line, tensors))
        elif line.accept("tensor"):
            declare(line, line.tensor())
        elif line.accept("const"):
            found = line.tensor()
            line.expect("=")
            declare(line, Tensor(found.name, found.type, line.array(found.type)))
        else:
            operation, results = _operation(line)
            operations.append(operation)
            for one in results:
                declare(line, one)
        line.done()
    return Graph(name, tuple(inputs), tuple(outputs), tensors, tuple(operations), tuple(states))
