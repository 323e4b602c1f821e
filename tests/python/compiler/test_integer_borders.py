# SPDX-License-Identifier: Apache-2.0
"""Networks with integers at their borders: the same bits as behind borders of real numbers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from tests.needs import needs

needs("graphs")

import onnx

import tessera
from npu.cli import command_line
from npu.commands import network_folder
from npu.firmware.plan import PlanError, firmware_network
from npu.graph.form import Element, GraphError
from npu.graph.operations.borders import dequantised, quantised
from npu.graph.prepare import Io
from npu.planner.build_plan import CompileOptions, build_plan
from npu.runtime.plan import Action
from npu.runtime.plan_files import read_plan
from tessera.golden_chip import run_on_golden
from tests.python.compiler.user_networks import model, one_input, samples
from tests.python.graph.graph_networks_int8 import quantised as drawn
from tests.python.graph.graph_networks_int8 import quantised_tflite

CALIBRATE = samples(8)
X = one_input(5)["x"]


def test_integers_are_those_of_the_float_borders() -> None:
    """Inputs take what the border made of real numbers; outputs give what it took."""
    floats = tessera.load(model(), calibrate=CALIBRATE).plan
    integers = tessera.load(model(), calibrate=CALIBRATE, io="int8").plan
    assert [one.image for one in integers.segments] == [one.image for one in floats.segments]
    assert integers.stream == floats.stream
    x, y = (integers.graph.type(name) for name in ("x", "y"))
    assert (x.element, y.element) == (Element.I8, Element.I16)
    run = run_on_golden(floats, {"x": X}, inner=True)
    given = quantised(X, x)
    np.testing.assert_array_equal(given, run.tensors["x.int8"])
    found = run_on_golden(integers, {"x": given}).outputs["y"]
    assert found.dtype == np.int16
    np.testing.assert_array_equal(found, run.tensors["y.int16"])
    np.testing.assert_array_equal(dequantised(found, y), run.outputs["y"])


def test_the_command_writes_and_runs_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The scales stand in what is printed and in the plan; npu run takes integers."""
    onnx.save(model(), tmp_path / "net.onnx")
    np.savez(tmp_path / "samples.npz", **CALIBRATE)  # type: ignore[arg-type]
    out = tmp_path / "out"
    words = ["compile", f"{tmp_path}/net.onnx", "--calibrate", f"{tmp_path}/samples.npz"]
    assert command_line.main([*words, "--io", "int8", "-o", str(out)]) == 0
    plan = read_plan(out)
    printed = " ".join(capsys.readouterr().out.split())
    for what, name in (("input", "x"), ("output", "y")):
        kind = plan.graph.type(name)
        assert kind.quantisation is not None
        sizes = ",".join(map(str, kind.shape))
        scale = f"scale [{kind.quantisation.scale}] zero 0"
        assert f"{what} {name} {kind.element}[{sizes}] {scale}" in printed
    given = quantised(X, plan.graph.type("x"))
    np.save(tmp_path / "x.npy", given)
    np.save(tmp_path / "float.npy", X)
    run = ["run", str(out), "--output", f"{tmp_path}/y.npz", "--input"]
    assert command_line.main([*run, f"{tmp_path}/x.npy"]) == 0
    expected = run_on_golden(plan, {"x": given}).outputs["y"]
    np.testing.assert_array_equal(np.load(tmp_path / "y.npz")["y"], expected)
    assert command_line.main([*run, f"{tmp_path}/float.npy"]) == 2
    assert "input 'x': given float32, allowed int8" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("host", "message"),
    [
        (
            ["c1"],
            r"input 'x': operation 'c1\S*' \(\w+, Conv\) of the host has it in float",
        ),
        (["y"], r"output 'y': operation 'y' \(matmul, Gemm\) of the host has it in float"),
    ],
)
def test_what_the_host_has_in_float_is_refused(host: list[str], message: str) -> None:
    """By its name, and the operation that keeps it."""
    with pytest.raises(GraphError, match=message):
        tessera.load(model(), calibrate=CALIBRATE, host=host, io="int8")


def test_other_words_are_refused(tmp_path: Path) -> None:
    """A folder has its borders already."""
    with pytest.raises(GraphError, match=r"io: given 'int4', allowed float, int8"):
        tessera.load(model(), calibrate=CALIBRATE, io="int4")
    network_folder.write(build_plan(model(), CompileOptions(calibrate=CALIBRATE)), tmp_path)
    with pytest.raises(GraphError, match=r"given arguments of compilation, allowed only on="):
        tessera.load(tmp_path, io="int8")


def test_what_is_in_integers_already_stays() -> None:
    """A network that takes and gives int8 has the same plan."""
    source = quantised_tflite(drawn(1))
    one, other = (build_plan(source, CompileOptions(io=io)).plan for io in get_args(Io))
    assert one.segments == other.segments
    assert one.graph.inputs == other.graph.inputs


def test_firmware_takes_a_network_in_float() -> None:
    """The host's part in front is done when the image is made; what is between is refused."""
    plan = tessera.load(model(), calibrate=CALIBRATE).plan
    laid = firmware_network(plan, {"x": X})
    integers = tessera.load(model(), calibrate=CALIBRATE, io="int8").plan
    given = quantised(X, integers.graph.type("x"))
    assert firmware_network(integers, {"x": given}).image == laid.image
    between = tessera.load(model(), calibrate=CALIBRATE, host=["c2"]).plan
    with pytest.raises(PlanError, match=r"steps\[\d+\]: given host '.*', allowed a network whose"):
        firmware_network(between, {"x": X})


def test_places_that_are_taken_between_launches_are_refused() -> None:
    """A core packs nothing between launches: what lies there early must not be written over."""
    plan = tessera.load(model(), calibrate=CALIBRATE, split=["c1"]).plan
    firmware_network(plan, {"x": X})
    (unpacked,) = (one.of for one in plan.steps if one.action is Action.UNPACK)
    first, *others = plan.tensors
    assert unpacked != first.name
    late = tuple(one for one in plan.steps if one.action is not Action.PACK)
    (pack,) = (one for one in plan.steps if one.action is Action.PACK)
    moved = replace(plan, steps=(*late[:-2], pack, *late[-2:]))
    shared = [replace(one, offset=0, first=0, last=1) for one in others]
    broken = replace(moved, tensors=(replace(first, offset=0, first=99, last=99), *shared))
    with pytest.raises(PlanError, match=r"given a place in the arena that '.*' takes as well"):
        firmware_network(broken, {"x": X})
