# SPDX-License-Identifier: Apache-2.0
"""A chip on a board behind a serial port: the bridge of `fpga/` as a `Bus`.

A request is six bytes: what is wanted, how many words of memory less one, and a byte address; then
the data of a write. Its answer is the data of a read and a status byte. All is lowest byte first.
"""

from __future__ import annotations

import os
import select
import termios
import time
from pathlib import Path
from typing import Protocol

from npu.driver.errors import BusError, DeviceError, RequestError

WORD_BYTES = 16
"""Of memory."""
MOST_WORDS = 256
"""Of a request."""
BAUD = 1_000_000
"""Bits a second of the board."""
LONGEST = 10.0
"""Seconds that an answer may take, or an interrupt."""
_STATE, _READ_REGISTER, _WRITE_REGISTER, _READ, _WRITE = b"?RWrw"
_MARK, _MARK_MASK, _IRQ, _ERROR = 0x40, 0xFC, 2, 1


class ByteStream(Protocol):
    """A way to the bridge and back."""

    def write(self, data: bytes) -> None:
        """Send bytes."""

    def read(self, size: int, seconds: float) -> bytes:
        """Return so many bytes, fewer if they do not come in time."""


class SerialPort:
    """A serial port of the system.

    Args:
        path: its device, such as /dev/ttyUSB1.
        baud: bits a second, one of those that the system names.

    Raises:
        RequestError: the system has no such speed, or no such port.
    """

    def __init__(self, path: Path, baud: int = BAUD) -> None:
        speed = getattr(termios, f"B{baud}", None)
        if speed is None:
            raise RequestError("baud", baud, "a speed that termios names, such as 1000000")
        try:
            self._file = os.open(path, os.O_RDWR | os.O_NOCTTY)
        except OSError as error:
            raise RequestError("port", path, f"a serial port: {error.strerror}") from None
        try:
            mode = termios.tcgetattr(self._file)
            mode[:6] = [0, 0, termios.CS8 | termios.CREAD | termios.CLOCAL, 0, speed, speed]
            termios.tcsetattr(self._file, termios.TCSANOW, mode)
            termios.tcflush(self._file, termios.TCIOFLUSH)
        except termios.error:
            self.close()
            raise RequestError("port", path, "a serial port") from None

    def close(self) -> None:
        """Give the port back."""
        os.close(self._file)

    def write(self, data: bytes) -> None:
        """Send bytes."""
        left = memoryview(data)
        while left:
            left = left[os.write(self._file, left) :]

    def read(self, size: int, seconds: float) -> bytes:
        """Return so many bytes, fewer if they do not come in time."""
        data, end = b"", time.monotonic() + seconds
        while len(data) < size:
            ready, _, _ = select.select([self._file], [], [], max(0.0, end - time.monotonic()))
            if not ready:
                break
            data += os.read(self._file, size - len(data))
        return data


class SerialBus:
    """The bridge as the driver's `Bus`.

    Attributes:
        size: bytes of memory, from address 0 on.
    """

    def __init__(self, stream: ByteStream, size: int, seconds: float = LONGEST) -> None:
        self.size = size
        self._stream = stream
        self._seconds = seconds

    def state(self) -> bool:
        """Return whether the interrupt line is high.

        Raises:
            DeviceError: no bridge answers.
        """
        return bool(self._request(_STATE, 0)[1] & _IRQ)

    async def read32(self, address: int) -> int:
        """Return a register. Raises BusError as `Bus` says, DeviceError without an answer."""
        data, status = self._request(_READ_REGISTER, address, size=4)
        if status & _ERROR:
            raise BusError(f"read of register {address:#05x}: SLVERR")
        return int.from_bytes(data, "little")

    async def write32(self, address: int, value: int) -> None:
        """Write a register. Raises BusError as `Bus` says, DeviceError without an answer."""
        _, status = self._request(_WRITE_REGISTER, address, value.to_bytes(4, "little"))
        if status & _ERROR:
            raise BusError(f"write of register {address:#05x}: SLVERR")

    async def wait_interrupt(self) -> None:
        """Return when the interrupt line is high. Raises DeviceError as `Bus` says."""
        end = time.monotonic() + self._seconds
        while not self.state():
            if time.monotonic() > end:
                raise DeviceError(f"no interrupt within {self._seconds:.0f} s")

    def read_memory(self, address: int, size: int) -> bytes:
        """Return bytes of memory.

        Raises:
            RequestError: the board has no such memory.
            DeviceError: no answer.
        """
        first, end = self._words(address, size)
        data = b"".join(
            self._memory(_READ, place, b"", min(MOST_WORDS * WORD_BYTES, end - place))
            for place in range(first, end, MOST_WORDS * WORD_BYTES)
        )
        return data[address - first : address - first + size]

    def write_memory(self, address: int, data: bytes) -> None:
        """Put bytes into memory; those around them in their words are read first.

        Raises:
            RequestError: the board has no such memory.
            DeviceError: no answer.
        """
        first, end = self._words(address, len(data))
        if not data:
            return
        before = self.read_memory(first, address - first)
        behind = self.read_memory(address + len(data), end - address - len(data))
        whole = before + data + behind
        for place in range(0, len(whole), MOST_WORDS * WORD_BYTES):
            piece = whole[place : place + MOST_WORDS * WORD_BYTES]
            self._memory(_WRITE, first + place, piece, 0)

    def _words(self, address: int, size: int) -> tuple[int, int]:
        """Return first and last address of the words that some bytes lie in."""
        if address < 0 or address + size > self.size:
            given = f"{size} bytes from {address:#x}"
            raise RequestError("memory", given, f"the {self.size:#x} bytes of the board")
        return address // WORD_BYTES * WORD_BYTES, -(-(address + size) // WORD_BYTES) * WORD_BYTES

    def _memory(self, kind: int, address: int, data: bytes, size: int) -> bytes:
        words = (len(data) or size) // WORD_BYTES
        found, status = self._request(kind, address, data, size, count=words - 1)
        if status & _ERROR:
            raise BusError(f"{words} words of memory at {address:#x}: the board has no such")
        return found

    def _request(
        self, kind: int, address: int, data: bytes = b"", size: int = 0, count: int = 0
    ) -> tuple[bytes, int]:
        """Return the bytes that were read, and the status."""
        self._stream.write(bytes([kind, count]) + address.to_bytes(4, "little") + data)
        answer = self._stream.read(size + 1, self._seconds)
        if len(answer) <= size:
            raise DeviceError(
                f"the board answers {chr(kind)!r} with {len(answer)} of {size + 1} bytes in "
                f"{self._seconds:.0f} s"
            )
        if answer[-1] & _MARK_MASK != _MARK:
            raise DeviceError(f"the board answers {chr(kind)!r} with the status {answer[-1]:#04x}")
        return answer[:-1], answer[-1]
