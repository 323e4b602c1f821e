# SPDX-License-Identifier: Apache-2.0
"""Tensors of pytorch_model.bin, by PyTorch where it is installed.

Such a file is a pickle, and a pickle can run any code: only PyTorch's loading of nothing but
weights reads it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from weights.checkpoint import CheckpointError
from weights.stored.form import StoredTensor

LONGEST = 200
"""Letters of what PyTorch says that a message repeats."""
DTYPES = {"float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16"}
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
        said = " ".join(str(error).split())[:LONGEST]
        raise CheckpointError(
            f"{source}: {path.name} cannot be read as weights alone: {said}"
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
        dtype = str(tensor.dtype).removeprefix("torch.")
        load = partial(_numbers, torch, tensor)
        yield StoredTensor(name, tuple(tensor.shape), DTYPES.get(dtype, dtype), load)


def _content(torch: Any, path: Path) -> Any:  # noqa: ANN401
    """Return what a file holds; those of PyTorch before 1.6 cannot be mapped."""
    try:
        return torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except RuntimeError:
        return torch.load(path, map_location="cpu", weights_only=True)


def _numbers(torch: Any, tensor: Any) -> npt.NDArray[Any]:  # noqa: ANN401
    """Return the numbers of a tensor; numpy has no bfloat16 of PyTorch's."""
    numbers = tensor.detach()  # a parameter is a tensor with a gradient
    found: npt.NDArray[Any] = np.asarray(
        numbers.to(torch.float32) if tensor.dtype is torch.bfloat16 else numbers
    )
    return found
