# SPDX-License-Identifier: Apache-2.0
"""ONNX files that are refused: no model, cut off, contradicting themselves, reaching outside.

Every refusal is a GraphError that names the file, and the operation and tensor where there is one.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from npu.graph.form import GraphError
from npu.graph.importers import read
from tests.needs import needs

needs("graphs")

import onnx

helper = onnx.helper
FLOAT = onnx.TensorProto.FLOAT


def good() -> Any:  # noqa: ANN401
    """Return a model that reads: y = relu(x w)."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"], name="dense"),
        helper.make_node("Relu", ["h"], ["y"], name="act"),
    ]
    weight = np.arange(12, dtype=np.float32).reshape(3, 4)
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", FLOAT, (2, 3))],
        [helper.make_tensor_value_info("y", FLOAT, (2, 4))],
        [onnx.numpy_helper.from_array(weight, "w")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def refused(path: Path, message: str) -> None:
    """Check that a file is refused by its name with a message, and that no other error comes."""
    with pytest.raises(GraphError, match=message) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path}: ")


def written(folder: Path, model: Any) -> Path:  # noqa: ANN401
    """Write a model without asking anybody whether it is right."""
    path = folder / "net.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def test_the_model_that_the_others_break_reads(tmp_path: Path) -> None:
    """Whatever is refused below differs from it in one thing."""
    assert read(written(tmp_path, good())).outputs == ("y",)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "0 bytes without a graph"),
        (b"\x00" * 64, "no ONNX model, or cut off|without a graph"),
        (b"hello, this is no model at all", "no ONNX model, or cut off|without a graph"),
        (bytes(range(256)) * 8, "no ONNX model, or cut off|without a graph"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, data: bytes, message: str) -> None:
    """Nothing, zeros, text and noise are no models."""
    path = tmp_path / "net.onnx"
    path.write_bytes(data)
    refused(path, message)


def test_there_is_no_such_file(tmp_path: Path) -> None:
    """With and without a suffix that says what it would be, and a folder."""
    refused(tmp_path / "none.onnx", "No such file")
    refused(tmp_path / "none", "No such file")
    (tmp_path / "dir.onnx").mkdir()
    refused(tmp_path / "dir.onnx", "Is a directory")


def test_a_file_cut_off_anywhere_is_refused(tmp_path: Path) -> None:
    """Every length but the whole one gives a GraphError, never another error or a graph."""
    data = good().SerializeToString()
    path = tmp_path / "net.onnx"
    for length in range(len(data)):
        path.write_bytes(data[:length])
        refused(path, ".")


@pytest.mark.parametrize("seed", range(6))
def test_a_damaged_file_never_ends_in_a_traceback(tmp_path: Path, seed: int) -> None:
    """Some bytes changed: a graph or a GraphError."""
    random = np.random.default_rng(seed)
    data = good().SerializeToString()
    path = tmp_path / "net.onnx"
    for _ in range(60):
        changed = bytearray(data)
        for place in random.integers(0, len(data), 3):
            changed[place] = int(random.integers(0, 256))
        path.write_bytes(changed)
        try:
            read(path)
        except GraphError as error:
            assert str(error).startswith(f"{path}: ")


def test_a_domain_that_is_no_text_is_refused(tmp_path: Path) -> None:
    """Not by a traceback of what reads text."""
    model = good()
    model.graph.node[0].domain = "strange"
    path = tmp_path / "net.onnx"
    path.write_bytes(model.SerializeToString().replace(b"strange", b"str\x96nge"))
    refused(path, r"domain b'str\\x96nge', allowed text in UTF-8")


def version(model: Any, number: int) -> None:  # noqa: ANN401
    """Set the version of the operator set."""
    model.opset_import[0].version = number


def cycle(model: Any) -> None:  # noqa: ANN401
    """Let the first node read what the second makes."""
    model.graph.node[0].input[0] = "y"


def weight(model: Any, **parts: Any) -> None:  # noqa: ANN401
    """Change parts of the weight."""
    for name, value in parts.items():
        setattr(model.graph.initializer[0], name, value)


