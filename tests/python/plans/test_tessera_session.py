# SPDX-License-Identifier: Apache-2.0
"""Networks as users of Python load and run them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.needs import needs

needs("graphs")

import onnx
from onnx.reference import ReferenceEvaluator

import tessera
from npu.graph.form import GraphError
from npu.runtime.plan_files import PlanFileError, files_of
from tests.python.compiler.user_networks import built, model, one_input, samples


def _session() -> tessera.Session:
    return tessera.Session(built().plan)


def test_run_is_called_as_in_onnxruntime() -> None:
    """A list by names, all of them for None, and a dictionary if only inputs are given."""
    session = _session()
    inputs = one_input()
    (first,) = session.run(["y"], inputs)
    (second,) = session.run(None, inputs)
    third = session.run(inputs)["y"]
    assert (session.inputs, session.outputs) == (("x",), ("y",))
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(first, third)
    assert first.dtype == np.float32
    assert first.shape == (1, 10)


def test_outputs_are_near_those_of_the_source() -> None:
    """Integers lose little: at most 5 % of the largest output of a network that is untrained."""
    inputs = one_input()
    (found,) = _session().run(None, inputs)
    (wanted,) = ReferenceEvaluator(model()).run(None, inputs)
    assert np.abs(found - wanted).max() <= 0.05 * np.abs(wanted).max()
    assert np.ptp(found) > 0.5 * np.ptp(wanted)


def test_a_file_a_model_and_a_folder_are_one_network(tmp_path: Path) -> None:
    """Whatever `load` is given, the same bits come out."""
    path, folder = tmp_path / "net.onnx", tmp_path / "out"
    onnx.save(model(), path)
    folder.mkdir()
    loaded = tessera.load(model(), calibrate=samples(16))
    for name, data in files_of(loaded.plan).items():
        (folder / name).write_bytes(data)
    expected = loaded.run(one_input())["y"]
    for other in (tessera.load(path, calibrate=samples(16)), tessera.load(str(folder))):
        np.testing.assert_array_equal(other.run(one_input())["y"], expected)


def test_samples_need_no_names() -> None:
    """An array is that of the only input, a list one for each: the same integers."""
    (array,) = samples(16).values()
    named = files_of(tessera.load(model(), calibrate=samples(16)).plan)
    for given in (array, [array]):
        assert files_of(tessera.load(model(), calibrate=given).plan) == named


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"calibrate": 3}, r"samples: given int, allowed arrays by name or .*'x': float32"),
        ({"calibrate": "x.npy"}, r"samples 'x.npy', allowed .*numpy\.load"),
        ({"calibrate": [1, 2]}, "samples: given 2 arrays, allowed 1, one for each of x"),
        ({"shapes": [1]}, "shapes: given list, allowed a shape by the name of its input"),
        ({"shapes": {"x": 3}}, "shape of 'x': given 3, allowed a tuple of whole numbers"),
        ({"shapes": {"x": ("a", 3)}}, r"shape of 'x': given \('a', 3\), allowed a tuple of whole"),
        ({"max_error": "1%"}, "max_error: given '1%', allowed a number above 0 to 1"),
        ({"max_error": float("nan")}, "max_error: given nan, allowed a number above 0 to 1"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    """By name, with what is allowed, not by what they break inside."""
    with pytest.raises(GraphError, match=message):
        tessera.load(model(), **{"calibrate": "random:2", **options})


def test_a_function_of_jax_is_a_network() -> None:
    """Samples go by position or by name; what the function closes over is a weight."""
    needs("graphs")
    import jax.numpy as jnp

    random = np.random.default_rng(3)
    weight = random.standard_normal((16, 8)).astype(np.float32)

    def dense(x: Any) -> Any:  # noqa: ANN401
        return jnp.maximum(x @ weight, 0)

    x = random.standard_normal((64, 4, 16)).astype(np.float32)
    session = tessera.from_jax(dense, [x[0]], calibrate=[x])
    named = tessera.from_jax(dense, [x[0]], calibrate={session.inputs[0]: x})
    (found,) = session.run(None, {session.inputs[0]: x[1]})
    np.testing.assert_array_equal(named.run(None, {session.inputs[0]: x[1]})[0], found)
    wanted = np.maximum(x[1] @ weight, 0)
    assert np.abs(found - wanted).max() <= 0.04 * np.abs(wanted).max()

    def two(x: Any) -> Any:  # noqa: ANN401
        return dense(x) @ weight.T

    for split, segments in (([], 1), (["dot_general"], 2)):
        cut = tessera.from_jax(two, [x[0]], calibrate=[x], split=split)
        assert len(cut.plan.segments) == segments


def test_the_report_is_a_table_of_places_and_costs() -> None:
    """One line per operation, and what the host does is named with its reason."""
    text = str(_session().report())
    assert "Host: c2.nhwc, c2 and" in text or "Host: c2" in text
    assert "the user wants it on the host" in text
    for name in ("c1", "p1", "y", "segment 0", "segment 1", "all"):
        assert f"\n  {name} " in text, name
    assert max(map(len, text.splitlines())) <= 120


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({}, "inputs: missing 'x'; allowed are 'x': float32[1, 1, 28, 28]"),
        ({"z": 1}, "inputs: unknown 'z'"),
        (
            {"x": np.zeros((1, 28, 28), np.float32)},
            "input 'x' has shape [1, 28, 28], allowed [1, 1, 28, 28]",
        ),
        ({"x": np.zeros((1, 1, 28, 28), complex)}, "input 'x': given complex128, allowed float32"),
        (
            {"x": np.full((1, 1, 28, 28), np.nan, np.float32)},
            "input 'x': given nan at [0, 0, 0, 0]",
        ),
        ({"x": np.full((1, 1, 28, 28), 1e300)}, "input 'x': given 1e+300 at [0, 0, 0, 0]"),
    ],
)
def test_wrong_inputs_are_refused(inputs: dict[str, Any], message: str) -> None:
    """By name, with what was given and what is allowed."""
    with pytest.raises(GraphError) as caught:
        _session().run(inputs)
    assert str(caught.value).startswith(message)


def test_wrong_arguments_are_refused(tmp_path: Path) -> None:
    """Outputs, chips, samples and folders that there are not."""
    session: Any = _session()
    for call, message in (
        (lambda: session.run(["z"], one_input()), "output 'z': allowed y"),
        (lambda: session.run(["y"]), "run: given no inputs"),
        (lambda: session.run(None, one_input()["x"]), "run: given an array without a name"),
        (lambda: session.run(one_input()["x"]), "run: given an array without a name"),
        (lambda: session.run(one_input(), one_input()), "run: given inputs twice"),
        (lambda: tessera.Session(built().plan, on="moon"), "on: given 'moon', allowed golden, rtl"),  # type: ignore[arg-type]
        (lambda: tessera.load(model()), "<ModelProto>: tensor 'x' has no scale"),
        (lambda: tessera.load(tmp_path, calibrate="random:3"), f"{tmp_path}: given arguments"),
    ):
        with pytest.raises(GraphError) as caught:
            call()
        assert str(caught.value).startswith(message), str(caught.value)
    with pytest.raises(PlanFileError):
        tessera.load(tmp_path)
