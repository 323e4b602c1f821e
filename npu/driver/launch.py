# SPDX-License-Identifier: Apache-2.0
"""What a driver needs of a chip: memory, and programs that it starts and waits for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

NO_TOKEN = 0xFFFF_FFFF
"""As EOS: no end token."""


@dataclass(frozen=True, slots=True)
class Launch:
    """How to start a program: what the host writes before CTRL.START. Addresses in bytes.

    Attributes:
        ucode_base, ucode_len: the program, and its length in words.
        stream_base, stream_len: the parameter stream, length in bytes.
        bases: initial BASE0..BASE7.
        pos, token, window, loop_left, eos: initial machine registers of these names.
        kv_base, kv_layer, kv_head, kv_voff, kv_cap, kv_in_memory: place and strides of the K/V
            cache; kv_in_memory is 0 for a cache in SRAM.
    """

    ucode_base: int
    ucode_len: int
    stream_base: int
    stream_len: int
    bases: tuple[int, ...] = (0,) * 8
    pos: int = 0
    token: int = 0
    window: int = 0
    loop_left: int = 0
    eos: int = NO_TOKEN
    kv_base: int = 0
    kv_layer: int = 0
    kv_head: int = 0
    kv_voff: int = 0
    kv_cap: int = 0
    kv_in_memory: int = 1

    def at(self, pos: int, token: int, *, loop_left: int = 0, eos: int = NO_TOKEN) -> Launch:
        """Return the same program at another position with another token."""
        return replace(self, pos=pos, token=token, loop_left=loop_left, eos=eos)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a program ended.

    Attributes:
        error: one line that names code, engine, instruction and address; None without an error.
        cycles: clock cycles from start to end.
        tokens: words that ARGMAX has written (OUTCNT).
    """

    error: str | None
    cycles: int
    tokens: int


class Chip(Protocol):
    """A chip and the memory that it shares with the host: RTL, model, or hardware."""

    def write_memory(self, address: int, data: bytes) -> None:
        """Put bytes into memory."""

    def read_memory(self, address: int, size: int) -> bytes:
        """Return bytes of memory."""

    async def run(self, launch: Launch) -> Outcome:
        """Start a program and return when it has ended, with or without an error."""
