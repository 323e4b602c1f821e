# SPDX-License-Identifier: Apache-2.0
"""Fields in consecutive words of memory, as descriptors and records have them."""

import struct
from collections.abc import Mapping
from typing import NamedTuple

from spec.regs.fields import RegField

WORD_BYTES = 4


class WordLayout(NamedTuple):
    """Named fields in words of 32 bits, little-endian.

    Attributes:
        name: of what is laid out.
        first: number of the first word.
        words: how many there are.
        fields: by name; `register` of a field is the number of its word.
    """

    name: str
    first: int
    words: int
    fields: Mapping[str, RegField]

    @property
    def size(self) -> int:
        """Bytes that it takes."""
        return WORD_BYTES * self.words

    def pack(self, **contents: int) -> tuple[int, ...]:
        """Return the words with these fields, all other bits 0.

        Raises:
            ValueError: a field that there is not, or a content that does not fit it.
        """
        words = [0] * self.words
        for name, content in contents.items():
            if name not in self.fields:
                raise ValueError(
                    f"{self.name}: given field {name}, allowed {', '.join(self.fields)}"
                )
            field = self.fields[name]
            most = (1 << field.width) - 1
            if not 0 <= content <= most:
                raise ValueError(f"{self.name}.{name}: given {content:#x}, allowed 0 to {most:#x}")
            words[field.register - self.first] |= field.put(content)
        return tuple(words)

    def image(self, **contents: int) -> bytes:
        """Return what `pack` returns as it lies in memory."""
        return struct.pack(f"<{self.words}I", *self.pack(**contents))

    def unpack(self, data: bytes) -> dict[str, int]:
        """Return the fields in `words` words of memory, by name."""
        words = struct.unpack(f"<{self.words}I", data)
        return {name: f.get(words[f.register - self.first]) for name, f in self.fields.items()}

    def mask(self, word: int, *names: str) -> int:
        """Return the bits of a word that fields have: those named, or all."""
        chosen = [self.fields[name] for name in names or self.fields]
        return sum(field.mask for field in chosen if field.register == word)
