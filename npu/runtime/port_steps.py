# SPDX-License-Identifier: Apache-2.0
"""Products of matrices on the command port, as steps of a plan."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from npu.driver.command.buffer import PLACES, ROOM
from npu.driver.command.descriptor import ENTRY
from npu.driver.command.group_matmul import ScaleKind, group_matmul
from npu.driver.command.matmul import Format, matmul
from npu.driver.command.operation import SCRATCH_SIZES
from npu.driver.command.port import CommandPort
from npu.driver.command.product import Product, Submit
from npu.driver.command.runner import STAGE
from npu.driver.errors import RequestError
from npu.graph.form import Array, GraphError, Operation
from npu.graph.operations.port import GROUPED
from npu.graph.verify import named

ARENA_BYTES = PLACES * ENTRY + ROOM * (STAGE + max(SCRATCH_SIZES))
"""Of the ring, with streams and results of as many tiles as it takes."""


async def multiply(
    port: CommandPort,
    op: Operation,
    values: Sequence[Array | None],
    submit: Submit,
    arena: tuple[int, int],
) -> Product:
    """Execute a portmatmul.

    Args:
        port: of the chip.
        op: the operation.
        values: its inputs.
        submit: by register, or by descriptors in `arena`.
        arena: (address, size) of memory.

    Raises:
        GraphError: an element is none of the format; nothing was touched.
        CommandFailed: the hardware reports an error.
    """
    a, b = (_integers(value) for value in values[:2] if value is not None)
    name = str(op["format"])
    try:
        if name == GROUPED:
            scales = _integers(values[2])
            kind = ScaleKind.Q8_8
            return await group_matmul(port, a, b, scales, op["group"], kind, submit, arena=arena)
        fmt = Format(name.upper())
        return await matmul(port, a, b, fmt, submit, arena=arena, exact=op["exact"])
    except RequestError as error:
        raise GraphError(f"{named(op)}: {error}") from None


def _integers(value: Array | None) -> Array:
    """Return integers as they are, and the codes of float16."""
    assert value is not None
    codes = value.view(np.uint16) if value.dtype == np.float16 else value
    return codes.astype(np.int64)
