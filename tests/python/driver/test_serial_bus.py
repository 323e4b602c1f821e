# SPDX-License-Identifier: Apache-2.0
"""The bus over a serial port, beside a bridge in Python: requests, answers, what is refused."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from npu.driver.errors import BusError, DeviceError, RequestError
from npu.driver.serial_bus import MOST_WORDS, WORD_BYTES, SerialBus, SerialPort

SIZE = 1 << 14
IRQ, ERROR = 2, 1


class Bridge:
    """What `npu_board_bridge` does with bytes.

    Attributes:
        memory, registers: behind it.
        status: bits of the status byte beside the error.
        lost: last bytes of each answer that do not come.
        requests: kinds of those that came.
    """

    def __init__(self) -> None:
        self.memory = bytearray(SIZE)
        self.registers = {0: 7}
        self.status = 0x40
        self.lost = 0
        self.requests = ""
        self._answer = b""

    def write(self, data: bytes) -> None:
        """Take a request, which must be whole, and what follows it."""
        while data:
            kind, words = chr(data[0]), data[1] + 1
            address = int.from_bytes(data[2:6], "little")
            size = {"W": 4, "w": words * WORD_BYTES}.get(kind, 0)
            given, data = data[6 : 6 + size], data[6 + size :]
            assert len(given) == size
            self.requests += kind
            found, error = self._take(kind, address, given, words * WORD_BYTES)
            self._answer += found + bytes([self.status | error])

    def _take(self, kind: str, address: int, given: bytes, size: int) -> tuple[bytes, int]:
        outside = address + size > SIZE or address % WORD_BYTES != 0
        match kind:
            case "R":
                return self.registers.get(address, 0).to_bytes(4, "little"), address % 4 and ERROR
            case "W":
                self.registers[address] = int.from_bytes(given, "little")
                return b"", address % 4 and ERROR
            case "r":
                return bytes(self.memory[address : address + size]).ljust(size, b"\0"), outside
            case "w":
                self.memory[address : address + size] = given
                return b"", outside
            case _:
                return b"", 0

    def read(self, size: int, seconds: float) -> bytes:
        """Return bytes of answers."""
        del seconds
        found, self._answer = self._answer[:size], self._answer[size:]
        return found[: len(found) - self.lost]


@pytest.fixture
def bridge() -> Bridge:
    """A bridge."""
    return Bridge()


@pytest.fixture
def bus(bridge: Bridge) -> SerialBus:
    """The bus to it."""
    return SerialBus(bridge, SIZE, seconds=0.0)


def test_registers(bus: SerialBus, bridge: Bridge) -> None:
    """Are written and read lowest byte first; an error is told with its address."""
    asyncio.run(bus.write32(0x104, 0x12345678))
    assert (bridge.registers[0x104], asyncio.run(bus.read32(0x104))) == (0x12345678, 0x12345678)
    with pytest.raises(BusError, match="read of register 0x002: SLVERR"):
        asyncio.run(bus.read32(2))
    with pytest.raises(BusError, match="write of register 0x003: SLVERR"):
        asyncio.run(bus.write32(3, 0))


@pytest.mark.parametrize("address", [0, 1, 15, 16, 4000])
@pytest.mark.parametrize("size", [0, 1, 15, 16, 17, 5000, MOST_WORDS * WORD_BYTES])
def test_memory(bus: SerialBus, bridge: Bridge, address: int, size: int) -> None:
    """Any bytes are written, those around them stay, and they are read back."""
    bridge.memory[:] = bytes(n % 251 for n in range(SIZE))
    wanted = bytearray(bridge.memory)
    data = bytes(n * 7 % 256 for n in range(size))
    wanted[address : address + size] = data
    bus.write_memory(address, data)
    assert bridge.memory == wanted
    assert bus.read_memory(address, size) == data


def test_whole_words_are_not_read_first(bus: SerialBus, bridge: Bridge) -> None:
    """So that a program is staged in half the time; 256 words are in a request."""
    bus.write_memory(32, bytes(3 * MOST_WORDS * WORD_BYTES - 16))
    assert bridge.requests == "www"


def test_interrupt(bus: SerialBus, bridge: Bridge) -> None:
    """It is the line that the status byte shows; without it the wait ends."""
    with pytest.raises(DeviceError, match="no interrupt within 0 s"):
        asyncio.run(bus.wait_interrupt())
    bridge.status |= IRQ
    asyncio.run(bus.wait_interrupt())


def test_no_answer(bus: SerialBus, bridge: Bridge) -> None:
    """What has not come, and what is no status, is told."""
    bridge.lost = 2
    with pytest.raises(DeviceError, match="the board answers 'R' with 3 of 5 bytes in 0 s"):
        asyncio.run(bus.read32(0))
    bridge.lost, bridge.status = 0, 0x20
    with pytest.raises(DeviceError, match=r"the board answers '\?' with the status 0x20"):
        bus.state()


@pytest.mark.parametrize(("address", "size"), [(-1, 1), (SIZE, 1), (SIZE - 1, 2)])
def test_no_such_memory(bus: SerialBus, bridge: Bridge, address: int, size: int) -> None:
    """Is refused by the host, and by the board where that has less."""
    with pytest.raises(RequestError, match="allowed the 0x4000 bytes of the board"):
        bus.read_memory(address, size)
    with pytest.raises(RequestError, match="allowed the 0x4000 bytes of the board"):
        bus.write_memory(address, bytes(size))
    assert bridge.requests == ""
    bus.size = SIZE * 2
    with pytest.raises(BusError, match="1 words of memory at 0x4000: the board has no such"):
        bus.read_memory(SIZE, 1)


def test_ports_that_are_none(tmp_path: Path) -> None:
    """A file, a missing one, a speed that no port has: one line each."""
    for path in (tmp_path / "none", tmp_path, Path("/dev/null")):
        with pytest.raises(RequestError, match=f"port: given {path}, allowed a serial port"):
            SerialPort(path)
    with pytest.raises(RequestError, match="baud: given 12345, allowed a speed that termios"):
        SerialPort(Path("/dev/null"), 12345)