BROKEN: dict[str, Callable[[Any], Any]] = {
    "operator set version -1, allowed 1..28": lambda one: version(one, -1),
    "operator set version 29, allowed 1..28": lambda one: version(one, 29),
    "operator set version 0, allowed 1..28": lambda one: one.opset_import.pop(),
    "IR version 99": lambda one: setattr(one, "ir_version", 99),
    "'dense' .MatMul.: tensor 'y' comes from 'act', which waits for it: a cycle": cycle,
    "'act' .Relu.: tensor 'gone': nothing assigns it": lambda one: one.graph.node[
        1
    ].input.__setitem__(0, "gone"),
    "'dense' .MatMul.: tensor 'w': nothing assigns it": lambda one: one.graph.initializer.pop(),
    "output 'gone' of the graph": lambda one: setattr(one.graph.output[0], "name", "gone"),
    "'act' .Relu.: tensor 'h' is assigned twice": lambda one: one.graph.node[1].output.__setitem__(
        0, "h"
    ),
    "weight 'w'|checker of onnx": lambda one: weight(one, raw_data=b"123"),
    "'dense' .MatMul.: inner axes differ: 3 of .2, 3. and 4": lambda one: one.graph.initializer[
        0
    ].CopyFrom(onnx.numpy_helper.from_array(np.zeros((4, 3), np.float32), "w")),
    "input 'x': element type STRING": lambda one: setattr(
        one.graph.input[0].type.tensor_type, "elem_type", onnx.TensorProto.STRING
    ),
    r"free dimensions \?: --shape x=1,3": lambda one: (
        one.graph.input[0].type.tensor_type.shape.dim[0].Clear()
    ),
    "checker of onnx.*Relu": lambda one: one.graph.node[1].input.append("x"),
}


@pytest.mark.parametrize("message", BROKEN)
def test_each_contradiction_is_named(tmp_path: Path, message: str) -> None:
    """Versions, order, names, weights, shapes and types."""
    model = good()
    BROKEN[message](model)
    refused(written(tmp_path, model), message)


def external(folder: Path, location: str, **more: str) -> Path:
    """Write a model whose weight lies in another file."""
    model = good()
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, value in {"location": location, **more}.items():
        tensor.external_data.add(key=key, value=value)
    return written(folder, model)


def test_weights_in_the_folder_are_read(tmp_path: Path) -> None:
    """Whole, or a part of a file."""
    values = np.arange(12, dtype=np.float32) + 5
    (tmp_path / "w.bin").write_bytes(b"head" + values.tobytes() + b"tail")
    graph = read(external(tmp_path, "w.bin", offset="4", length="48"))
    data = graph.constant("w")
    assert data is not None
    assert np.array_equal(data.reshape(-1), values)


@pytest.mark.parametrize("location", ["../secret.bin", "/secret.bin", "sub/../../secret.bin", ""])
def test_weights_outside_the_folder_are_never_opened(
    tmp_path: Path, location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither by steps up nor by a root."""
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "secret.bin").write_bytes(bytes(48))
    path = external(folder, location.replace("/secret", f"{tmp_path}/secret", location[:1] == "/"))
    opened: list[str] = []
    before = Path.open

    def watched(self: Path, *args: Any, **more: Any) -> Any:  # noqa: ANN401
        opened.append(self.name)
        return before(self, *args, **more)

    monkeypatch.setattr(Path, "open", watched)
    refused(path, "weight 'w' in .*allowed only files inside")
    assert "secret.bin" not in opened


def test_a_link_out_of_the_folder_is_never_opened(tmp_path: Path) -> None:
    """What a name inside the folder points to counts."""
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "secret.bin").write_bytes(bytes(48))
    (folder / "w.bin").symlink_to(tmp_path / "secret.bin")
    refused(external(folder, "w.bin"), "allowed only files inside")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"location": "none.bin"}, "there is no such file"),
        ({"offset": "1000"}, "bytes 1000"),
        ({"offset": "-1"}, "bytes -1"),
        ({"length": "1000"}, r"bytes 0\.\.1000, the file has 48"),
        ({"offset": "x"}, "must be numbers"),
        ({"length": "4"}, "weight 'w'|checker of onnx"),
    ],
)
def test_weights_that_are_not_there_are_named(
    tmp_path: Path, more: dict[str, str], message: str
) -> None:
    """No file, or not as many bytes."""
    (tmp_path / "w.bin").write_bytes(bytes(48))
    location = more.pop("location", "w.bin")
    refused(external(tmp_path, location, **more), message)


def test_weights_beside_bytes_are_refused(tmp_path: Path) -> None:
    """Bytes have no folder."""
    data = external(tmp_path, "w.bin").read_bytes()
    with pytest.raises(GraphError, match="allowed only for a path"):
        read(data)


def test_a_constant_of_a_monstrous_shape_is_refused(tmp_path: Path) -> None:
    """Sixteen bytes of shape do not take all memory."""
    model = good()
    node = helper.make_node("ConstantOfShape", ["s"], ["big"], name="monster")
    model.graph.node.insert(0, node)
    shape = onnx.numpy_helper.from_array(np.array([1 << 20, 1 << 20]), "s")
    model.graph.initializer.append(shape)
    model.graph.node[-1].input[0] = "big"
    refused(written(tmp_path, model), "'monster' .ConstantOfShape.: .*allowed")
