# SPDX-License-Identifier: Apache-2.0
"""How a transfer splits into bursts, and passive monitors of the bus: for protocol tests."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass

import cocotb
from cocotb.triggers import ReadOnly, RisingEdge
from cocotb_bus.monitors import BusMonitor

from tb.bench.dut import Dut

PAGE = 4096
LONGEST = 32 * 16
"""Bytes of the longest burst."""


def split(address: int, rows: int, row_bytes: int, pitch: int) -> Iterator[range]:
    """Yield the byte addresses of each burst of a DMA transfer, in order.

    Bursts are as long as the bus allows and end at 4 KiB boundaries and at the end of a row.
    """
    for row in range(rows):
        at, end = address + row * pitch, address + row * pitch + row_bytes
        while at < end:
            upto = min(end, at + LONGEST, (at // PAGE + 1) * PAGE)
            yield range(at, upto)
            at = upto


@dataclass(frozen=True)
class Burst:
    """One accepted address: identifier, byte address, beats of 16 bytes."""

    ident: int
    address: int
    beats: int

    @property
    def addresses(self) -> range:
        """Byte addresses of the beats."""
        return range(self.address, self.address + 16 * self.beats, 16)


class _AddressMonitor(BusMonitor):  # type: ignore[misc]
    """Collects the bursts of one address channel in `bursts`."""

    _ready = ""

    def __init__(self, dut: Dut) -> None:
        self.bursts: list[Burst] = []
        self._handshake = getattr(dut, self._ready)
        super().__init__(dut, "M_AXI", dut.clk, callback=self.bursts.append)

    def _fields(self) -> tuple[Dut, Dut, Dut, Dut]:
        """Return the handles of valid, identifier, address and length."""
        raise NotImplementedError

    async def _monitor_recv(self) -> None:
        valid, ident, address, length = self._fields()
        while True:
            await ReadOnly()
            if valid.value and self._handshake.value:
                self._recv(Burst(int(ident.value), int(address.value), int(length.value) + 1))
            await RisingEdge(self.clock)


class ReadBursts(_AddressMonitor):
    """The read bursts that the chip asked for."""

    _signals = ("ARVALID", "ARID", "ARADDR", "ARLEN")
    _ready = "arready"

    def _fields(self) -> tuple[Dut, Dut, Dut, Dut]:
        return self.bus.ARVALID, self.bus.ARID, self.bus.ARADDR, self.bus.ARLEN


class WriteBursts(_AddressMonitor):
    """The write bursts that the chip announced."""

    _signals = ("AWVALID", "AWID", "AWADDR", "AWLEN")
    _ready = "awready"

    def _fields(self) -> tuple[Dut, Dut, Dut, Dut]:
        return self.bus.AWVALID, self.bus.AWID, self.bus.AWADDR, self.bus.AWLEN


class OpenBursts:
    """What the memory owes to the chip, and the chip to the memory.

    Attributes:
        reads: by identifier, the words of each read burst that are still to come, in order.
        most: by identifier, the most read bursts that were under way at once.
        writes: the words of each write burst that the chip has still to send, in order.
        unanswered: the write bursts without a response, as first addresses, in order.
    """

    def __init__(self, dut: Dut) -> None:
        self._dut = dut
        self.reads: defaultdict[int, deque[range]] = defaultdict(deque)
        self.most: Counter[int] = Counter()
        self.writes: deque[range] = deque()
        self.unanswered: deque[int] = deque()
        cocotb.start_soon(self._watch())

    @property
    def quiet(self) -> bool:
        """Whether nothing is under way or asked for."""
        asked = self._dut.M_AXI_ARVALID.value or self._dut.M_AXI_AWVALID.value
        return not (asked or any(self.reads.values()) or self.writes or self.unanswered)

    async def _watch(self) -> None:
        dut = self._dut
        while True:
            await ReadOnly()
            if dut.rst_n.value:
                self._see_reads()
                self._see_writes()
            else:
                self.reads.clear()
                self.writes.clear()
                self.unanswered.clear()
            await RisingEdge(dut.clk)

    def _see_reads(self) -> None:
        dut = self._dut
        if dut.rvalid.value and dut.M_AXI_RREADY.value:
            _take_word(self.reads[int(dut.rid.value)])
        if dut.M_AXI_ARVALID.value and dut.arready.value:
            ident = int(dut.M_AXI_ARID.value)
            bursts = self.reads[ident]
            bursts.append(_words(int(dut.M_AXI_ARADDR.value), int(dut.M_AXI_ARLEN.value)))
            self.most[ident] = max(self.most[ident], len(bursts))

    def _see_writes(self) -> None:
        dut = self._dut
        if dut.M_AXI_AWVALID.value and dut.awready.value:
            words = _words(int(dut.M_AXI_AWADDR.value), int(dut.M_AXI_AWLEN.value))
            self.writes.append(words)
            self.unanswered.append(words[0])
        if dut.M_AXI_WVALID.value and dut.wready.value:
            _take_word(self.writes)
        if dut.bvalid.value and dut.M_AXI_BREADY.value:
            self.unanswered.popleft()


def _words(address: int, length: int) -> range:
    """Return the addresses of a burst's words from the fields of its address channel."""
    return range(address, address + 16 * (length + 1), 16)


def _take_word(bursts: deque[range]) -> None:
    """Drop the first word of the first burst, and the burst with its last word."""
    bursts[0] = bursts[0][1:]
    if not bursts[0]:
        bursts.popleft()
