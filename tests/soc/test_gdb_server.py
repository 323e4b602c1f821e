# SPDX-License-Identifier: Apache-2.0
"""The protocol of GDB, spoken by a plain socket to a core that only counts."""

from __future__ import annotations

import select
import socket
import threading
from collections.abc import Iterator

import pytest

from tb.soc import gdb_server
from tb.soc.gdb_server import PACKET, GdbError
from tests.soc.gdb_client import GdbClient

MEMORY = 64
END = 40
"""Where the core exits, with code 7."""
BROKEN = 0x1000
"""Where it cannot go on."""
PC = 2


class Counter:
    """A core whose instructions do nothing: two registers and pc, 64 bytes of memory."""

    description = "<target>" + "x" * 100 + "</target>"
    general = 3

    def __init__(self) -> None:
        self.stops: set[int] = set()
        self.exit_code: int | None = None
        self.registers = [b"\1\0\0\0", b"\2\0\0\0", bytes(4)]
        self.memory = bytearray(range(MEMORY))
        self.loops = False

    @property
    def pc(self) -> int:
        """Address of the next instruction."""
        return int.from_bytes(self.registers[PC], "little")

    def register(self, number: int) -> bytes:
        """Return a register."""
        if number >= len(self.registers):
            raise ValueError
        return self.registers[number]

    def set_register(self, number: int, data: bytes) -> None:
        """Write a register."""
        if number >= len(self.registers) or len(data) != 4:
            raise ValueError
        self.registers[number] = data

    def read(self, address: int, size: int) -> bytes:
        """Return bytes of memory."""
        if address + size > MEMORY:
            raise ValueError
        return bytes(self.memory[address : address + size])

    def write(self, address: int, data: bytes) -> None:
        """Write bytes of memory."""
        if address + len(data) > MEMORY:
            raise ValueError
        self.memory[address : address + len(data)] = data

    def go(self, count: int) -> None:
        """Execute instructions."""
        for _ in range(count):
            if self.pc >= BROKEN:
                raise RuntimeError("nothing there")
            step = 0 if self.loops else 4
            self.registers[PC] = (self.pc + step).to_bytes(4, "little")
            if self.pc == END:
                self.exit_code = 7
            if self.exit_code is not None or self.pc in self.stops:
                return


class Debugger(GdbClient):
    """A debugger at a server of its own.

    Attributes:
        core: what it debugs.
        port: that the server listens at.
    """

    def __init__(self) -> None:
        self.core = Counter()
        self._ended: list[bool] = []
        listener = gdb_server.listen(0)
        self.port = listener.getsockname()[1]
        self._server = threading.Thread(
            target=lambda: self._ended.append(gdb_server.serve(listener, self.core, lambda: None))
        )
        self._server.start()
        super().__init__(self.port)

    def end(self) -> bool:
        """Return what the server returns, at the latest when the connection is closed."""
        self.socket.close()
        self._server.join(20)
        return self._ended[0]


@pytest.fixture
def debugger() -> Iterator[Debugger]:
    """Connect to a core."""
    found = Debugger()
    yield found
    found.end()


def test_what_a_debugger_asks_first(debugger: Debugger) -> None:
    """What the stub can, why the core stands, and the description, in parts."""
    assert debugger.ask("qSupported:multiprocess+;swbreak+").startswith(
        f"PacketSize={PACKET:x};qXfer:features:read+"
    )
    assert debugger.ask("?") == "S05"
    assert debugger.ask("qAttached") == "1"
    assert debugger.ask("Hg0") == "OK"
    assert debugger.ask("vCont?") == "vCont;c;C;s;S"
    name = "qXfer:features:read:target.xml:"
    assert debugger.ask(f"{name}0,8") == "m<target>"
    rest = debugger.ask(f"{name}8,{PACKET:x}")
    assert f"<target>{rest.removeprefix('l')}" == Counter.description


def test_registers(debugger: Debugger) -> None:
    """All at once or one by one; values are in the order of memory."""
    assert debugger.ask("g") == "010000000200000000000000"
    assert debugger.ask("P1=78563412") == "OK"
    assert debugger.ask("p1") == "78563412"
    assert debugger.ask("G" + "0a000000" * 3) == "OK"
    assert debugger.ask("g") == "0a000000" * 3
    for wrong in ("p9", "p-1", "pzz", "P9=00000000", "P1=00", "P1", "P1=0x", "G00", "G"):
        assert debugger.ask(wrong) == "E01", wrong
    assert debugger.ask("g") == "0a000000" * 3


