# SPDX-License-Identifier: Apache-2.0
"""Models as C headers: arrays that a program of firmware/examples includes.

    python -m weights.firmware.export FOLDER

writes a header per program into FOLDER; nothing of it is committed.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from weights.firmware.bytelm import load_bytelm, program_form
from weights.firmware.bytelm_int8 import load_scales, quantise
from weights.firmware.digits import load_digits
from weights.firmware.models import (
    ADD_SHIFT,
    LINEAR,
    OUTPUT_SHIFT,
    ByteLm,
    ByteLmInt8,
    ByteLmShape,
    DigitsInt8,
    Int8Linear,
)
from weights.firmware.prompts import PROMPTS

DIGITS = 20
"""How many pictures the program for digits holds."""


def c_array(name: str, values: npt.NDArray[Any]) -> str:
    """Return the definition of a static constant array, int8, uint8, int32 or float32."""
    types = {"int8": "int8_t", "uint8": "uint8_t", "int32": "int32_t", "float32": "float"}
    size = "".join(f"[{length}]" for length in values.shape)
    if values.dtype == np.float32:
        numbers = [f"{float(value).hex()}f" for value in values.ravel()]
    else:
        numbers = [str(value) for value in values.ravel().tolist()]
    rows = [",".join(numbers[i : i + 16]) for i in range(0, len(numbers), 16)]
    head = f"static const {types[values.dtype.name]} {name}{size} __attribute__((aligned(16)))"
    if values.ndim == 2:
        width = values.shape[1]
        lines = (",".join(numbers[i : i + width]) for i in range(0, len(numbers), width))
        rows = [f"{{{line}}}" for line in lines]
    return f"{head} = {{\n" + ",\n".join(rows) + "};\n"


def _header(includes: Iterable[str], defines: dict[str, str | int], body: Iterable[str]) -> str:
    lines = ["/* Made by weights.firmware.export from a checkpoint of weights/firmware. */"]
    lines += [f'#include "{name}"' for name in includes]
    lines += [f"#define {name} {value}" for name, value in defines.items()]
    return "\n".join(lines) + "\n" + "".join(body)


def _dimensions(shape: ByteLmShape) -> dict[str, str | int]:
    return {
        "VOCAB": shape.vocab,
        "DIM": shape.dim,
        "LOG2_DIM": shape.dim.bit_length() - 1,
        "HEAD_DIM": shape.head_dim,
        "LAYERS": shape.layers,
        "CONTEXT": shape.context,
        "FFN": shape.ffn,
        "PROMPTS": len(PROMPTS),
    }


def _prompts() -> str:
    texts = ", ".join(json.dumps(prompt) for prompt in PROMPTS)
    return f"static const char *const bytelm_prompt_text[] __attribute__((unused)) = {{{texts}}};\n"


def _layers(kind: str, extra: Iterable[str], rows: Iterable[str]) -> str:
    members = "".join(f"struct npu_linear_{kind} {name}; " for name in LINEAR)
    more = "".join(f"int32_t {name}; " for name in extra)
    table = ",\n".join(f"{{{row}}}" for row in rows)
    return (
        f"struct bytelm_layer {{ {members}{more}}};\n"
        f"static const struct bytelm_layer bytelm_layers[] = {{\n{table}}};\n"
    )


def _int8_linear(name: str, layer: Int8Linear) -> str:
    pairs = zip(layer.bias.tolist(), layer.factor.tolist(), strict=True)
    rows = ",".join(f"{{{bias},{factor}}}" for bias, factor in pairs)
    return (
        c_array(f"{name}_weight", layer.weight)
        + f"static const struct npu_row {name}_row[] = {{{rows}}};\n"
    )


def bytelm_int8_header(model: ByteLmInt8) -> str:
    """Return bytelm_int8_weights.h."""
    defines: dict[str, str | int] = {
        **_dimensions(model.shape),
        "EPSILON": model.epsilon,
        "WTE_FACTOR": model.wte_factor,
        "WPE_FACTOR": model.wpe_factor,
        "NORM_STEPS": model.steps["norm"],
        "OUTPUT_SHIFT": OUTPUT_SHIFT,
        "ADD_SHIFT": ADD_SHIFT,
    }

    def pair(name: str) -> str:
        return f"{{bytelm_{name}_weight[0], bytelm_{name}_row}}"

    rows = []
    for at in range(model.shape.layers):
        numbers = (model.steps[f"{at}.norm1"], model.steps[f"{at}.norm2"], model.score_factor[at])
        rows.append(", ".join([*(pair(f"{at}_{name}") for name in LINEAR), *map(str, numbers)]))
    body = [
        _prompts(),
        c_array("bytelm_wte", model.wte),
        c_array("bytelm_wpe", model.wpe),
        *(
            _int8_linear(f"bytelm_{name.replace('.', '_')}", layer)
            for name, layer in model.linear.items()
        ),
        _layers("int8", ("norm1_steps", "norm2_steps", "score_factor"), rows),
        f"static const struct npu_linear_int8 bytelm_head = {pair('head')};\n",
    ]
    return _header(["npu_recipes.h"], defines, body)


def bytelm_fp32_header(model: ByteLm) -> str:
    """Return bytelm_fp32_weights.h."""
    tensors = program_form(model).tensors
    epsilon = f"{float(np.float32(model.shape.epsilon)).hex()}f"
    kept = [name for name in tensors if "norm" not in name]
    arrays = (c_array(f"bytelm_{name.replace('.', '_')}", tensors[name]) for name in kept)
    rows = [
        ", ".join(f"{{bytelm_{at}_{name}_weight[0], bytelm_{at}_{name}_bias}}" for name in LINEAR)
        for at in range(model.shape.layers)
    ]
    body = [
        _prompts(),
        *arrays,
        _layers("fp32", (), rows),
    ]
    return _header(["npu_recipes.h"], _dimensions(model.shape) | {"EPSILON": epsilon}, body)


def digits_header(model: DigitsInt8) -> str:
    """Return digits_weights.h, with the first samples as pictures to recognise."""
    names = {"hidden": model.hidden, "output": model.output}
    hidden, pixels = model.hidden.weight.shape
    body = [
        *(_int8_linear(f"digits_{name}", layer) for name, layer in names.items()),
        *(
            f"static const struct npu_linear_int8 digits_{name} = "
            f"{{digits_{name}_weight[0], digits_{name}_row}};\n"
            for name in names
        ),
        c_array("digits_images", model.images[:DIGITS]),
        c_array("digits_labels", model.labels[:DIGITS]),
    ]
    defines: dict[str, str | int] = {
        "PIXELS": pixels,
        "HIDDEN": hidden,
        "CLASSES": len(model.output.weight),
        "IMAGES": DIGITS,
        "OUTPUT_SHIFT": OUTPUT_SHIFT,
    }
    return _header(["npu_recipes.h"], defines, body)


def write_headers(folder: Path) -> None:
    """Write all headers into a folder, which is made if it is not there."""
    folder.mkdir(parents=True, exist_ok=True)
    model = load_bytelm()
    headers = {
        "bytelm_int8_weights.h": bytelm_int8_header(quantise(model, load_scales())),
        "bytelm_fp32_weights.h": bytelm_fp32_header(model),
        "digits_weights.h": digits_header(load_digits()),
    }
    for name, text in headers.items():
        (folder / name).write_text(text, encoding="utf-8")


def main() -> None:
    """Parse the command line and write the headers."""
    parser = argparse.ArgumentParser(description="Write models as C headers.")
    parser.add_argument("folder", type=Path)
    write_headers(parser.parse_args().folder)


if __name__ == "__main__":
    main()
