# SPDX-License-Identifier: Apache-2.0
"""Models as C headers: the arrays hold what the models hold."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tests.python.driver.firmware_support import float_model, int8_model
from weights.firmware.digits import load_digits
from weights.firmware.export import c_array, write_headers


def values(text: str, name: str) -> list[float]:
    """Return the numbers of an array of a header."""
    found = re.search(rf" {name}[^=]*= {{(.*?)}};", text, re.DOTALL)
    assert found is not None, name
    words = re.findall(r"[^{},\s]+", found[1])
    return [float.fromhex(word.rstrip("f")) if "0x" in word else float(word) for word in words]


def test_round_trip(tmp_path: Path) -> None:
    """Every tensor, bias and factor of every model."""
    write_headers(tmp_path)
    fp32 = (tmp_path / "bytelm_fp32_weights.h").read_text(encoding="utf-8")
    for name, tensor in float_model().tensors.items():
        if "norm" in name:
            assert (tensor == 1).all()
        else:
            assert values(fp32, f"bytelm_{name.replace('.', '_')}") == tensor.ravel().tolist()
    int8 = (tmp_path / "bytelm_int8_weights.h").read_text(encoding="utf-8")
    digits = (tmp_path / "digits_weights.h").read_text(encoding="utf-8")
    found = [
        (int8, f"bytelm_{name.replace('.', '_')}", layer)
        for name, layer in int8_model().linear.items()
    ]
    pictures = load_digits()
    found += [
        (digits, "digits_hidden", pictures.hidden),
        (digits, "digits_output", pictures.output),
    ]
    for text, name, layer in found:
        assert values(text, f"{name}_weight") == layer.weight.ravel().tolist()
        pairs = np.stack([layer.bias, layer.factor], axis=1)
        assert values(text, f"{name}_row") == pairs.ravel().tolist()
    assert values(int8, "bytelm_wte") == int8_model().wte.ravel().tolist()
    assert values(digits, "digits_images") == pictures.images[:20].ravel().tolist()


def test_types() -> None:
    """The C type is that of the array; floats are exact."""
    table: dict[str, npt.NDArray[np.generic]] = {
        "int8_t": np.array([-128, 127], np.int8),
        "int32_t": np.array([-(2**31) + 1, 5], np.int32),
        "float": np.array([0.1, -1e-30], np.float32),
    }
    for c_type, array in table.items():
        text = c_array("x", array)
        assert text.startswith(f"static const {c_type} x[2]")
        assert values(text, "x") == [float(value) for value in array.tolist()]