def test_memory(debugger: Debugger) -> None:
    """Bytes are read and written; what is not there is an error."""
    assert debugger.ask("m10,4") == "10111213"
    assert debugger.ask("M11,2:abcd") == "OK"
    assert debugger.ask("m10,4") == "10abcd13"
    wrong = ("m40,1", "m0,41", "m", "m0", "m0,", "mx,1", "m-1,1", "M40,1:00", "M0,2:00", "M0,1:0")
    for one in wrong:
        assert debugger.ask(one) == "E01", one


def test_break_step_and_exit(debugger: Debugger) -> None:
    """A step is one instruction, a breakpoint stops in front of its own, the end is told."""
    assert debugger.ask("Z0,10,4") == "OK"
    assert debugger.ask("s") == "S05"
    assert debugger.core.pc == 4
    assert debugger.ask("c") == "S05"
    assert debugger.core.pc == 0x10
    assert debugger.ask("vCont;s:1;c") == "S05"
    assert debugger.core.pc == 0x14
    assert debugger.ask("c8") == "S05"
    assert debugger.core.pc == 0x10
    assert debugger.ask("z0,10,4") == "OK"
    assert debugger.ask("s0") == "S05"
    assert debugger.core.pc == 4
    assert debugger.ask("vCont;c:p1.-1") == "W07"
    assert [debugger.ask(again) for again in ("?", "c", "s")] == ["W07"] * 3
    assert debugger.end()


def test_interrupt(debugger: Debugger) -> None:
    """A program that does not end stops, although nothing else does; then it goes on."""
    debugger.core.loops = True
    for _ in range(2):
        debugger.send("c")
        assert debugger.take(1) == b"+"
        assert not select.select([debugger.socket], [], [], 0.1)[0]
        debugger.socket.sendall(b"\3")
        assert debugger.answer() == "S02"
    debugger.socket.sendall(b"+$c#63\3")  # in one go
    assert debugger.take(1) == b"+"
    assert debugger.answer() == "S02"


def test_a_core_that_cannot_go_on(debugger: Debugger) -> None:
    """Says why on the debugger's console, and stands as after a bad access."""
    debugger.core.registers[PC] = BROKEN.to_bytes(4, "little")
    debugger.send("c")
    assert debugger.take(1) == b"+"
    assert debugger.answer() == "O" + b"nothing there\n".hex()
    assert debugger.answer() == "S0b"


def test_packets_that_were_damaged(debugger: Debugger) -> None:
    """A bad checksum is asked for again and does nothing; an answer is repeated when asked for."""
    debugger.socket.sendall(b"$M0,1:ff#00")
    assert debugger.take(1) == b"-"
    debugger.socket.sendall(b"$M0,1:ff#zz")
    assert debugger.take(1) == b"-"
    assert debugger.ask("m0,1") == "00"
    debugger.socket.sendall(b"-")
    assert debugger.answer() == "00"
    for byte in b"+$m1,1#fb":
        debugger.socket.sendall(bytes([byte]))
    assert debugger.take(1) == b"+"
    assert debugger.answer() == "01"


@pytest.mark.parametrize(
    "packet", ["vMustReplyEmpty", "X0,0:", "Z2,0,4", "qRcmd,00", "", "\xff", "vCont;t", "QStart"]
)
def test_unknown_packets_have_empty_answers(debugger: Debugger, packet: str) -> None:
    """So the debugger does without."""
    assert debugger.ask(packet) == ""
    assert debugger.ask("?") == "S05"


def test_ends_of_a_session() -> None:
    """A detached program may run on; one that was killed, or whose debugger is gone, may not."""
    detached, killed, gone, flooded = (Debugger() for _ in range(4))
    assert detached.ask("D") == "OK"
    assert detached.end()
    killed.send("k")
    assert not killed.end()
    gone.core.loops = True
    gone.send("c")
    assert not gone.end()
    with pytest.raises(ConnectionError):
        while True:
            flooded.socket.sendall(b"$" + b"0" * 4 * PACKET)
    assert not flooded.end()


def test_a_second_debugger_finds_the_port_closed(debugger: Debugger) -> None:
    """The first one is not disturbed."""
    assert debugger.ask("?") == "S05"
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((gdb_server.HOST, debugger.port))
    assert debugger.ask("?") == "S05"


def test_a_port_that_is_in_use() -> None:
    """Is refused in one line."""
    with gdb_server.listen(0) as first:
        port = first.getsockname()[1]
        with pytest.raises(GdbError) as caught:
            gdb_server.listen(port)
    assert str(caught.value) == (
        f"--gdb {port}: cannot listen on 127.0.0.1: Address already in use"
    )
