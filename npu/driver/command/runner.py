# SPDX-License-Identifier: Apache-2.0
"""Many operations in a row, by register or in batches of descriptors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

from npu.driver.command.buffer import PLACES, ROOM, CommandBuffer
from npu.driver.command.descriptor import ENTRY, Command, StagedStream
from npu.driver.command.operation import Gemm, Scalar
from npu.driver.command.port import CommandPort
from npu.driver.errors import WORD, RequestError, whole

STAGE = 64
"""Bytes of the arena for the stream of one tile."""


class Tile(NamedTuple):
    """A tile to multiply, and A and B as they lie in the scratchpad from its first byte on."""

    shape: Gemm
    data: bytes


class ByRegister:
    """Runs operations one by one."""

    def __init__(self, port: CommandPort) -> None:
        self.port = port

    @property
    def scratch_bytes(self) -> int:
        """Size of the scratchpad."""
        return self.port.scratch_bytes

    async def tiles(self, tiles: Iterable[Tile]) -> list[bytes]:
        """Return C of each tile, int32 row after row."""
        results = []
        for shape, data in tiles:
            await self.port.write_scratch(0, data)
            await self.port.execute(shape)
            results.append(await self.port.read_scratch(shape.c, shape.output_bytes))
        return results

    async def scalars(self, operations: Sequence[Scalar]) -> list[int]:
        """Return RESULT of each operation."""
        return [(await self.port.execute(one) or 0) & WORD for one in operations]


class ByDescriptor:
    """Runs operations in batches of what fits the ring, everything staged in an arena."""

    def __init__(self, buffer: CommandBuffer, start: int, slots: int, slot_bytes: int) -> None:
        self.buffer = buffer
        self.slots = [start + slot_bytes * i for i in range(slots)]

    @staticmethod
    async def open(port: CommandPort, name: str, arena: tuple[int, int] | None) -> ByDescriptor:
        """Check the arena of the call `name`, lay it out: ring, slots for a stream and result."""
        if not isinstance(arena, tuple) or len(arena) != 2:
            raise RequestError(f"{name}.arena", arena, "(address, size) with descriptors")
        slot_bytes = STAGE + port.scratch_bytes
        ring = PLACES * ENTRY
        base, size = arena
        whole(f"{name}.arena[0]", base, 0, WORD, ENTRY)
        whole(f"{name}.arena[1]", size, ring + slot_bytes, WORD + 1 - base)
        slots = min(ROOM, (size - ring) // slot_bytes)
        buffer = await CommandBuffer.open(port, base)
        return ByDescriptor(buffer, base + ring, slots, slot_bytes)

    @property
    def scratch_bytes(self) -> int:
        """Size of the scratchpad."""
        return self.buffer.port.scratch_bytes

    async def tiles(self, tiles: Iterable[Tile]) -> list[bytes]:
        """Return C of each tile, int32 row after row."""
        return await self._run(tiles)

    async def scalars(self, operations: Sequence[Scalar]) -> list[int]:
        """Return RESULT of each operation."""
        results = await self._run((operation, b"") for operation in operations)
        return [int.from_bytes(result, "little") & WORD for result in results]

    async def _run(self, work: Iterable[tuple[Gemm | Scalar, bytes]]) -> list[bytes]:
        """Return the writeback of each operation, before which its bytes are streamed in."""
        results: list[bytes] = []
        used = 0
        for operation, data in work:
            if used == len(self.slots) or not self.buffer.fits(Command(operation, writeback=0)):
                results += await self._flush()
                used = 0
            slot = self.slots[used]
            used += 1
            stream = None
            if data:
                self.buffer.port.bus.write_memory(slot, data)
                stream = StagedStream(slot, 0, len(data))
            self.buffer.add(Command(operation, stream, writeback=slot + STAGE))
        return results + await self._flush()

    async def _flush(self) -> list[bytes]:
        await self.buffer.submit()
        return [result.data for result in await self.buffer.wait()]


Runner: TypeAlias = ByRegister | ByDescriptor
