# SPDX-License-Identifier: Apache-2.0
"""TFLite files that are damaged or ask for what a graph cannot hold: one line that says so."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from npu.graph.form import GraphError
from npu.graph.importers import tflite_file
from npu.graph.verify import verify
from tests.needs import needs
from tests.python.importers.tflite_cases import floats, ints, quantised_model
from tests.python.importers.tflite_writer import Writer

needs("graphs")

Wrong = Any
"""A value of the wrong type."""


@cache
def network() -> bytes:
    """Return a file with float and integer tensors and several operators."""
    writer = Writer()
    x = writer.tensor("x", (1, 6, 6, 3))
    w = writer.constant("w", floats(1, 4, 3, 3, 3))
    b = writer.constant("b", floats(2, 4))
    y = writer.tensor("y", (1, 6, 6, 4))
    steps = {"padding": 0, "across": 1, "down": 1, "fused": 1}
    writer.operator("CONV_2D", (x, w, b), (y,), dilation_across=1, dilation_down=1, **steps)
    q = writer.tensor("q", (1, 6, 6, 4), "int8", scale=0.05, zero=2)
    writer.operator("QUANTIZE", (y,), (q,))
    axes = writer.constant("axes", ints(1, 2))
    m = writer.tensor("m", (1, 4), "int8", scale=0.05, zero=2)
    writer.operator("MEAN", (q, axes), (m,), keep=0)
    z = writer.tensor("z", (1, 4))
    writer.operator("DEQUANTIZE", (m,), (z,))
    return writer.write((x,), (z,))


def refused(data: Wrong, message: str) -> None:
    """Check the message of a GraphError: one line, the file in front."""
    with pytest.raises(GraphError, match=message) as caught:
        tflite_file.read(data, name="net.tflite")
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("net.tflite: ")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", r"0 bytes with identifier b'', allowed a model of TFLite with b'TFL3' at offset 4"),
        (b"\0" * 64, r"64 bytes with identifier b'\\x00\\x00\\x00\\x00', allowed"),
        (b"\0\0\0\0TFL3", "list of fields|allowed 0..8"),
        (b"\xff\xff\xff\x7fTFL3" + b"\0" * 8, "the model of 4 bytes at offset 2147483647"),
        (3, "given int, allowed bytes or a path"),
        ("/nowhere/net.tflite", "No such file"),
    ],
)
def test_what_is_no_model_is_refused(data: Wrong, message: str) -> None:
    """Empty, zeros, offsets beyond the end, no file at all."""
    refused(data, message)


def small(change: Callable[[Writer], None] = lambda writer: None, **how: Any) -> bytes:  # noqa: ANN401
    """Return a file of one product of (2, 4) and (3, 4) whose writer a test has changed."""
    writer = Writer()
    writer.tensor("x", (2, 4))
    writer.constant("w", floats(1, 3, 4))
    writer.tensor("y", (2, 3))
    writer.operator("FULLY_CONNECTED", (0, 1), (2,), fused=0)
    change(writer)
    return writer.write(how.pop("inputs", (0,)), how.pop("outputs", (2,)), **how)


def tensor(index: int, **fields: Any) -> Callable[[Writer], None]:  # noqa: ANN401
    """Make a change of fields of a tensor."""
    return lambda writer: writer.tensors[index].update(fields)


def operator(
    name: str | int,
    inputs: tuple[int, ...] = (0, 1),
    outputs: tuple[int, ...] = (2,),
    **options: Any,  # noqa: ANN401
) -> Callable[[Writer], None]:
    """Make a change of the operator."""

    def change(writer: Writer) -> None:
        writer.operators[0] = (name, inputs, outputs, options)

    return change


INT8 = {"type": 9, "scale": 0.1}
FILES: dict[str, tuple[bytes, str]] = {
    "another identifier": (small(identifier=b"TFL2"), r"identifier b'TFL2', allowed"),
    "another version": (small(version=4), "version 4 of the format, allowed 3"),
    "no subgraph": (small(subgraphs=0), "no subgraph, allowed at least one"),
    "no outputs": (small(outputs=()), "no outputs, allowed at least one"),
    "input of nothing": (small(inputs=(9,)), r"input of the graph is tensor 9, allowed 0\.\.2"),
    "output of nothing": (small(outputs=(-1,)), r"output of the graph is tensor -1, allowed"),
    "output without result": (
        small(lambda writer: writer.operators.clear()),
        "output 'y' is the result of nothing",
    ),
    "operator on nothing": (
        small(operator("FULLY_CONNECTED", (0, 7))),
        r"operator 0 \(FULLY_CONNECTED\): input is tensor 7, allowed 0\.\.2",
    ),
    "operator code": (
        small(operator("FULLY_CONNECTED", code=5)),
        r"operator 0: operator code 5, allowed 0\.\.0",
    ),
    "missing input": (
        small(operator("FULLY_CONNECTED", (0,))),
        r"operator 0 \(FULLY_CONNECTED\) 'y': input 1 is missing",
    ),
    "missing weights": (
        small(tensor(1, data=None)),
        "'y': tensor 'w' has no value, allowed inputs of the graph, constants",
    ),
    "buffer of nothing": (small(tensor(1, buffer=9)), r"tensor 1 'w': buffer 9, allowed 0\.\.1"),
    "too few weights": (
        small(tensor(1, data=b"1234")),
        r"tensor 1 'w': value of 4 bytes, allowed 48 for \[3, 4\]",
    ),
    "result twice": (
        small(lambda writer: writer.operators.append(writer.operators[0])),
        "output 'y' has a value already",
    ),
    "another shape": (
        small(tensor(2, shape=(2, 5))),
        r"output 'y' has shape \[2, 5\] in the file, computed \[2, 3\]",
    ),
    "negative shape": (small(tensor(0, shape=(-7, 4))), r"shape \[-7, 4\], allowed"),
    "huge shape": (small(tensor(0, shape=(1 << 30, 4))), "allowed up to 16 axes and 268,435,456"),
    "free dimension": (
        small(tensor(0, signature=(-1, 4))),
        "input 'x': free dimensions in .N,4., allowed fixed ones: give --shape x=1,4",
    ),
    "strings": (small(tensor(0, type=5)), "input 'x': type string, allowed float32"),
    "unknown type": (small(tensor(1, type=99)), "tensor 'w': type 99, allowed float32"),
    "variable": (small(tensor(1, variable=True)), "tensor 'w': a variable, allowed inputs"),
    "scale of zero": (small(tensor(0, **{**INT8, "scale": 0.0})), "scale 0.0, allowed finite"),
    "scale of nan": (small(tensor(0, **{**INT8, "scale": np.nan})), "scale nan, allowed finite"),
    "zero point": (
        small(tensor(0, **INT8, zero=300)),
        r"zero point 300, allowed -128\.\.127",
    ),
    "zero points": (
        small(tensor(0, type=9, scale=[0.1, 0.2], zero=[1, 2])),
        r"2 zero points \[1, 2\] for 2 scales, allowed one value for all",
    ),
    "scales": (
        small(tensor(0, type=9, scale=[0.1, 0.2, 0.3])),
        r"3 scales along axis 0 of \[2, 4\], allowed one per index",
    ),
    "custom operator": (
        small(operator(32)),
        r"\(custom operator 'MyOperator'\) 'y': no counterpart among the operations",
    ),
    "unmapped operator": (small(operator("LSTM")), r"\(LSTM\) 'y': no counterpart .*CONV_2D"),
    "young operator": (small(operator(4711)), r"builtin operator 4711\) 'y': no counterpart"),
    "fused activation": (
        small(operator("FULLY_CONNECTED", fused=5)),
        r"fused activation 5, allowed 0\.\.4",
    ),
    "computed axes": (
        small(operator("MEAN", (0, 0), keep=0)),
        "axes is computed, allowed a constant",
    ),
    "axes of floats": (small(operator("MEAN", keep=0)), "axes is float32, allowed integers"),
    "axis": (
        small(operator("CONCATENATION", (0, 0), axis=5, fused=0)),
        r"axis 5, allowed -2\.\.1",
    ),
    "rank": (small(operator("CONV_2D", across=1, down=1)), r"image \[2, 4\].*allowed rank 4"),
    "inner axes": (
        small(operator("BATCH_MATMUL", a=0, b=0)),
        r"\(BATCH_MATMUL\) 'y': .*\[2, 4\].*\[3, 4\]",
    ),
    "number of outputs": (
        small(operator("FULLY_CONNECTED", (0, 1), (2, 2), fused=0)),
        "2 outputs, allowed 1",
    ),
}


def numbered(name: str, shape: tuple[int, ...], *numbers: Any, **options: Any) -> bytes:  # noqa: ANN401
    """Return a file of one operator of a float tensor and constants."""
    writer = Writer()
    x = writer.tensor("x", shape)
    held = [writer.constant(f"c{index}", one) for index, one in enumerate(numbers)]
    y = writer.tensor("y", (1,))
    writer.operator(name, (x, *held), (y,), **options)
    return writer.write((x,), (y,))


HUGE = (1 << 31) - 1
_STEPS: dict[str, Any] = {"padding": 0, "across": 1, "down": 1}
_IMAGE = (1, 4, 4, 2)
NUMBERS: dict[str, tuple[bytes, str]] = {
    "an index behind the last": (
        numbered("GATHER", (4, 2), ints(4, 0), axis=0),
        r"\(GATHER\) 'y': indices 0\.\.4, allowed -4\.\.3",
    ),
    "an index before the first": (
        numbered("GATHER", (4, 2), ints(-5, 0), axis=0),
        r"\(GATHER\) 'y': indices -5\.\.0, allowed -4\.\.3",
    ),
    "a place behind the last of its row": (
        numbered("GATHER_ND", (4, 2), ints(0, 2).reshape(1, 2)),
        r"\(GATHER_ND\) 'y': indices 0\.\.2, allowed 0 up to less than \[4, 2\]",
    ),
    "a place that wraps": (
        numbered("GATHER_ND", (4, 2), ints(HUGE, 0).reshape(1, 2)),
        r"indices 0\.\.2147483647, allowed",
    ),
    "a new size": (
        numbered("RESIZE_BILINEAR", _IMAGE, ints(HUGE, 4)),
        r"shape \[1, 2147483647, 4, 2\], allowed 268,435,456 elements",
    ),
    "a depth": (
        numbered("ONE_HOT", (2,), ints(HUGE).reshape(()), floats(1), floats(2), axis=1),
        r"shape \[2, 2147483647\], allowed 268,435,456 elements",
    ),
    "a depth below 0": (
        numbered("ONE_HOT", (2,), ints(-3).reshape(()), floats(1), floats(2), axis=1),
        "depth -3, allowed from 0",
    ),
    "copies": (
        numbered("TILE", (1, 4), ints(1 << 27, 1)),
        r"shape \[1, 4, 134217728, 1\], allowed 268,435,456 elements",
    ),
    "segments": (
        numbered("UNSORTED_SEGMENT_SUM", (2, 4), ints(1, 0), ints(1 << 28)),
        r"shape \[268435456, 4\], allowed 268,435,456 elements",
    ),
    "a window": (
        numbered("MAX_POOL_2D", _IMAGE, **_STEPS, width=10_000_000, height=2),
        r"window \[2, 10000000\], allowed up to 1,048,576 elements",
    ),
    "pads of a window": (
        numbered("AVERAGE_POOL_2D", _IMAGE, **_STEPS, width=HUGE, height=2),
        r"image \[1, 5, 2147483650, 2\] with its pads, allowed 268,435,456 elements",
    ),
    "a dilation": (
        numbered(
            "CONV_2D",
            _IMAGE,
            floats(1, 3, 2, 2, 2),
            floats(2, 3),
            **_STEPS,
            dilation_across=HUGE,
            dilation_down=1,
        ),
        r"image \[1, 5, 2147483651, 2\] with its pads, allowed 268,435,456 elements",
    ),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_beyond_a_tensor_are_refused_before_anything_is_made(name: str) -> None:
    """Constants that are indices or sizes: neither another element nor all memory."""
    refused(*NUMBERS[name])


@pytest.mark.parametrize("name", FILES)
def test_a_wrong_file_is_refused_in_one_line(name: str) -> None:
    """With the file, the operator, what was given and what is allowed."""
    refused(*FILES[name])


def test_a_shape_of_no_input_is_refused() -> None:
    """A wrong name would else leave the shape of the file."""
    with pytest.raises(GraphError, match=r"^net: shape of 'z': no such input, allowed x$"):
        tflite_file.read(small(), name="net", shapes={"z": (2, 4)})


def test_the_file_that_tests_change_is_a_model() -> None:
    """So the changes are what is refused."""
    verify(tflite_file.read(small()))
    verify(tflite_file.read(network()))


@pytest.mark.parametrize("part", range(16))
def test_a_file_cut_anywhere_is_refused_or_whole(part: int) -> None:
    """At every length."""
    data = network()
    for length in range(part, len(data), 16):
        try:
            verify(tflite_file.read(data[:length], name="net.tflite"))
        except GraphError as error:
            assert "\n" not in str(error)


@pytest.mark.parametrize("seed", range(40))
def test_a_damaged_file_is_a_graph_or_an_error(seed: int) -> None:
    """Flipped bits and exchanged bytes, ten files for each seed: never a traceback."""
    chance = random.Random(seed)
    for data in (network(), *(quantised_model(one)[0] for one in ("CONV_2D", "FULLY_CONNECTED"))):
        for _ in range(10):
            changed = bytearray(data)
            for _ in range(chance.choice([1, 1, 2, 8])):
                # Most of a file are weights; what says where things are is at both ends.
                place = chance.choice([chance.randrange(len(data)), -chance.randrange(1, 400)])
                changed[place] = chance.choice([0, 1, 127, 128, 255, chance.randrange(256)])
            try:
                verify(tflite_file.read(bytes(changed), name="net.tflite"))
            except GraphError as error:
                assert "\n" not in str(error)
                assert str(error)
