# SPDX-License-Identifier: Apache-2.0
"""The register space, walked from the register description: every address of the port.

The window of the command port has tests of its own (`test_cmd_registers`).
"""

from __future__ import annotations

from dataclasses import replace

import cocotb

from npu.driver.bus import RegisterAccess
from npu.driver.errors import BusError
from spec.isa import ISA_VERSION, LINE
from spec.regs.generated import CHIP_BASE, CHIP_FIELDS, CHIP_ID_VALUE, SEQ_BASE, ChipReg, SeqReg
from spec.regs.source import Register, Window, load_all
from tb.bench.accesses import PortAccess
from tb.bench.dut import Dut
from tb.bench.environment import Bench, reset
from tb.bench.knobs import Knobs
from tb.command.reset_values import assert_reset_values

TAGS = ("registers",)

ADDRESS_SPACE = 0x1000
STARTS_SOMETHING = {("seq", "CTRL")}
LOCK = CHIP_FIELDS["REGION0_CTRL_LOCK"].mask


def _registers() -> list[tuple[Window, Register]]:
    """Return the registers of the windows of sequencer and chip."""
    windows = [window for window in load_all() if window.key != "cmd"]
    return [(window, register) for window in windows for register in window.registers]


def _mask(register: Register, *accesses: str) -> int:
    """Return the bits of the fields with one of `accesses`; all fields if none is given."""
    return sum(
        ((1 << field.width) - 1) << field.lsb
        for field in register.fields
        if not accesses or field.access in accesses
    )


@cocotb.test
async def test_registers_reset_values(dut: Dut) -> None:
    """After reset every register holds its documented value, and reserved bits read 0."""
    bench = await Bench.start(dut)
    await assert_reset_values(bench.bus, "seq", "chip")


@cocotb.test
async def test_registers_identification(dut: Dut) -> None:
    """The chip names itself, its versions and its sizes."""
    bench = await Bench.start(dut)
    chip = bench.chip
    assert await chip.read_chip(ChipReg.ID) == CHIP_ID_VALUE
    assert CHIP_ID_VALUE.to_bytes(4, "little") == b"TSRA"
    version = await chip.read_chip(ChipReg.VERSION)
    assert CHIP_FIELDS["VERSION_ISA"].get(version) == ISA_VERSION
    assert CHIP_FIELDS["VERSION_CHIP_MINOR"].get(version) == 1
    assert CHIP_FIELDS["VERSION_CHIP_MAJOR"].get(version) == 0
    assert bench.config.array_dim == int(cocotb.plusargs["array_dim"])
    assert bench.config.sram_bytes == 256 * 1024
    assert bench.config.acc_rows == 128
    assert bench.config.norm_max == 8192
    assert bench.config.narrow_formats
    fifo = CHIP_FIELDS["CONFIG1_FIFO_LINES"].get(await chip.read_chip(ChipReg.CONFIG1))
    assert fifo * LINE == 32 * 1024
    bus = CHIP_FIELDS["CONFIG2_AXI_BYTES"].get(await chip.read_chip(ChipReg.CONFIG2))
    assert bus == 16


class _Mirror:
    """What every register must read, from the access kinds of the register description.

    Attributes:
        values: by address of the register.
    """

    def __init__(self, values: dict[int, int]) -> None:
        self.values = values
        self._lock_of: dict[str, tuple[int, int]] = {}  # group of registers: address, mask
        for window, register in _registers():
            for field in register.fields:
                if field.name == "LOCK":
                    group, _, _ = register.name.partition("_")
                    self._lock_of[group] = (window.base + register.offset, 1 << field.lsb)

    def _is_locked(self, register: Register) -> bool:
        group, _, _ = register.name.partition("_")
        if group not in self._lock_of:
            return False
        address, mask = self._lock_of[group]
        return bool(self.values[address] & mask)

    def write(self, address: int, register: Register, value: int, strobe: int) -> None:
        """Note a write of the bytes in `strobe`; what it locks is locked from the next one on."""
        lanes = sum(0xFF << 8 * byte for byte in range(4) if strobe >> byte & 1)
        writable = 0 if self._is_locked(register) else _mask(register, "read, write") & lanes
        settable = _mask(register, "read, write 1 to set") & lanes
        self.values[address] = self.values[address] & ~writable | value & (writable | settable)


@cocotb.test
async def test_registers_access_kinds(dut: Dut) -> None:
    """Writes change exactly the writable bits, byte by byte; each register is its own."""
    bench = await Bench.start(dut)
    bus = bench.bus
    mirror = _Mirror(
        {w.base + r.offset: await bus.read32(w.base + r.offset) for w, r in _registers()}
    )
    for _ in range(4):
        for window, register in _registers():
            if (window.key, register.name) in STARTS_SOMETHING:
                continue
            address = window.base + register.offset
            value = int(bench.random.integers(1 << 32))
            strobe = int(bench.random.integers(16))
            mirror.write(address, register, value, strobe)
            await bus.write32(address, value, strobe)
        for address, value in mirror.values.items():
            actual = await bus.read32(address)
            assert actual == value, f"{address:#05x}: {actual:#010x}, expected {value:#010x}"


