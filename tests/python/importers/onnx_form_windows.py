# SPDX-License-Identifier: Apache-2.0
"""Recurrent operators of ONNX and those of images, with all that they are tried with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from tests.python.importers.onnx_forms import OperatorGrid, positive, real, whole

IMAGE, _CUBE, _LINE = real(1, 4, 7, 8), real(1, 2, 5, 6, 7), real(2, 4, 9)


def recurrent(operator: str, gates: int) -> Iterator[OperatorGrid]:
    """Yield an operator over three steps of two rows of four, with a state of three."""
    steps, rows, width, state = 3, 2, 4, 3
    for both in (1, 2):
        made = [
            real(steps, rows, width),
            real(both, gates * state, width, seed=2),
            real(both, gates * state, state, seed=3),
            real(both, 2 * gates * state, seed=4),
        ]
        first = real(both, rows, state, seed=5)
        lengths = np.array([3, 2], np.int32)
        more: list[list[Any]] = [[], [lengths], [None, first], [lengths, first]]
        if operator == "LSTM":
            cell, peep = real(both, rows, state, seed=6), real(both, 3 * state, seed=7)
            more += [[None, first, cell], [None, None, None, peep], [lengths, first, cell, peep]]
        names = {"RNN": ["Relu"], "GRU": ["Sigmoid", "Relu"], "LSTM": ["Sigmoid", "Relu", "Tanh"]}
        tried: dict[str, Sequence[Any]] = {
            "clip": [None, 0.3],
            "activations": [None, names[operator] * both],
        }
        if operator == "GRU":
            tried["linear_before_reset"] = [None, 1]
        if operator == "LSTM":
            tried["input_forget"] = [None, 1]
        directions = ["forward", "reverse"] if both == 1 else ["bidirectional"]
        tried["direction"] = directions
        for given in more:
            results = 3 if operator == "LSTM" else 2
            base = {"hidden_size": state}
            yield OperatorGrid(operator, [*made, *given], base, tried, results, (14,))


def windows() -> Iterator[OperatorGrid]:
    """Yield operators of lines, images and cubes."""
    flags: Sequence[Any] = (None, 0, 1)
    for shape, size in ((_LINE, [3]), (IMAGE, [3, 2]), (_CUBE, [2, 3, 2])):
        rank = len(size)
        tried: dict[str, Sequence[Any]] = {
            "strides": [None, [2] * rank, [3] * rank],
            "pads": [None, [1] * (2 * rank), [0] * rank + [1] * rank],
            "ceil_mode": [None, 1],
        }
        base: dict[str, Any] = {"kernel_shape": size}
        more = {"dilations": [None, [2] * rank]}
        yield OperatorGrid("MaxPool", [shape], base, {**tried, **more}, 1, (12, 22))
        yield OperatorGrid("MaxPool", [shape], base, {"storage_order": [None, 1]}, 2)
        yield OperatorGrid(
            "AveragePool", [shape], base, {**tried, "count_include_pad": flags}, 1, (11, 19)
        )
        yield OperatorGrid("LpPool", [shape], base, {**tried, "p": [None, 1, 3]}, 1, (18,))
        for operator in ("MaxPool", "AveragePool", "LpPool"):
            automatic: dict[str, Any] = {
                "auto_pad": ["SAME_UPPER", "SAME_LOWER", "VALID"],
                "strides": [[2] * rank],
            }
            yield OperatorGrid(operator, [shape], base, automatic)
        for operator in ("GlobalMaxPool", "GlobalAveragePool", "GlobalLpPool"):
            yield OperatorGrid(operator, [shape])
        channels = shape.shape[1]
        for bias in (None, real(channels)):
            for group in (1, 2, channels):
                common: dict[str, Any] = {
                    "strides": [None, [2] * rank],
                    "pads": [None, [1] * (2 * rank)],
                    "dilations": [None, [2] * rank],
                    "group": [group],
                }
                w = real(channels, channels // group, *size, seed=2)
                yield OperatorGrid("Conv", [shape, w, bias], {}, common)
                more = {"output_padding": [None, [1] * rank]}
                wide = real(channels, channels // group, *size, seed=3)
                turned: dict[str, Any] = {**common, **more, "strides": [None, [2] * rank]}
                yield OperatorGrid("ConvTranspose", [shape, wide, bias], {}, turned)
        automatic = {"auto_pad": ["SAME_UPPER", "SAME_LOWER", "VALID"], "strides": [[2] * rank]}
        w = real(channels, channels, *size, seed=2)
        yield OperatorGrid("Conv", [shape, w], {}, automatic)
        yield OperatorGrid("ConvTranspose", [shape, w], {}, automatic)
        yield OperatorGrid("InstanceNormalization", [shape, real(channels), real(channels, seed=2)])
        yield OperatorGrid("MeanVarianceNormalization", [shape], {}, {"axes": [None, [0, 2]]})
        yield OperatorGrid(
            "BatchNormalization",
            [shape, *(positive(channels) for _ in range(4))],
            {},
            {"epsilon": [None, 0.1]},
            1,
            (9, 15),
        )
    parameters = {"alpha": [None, 0.01], "beta": [None, 0.5], "bias": [None, 2.0]}
    yield OperatorGrid(
        "LRN", [real(1, 7, 3, 3)], {}, {"size": [1, 2, 3, 4, 5], **parameters}, 1, (13,)
    )
    modes = {"mode": [None, "CRD"]}
    yield OperatorGrid("DepthToSpace", [real(1, 8, 3, 3)], {"blocksize": 2}, modes)
    yield OperatorGrid("SpaceToDepth", [real(1, 2, 4, 6)], {"blocksize": 2})
    yield OperatorGrid(
        "GridSample",
        [IMAGE, np.tanh(real(1, 3, 4, 2))],
        {},
        {
            "align_corners": [None, 1],
            "mode": ["linear", "nearest", "cubic"],
            "padding_mode": [None, "border", "reflection"],
        },
        1,
        (20,),
    )
    yield OperatorGrid(
        "AffineGrid", [real(2, 2, 3), whole(2, 3, 4, 5)], {}, {"align_corners": [None, 1]}
    )
    yield OperatorGrid("CenterCropPad", [IMAGE, whole(1, 4, 5, 9)])
    yield OperatorGrid("Col2Im", [real(1, 5, 5), whole(5, 5), whole(1, 5)])
    yield OperatorGrid(
        "RoiAlign",
        [IMAGE, np.array([[0, 0, 5, 6], [1, 1, 7, 7]], np.float32), whole(0, 0)],
        {"output_height": 3, "output_width": 2},
        {
            "mode": [None, "max"],
            "sampling_ratio": [None, 2],
            "coordinate_transformation_mode": [None, "output_half_pixel"],
            "spatial_scale": [None, 0.5],
        },
        1,
        (16,),
    )
    for mode, across in product(["nearest", "linear", "cubic"], ["up", "down"]):
        scale = [1.0, 1.0, 2.0, 1.5] if across == "up" else [1.0, 1.0, 0.6, 0.7]
        tried = {
            "coordinate_transformation_mode": [
                *(None, "asymmetric", "align_corners", "pytorch_half_pixel"),
                "half_pixel_symmetric",
            ]
        }
        if mode == "nearest":
            tried["nearest_mode"] = [None, "floor", "ceil", "round_prefer_ceil"]
        if mode == "cubic":
            tried |= {"cubic_coeff_a": [None, -0.5], "exclude_outside": [None, 1]}
        if across == "down":
            tried["antialias"] = [None, 1] if mode != "nearest" else [None]
        scales = np.array(scale, np.float32)
        yield OperatorGrid("Resize", [IMAGE, None, scales], {"mode": mode}, tried, 1, (19,))
        sizes = whole(1, 4, 14, 12) if across == "up" else whole(1, 4, 4, 5)
        yield OperatorGrid("Resize", [IMAGE, None, None, sizes], {"mode": mode}, tried, 1, (19,))
    yield OperatorGrid(
        "Upsample", [IMAGE, np.array([1, 1, 2, 3], np.float32)], {},
        {"mode": ["nearest", "linear"]}, 1, (9,),
    )  # fmt: skip
    indices = np.array([[[[0, 3], [10, 15]]]])
    yield OperatorGrid(
        "MaxUnpool", [real(1, 1, 2, 2), indices], {"kernel_shape": [2, 2], "strides": [2, 2]}
    )
