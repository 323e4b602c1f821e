# SPDX-License-Identifier: Apache-2.0
"""A stub for GDB: the remote serial protocol on a socket, for one core and one debugger.

What is not answered here is answered with an empty packet, which tells GDB to do without. The page
of the protocol is the appendix "GDB Remote Serial Protocol" of GDB's manual.
"""

from __future__ import annotations

import re
import select
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Protocol

HOST = "127.0.0.1"
"""Nobody else's business: the protocol knows no passwords."""
PACKET = 0x1000
"""Bytes of the longest packet."""
CHUNK = 20_000
"""Instructions between two looks at the socket."""
INTERRUPT = 0x03
TRAPPED, INTERRUPTED, FAILED = "S05", "S02", "S0b"
"""Why the core stands, as the signals SIGTRAP, SIGINT and SIGSEGV."""
OK, REFUSED, UNKNOWN = "OK", "E01", ""
_FRAME = re.compile(rb"\$([^#$]*)#(..)", re.DOTALL)
_HEX = re.compile(r"[0-9a-fA-F]+")


class GdbError(RuntimeError):
    """A port that cannot be used."""


class Target(Protocol):
    """A core as a debugger sees it."""

    description: str
    """Its registers in GDB's XML."""
    general: int
    """Registers that go out together; others are asked for one by one."""
    stops: set[int]
    """Addresses in front of which `go` ends."""

    @property
    def exit_code(self) -> int | None:
        """What the program has ended with; None before."""

    @property
    def pc(self) -> int:
        """Address of the next instruction."""

    def register(self, number: int) -> bytes:
        """Return a register. Raises ValueError: there is none of this number."""

    def set_register(self, number: int, data: bytes) -> None:
        """Write a register. Raises ValueError: none of this number, size, or to be written."""

    def read(self, address: int, size: int) -> bytes:
        """Return bytes of memory. Raises ValueError: a debugger cannot read there."""

    def write(self, address: int, data: bytes) -> None:
        """Write bytes of memory. Raises ValueError: a debugger cannot write there."""

    def go(self, count: int) -> None:
        """Execute up to `count` instructions, at least one, until one of `stops` is next.

        Raises:
            RuntimeError: the core cannot go on; says why.
        """


def listen(port: int) -> socket.socket:
    """Return a socket that waits for a debugger on this machine; port 0 takes a free one.

    Raises:
        GdbError: the port cannot be used; one line.
    """
    try:
        return socket.create_server((HOST, port), backlog=1)
    except OSError as error:
        raise GdbError(f"--gdb {port}: cannot listen on {HOST}: {_reason(error)}") from None


def _reason(error: OSError) -> str:
    # create_server adds the address in brackets.
    return str(error.strerror).partition(" (")[0]


def serve(listener: socket.socket, target: Target, on_stop: Callable[[], None]) -> bool:
    """Wait for a debugger and do what it says; a second one finds the port closed.

    Args:
        listener: from `listen`; is closed.
        target: the core.
        on_stop: called after each stretch of a run.

    Returns:
        Whether the program is to run on, or has ended: false if it was killed, or left alone.
    """
    with listener:
        connection, _ = listener.accept()
    with connection:
        # Its packets are small, and each waits for the one before.
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with suppress(ConnectionError):
            return _Session(connection, target, on_stop).served()
    return target.exit_code is not None


