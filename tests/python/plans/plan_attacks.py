# SPDX-License-Identifier: Apache-2.0
"""Plans of somebody who wants harm, with checksums that fit, and what comes of running them.

An attack changes what steps of the host carry, the graph's text, plan.json, or what lies in the
folder. A process of its own runs `npu run` on each. It must end within seconds and memory, open
nothing outside the folder, leave alone what links lead to, and either refuse the plan in one line
or give results in the shapes that the plan says.
"""

from __future__ import annotations

import base64
import json
import os
import random
import re
import select
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from npu.graph.form import Attribute, Element, Operation, Target, Tensor, TensorType
from npu.graph.form import OperationPlace as Placed
from npu.graph.importers.onnx_host import payload
from npu.graph.importers.stablehlo import from_jax
from npu.graph.importers.stablehlo_bytecode import context
from npu.graph.text import parse, write
from npu.image import unpack
from npu.planner.build_plan import CompileOptions, build_plan
from npu.runtime.plan import Plan
from npu.runtime.plan_files import GRAPH, IMAGE, PLAN, files_of
from spec.paths import REPORTS, ROOT
from tests.python.plans.campaign_reports import into_report
from tests.python.plans.plan_damage import Files, resealed

SECONDS, TIMES = 5.0, 2.0
"""Of processor time for an attack, and its memory over that of the plan as it was."""
HANGS = 120
"""Seconds on the clock: other work may be beside it."""
ROWS, WIDTH, INNER = 8, 32, 64
SECRET = b"\x00\x2c\xbc\x4a" * 1024
"""What must appear nowhere: 6165504.0 as float32."""
REPORT = REPORTS / "plan_attacks.json"

Place = Callable[[Path, Files, Path], None]
"""Lays an attack into an empty folder, beside a folder that is none of its business."""


@dataclass(frozen=True)
class Attack:
    """A plan that means harm.

    Attributes:
        kind: how it is counted.
        name: of a base in `BASES`.
        lay: how it becomes a folder.
        taken: whether a plan may be taken: it is another one that says what it does.
        late: whether it is seen only when it runs; others are refused while they are read.
    """

    kind: str
    name: str
    lay: Place
    taken: bool = False
    late: bool = False


# -------------------------------------------------------------------------------------------------
# Plans as they should be
# -------------------------------------------------------------------------------------------------
def _weights(seed: int, *shape: int) -> Any:  # noqa: ANN401
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32) / 8


