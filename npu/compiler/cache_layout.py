# SPDX-License-Identifier: Apache-2.0
"""Where the K/V cache lies and how it is strided; for the formula see docs/reference/isa.md."""

from dataclasses import dataclass

from npu.compiler.errors import CompileError
from npu.compiler.shape import Shape
from spec.isa.operands import up

GRANULE = 256
"""The cache and its strides are multiples of this many bytes."""


@dataclass(frozen=True, slots=True)
class CacheLayout:
    """The K/V cache of a model; strides and sizes in bytes.

    Attributes:
        in_memory: it lies in memory, where the host chooses its base, and not in SRAM.
        base: SRAM address; 0 for a cache in memory.
        layer, head, v_offset: registers KVLAYER, KVHEAD, KVVOFF.
        capacity: register KVCAP, in positions.
        bytes: all of it.

    """

    in_memory: bool
    base: int
    layer: int
    head: int
    v_offset: int
    capacity: int
    bytes: int


def cache_layout(shape: Shape, edge: int, sram_bytes: int | None) -> CacheLayout:
    """Return the layout of the cache at the end of the SRAM, or in memory for None.

    Raises CompileError if the SRAM has no room for it.
    """
    head = up(up(shape.context, edge) * up(shape.head_dim, edge), GRANULE)
    v_offset = shape.kv_heads * head
    layer = 2 * v_offset
    size = shape.layers * layer
    if sram_bytes is not None and size > sram_bytes:
        raise CompileError(
            f"the K/V cache of {shape.context} positions, {shape.layers} layers, {shape.kv_heads} "
            f"heads of {shape.head_dim} needs {size} bytes of SRAM, there are {sram_bytes}"
        )
    base = 0 if sram_bytes is None else (sram_bytes - size) // GRANULE * GRANULE
    return CacheLayout(sram_bytes is None, base, layer, head, v_offset, shape.context, size)
