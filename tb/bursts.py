# SPDX-License-Identifier: Apache-2.0
"""How a transfer splits into bursts, and passive monitors of the bus: for protocol tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import cocotb
from cocotb.triggers import ReadOnly, RisingEdge
from cocotb_bus.monitors import BusMonitor

from tb.dut import Dut

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
    """What the bus owes: the read bursts of each identifier, and the words of writes.

    Attributes:
        reads: by identifier, the addresses of the words that are still to come, in order.
        most: by identifier, the most read bursts that were under way at once.
    """

    def __init__(self, dut: Dut) -> None:
        self._dut = dut
        self.most: Counter[int] = Counter()
        self.reads: dict[int, list[range]] = {}
        cocotb.start_soon(self._watch())

    async def _watch(self) -> None:
        dut = self._dut
        while True:
            await ReadOnly()
            if not dut.rst_n.value:
                self.reads.clear()
            elif dut.rvalid.value and dut.M_AXI_RREADY.value:
                self._beat(int(dut.rid.value))
            if dut.rst_n.value and dut.M_AXI_ARVALID.value and dut.arready.value:
                at, beats = int(dut.M_AXI_ARADDR.value), int(dut.M_AXI_ARLEN.value) + 1
                ident = int(dut.M_AXI_ARID.value)
                bursts = self.reads.setdefault(ident, [])
                bursts.append(range(at, at + 16 * beats, 16))
                self.most[ident] = max(self.most[ident], len(bursts))
            await RisingEdge(dut.clk)

    def _beat(self, ident: int) -> None:
        bursts = self.reads[ident]
        bursts[0] = bursts[0][1:]
        if not bursts[0]:
            bursts.pop(0)
