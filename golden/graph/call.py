# SPDX-License-Identifier: Apache-2.0
"""What an integer meaning is applied to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from golden.fixed import Int64Array, as_int64, sat
from npu.graph.form import Array, Element, Operation, TensorType

BITS = {Element.I8: 8, Element.I16: 16, Element.I32: 32}


@dataclass(frozen=True)
class IntegerCall:
    """An operation, its values, and the type of its result."""

    operation: Operation
    values: Sequence[Array | None]
    result: TensorType

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401
        """Return an attribute."""
        return self.operation[name]

    def array(self, number: int) -> Array:
        """Return an input as it is. Raises ValueError if it is not given."""
        value = self.values[number] if number < len(self.values) else None
        if value is None:
            raise ValueError(f"input {number} is missing")
        return value

    def wide(self, number: int) -> Int64Array:
        """Return an input as int64."""
        return as_int64(self.array(number))

    def integers(self, name: str, default: int = 0) -> Int64Array:
        """Return an array of the operation's integers, or one number if there is none."""
        found = self.operation.integers.get(name)
        return np.full(1, default, np.int64) if found is None else found.astype(np.int64)

    def saturated(self, value: Int64Array) -> Int64Array:
        """Return a value limited to the type of the result."""
        return sat(value, BITS[self.result.element])
