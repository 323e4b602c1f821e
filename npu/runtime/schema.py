# SPDX-License-Identifier: Apache-2.0
"""Checks JSON against a schema, as far as the schema of plans goes, with errors that say where.

A process that replays a plan has numpy alone; tests hold this against the package `jsonschema`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from spec.regs import MachineStart, SeqReg, StartState

SCHEMA = Path(__file__).with_name("plan.schema.json")
_TOO_LARGE = 1 << 64
_TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}


class EntryError(ValueError):
    """An entry is wrong; says which, what was given and what is allowed.

    Attributes:
        path: of the entry, such as `segments[2].stream_bytes`.
        given: what stands there.
        allowed: what may.
    """

    def __init__(self, path: str, given: object, allowed: str) -> None:
        super().__init__(f"{path}: given {_short(given)}, allowed {allowed}")
        self.path = path
        self.given = given
        self.allowed = allowed


def _short(value: object, most: int = 80) -> str:
    text = value if isinstance(value, _Text) else repr(value)
    return text if len(text) <= most else f"{text[:most]} ..."


class _Text(str):
    """Words about what was given, not the thing itself."""

    __slots__ = ()


def words(text: str) -> str:
    """Return a text that an EntryError shows as it is, without quotes."""
    return _Text(text)


@cache
def plan_schema() -> dict[str, Any]:
    """Return the schema of plans, with the registers that a program starts with."""
    found: dict[str, Any] = json.loads(SCHEMA.read_text(encoding="utf-8"))
    registers = found["$defs"]["registers"]
    known = {
        one.member: {
            "description": f"register {SeqReg(one.register).name}",
            "$ref": "#/$defs/register",
        }
        for one in StartState.REGISTERS
        if one.member in MachineStart.__annotations__ and one.element is None
    }
    registers |= {
        "properties": known | registers["properties"],
        "additionalProperties": False,
    }
    return found


def check(value: object, schema: Mapping[str, Any], root: Mapping[str, Any], path: str) -> None:
    """Check a value.

    Args:
        value: of JSON.
        schema: what it must be.
        root: of which `schema` is a part: references are into it.
        path: of the value, for errors.

    Raises:
        EntryError: the first entry that is wrong, in the order of the schema.
    """
    if "$ref" in schema:
        part: Any = root
        for key in schema["$ref"].removeprefix("#/").split("/"):
            part = part[key]
        check(value, part, root, path)
    if "type" in schema:
        _check_type(value, schema["type"], path)
    if "const" in schema and not _same(value, schema["const"]):
        raise EntryError(path, value, repr(schema["const"]))
    if "enum" in schema and not any(_same(value, one) for one in schema["enum"]):
        raise EntryError(path, value, ", ".join(map(str, schema["enum"])))
    if isinstance(value, str):
        if "pattern" in schema and not re.search(schema["pattern"], value):
            raise EntryError(path, value, f"what matches {schema['pattern']}")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        _check_number(value, schema, path)
    elif isinstance(value, list):
        _check_list(value, schema, root, path)
    elif isinstance(value, dict):
        _check_object(value, schema, root, path)


def _same(one: object, other: object) -> bool:
    return type(one) is type(other) and one == other


def _check_type(value: object, names: str | list[str], path: str) -> None:
    allowed = [names] if isinstance(names, str) else names
    for name in allowed:
        if isinstance(value, _TYPES[name]) and (name == "boolean") == isinstance(value, bool):
            return
    raise EntryError(path, value, f"of type {' or '.join(allowed)}")


def _check_number(value: float, schema: Mapping[str, Any], path: str) -> None:
    low, high = schema.get("minimum"), schema.get("maximum")
    above, step = schema.get("exclusiveMinimum"), schema.get("multipleOf")
    # No number of a plan needs more bits; floats and numpy cannot hold all that JSON can say.
    good = abs(value) < _TOO_LARGE
    good &= (low is None or value >= low) and (high is None or value <= high)
    good &= (above is None or value > above) and (step is None or value % step == 0)
    if good:
        return
    allowed = f"multiples of {step}" if step else "numbers"
    if low is not None:
        allowed += f" from {low}"
    if above is not None:
        allowed += f" above {above}"
    raise EntryError(path, value, allowed if high is None else f"{allowed} to {high}")


def _check_list(
    value: list[Any], schema: Mapping[str, Any], root: Mapping[str, Any], path: str
) -> None:
    least, most = schema.get("minItems", 0), schema.get("maxItems", len(value))
    if not least <= len(value) <= most:
        raise EntryError(path, words(f"{len(value)} entries"), f"{least} to {most}")
    if "items" in schema:
        for number, one in enumerate(value):
            check(one, schema["items"], root, f"{path}[{number}]")


def _check_object(
    value: dict[str, Any], schema: Mapping[str, Any], root: Mapping[str, Any], path: str
) -> None:
    known = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in value:
            raise EntryError(_below(path, name), _Text("nothing"), _say(known.get(name, {})))
    if schema.get("additionalProperties") is False:
        for name in value:
            if name not in known:
                raise EntryError(_below(path, name), value[name], f"only {', '.join(known)}")
    for name, one in known.items():
        if name in value:
            check(value[name], one, root, _below(path, name))


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _say(schema: Mapping[str, Any]) -> str:
    text: str = schema.get("description", "an entry")
    return text


def check_same(given: object, computed: object, path: str = "") -> None:
    """Check a value against what it must be, recomputed.

    Raises:
        EntryError: the first entry that differs, in the order of `computed`.
    """
    if isinstance(given, dict) and isinstance(computed, dict):
        for name, one in computed.items():
            if name not in given:
                raise EntryError(_below(path, name), _Text("nothing"), _short(one))
            check_same(given[name], one, _below(path, name))
        for name in given:
            if name not in computed:
                raise EntryError(_below(path, name), given[name], "nothing")
    elif isinstance(given, list) and isinstance(computed, list):
        for number, (one, other) in enumerate(zip(given, computed, strict=False)):
            check_same(one, other, f"{path}[{number}]")
        if len(given) != len(computed):
            raise EntryError(path, words(f"{len(given)} entries"), f"{len(computed)}")
    elif not _same(given, computed):
        raise EntryError(path, given, _short(computed))
