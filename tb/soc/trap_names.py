# SPDX-License-Identifier: Apache-2.0
"""Puts the names of an ELF file behind the addresses that firmware prints about traps."""

from __future__ import annotations

import re

from tb.soc.elf_file import Elf

_SAID = (
    re.compile(rb"^trap: mcause \d+ at ([0-9a-f]{8})"),
    re.compile(rb"^coprocessor: fault \d+, .*address ([0-9a-f]{8})"),
)
"""Lines of firmware/lib/trap.c, and the address in each."""
_LONGEST = 200


class TrapNames:
    """Follows what a program prints: the core knows no names, the host that shows it does."""

    def __init__(self, elf: Elf) -> None:
        self._elf = elf
        self._line = bytearray()

    def added(self, data: bytes) -> bytes:
        """Return the next bytes of the output, with names at the ends of lines about traps."""
        result = bytearray()
        for byte in data:
            if byte == ord("\n"):
                result += self._name(bytes(self._line))
                self._line.clear()
            elif len(self._line) < _LONGEST:
                self._line.append(byte)
            result.append(byte)
        return bytes(result)

    def _name(self, line: bytes) -> bytes:
        for said in _SAID:
            found = said.match(line)
            name = found and self._elf.name_of(int(found[1], 16))
            if name:
                return f" ({name})".encode()
        return b""
