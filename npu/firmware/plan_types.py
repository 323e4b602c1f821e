# SPDX-License-Identifier: Apache-2.0
"""Plans in C: types and constants from `npu/runtime/plan.schema.json`, and initialisers of plans.

`python -m npu.firmware.plan_types [--check]` writes `firmware/include/npu_plan_types.h`. Objects
become structs, lists pointers with counts, texts of a fixed choice enumerations.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from npu.runtime.prepare import Bases
from npu.runtime.schema import SCHEMA, plan_schema
from spec.paths import ROOT

HEADER = ROOT / "firmware" / "include" / "npu_plan_types.h"
PREFIX = "npu_plan"
SINGULAR = {"batches": "batch", "registers": "registers", "bytes": "bytes", "bases": "base"}
RESERVED = ("register",)
WIDE = 1 << 32
"""A number that may be larger needs 64 bits."""
WIDTH = 100

Schema: TypeAlias = Mapping[str, Any]


def resolved(schema: Schema) -> dict[str, Any]:
    """Return a part of the schema with what it refers to, its own words first."""
    if "$ref" not in schema:
        return dict(schema)
    part: Any = plan_schema()
    for key in schema["$ref"].removeprefix("#/").split("/"):
        part = part[key]
    return resolved(part) | {name: one for name, one in schema.items() if name != "$ref"}


def _kinds(schema: Schema) -> list[str]:
    found = schema.get("type", [])
    kinds = [found] if isinstance(found, str) else list(found)
    choices = [schema["const"]] if "const" in schema else schema.get("enum", [])
    if not kinds and choices:
        kinds = ["string" if isinstance(choices[0], str) else "integer"]
    return kinds


def _one(name: str) -> str:
    return SINGULAR.get(name, name.removesuffix("s"))


def _member(key: str) -> str:
    """Return the name of a member: no word of C."""
    return f"{key}_" if key in RESERVED else key


def _integer(schema: Schema) -> str:
    if schema.get("minimum", 0) < 0:
        return "int32_t"
    return "uint64_t" if schema.get("maximum", 0) > WIDE else "uint32_t"


class _Types:
    """The types of the schema, each behind those that it is made of."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.known: dict[str, list[str]] = {}

    def struct(self, name: str, schema: Schema) -> str:
        """Add a struct, once; return its name."""
        members: list[str] = []
        for key, each in schema["properties"].items():
            one = resolved(each)
            text = one.get("description", "")
            for declared in self.members(key, one, name):
                members.append(_commented(f"  {declared};", text))
                text = ""
        if name not in self.known:
            self.known[name] = members
            about = schema.get("description", "")
            self.lines += ["", *([_block(about)] if about else []), f"struct {name} {{"]
            self.lines += [*members, "};"]
        elif self.known[name] != members:
            raise ValueError(f"{name}: two structs of one name")
        return f"struct {name}"

    def members(self, key: str, schema: Schema, owner: str) -> Iterator[str]:
        """Yield what a struct holds of a property."""
        kinds = _kinds(schema)
        if "object" in kinds:
            inner = self.struct(f"{PREFIX}_{_one(key)}", schema)
            yield f"const {inner} *{key}" if "null" in kinds else f"{inner} {key}"
        elif "array" in kinds:
            yield f"const {self.element(key, schema, owner)}*{key}"
            yield f"uint32_t {key}_count"
        elif "string" in kinds and "integer" in kinds:
            yield f"{_integer(schema)} {key}"
            yield f"const char *{key}_name"
        elif "enum" in schema and kinds == ["string"]:
            yield f"{self.choice(key, schema, owner)} {key}"
        elif "string" in kinds:
            yield f"const char *{key}"
        elif "number" in kinds:
            yield f"float {key}"
        else:
            yield f"{_integer(schema)} {_member(key)}"

    def element(self, key: str, schema: Schema, owner: str) -> str:
        """Return the type of a list's elements, with a space if it does not end with a star."""
        inner = resolved(schema["items"])
        kinds = _kinds(inner)
        if "object" in kinds:
            return self.struct(f"{PREFIX}_{_one(key)}", inner) + " "
        if "array" in kinds:
            wrapped = {"properties": {"of": inner}, "description": schema["description"]}
            return self.struct(f"{PREFIX}_{_one(key)}", wrapped) + " "
        return "char *const " if "string" in kinds else f"{_integer(inner)} "

    def choice(self, key: str, schema: Schema, owner: str) -> str:
        """Add an enumeration, once; return its name."""
        name = choice_name(key, owner)
        if name not in self.known:
            self.known[name] = []
            values = ",\n".join(f"  {name.upper()}_{one.upper()}" for one in schema["enum"])
            self.lines += ["", f"enum {name} {{", values, "};"]
        return f"enum {name}"


def choice_name(key: str, owner: str) -> str:
    """Return the name of the enumeration of a property; one called name is that of its owner."""
    return f"{owner}_name" if key == "name" else f"{PREFIX}_{key}"


def _commented(line: str, text: str) -> str:
    if not text:
        return line
    if len(f"{line} /* {text} */") <= WIDTH:
        return f"{line} /* {text} */"
    return f"{_block(text, '  ')}\n{line}"


