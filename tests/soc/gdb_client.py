# SPDX-License-Identifier: Apache-2.0
"""Speaks GDB's protocol without GDB."""

from __future__ import annotations

import socket

from tb.soc.gdb_server import HOST


class GdbClient:
    """A connection to a stub.

    Attributes:
        socket: of the connection.
    """

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection((HOST, port), timeout=20)

    def send(self, text: str) -> None:
        """Send a packet."""
        body = text.encode("latin-1")
        self.socket.sendall(b"$%b#%02x" % (body, sum(body) & 0xFF))

    def take(self, size: int) -> bytes:
        """Return so many bytes that come."""
        data = b""
        while len(data) < size:
            more = self.socket.recv(size - len(data))
            assert more, f"closed behind {data!r}"
            data += more
        return data

    def answer(self) -> str:
        """Return the next packet that comes; its checksum is right."""
        assert self.take(1) == b"$"
        text = b""
        while (byte := self.take(1)) != b"#":
            text += byte
        assert int(self.take(2), 16) == sum(text) & 0xFF
        return text.decode()

    def ask(self, text: str) -> str:
        """Send a packet and return the answer."""
        self.send(text)
        assert self.take(1) == b"+"
        answer = self.answer()
        self.socket.sendall(b"+")
        return answer
