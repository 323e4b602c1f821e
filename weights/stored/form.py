# SPDX-License-Identifier: Apache-2.0
"""What every kind of file looks like: configuration, and tensors that are read when asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy.typing as npt

from weights.architecture import Architecture, Config, Stored
from weights.checkpoint import CheckpointShape


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """A tensor of a file.

    Attributes:
        name: in the file.
        shape: slowest dimension first.
        dtype: as the kind of file calls it.
        load: reads the numbers, in any float type of numpy.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    load: Callable[[], npt.NDArray[Any]]


class StoredModel(Protocol):
    """A folder or a file with a model.

    Attributes:
        architecture: of the model.
        config: what config.json says, or would say.
        dtypes: of stored tensors that are read.
    """

    architecture: Architecture
    config: Config
    dtypes: tuple[str, ...]

    def tensors(self) -> Iterator[StoredTensor]:
        """Yield what is stored. Raises CheckpointError where it is damaged."""

    def key(self, name: str) -> str | None:
        """Return how the layout calls a stored tensor, None for one that is no parameter."""

    def layout(self, shape: CheckpointShape) -> list[Stored]:
        """Return every tensor of a model of a shape."""