def _block(text: str, indent: str = "") -> str:
    lines, line = [], f"{indent}/*"
    for word in f"{text} */".split():
        if len(line) + 1 + len(word) > WIDTH:
            lines.append(line)
            line = f"{indent}  "
        line += f" {word}"
    return "\n".join([*lines, line])


def header() -> str:
    """Return the text of the header."""
    types = _Types()
    schema = plan_schema()
    types.struct(PREFIX, {**schema, "description": "A plan, as plan.json has it."})
    bases = "\n".join(f"  uint32_t {name};" for name in Bases.names())
    body = "\n".join(types.lines)
    return f"""/* SPDX-License-Identifier: Apache-2.0 */
/* Generated from {SCHEMA.relative_to(ROOT)}; do not edit.
   `python -m npu.firmware.plan_types` writes it. */
#ifndef NPU_PLAN_TYPES_H
#define NPU_PLAN_TYPES_H

#include <stddef.h>
#include <stdint.h>

/* What stands for null in a number of 32 bits; of 64 bits it is all ones as well. */
#define NPU_PLAN_NONE 0xFFFFFFFFu
{body}

/* Where the parts of a plan lie in memory: addresses, multiples of 64. */
struct npu_bases {{
{bases}
}};

#endif
"""


def initialiser(record: Mapping[str, Any]) -> str:
    """Return a plan of JSON as C has it, for a `static const struct npu_plan`."""
    return _object(record, plan_schema(), PREFIX, "    ")


def _object(record: Mapping[str, Any], schema: Schema, owner: str, indent: str) -> str:
    parts = []
    for key, each in schema["properties"].items():
        if key in record:
            parts += _members(key, record[key], resolved(each), owner, indent + "    ")
    if not parts:
        return "{0}"
    inside = ",\n".join(f"{indent}    {part}" for part in parts)
    return f"{{\n{inside},\n{indent}}}"


def _members(key: str, value: Any, schema: Schema, owner: str, indent: str) -> list[str]:  # noqa: ANN401
    kinds = _kinds(schema)
    if "object" in kinds:
        name = f"{PREFIX}_{_one(key)}"
        if value is None:
            return [f".{key} = NULL"]
        text = _object(value, schema, name, indent)
        return [f".{key} = &(const struct {name}){text}" if "null" in kinds else f".{key} = {text}"]
    if "array" in kinds:
        if not value:
            return [f".{key} = NULL", f".{key}_count = 0u"]
        kind, items = _list(key, value, schema, owner, indent)
        return [f".{key} = (const {kind}[]){items}", f".{key}_count = {len(value)}u"]
    if "string" in kinds and "integer" in kinds:
        if isinstance(value, str):
            return [f".{key} = NPU_PLAN_NONE", f".{key}_name = {c_text(value.encode())}"]
        return [f".{key} = {value}u", f".{key}_name = NULL"]
    return [f".{_member(key)} = {_scalar(key, value, schema, owner)}"]


def _scalar(key: str, value: Any, schema: Schema, owner: str) -> str:  # noqa: ANN401
    kinds = _kinds(schema)
    if "enum" in schema and kinds == ["string"]:
        return f"{choice_name(key, owner).upper()}_{value.upper()}"
    if "string" in kinds:
        return c_text(value.encode())
    if "number" in kinds:
        return "0.0f" if value is None else f"{float(value)!r}f".replace("e-0", "e-")
    if value is None:
        return "NPU_PLAN_NONE" if _integer(schema) == "uint32_t" else "UINT64_MAX"
    if isinstance(value, bool):
        return "1u" if value else "0u"
    return str(value) if _integer(schema) == "int32_t" else f"{value}u"


def _list(key: str, value: list[Any], schema: Schema, owner: str, indent: str) -> tuple[str, str]:
    """Return type and initialiser of a list's elements."""
    inner = resolved(schema["items"])
    kinds = _kinds(inner)
    name = f"{PREFIX}_{_one(key)}"
    if "object" in kinds:
        texts = [_object(one, inner, name, indent + "    ") for one in value]
        kind = f"struct {name} "
    elif "array" in kinds:
        wrapped = {"properties": {"of": inner}}
        texts = [_object({"of": one}, wrapped, name, indent + "    ") for one in value]
        kind = f"struct {name} "
    else:
        texts = [_scalar(key, one, inner, owner) for one in value]
        kind = "char *const " if "string" in kinds else f"{_integer(inner)} "
    inside = ",\n".join(f"{indent}    {text}" for text in texts)
    return kind.rstrip(), f"{{\n{inside},\n{indent}}}"


def c_text(data: bytes) -> str:
    """Return bytes as a literal of C, all but plain characters in octal."""
    plain = set(range(32, 127)) - {ord('"'), ord("\\"), ord("?")}
    quoted = "".join(chr(b) if b in plain else f"\\{b:03o}" for b in data)
    return f'"{quoted}"'


def main(argv: list[str] | None = None) -> int:
    """Write the header; with --check only compare it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail if the header is stale")
    check = parser.parse_args(argv).check
    now = header()
    if check and (not HEADER.exists() or HEADER.read_text(encoding="utf-8") != now):
        place = HEADER.relative_to(ROOT)
        print(f"{place} is stale: run python -m npu.firmware.plan_types", file=sys.stderr)
        return 1
    if not check:
        HEADER.write_text(now, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
