# SPDX-License-Identifier: Apache-2.0
"""The second back end of the memory: the same AXI4 slave, beat by beat in Python.

It obeys the same `Knobs` and works on the same bytes as the SystemVerilog slave (`tb/hdl/
axi_memory.sv`), so a test cannot tell them apart but by speed. An independent implementation of
the protocol keeps the fast one honest; it serves the protocol tests only.
"""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass

import cocotb
from cocotb.triggers import FallingEdge, ReadOnly, Timer

from tb.bench.dut import Dut
from tb.bench.knobs import Knobs
from tb.bench.memory import Memory

BEAT = 16
OKAY, SLVERR, DECERR = 0, 2, 3


@dataclass
class _Read:
    """A read burst that waits: identifier, next address, beats left, cycle of the first beat."""

    ident: int
    address: int
    beats: int
    ready_at: int


@dataclass
class _Reply:
    """A write response that waits, with the data that become visible together with it.

    `address` is that of the last beat.
    """

    ident: int
    response: int
    ready_at: int
    address: int
    data: list[tuple[int, int, int]]


def _meets(address: int, first: int, last: int) -> bool:
    """Whether one of the 16 bytes at `address` lies in the range."""
    return first <= address + BEAT - 1 and address <= last


class PythonMemory:
    """Answers on the `M_AXI_*` signals of `tb_top`, in place of the slave there."""

    def __init__(self, dut: Dut, memory: Memory, knobs: Knobs, seed: int) -> None:
        self.knobs = knobs
        self._dut = dut
        self._memory = memory
        self._random = random.Random(seed)
        self._reads: list[_Read] = []
        self._addresses: deque[tuple[int, int]] = deque()
        self._write: _Reply | None = None
        self._replies: deque[_Reply] = deque()
        self._cycle = 0

    def start(self) -> None:
        """Take over from the slave in `tb_top`; call it before the reset is released."""
        self._dut.knob_python_memory.value = 1
        cocotb.start_soon(self._serve())

    def _happens(self, percent: int) -> bool:
        return percent > 0 and self._random.random() * 100 < percent

    def _delay(self, latency: int, spread: int) -> int:
        return latency + self._random.randint(0, spread)

    def _response(self, address: int, inject: int) -> int:
        if address + BEAT > self._memory.data.size:
            return DECERR
        knobs = self.knobs
        if inject and _meets(address, knobs.error_first, knobs.error_last):
            return SLVERR
        return OKAY

    def _withholds(self, silent: int, address: int) -> bool:
        knobs = self.knobs
        return bool(silent) and _meets(address, knobs.silent_first, knobs.silent_last)

    def _is_deaf(self, silent: int) -> bool:
        """Whether the memory accepts nothing on the channels whose knob is `silent`."""
        knobs = self.knobs
        return bool(silent) and (knobs.silent_first, knobs.silent_last) == (0, 0xFFFF_FFFF)

    async def _serve(self) -> None:
        dut = self._dut
        while True:
            await FallingEdge(dut.clk)
            await ReadOnly()
            running = bool(dut.rst_n.value)
            read_taken = bool(dut.M_AXI_ARVALID.value) and bool(dut.M_AXI_ARREADY.value)
            beat_taken = bool(dut.M_AXI_RREADY.value) or not dut.M_AXI_RVALID.value
            write_taken = bool(dut.M_AXI_AWVALID.value) and bool(dut.M_AXI_AWREADY.value)
            data_taken = bool(dut.M_AXI_WVALID.value) and bool(dut.M_AXI_WREADY.value)
            reply_taken = bool(dut.M_AXI_BREADY.value) or not dut.M_AXI_BVALID.value
            if running and read_taken:
                self._take_read()
            if running and write_taken:
                self._addresses.append((int(dut.M_AXI_AWID.value), int(dut.M_AXI_AWADDR.value)))
            if running and data_taken:
                self._take_data()
            await Timer(1, "ns")  # what is set here reaches the chip at the rising edge
            self._cycle += 1
            if not running:
                self._forget()
                continue
            if beat_taken:
                self._offer_beat()
            if reply_taken:
                self._offer_reply()
            self._offer_ready()

    def _forget(self) -> None:
        self._reads.clear()
        self._addresses.clear()
        self._replies.clear()
        self._write = None
        for name in ("ARREADY", "RVALID", "AWREADY", "WREADY", "BVALID"):
            getattr(self._dut, f"M_AXI_{name}").value = 0

    def _take_read(self) -> None:
        dut = self._dut
        self._reads.append(
            _Read(
                ident=int(dut.M_AXI_ARID.value),
                address=int(dut.M_AXI_ARADDR.value),
                beats=int(dut.M_AXI_ARLEN.value) + 1,
                ready_at=self._cycle + self._delay(self.knobs.read_latency, self.knobs.read_spread),
            )
        )

    def _take_data(self) -> None:
        dut = self._dut
        if self._write is None:
            ident, _ = self._addresses[0]
            self._write = _Reply(ident, OKAY, 0, 0, [])
        write = self._write
        ident, address = self._addresses.popleft()
        response = self._response(address, self.knobs.write_error)
        if response == OKAY:
            beat = (address, int(dut.M_AXI_WDATA.value), int(dut.M_AXI_WSTRB.value))
            write.data.append(beat)
        write.response = write.response or response
        write.address = address
        if dut.M_AXI_WLAST.value:
            write.ready_at = self._cycle + self._delay(
                self.knobs.write_latency, self.knobs.write_spread
            )
            self._replies.append(write)
            self._write = None
        else:
            self._addresses.appendleft((ident, address + BEAT))

    def _choose(self) -> _Read:
        """Return the burst that gets the next beat: the oldest of its identifier."""
        if not self.knobs.interleave:
            return self._reads[0]
        picked = self._random.choice(self._reads).ident
        return next(burst for burst in self._reads if burst.ident == picked)

    def _offer_beat(self) -> None:
        dut = self._dut
        dut.M_AXI_RVALID.value = 0
        if not self._reads or self._happens(self.knobs.read_gap):
            return
        burst = self._choose()
        if burst.ready_at > self._cycle or self._withholds(self.knobs.read_silent, burst.address):
            return
        response = self._response(burst.address, self.knobs.read_error)
        data = self._random.getrandbits(128)
        if response == OKAY:
            data = int.from_bytes(self._memory.read(burst.address, BEAT), "little")
        burst.address += BEAT
        burst.beats -= 1
        if not burst.beats:
            self._reads.remove(burst)
        dut.M_AXI_RVALID.value = 1
        dut.M_AXI_RID.value = burst.ident
        dut.M_AXI_RDATA.value = data
        dut.M_AXI_RRESP.value = response
        dut.M_AXI_RLAST.value = int(not burst.beats)

    def _offer_reply(self) -> None:
        dut = self._dut
        dut.M_AXI_BVALID.value = 0
        if not self._replies or self._replies[0].ready_at > self._cycle:
            return
        withheld = self._withholds(self.knobs.write_silent, self._replies[0].address)
        if withheld or self._happens(self.knobs.write_gap):
            return
        reply = self._replies.popleft()
        for address, data, strobe in reply.data:
            view = self._memory.view(address, BEAT)
            for lane in range(BEAT):
                if strobe >> lane & 1:
                    view[lane] = data >> 8 * lane & 0xFF
        dut.M_AXI_BVALID.value = 1
        dut.M_AXI_BID.value = reply.ident
        dut.M_AXI_BRESP.value = reply.response

    def _offer_ready(self) -> None:
        dut, knobs = self._dut, self.knobs
        no_reads, no_writes = self._is_deaf(knobs.read_silent), self._is_deaf(knobs.write_silent)
        dut.M_AXI_ARREADY.value = int(not (no_reads or self._happens(knobs.ar_stall)))
        dut.M_AXI_AWREADY.value = int(not (no_writes or self._happens(knobs.aw_stall)))
        ready = bool(self._addresses) and not no_writes
        dut.M_AXI_WREADY.value = int(ready and not self._happens(knobs.w_stall))
