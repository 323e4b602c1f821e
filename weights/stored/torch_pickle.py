# SPDX-License-Identifier: Apache-2.0
"""Tensors of pytorch_model.bin, by PyTorch where it is installed.

Such a file is a pickle, and a pickle can run any code: only PyTorch's loading of nothing but
weights reads it.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from weights.checkpoint import CheckpointError
from weights.stored.form import StoredTensor

COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
LONGEST = 200
"""Letters of what PyTorch says that a message repeats."""
DTYPES = {
    "float64": "F64",
    "float32": "F32",
    "float16": "F16",
    "bfloat16": "BF16",
    "int32": "I32",
    "int64": "I64",
}
"""Types by PyTorch's name and by that of safetensors."""


def tensors_of(path: Path, source: str) -> Iterator[StoredTensor]:
    """Yield the tensors of a file; their numbers stay on disk until they are asked for.

    Raises:
        CheckpointError: PyTorch is not installed, or the file holds anything but tensors.
    """
    try:
        import torch
    except ImportError as error:
        raise CheckpointError(
            f"{source}: {path.name} is a pickle, which only PyTorch reads: {error}: pip install "
            "torch, or convert it where transformers has PyTorch: AutoModelForCausalLM"
            f".from_pretrained({str(path.parent)!r}).save_pretrained('NEW FOLDER')"
        ) from error
    try:
        content = _content(torch, path)
    except Exception as error:  # whatever PyTorch makes of a stranger's file
        raise CheckpointError(
            f"{source}: {path.name} cannot be read as weights alone: {_said(error)}"
        ) from error
    if not isinstance(content, dict):
        raise CheckpointError(
            f"{source}: {path.name}: given {type(content).__name__}, allowed tensors by name"
        )
    for name, tensor in content.items():
        if not isinstance(name, str) or not isinstance(tensor, torch.Tensor):
            raise CheckpointError(
                f"{source}: {path.name}: given {type(tensor).__name__} as {str(name)[:60]!r}, "
                "allowed tensors by name"
            )
        load = partial(_numbers, torch, tensor, f"{source}: tensor {name!r}")
        shape = () if tensor.is_nested else tuple(tensor.shape)
        yield StoredTensor(name, shape, _dtype(torch, tensor), load)


def _said(error: Exception) -> str:
    """Return in a line what PyTorch says, without the colours that it gives to a terminal."""
    plain = COLOUR.sub("", str(error))
    words = " ".join("".join(one for one in plain if one.isprintable() or one.isspace()).split())
    return words[:LONGEST] or type(error).__name__


def _dtype(torch: Any, tensor: Any) -> str:  # noqa: ANN401
    """Return the type of numbers, with how they are stored if that is not one after the other.

    No model has a type of that name, so that such a tensor is refused by its own.
    """
    dtype = str(tensor.dtype).removeprefix("torch.")
    if tensor.is_nested:
        return f"{dtype} of several lengths (nested)"
    if tensor.layout is not torch.strided:
        return f"{dtype} without zeros ({str(tensor.layout).removeprefix('torch.')})"
    if tensor.is_meta:
        return f"{dtype} without numbers (meta)"
    return DTYPES.get(dtype, dtype)


def _content(torch: Any, path: Path) -> Any:  # noqa: ANN401
    """Return what a file holds; those of PyTorch before 1.6 cannot be mapped.

    What PyTorch warns of is how the file was written, which nobody who reads it can change.
    """
    with warnings.catch_warnings(action="ignore"):
        try:
            return torch.load(path, map_location="cpu", weights_only=True, mmap=True)
        except RuntimeError:
            return torch.load(path, map_location="cpu", weights_only=True)


def _numbers(torch: Any, tensor: Any, place: str) -> npt.NDArray[Any]:  # noqa: ANN401
    """Return the numbers of a tensor; numpy has no bfloat16 of PyTorch's, and no signs beside.

    Raises:
        CheckpointError: numpy cannot have them; `place` begins the message.
    """
    numbers = tensor.detach()  # a parameter is a tensor with a gradient
    if tensor.dtype is torch.bfloat16:
        numbers = numbers.to(torch.float32)
    try:
        found: npt.NDArray[Any] = np.asarray(numbers.resolve_neg())
    except (RuntimeError, TypeError) as error:  # not implemented for a layout, among others
        given = _dtype(torch, tensor)
        raise CheckpointError(f"{place}: given dtype {given}, allowed plain numbers") from error
    return found
