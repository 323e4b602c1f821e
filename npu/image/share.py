# SPDX-License-Identifier: Apache-2.0
"""One instruction's piece of the parameter stream.

Layouts: docs/reference/isa.md, "Shares of the stream". Every piece is a multiple of 64 bytes.
"""

from dataclasses import dataclass, replace

PIECE = 64


@dataclass(frozen=True, slots=True)
class StreamShare:
    """One instruction's piece of the stream: byte offset and length.

    `format` and `group` are the weight format of a GEMM and the rows of its groups as its text
    names them, "" for int8 and for formats without such groups.
    """

    name: str
    opcode: int
    offset: int
    bytes: int
    format: str = ""
    group: str = ""

    def part(self, name: str, first: int, size: int) -> "StreamShare":
        """Return `size` bytes of this share from byte `first` on, as a share of their own."""
        return replace(self, name=name, offset=self.offset + first, bytes=size)
