# SPDX-License-Identifier: Apache-2.0
"""What a help text or an error of `npu compile` says to give is taken as it says it."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from tests.needs import needs

needs("graphs")

import onnx

import tessera
from npu.cli import command_line
from npu.graph.form import GraphError
from npu.runtime.plan_files import read_plan
from tests.python.compiler.user_networks import model, samples
from tests.python.importers.tflite_writer import Writer
from weights.synthetic import random_checkpoint, shape_of, write_checkpoint

STABLEHLO = """module @net {
  func.func public @main(%arg0: tensor<?x3xf32>) -> tensor<?x3xf32> {
    %0 = stablehlo.tanh %arg0 : tensor<?x3xf32>
    return %0 : tensor<?x3xf32>
  }
}
"""


def onnx_free(*sizes: int | str) -> bytes:
    """Return a network of ONNX whose input has free dimensions."""
    kind = onnx.TensorProto.FLOAT
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Relu", ["x"], ["y"])],
        "net",
        [onnx.helper.make_tensor_value_info("x", kind, sizes)],
        [onnx.helper.make_tensor_value_info("y", kind, sizes)],
    )
    return bytes(onnx.helper.make_model(graph).SerializeToString())


def tflite_free() -> bytes:
    """Return a network of TFLite whose input has two free dimensions."""
    writer = Writer()
    x = writer.tensor("x", (1, 1, 4), signature=(-1, -1, 4))
    y = writer.tensor("y", (1, 1, 4), signature=(-1, -1, 4))
    writer.operator("RELU", (x,), (y,))
    return writer.write((x,), (y,))


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("net.onnx", onnx_free("batch", 3)),
        ("net.mlir", STABLEHLO.encode()),
        ("net.tflite", tflite_free()),
    ],
)
def test_the_shape_that_an_error_names_is_taken(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, data: bytes
) -> None:
    """Word by word, as somebody copies it."""
    (tmp_path / name).write_bytes(data)
    arguments = ["compile", str(tmp_path / name), "-o", str(tmp_path / "out")]
    arguments += ["--calibrate", "random:2"]
    assert command_line.main(arguments) == 2
    (hint,) = re.findall(r"--shape \S+", capsys.readouterr().err)
    assert command_line.main([*arguments, *hint.split()]) == 0


def test_one_array_calibrates_a_network_with_one_input(tmp_path: Path) -> None:
    """An .npy gives the plan that an .npz with the input's name gives."""
    given = samples(4)["x"]
    onnx.save(model(), tmp_path / "net.onnx")
    np.save(tmp_path / "x.npy", given)
    np.savez(tmp_path / "x.npz", x=given)
    for kind in ("npy", "npz"):
        samples_file, out = tmp_path / f"x.{kind}", tmp_path / kind
        arguments = ["compile", str(tmp_path / "net.onnx"), "--calibrate", str(samples_file)]
        assert command_line.main([*arguments, "-o", str(out)]) == 0
    one, other = (read_plan(tmp_path / kind) for kind in ("npy", "npz"))
    assert one.stream == other.stream
    assert one.constants == other.constants
    session = tessera.load(model(), calibrate={"": given})
    assert session.plan.constants == one.constants


def test_one_array_is_not_enough_for_two_inputs(tmp_path: Path) -> None:
    """The refusal says what would be."""
    kind = onnx.TensorProto.FLOAT
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Add", ["a", "b"], ["y"])],
        "net",
        [onnx.helper.make_tensor_value_info(name, kind, (2, 3)) for name in "ab"],
        [onnx.helper.make_tensor_value_info("y", kind, (2, 3))],
    )
    onnx.save(onnx.helper.make_model(graph), tmp_path / "net.onnx")
    message = r"samples: given one array without a name \(an \.npy\), allowed for one input; "
    with pytest.raises(GraphError, match=message + r"here are 'a': .*, 'b': "):
        tessera.load(tmp_path / "net.onnx", calibrate={"": np.zeros((4, 2, 3), np.float32)})


def test_a_checkpoint_is_refused_with_what_makes_a_plan_of_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`npu run` and `npu explain`; what they name is then taken."""
    folder = tmp_path / "model"
    shape = shape_of("gpt2", hidden=64, layers=1, heads=2, ffn=64, vocab=256, context=16)
    write_checkpoint(random_checkpoint(shape, 1), folder)
    expected = (
        f"{folder}: given the folder of a checkpoint, allowed is {folder}.plan, which npu compile "
        f"{folder} -o {folder}.tsr --rows 16 makes"
    )
    for command in ("run", "explain"):
        assert command_line.main([command, str(folder)]) == 2
        assert capsys.readouterr().err == f"npu: {expected}\n"
    words = expected.split("which npu ")[1].removesuffix(" makes").split()
    assert command_line.main([*words, "--accept-loss"]) == 0
    assert tessera.load(f"{folder}.plan").plan.decoder is not None
