# SPDX-License-Identifier: Apache-2.0
"""Passive monitors of the address channels, on cocotb-bus's monitor base: for protocol tests."""

from __future__ import annotations

from dataclasses import dataclass

from cocotb.triggers import ReadOnly, RisingEdge
from cocotb_bus.monitors import BusMonitor

from tb.dut import Dut


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