def _with_onnx(label: str = "m2", output: str = "y") -> Plan:
    """Return a product, a sum over rows that only onnx knows, and another product."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"], "m1"),
        helper.make_node("CumSum", ["h", "ax"], ["c"], "cum"),
        helper.make_node("MatMul", ["c", "v"], [output], label),
    ]
    constants = {"w": _weights(1, WIDTH, INNER), "v": _weights(2, INNER, 16)}
    stored = [numpy_helper.from_array(data, name) for name, data in constants.items()]
    stored.append(numpy_helper.from_array(np.array(1), "ax"))
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [ROWS, WIDTH])
    y = helper.make_tensor_value_info(output, TensorProto.FLOAT, [ROWS, 16])
    graph = helper.make_graph(nodes, "attacked", [x], [y], stored)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    return build_plan(model, CompileOptions(calibrate="random:4")).plan


def _with_jax() -> Plan:
    """Return a product, a sort that only jax knows, and another product."""
    import jax.numpy as jnp

    w, v = _weights(1, WIDTH, INNER), _weights(2, INNER, 16)
    graph = from_jax(lambda x: jnp.sort(x @ w, -1) @ v, [np.zeros((ROWS, WIDTH), np.float32)])
    return build_plan(graph, CompileOptions(calibrate="random:4")).plan


BASES: Mapping[str, Callable[[], Plan]] = {"onnx": _with_onnx, "jax": _with_jax}


@cache
def base(name: str) -> Files:
    """Return the files of a plan as it should be."""
    return files_of(BASES[name]())


def _text(files: Files) -> str:
    return unpack(files[IMAGE]).sections[GRAPH].decode()


def _with_text(change: Callable[[str], str]) -> Place:
    def lay(folder: Path, files: Files, _: Path) -> None:
        text = _text(files)
        _put(folder, resealed(files, GRAPH, change(text).encode("utf-8", "surrogatepass")))

    return lay


def _put(folder: Path, files: Files) -> None:
    for name, data in files.items():
        (folder / name).write_bytes(data)


# -------------------------------------------------------------------------------------------------
# What steps of the host carry
# -------------------------------------------------------------------------------------------------
def _carrying(data: bytes, operator: str = "", evaluator: str = "") -> Place:
    """Exchange the payload of the step, and what the step says that it is."""

    def change(text: str) -> str:
        coded = base64.b64encode(data).decode()
        text = re.sub(r'payload = base64"[^"]*"', f'payload = base64"{coded}"', text)
        if operator:
            text = re.sub(r'operator = "[^"]*"', f"operator = {json.dumps(operator)}", text)
        if operator == "Loop":
            text = text.replace("host(%h, %ax)", "host(%ax, %h)")
        if evaluator:
            text = re.sub(r'evaluator = "[^"]*"', f'evaluator = "{evaluator}"', text)
        return text

    return _with_text(change)


def _carried(name: str) -> bytes:
    (one,) = [one for one in parse(_text(base(name))).operations if one.kind == "host"]
    data: bytes = one["payload"]
    return data


def _model(*nodes: onnx.NodeProto, functions: Any = (), imports: Any = ()) -> bytes:  # noqa: ANN401
    """Return the payload of the honest plan with other nodes."""
    model = onnx.ModelProto()
    model.ParseFromString(_carried("onnx"))
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    model.functions.extend(functions)
    model.opset_import.extend(imports)
    data: bytes = model.SerializeToString()
    return data


def _loop(*inner: onnx.NodeProto, result: str, again: bool = False) -> bytes:
    """Return a Loop over what the step reads: ax says that it begins, h is its state."""
    go = numpy_helper.from_array(np.array(again), "go")
    described = {"i": TensorProto.INT64, "was": TensorProto.BOOL}
    inputs = [helper.make_tensor_value_info(name, kind, []) for name, kind in described.items()]
    inputs.append(helper.make_tensor_value_info("state", TensorProto.FLOAT, None))
    outputs = [onnx.ValueInfoProto(name=name) for name in ("go", result)]
    body = helper.make_graph([*inner], "body", inputs, outputs, [go])
    node = helper.make_node("Loop", ["", "ax", "h"], ["c"], body=body)
    types = {"ax": TensorType((), Element.I64), "h": TensorType((ROWS, INNER))}
    return payload(node, [helper.make_opsetid("", 21)], types, ["c"])


def _filled(count: int) -> list[onnx.NodeProto]:
    """Return nodes that make many elements and give the sum of state and none of them."""
    size = numpy_helper.from_array(np.array([count]), "size")
    return [
        helper.make_node("Constant", [], ["size"], value=size),
        helper.make_node("ConstantOfShape", ["size"], ["many"]),
        helper.make_node("ReduceMax", ["many"], ["none"], keepdims=0),
        helper.make_node("Add", ["state", "none"], ["more"]),
    ]


def _external(path: str) -> onnx.TensorProto:
    tensor = TensorProto(name="stolen", data_type=TensorProto.FLOAT, dims=[ROWS, INNER])
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in {"location": path, "offset": "0"}.items():
        tensor.external_data.add(key=key, value=value)
    return tensor


def _onnx_payloads(draw: random.Random) -> Iterator[tuple[str, bytes, str]]:
    """Yield name, payload and the operator that the step says."""
    honest = _carried("onnx")
    yield "loop without end", _loop(result="state", again=True), "Loop"
    yield "another operator", _loop(result="state", again=True), ""
    count = draw.choice([1 << 27, 1 << 29, 1 << 31, 1 << 40, (1 << 62) + 1])
    yield "many elements", _loop(*_filled(count), result="more"), "Loop"
    path = draw.choice(["secret.bin", "../secret.bin", "../outside/secret.bin", "/etc/passwd"])
    stolen = helper.make_node("Constant", [], ["stolen"])
    stolen.attribute.append(helper.make_attribute("value", _external(path)))
    yield "data elsewhere", _loop(stolen, result="stolen"), "Loop"
    yield "data elsewhere", _model(stolen), "Constant"
    given = ["h", "ax"]
    odd = helper.make_node("CumSum", given, ["c"], domain=draw.choice(["me", "com.microsoft"]))
    yield "another domain", _model(odd, imports=[helper.make_opsetid(odd.domain, 1)]), ""
    yield "a power instead", _model(helper.make_node("Pow", given, ["c"], "cum")), ""
    cum = helper.make_node("CumSum", given, ["c"], "cum")
    own = helper.make_function(
        "", "CumSum", ["h", "ax"], ["c"], [helper.make_node("Neg", ["h"], ["c"])],
        [helper.make_opsetid("", 21)],
    )  # fmt: skip
    yield "a function", _model(cum, functions=[own]), ""
    yield "two nodes", _model(cum, helper.make_node("Neg", ["h"], ["d"])), ""
    deep = helper.make_node("Identity", ["h"], ["c"])
    for _ in range(draw.choice([8, 40, 200])):
        inside = helper.make_graph([deep], "deep", [], [onnx.ValueInfoProto(name="c")])
        deep = helper.make_node("If", ["h"], ["c"], then_branch=inside, else_branch=inside)
        if deep.ByteSize() > 1 << 20:
            break
    yield "graphs in graphs", _model(deep), "If"
    bits = bytearray(honest)
    for _ in range(draw.randint(1, 4)):
        bits[draw.randrange(len(bits))] ^= 1 << draw.randrange(8)
    yield "flipped bits", bytes(bits), ""
    yield "cut off", honest[: draw.randrange(len(honest))], ""
    bare = onnx.ModelProto()
    bare.ParseFromString(honest)
    bare.opset_import[0].version = 9999
    yield "a far operator set", bare.SerializeToString(), ""
    del bare.opset_import[:]
    yield "no operator set", bare.SerializeToString(), ""
    yield "anything", draw.randbytes(draw.choice([0, 1, 100, 100_000])), ""
    yield "another framework", _carried("jax"), ""


LATE = ("onnx: loop without end", "onnx: many elements", "jax: loop without end")
"""What is right, but for what it does when it runs."""
_TENSOR = f"tensor<{ROWS}x{INNER}xf32>"


def _main(*lines: str, before: str = "", behind: str = "") -> bytes:
    """Return a module with a function of the types that the step has."""
    body = "\n".join(f"    {line}" for line in lines)
    text = (
        f"module {{\n{before}  func.func @main(%arg0: {_TENSOR}) -> {_TENSOR} {{\n{body}\n"
        f"    return %0 : {_TENSOR}\n  }}\n{behind}}}\n"
    )
    return _printed(text).encode()


def _printed(text: str) -> str:
    """Return a module as MLIR prints it, and a text as it is that is none or kills its reader."""
    if len(text) > 10_000:
        return text
    from jaxlib.mlir import ir

    try:
        return str(ir.Module.parse(text, context()))
    except ir.MLIRError:
        return text


def _while(*inner: str, go: str = "NE") -> tuple[str, ...]:
    """Return a loop that goes on while a comparison holds of something that is never 7."""
    one = "tensor<1x1xf32>"
    return (
        f"%0 = stablehlo.while(%iterArg = %arg0) : {_TENSOR}",
        "cond {",
        f"  %1 = stablehlo.slice %iterArg [0:1, 0:1] : ({_TENSOR}) -> {one}",
        f"  %2 = stablehlo.reshape %1 : ({one}) -> tensor<f32>",
        "  %cst = stablehlo.constant dense<7.0> : tensor<f32>",
        f"  %3 = stablehlo.compare {go}, %2, %cst : (tensor<f32>, tensor<f32>) -> tensor<i1>",
        "  stablehlo.return %3 : tensor<i1>",
        "} do {",
        *(f"  {one}" for one in inner),
        f"  %9 = stablehlo.tanh %iterArg : {_TENSOR}",
        f"  stablehlo.return %9 : {_TENSOR}",
        "}",
    )


def _jax_payloads(draw: random.Random) -> Iterator[tuple[str, bytes, str]]:
    """Yield name, payload and the operator that the step says."""
    honest = _carried("jax")
    called = draw.choice(
        [
            "lapack_spotrf_ffi",
            "lapack_sgetrf",
            "xla_python_cpu_callback",
            "xla_ffi_python_cpu_callback",
        ]
    )
    call = f"stablehlo.custom_call @{called}(%arg0) : ({_TENSOR}) -> {_TENSOR}"
    yield "a custom call", _main(f"%0 = {call}"), ""
    yield "a custom call", _main(f"%0 = {call}"), "stablehlo.custom_call"
    yield "a custom call", _main(*_while(f"%1 = {call}")), "stablehlo.while"
    yield "loop without end", _main(*_while()), "stablehlo.while"
    count = draw.choice([1 << 26, 1 << 29, 1 << 33, 1 << 62])
    wide = (
        "%cst = stablehlo.constant dense<1.0> : tensor<f32>",
        f"%1 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<{count}xf32>",
    )
    yield "many elements", _main(*_while(*wide, go="EQ")), "stablehlo.while"
    yield "many elements", _main(f"%0 = stablehlo.constant dense<1.0> : tensor<{count}xf32>"), ""
    nest = draw.choice([30, 100, 50_000])
    yield "modules in modules", b"module {" * nest + b"}" * nest, ""
    sign = draw.choice(["[]", "()", "{}", "<>"])
    deep = f'%0 = "stablehlo.sort"(%arg0) {{a = {sign[0] * nest}{sign[1] * nest}}}'
    yield "brackets in brackets", _main(deep), ""
    hidden = "\n".join(["// " + "}" * 99, "{" * 99 + '"', '"' + "}" * 99])
    yield "brackets behind a comment", (hidden * nest).encode(), ""
    recursive = (
        f"  func.func private @me(%a: {_TENSOR}) -> {_TENSOR} {{\n    %1 = call @me(%a) : "
        f"({_TENSOR}) -> {_TENSOR}\n    return %1 : {_TENSOR}\n  }}\n"
    )
    yield (
        "a call of itself",
        _main(f"%0 = call @me(%arg0) : ({_TENSOR}) -> {_TENSOR}", before=recursive),
        "func.call",
    )
    yield (
        "a noted wish",
        honest.replace(b"stablehlo.sort", b'stablehlo.sort {mhlo.sharding = "x"}', 1),
        "",
    )
    yield "another module", honest.replace(b"module", b"module @x", 1), ""
    at = draw.randrange(len(honest))
    yield "a letter less", honest[:at] + honest[at + 1 :], ""
    other = draw.choice([letter for letter in range(32, 127) if letter != honest[at]])
    yield "another letter", honest[:at] + bytes([other]) + honest[at + 1 :], ""
    yield "cut off", honest[:at], ""
    yield "bytecode", b"ML\xefR" + draw.randbytes(200), ""
    yield "another framework", _carried("onnx"), ""


def _payload_attacks(draw: random.Random) -> Iterator[Attack]:
    """Yield an attack of each kind on what a step carries."""
    for name, payloads in {"onnx": _onnx_payloads, "jax": _jax_payloads}.items():
        for kind, data, operator in payloads(draw):
            evaluator = {"onnx": "stablehlo", "jax": "onnx"}[name]
            told = evaluator if kind == "another framework" else ""
            lay, full = _carrying(data, operator, told), f"{name}: {kind}"
            yield Attack(full, name, lay, late=full in LATE)


# -------------------------------------------------------------------------------------------------
# The graph's text, and plan.json
# -------------------------------------------------------------------------------------------------
_NUMBERS = (
    "-1", "0", "1", "2147483648", "4294967296", "9223372036854775807", "18446744073709551616",
    "1" + "0" * 400, "1" + "0" * 5000, "1e308", "-1e-320", "1e999", "nan", "inf", "-inf",
)  # fmt: skip
_WORDS = (
    "", "../../x", "/etc/passwd", "[/red]", "[link=x]", "\\u001b[2J", "\\u0000", "\\ud800", "file",
    "x" * 5000, "%", "host", "npu", "onnx", "tflite", "os.system", "\\n", "\\u202e",
)  # fmt: skip
_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:e[+-]?\d+)?|[A-Za-z_][A-Za-z0-9_]*')
_LINES = (
    'graph "other"', "output %y", "input %x : float32[8,32]", "tensor %q : float32[268435456]",
    "const %q : float32[1] = [1.0]", "const %q : float32[1] = " + "[" * 60_000, "[" * 100_000,
    '%q : float32[268435456] = iota() {shape = [268435456], axis = 0, element = "float32"} '
    'name "q" place host ""',
    '%q : float32[4] = host(%x) {evaluator = "onnx", operator = "X", payload = base64"", '
    'reason = ""} name "q" place host ""',
    '%q : float32[8,32] = identity(%x) name "q" place host ""', "%q", "", "input %x", "\x00",
)  # fmt: skip


def _text_attacks(draw: random.Random) -> Attack:
    name = draw.choice(["onnx", "jax"])
    lines = _text(base(name)).split("\n")
    at = draw.randrange(len(lines) - 1)
    kind = draw.choice(["a token", "a line less", "a line twice", "a line more", "lines exchanged"])
    if kind == "a token":
        found = list(_TOKENS.finditer(lines[at]))
        token = draw.choice(found)
        other = draw.choice(
            [_quoted(draw), draw.choice(_NUMBERS), draw.choice(found)[0], "[" * 5000, "{"]
        )
        lines[at] = lines[at][: token.start()] + other + lines[at][token.end() :]
    elif kind == "a line less":
        del lines[at]
    elif kind == "a line twice":
        lines.insert(draw.randrange(len(lines)), lines[at])
    elif kind == "a line more":
        lines.insert(at, draw.choice(_LINES))
    else:
        other_at = draw.randrange(len(lines) - 1)
        lines[at], lines[other_at] = lines[other_at], lines[at]
    return Attack(f"graph: {kind}", name, _with_text(lambda _: "\n".join(lines)), taken=True)


def _quoted(draw: random.Random) -> str:
    return f'"{draw.choice(_WORDS)}"'


def _entry_attacks(draw: random.Random) -> Attack:
    """Change an entry of plan.json, which has no checksum."""
    name = draw.choice(["onnx", "jax"])
    text = base(name)[PLAN].decode()
    kind = draw.choice(["a value", "a key twice", "depth", "no JSON"])
    if kind == "a value":
        values = list(re.finditer(r'(?<=: )("(?:[^"\\]|\\.)*"|-?[0-9.]+|null|\[\]|\{\})', text))
        value = draw.choice(values)
        other = draw.choice(
            [_quoted(draw), draw.choice(_NUMBERS), "[]", "{}", "null", "NaN", "true"]
        )
        text = text[: value.start()] + other + text[value.end() :]
    elif kind == "a key twice":
        keys = list(re.finditer(r'"[a-z_0-9]+": [^\n\[{]*(?=,\n)', text))
        key = draw.choice(keys)
        text = text[: key.end()] + ", " + key[0] + text[key.end() :]
    elif kind == "depth":
        depth = draw.choice([900, 5_000, 200_000])
        text = draw.choice(["[" * depth, '{"format": ' * depth, "[" * depth + "]" * depth])
    else:
        text = text[: draw.randrange(len(text))]
    taken = kind == "a value"

    def lay(folder: Path, files: Files, _: Path) -> None:
        _put(folder, {**files, PLAN: text.encode("utf-8", "surrogatepass")})

    return Attack(f"plan.json: {kind}", name, lay, taken)


# -------------------------------------------------------------------------------------------------
# The folder
# -------------------------------------------------------------------------------------------------
def _link_in_run(folder: Path, files: Files, outside: Path) -> None:
    _put(folder, files)
    (folder / "run").mkdir()
    for name in ("outputs.npz", "report.json", "roofline.png"):
        (folder / "run" / name).symlink_to(outside / "precious")


def _run_is_a_link(folder: Path, files: Files, outside: Path) -> None:
    _put(folder, files)
    (folder / "run").symlink_to(outside)


def _run_is_a_file(folder: Path, files: Files, _: Path) -> None:
    _put(folder, files)
    (folder / "run").write_bytes(b"x")


def _hard_link(folder: Path, files: Files, outside: Path) -> None:
    _put(folder, files)
    (folder / "run").mkdir()
    (folder / "run" / "outputs.npz").hardlink_to(outside / "precious")


def _instead_of(name: str, make: Callable[[Path, Path], None]) -> Place:
    def lay(folder: Path, files: Files, outside: Path) -> None:
        _put(folder, {other: data for other, data in files.items() if other != name})
        make(folder / name, outside)

    return lay


def _sparse(path: Path, _: Path) -> None:
    path.touch()
    os.truncate(path, 20 << 30)


def _sparse_as_said(folder: Path, files: Files, outside: Path) -> None:
    _sparse(folder / IMAGE, outside)
    record = json.loads(files[PLAN])
    record["image"]["bytes"] = 20 << 30
    (folder / PLAN).write_text(json.dumps(record), encoding="utf-8")


def _link_to_precious(path: Path, outside: Path) -> None:
    path.symlink_to(outside / "precious")


FOLDERS: Mapping[str, tuple[Place, bool]] = {
    "links in run": (_link_in_run, True),
    "a hard link in run": (_hard_link, True),
    "run is a link": (_run_is_a_link, False),
    "run is a file": (_run_is_a_file, False),
    "20 GB of nothing, as the plan says": (_sparse_as_said, False),
    **{
        f"{name} is {what}": (_instead_of(name, make), False)
        for name in (PLAN, IMAGE)
        for what, make in {
            "a pipe": lambda path, _: os.mkfifo(path),
            "a link": _link_to_precious,
            "a device": lambda path, _: path.symlink_to("/dev/zero"),
            "a folder": lambda path, _: path.mkdir(),
            "20 GB of nothing": _sparse,
            "nothing": lambda path, _: None,
        }.items()
    },
}


NAMES = ("[/red]", "[link=x]y", "a\x1b[2Jb", "a\rb\nc", "file", "../../x", "\u202ex", "x" * 3000)
"""Of an operation and the output that it gives."""


def _other_attacks() -> Iterator[Attack]:
    """Yield plans with names that are none for a screen or a file, and those that ask for much."""
    for name in NAMES:

        def lay(folder: Path, _: Files, __: Path, name: str = name) -> None:
            _put(folder, files_of(_with_onnx(name, name)))

        yield Attack("names", "onnx", lay, taken=True)
    yield Attack("much memory", "onnx", _much((1, 1 << 14)))
    yield Attack("much work", "onnx", _much((1500, 1500)))


def _much(shape: tuple[int, int]) -> Place:
    """Let the host make a matrix, and its product with itself, in steps at the end."""

    def lay(folder: Path, files: Files, _: Path) -> None:
        graph = parse(_text(files))
        place = Placed(Target.HOST, "")
        counted: dict[str, Attribute] = {"shape": shape, "axis": 1, "element": "float32"}
        product: dict[str, Attribute] = {"transpose_a": True, "transpose_b": False}
        made = (
            Operation("q", "iota", (), ("q",), counted, "", place),
            Operation("p", "matmul", ("q", "q"), ("p",), product, "", place),
        )
        tensors = [Tensor("q", TensorType(shape)), Tensor("p", TensorType((shape[1], shape[1])))]
        text = write(graph.with_operations((*graph.operations, *made), tensors))
        record = json.loads(files[PLAN])
        for one in made:
            reads, writes = sorted({*one.inputs}), [*one.outputs]
            record["steps"].append(
                {"action": "host", "of": one.name, "reads": reads, "writes": writes}
            )
        _put(folder, resealed({**files, PLAN: json.dumps(record).encode()}, GRAPH, text.encode()))

    return lay


def _folder_attacks(draw: random.Random) -> Iterator[Attack]:
    """Yield an attack of each kind on the folder."""
    for kind, (lay, taken) in FOLDERS.items():
        yield Attack(f"folder: {kind}", draw.choice([*BASES]), lay, taken)


def named(draw: random.Random) -> list[Attack]:
    """Return an attack of each kind that has a name."""
    return [*_payload_attacks(draw), *_folder_attacks(draw), *_other_attacks()]


@cache
def kinds() -> tuple[str, ...]:
    """Return the names."""
    return tuple(one.kind for one in named(random.Random(0)))


def attack(seed: int) -> Attack:
    """Return the attack of a seed: the first ones are one of each kind that has a name."""
    draw = random.Random(seed)
    if seed < len(kinds()):
        return named(draw)[seed]
    family = draw.choice([_text_attacks, _text_attacks, _entry_attacks, None])
    return draw.choice(named(draw)) if family is None else family(draw)


# -------------------------------------------------------------------------------------------------
# What comes of it
# -------------------------------------------------------------------------------------------------
@dataclass
class Victim:
    """Somebody who runs plans of strangers, beside files of theirs.

    Attributes:
        place: an empty folder for all.
        normal: bytes that a plan takes as it should be, by its name.
        tally: what came of attacks, by kind.
        worst: the most seconds, and times of the memory.
    """

    place: Path
    normal: dict[str, int] = field(default_factory=dict)
    tally: dict[str, Counter[str]] = field(default_factory=dict)
    worst: dict[str, float] = field(default_factory=lambda: {"seconds": 0.0, "memory": 0.0})
    _process: subprocess.Popen[str] | None = None

    def __post_init__(self) -> None:
        """Lay out what must stay as it is, and run the plans once as they should be."""
        self.outside = self.place / "outside"
        self.outside.mkdir()
        for name in ("precious", "secret.bin"):
            (self.outside / name).write_bytes(SECRET)
        random_rows = np.random.default_rng(3).standard_normal((ROWS, WIDTH)).astype(np.float32)
        np.save(self.place / "x.npy", random_rows)
        for name in (*BASES, *BASES):  # the second time everything has been imported
            found = self._run(name, lambda folder, files, _: _put(folder, files))
            assert found["outcome"] == "taken", found
            self.normal[name] = found["bytes"]

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def suffer(self, seed: int) -> None:
        """Try the attack of a seed; repeat it by `Victim(Path(folder)).suffer(seed)`."""
        one = attack(seed)
        found = self._run(one.name, one.lay)
        what = f"attack {seed}, {one.kind}: {found}"
        assert found["outcome"] in ("taken", "refused"), what
        assert found["outcome"] == "refused" or one.taken, what
        message = found["message"]
        early = message.startswith(str(self.place / "plan"))
        assert found["outcome"] == "taken" or early or one.taken or one.late, what
        assert "\n" not in message and "\x1b" not in message + found["said"], what
        assert len(message) < 2000, what
        assert not found["opened"], what
        assert {path.name for path in self.outside.iterdir()} == {"precious", "secret.bin"}, what
        assert all(path.read_bytes() == SECRET for path in self.outside.iterdir()), what
        times = found["bytes"] / self.normal[one.name]
        assert found["seconds"] <= SECONDS, what
        assert times <= TIMES, what
        self.tally.setdefault(one.kind, Counter())[found["outcome"]] += 1
        self.worst["seconds"] = max(self.worst["seconds"], found["seconds"])
        self.worst["memory"] = max(self.worst["memory"], times)

    def _run(self, name: str, lay: Place) -> dict[str, Any]:
        folder = self.place / "plan"
        folder.mkdir()
        try:
            lay(folder, base(name), self.outside)
            found = self._ask(folder)
            if found["outcome"] == "taken":
                found["outcome"] = _results(folder, found["outcome"])
        finally:
            shutil.rmtree(folder)
        return found

    def _ask(self, folder: Path) -> dict[str, Any]:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.python.plans.plan_attack_process"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                cwd=ROOT,
            )
        process = self._process
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps([str(folder), str(self.place / "x.npy")]) + "\n")
        process.stdin.flush()
        answered, _, _ = select.select([process.stdout], [], [], HANGS)
        line = process.stdout.readline() if answered else ""
        if not line:
            self.close()
            return {"outcome": "died" if answered else "hangs"}
        found: dict[str, Any] = json.loads(line)
        return found

    def report(self) -> dict[str, Any]:
        """Return what came of all."""
        kinds = {kind: dict(count) for kind, count in sorted(self.tally.items())}
        return {
            "tried": sum(sum(one.values()) for one in kinds.values()),
            "worst_seconds": round(self.worst["seconds"], 2),
            "worst_memory_times": round(self.worst["memory"], 2),
            "kinds": kinds,
        }


def _results(folder: Path, outcome: str) -> str:
    """Say whether a plan that was taken has left what it says, and nothing of others."""
    graph = parse(_text({name: (folder / name).read_bytes() for name in (PLAN, IMAGE)}))
    with np.load(folder / "run" / "outputs.npz") as found:
        if sorted(found.files) != sorted(graph.outputs):
            return "other outputs"
        for name in graph.outputs:
            kind, data = graph.type(name), found[name]
            if (data.shape, data.dtype) != (kind.shape, kind.element.dtype):
                return "other shapes"
            if SECRET[:8] in data.tobytes():
                return "stolen data"
    return outcome


def campaign(place: Path, seeds: range) -> dict[str, Any]:
    """Try attacks; return the record for the report."""
    victim = Victim(place)
    try:
        for seed in seeds:
            victim.suffer(seed)
    finally:
        victim.close()
    return victim.report()


def report(name: str, record: Mapping[str, Any]) -> None:
    """Put the record of some seeds into the report, beside those of others that come at once."""
    bars = {"most_seconds": SECONDS, "most_times_of_memory": TIMES}
    into_report(REPORT, bars, "seeds", {name: record})