class _Session:
    """A debugger that is connected."""

    def __init__(
        self, connection: socket.socket, target: Target, on_stop: Callable[[], None]
    ) -> None:
        self._connection = connection
        self._target = target
        self._on_stop = on_stop
        self._came = bytearray()
        self._last = b""

    def served(self) -> bool:
        """Answer packets to the end; as `serve`."""
        for packet in self._packets():
            if packet == "k":
                return False
            if packet[:1] == "D":
                self._send(OK)
                return True
            try:
                answer = self._answer(packet)
            except (ValueError, OverflowError):  # no number, or one that nothing here has
                answer = REFUSED
            self._send(answer)
        return self._target.exit_code is not None

    # ---------------------------------------------------------------------------------------------
    # Packets
    # ---------------------------------------------------------------------------------------------
    def _packets(self) -> Iterator[str]:
        """Yield sound packets as they come; ask again for others."""
        while self._more():
            while found := _FRAME.search(self._came):
                body, check = map(bytes, found.groups())
                del self._came[: found.end()]
                if check.lower() != b"%02x" % (sum(body) & 0xFF):
                    self._connection.sendall(b"-")
                    continue
                self._connection.sendall(b"+")
                yield body.decode("latin-1")
            if b"$" not in self._came:
                if b"-" in self._came:
                    self._connection.sendall(self._last)
                self._came.clear()

    def _more(self) -> bool:
        """Wait for bytes; return whether there were some, and not too many for a packet."""
        data = self._connection.recv(PACKET)
        self._came += data
        return bool(data) and len(self._came) <= 4 * PACKET

    def _send(self, text: str) -> None:
        body = text.encode("latin-1")
        self._last = b"$%b#%02x" % (body, sum(body) & 0xFF)
        self._connection.sendall(self._last)

    # ---------------------------------------------------------------------------------------------
    # Answers
    # ---------------------------------------------------------------------------------------------
    def _answer(self, packet: str) -> str:
        """Return the answer to a packet. Raises ValueError where it makes no sense."""
        target, rest = self._target, packet[1:]
        match packet[:1]:
            case "?":
                return self._stopped(TRAPPED)
            case "g":
                return b"".join(map(target.register, range(target.general))).hex()
            case "G":
                data = bytes.fromhex(rest)
                if len(data) != 4 * target.general:
                    return REFUSED
                for number in range(target.general):
                    target.set_register(number, data[4 * number : 4 * number + 4])
                return OK
            case "p":
                return target.register(_hex(rest)).hex()
            case "P":
                name, _, value = rest.partition("=")
                target.set_register(_hex(name), bytes.fromhex(value))
                return OK
            case "m":
                return target.read(*_place(rest)).hex()
            case "M":
                place, _, value = rest.partition(":")
                data = bytes.fromhex(value)
                address, size = _place(place)
                if size != len(data):
                    return REFUSED
                target.write(address, data)
                return OK
            case "c" | "s":
                if rest:  # goes on from another address
                    target.set_register(target.general - 1, _hex(rest).to_bytes(4, "little"))
                return self._gone(packet[0])
            case "C" | "S":  # the core takes no signals
                return self._gone(packet[0].lower())
            case "Z" | "z" if rest[:2] in ("0,", "1,"):
                address, _ = _place(rest[2:])
                (target.stops.add if packet[0] == "Z" else target.stops.discard)(address)
                return OK
            case "H" | "T":  # there is one thread
                return OK
        return self._answer_word(packet)

    def _answer_word(self, packet: str) -> str:
        if packet.startswith("qSupported"):
            return f"PacketSize={PACKET:x};qXfer:features:read+;vContSupported+"
        if packet.startswith("qXfer:features:read:target.xml:"):
            start, size = _place(packet.rpartition(":")[2])
            part = self._target.description[start : start + size]
            return ("m" if start + size < len(self._target.description) else "l") + part
        if packet == "qAttached":
            return "1"
        if packet == "vCont?":
            return "vCont;c;C;s;S"
        if packet.startswith(("vCont;c", "vCont;C", "vCont;s", "vCont;S")):
            return self._gone(packet[6].lower())
        return UNKNOWN

    def _gone(self, how: str) -> str:
        """Let the core go, a step or until it stands; return why it does."""
        target = self._target
        if target.exit_code is not None:
            return self._stopped(TRAPPED)
        try:
            while True:
                target.go(1 if how == "s" else CHUNK)
                self._on_stop()
                if how == "s" or target.exit_code is not None or target.pc in target.stops:
                    return self._stopped(TRAPPED)
                if self._interrupted():
                    return INTERRUPTED
        except RuntimeError as error:
            self._send("O" + f"{error}\n".encode().hex())
            return FAILED

    def _stopped(self, why: str) -> str:
        code = self._target.exit_code
        return why if code is None else f"W{code:02x}"

    def _interrupted(self) -> bool:
        """Whether the debugger wants the core to stand, or is gone."""
        if select.select([self._connection], [], [], 0)[0] and not self._more():
            raise ConnectionResetError
        found = INTERRUPT in self._came
        self._came = bytearray(byte for byte in self._came if byte != INTERRUPT)
        return found


def _place(text: str) -> tuple[int, int]:
    """Return address and size of `ADDRESS,SIZE`. Raises ValueError."""
    address, _, size = text.partition(",")
    return _hex(address), _hex(size)


def _hex(text: str) -> int:
    """Return a number; `int` alone takes signs and more. Raises ValueError."""
    if not _HEX.fullmatch(text):
        raise ValueError(text)
    return int(text, 16)