@cocotb.test
async def test_registers_lock(dut: Dut) -> None:
    """A locked region ignores writes, its neighbours do not; a hard reset unlocks it."""
    bench = await Bench.start(dut)
    bus = bench.bus
    regions = [
        [CHIP_BASE + ChipReg[f"REGION{index}_{name}"] for name in ("BASE", "LIMIT", "CTRL")]
        for index in range(8)
    ]
    reset_values = [[await bus.read32(address) for address in region] for region in regions]
    locked: dict[int, int] = {}
    for region in regions:
        values = [int(page) << 12 for page in bench.random.integers(1 << 20, size=2)]
        values.append(int(bench.random.integers(4)))
        for address, value in zip(region, values, strict=True):
            await bus.write32(address, value)
            assert await bus.read32(address) == value, f"{address:#05x} before its lock"
        await bus.write32(region[2], values[2] | LOCK)
        locked.update(zip(region, [*values[:2], values[2] | LOCK], strict=True))
        for address, value in locked.items():
            for attempt in (0, 0xFFFF_FFFF, value ^ 0xFFFF_FFFF):
                await bus.write32(address, attempt)
            assert await bus.read32(address) == value, f"{address:#05x} behind its lock"
    await reset(dut)
    for region, values in zip(regions, reset_values, strict=True):
        for address, value in zip(region, values, strict=True):
            assert await bus.read32(address) == value, f"{address:#05x} after the reset"
        await bus.write32(region[0], 0x1234_5000)
        assert await bus.read32(region[0]) == 0x1234_5000, "still locked after the reset"


@cocotb.test
async def test_registers_unmapped(dut: Dut) -> None:
    """Unmapped addresses read 0 and ignore writes; unaligned accesses are answered SLVERR."""
    bench = await Bench.start(dut)
    bus, chip = bench.bus, bench.chip
    mapped = {window.base + one.offset for window in load_all() for one in window.registers}
    await chip.write_seq(SeqReg.POS, 0x1234_5678)
    for address in range(0, ADDRESS_SPACE, 4):
        if address in mapped:
            continue
        await bus.write32(address, 0xFFFF_FFFF)
        value = await bus.read32(address)
        assert value == 0, f"unmapped {address:#05x} reads {value:#010x}"
    for offset in (1, 2, 3):
        for access in (
            bus.read32(SEQ_BASE + SeqReg.POS + offset),
            bus.write32(SEQ_BASE + SeqReg.POS + offset, 0),
        ):
            try:
                await access
            except BusError as error:
                assert "SLVERR" in str(error), str(error)
            else:
                raise AssertionError(f"unaligned access at offset {offset} was answered OKAY")
    assert await chip.read_seq(SeqReg.POS) == 0x1234_5678


@cocotb.test
async def test_registers_side_by_side(dut: Dut) -> None:
    """A read and a write at once are both answered and do their own, however slow the host is."""
    bench = await Bench.start(dut)
    random = bench.random
    values = dict.fromkeys((SEQ_BASE + SeqReg[f"BASE{index}"] for index in range(2, 8)), 0)
    await bench.bus.access([RegisterAccess(address, 0) for address in values])
    for stall in (0, 30, 80):
        await bench.set_knobs(Knobs(host_stall=stall))
        several: list[RegisterAccess] = []
        allowed: list[tuple[int, int]] = []
        for _ in range(100):
            written, was_read = random.choice(list(values), 2).tolist()
            write, read = PortAccess(written, int(random.integers(1 << 32))), PortAccess(was_read)
            before = values[was_read]
            values[written] = write.value or 0
            allowed.append((before, values[was_read]))
            first, second = (write, read) if random.integers(2) else (read, write)
            several += [replace(first, with_next=True), second]
        answers = zip(several, await bench.bus.access(several), strict=True)
        found = [value for one, value in answers if one.value is None]
        for value, both in zip(found, allowed, strict=True):
            assert value in both, f"read {value:#x}, allowed {both[0]:#x} and {both[1]:#x}"
        assert await bench.bus.access([*map(RegisterAccess, values)]) == list(values.values())


@cocotb.test
async def test_registers_reset_clears(dut: Dut) -> None:
    """A hard reset brings back the documented values."""
    bench = await Bench.start(dut)
    for window, register in _registers():
        if (window.key, register.name) not in STARTS_SOMETHING:
            await bench.bus.write32(window.base + register.offset, 0xFFFF_FFFF)
    await reset(dut)
    await assert_reset_values(bench.bus, "seq", "chip")
