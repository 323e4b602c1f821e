# SPDX-License-Identifier: Apache-2.0
"""The whole chip as its host sees it: windows, interrupts, programs by register and queued."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import numpy as np
import pytest

from golden.command import CYCLE_ADDRESSES, FaultyMemory, ModelBus, NoInterruptError
from golden.coprocessor import ArrayMemory, Coprocessor, FaultCode
from golden.machine import ChipConfig
from npu.asm import assemble
from spec.isa import Engine, ErrorCode
from spec.isa.coprocessor import CopOp, encode
from spec.regs import (
    CHIP_BASE,
    CHIP_FIELDS,
    CMD_BASE,
    COP_BASE,
    SEQ_BASE,
    SEQ_FIELDS,
    ChipReg,
    CmdOp,
    CmdReg,
    CopReg,
    SeqReg,
)
from spec.regs.source import load_all
from tests.python.command.command_bench import (
    OWNER,
    RECORDS,
    RING,
    SOURCE,
    START,
    TARGET,
    WRITEBACK,
    launch,
    pack,
    scalar,
)
from tests.python.golden.golden_support import seeded

T = TypeVar("T")

UCODE = 0x6000
MEMORY_BYTES = 0x10000
COPY = """
DMA_LOAD dst=0x0 M=1 N=64 b=0
BARRIER ld
VEC op=add dst=0x100 src0=0x0 src1=0x0 M=1 N=64
BARRIER vec
DMA_STORE dst=0x100 M=1 N=64 b=1
END
"""
FAILING = "NOP\nDMA_LOAD dst=0x0 M=1 N=64 b=2\nEND\n"


def now(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end."""
    return asyncio.run(coroutine)


class WindowBus:
    """A bus with short names for its windows."""

    def __init__(self, **options: Any) -> None:  # noqa: ANN401 - handed through
        """Fill the memory with full-range bytes."""
        self.memory = np.random.default_rng(6).integers(0, 256, MEMORY_BYTES, np.uint8)
        faults = ArrayMemory(self.memory)
        self.cop = Coprocessor(faults)
        self.bus = ModelBus(self.memory, faults=faults, coprocessor=self.cop, **options)

    def read(self, address: int) -> int:
        """Return a register."""
        return now(self.bus.read32(address))

    def write(self, address: int, value: int) -> None:
        """Write a register."""
        now(self.bus.write32(address, value))

    def seq(self, register: SeqReg, value: int) -> None:
        """Write a register of the sequencer's window."""
        self.write(SEQ_BASE + register, value)

    def status(self) -> dict[str, int]:
        """Return the fields of STATUS."""
        value = self.read(SEQ_BASE + SeqReg.STATUS)
        fields = {k.removeprefix("STATUS_"): f for k, f in SEQ_FIELDS.items() if "STATUS_" in k}
        return {name: field.get(value) for name, field in fields.items()}

    def put_program(self, text: str, at: int = UCODE) -> int:
        """Put a program into memory; return its length in words."""
        image = assemble(text).image()
        self.bus.write_memory(at, image)
        return len(image) // 16

    def ring(self, *descriptors: bytes) -> int:
        """Run descriptors from entry 0 on; return DESC_STATUS[7:0]."""
        data = b"".join(descriptors)
        self.bus.write_memory(RING, data)
        values = {
            CmdReg.DESC_BASE: RING,
            CmdReg.DESC_TAIL: 0,
            CmdReg.DESC_HEAD: len(data) // 16,
            CmdReg.CMD_PARAM: 1,
            CmdReg.CTRL_STATUS: START,
        }
        for register, value in values.items():
            self.write(CMD_BASE + register, value)
        return self.read(CMD_BASE + CmdReg.DESC_STATUS) & 0xFF


def _doubled(chip: WindowBus, source: int, target: int) -> bool:
    """Whether the target holds twice the source, with the saturation of VEC ADD."""
    x = chip.memory[source : source + 64].view(np.int8).astype(int)
    y = chip.memory[target : target + 64].view(np.int8).astype(int)
    return bool(np.array_equal(y, np.clip(2 * x, -128, 127)))


def test_every_register_after_reset() -> None:
    """All windows read their documented reset values, and nothing beside."""
    chip = WindowBus(config=ChipConfig(array_dim=8), scratch_bytes=128)
    identity = {
        COP_BASE + CopReg.CONFIG: 3 << 8 | 1 << 4 | 1,
        CHIP_BASE + ChipReg.VERSION: 1 << 16 | 2 << 8 | 2,
        CHIP_BASE + ChipReg.CONFIG0: 256 << 16 | 8,
        CHIP_BASE + ChipReg.CONFIG1: 512 << 16 | 128,
        CHIP_BASE + ChipReg.CONFIG2: 8192 << 16 | 1 << 8 | 16,
        CMD_BASE + CmdReg.DESC_STATUS: 1,
        CMD_BASE + CmdReg.CMD_CONFIG: 128,
    }
    documented = {}
    for window in load_all():
        for register in window.registers:
            fields = [it for it in register.fields if "write 1 " not in it.access]
            fields += [it for it in register.fields if it.access == "read, write 1 to set"]
            address = window.base + register.offset
            documented[address] = sum((it.reset or 0) << it.lsb for it in fields)
    for address in range(0, 0x400, 4):
        expected = identity.get(address, documented.get(address, 0))
        assert chip.read(address) == expected, f"{address:#05x}"


def test_coprocessor_behind_the_bus() -> None:
    """Its window, its interrupt, the regions that it obeys, and the soft reset of all."""
    chip = WindowBus()
    chip.cop.execute(encode(CopOp.MACC), 7, 6)
    assert chip.read(COP_BASE + CopReg.ACC_LO) == 42
    chip.write(CHIP_BASE + ChipReg.REGION0_BASE, 0x1000)
    assert not chip.read(CHIP_BASE + ChipReg.IRQ_STATUS)
    chip.cop.execute(encode(CopOp.VRSQRT), 0xFFE)
    assert chip.cop.fault is not None and chip.cop.fault.code == FaultCode.DENIED
    assert chip.read(CHIP_BASE + ChipReg.IRQ_STATUS) == 4
    with pytest.raises(NoInterruptError):
        now(chip.bus.wait_interrupt())
    chip.write(CHIP_BASE + ChipReg.IRQ_ENABLE, 4)
    now(chip.bus.wait_interrupt())
    chip.write(COP_BASE + CopReg.CTRL, 3)
    assert not chip.read(CHIP_BASE + ChipReg.IRQ_STATUS)
    chip.seq(SeqReg.CTRL, 2)
    assert not chip.read(COP_BASE + CopReg.ACC_LO)
    without = ModelBus(chip.memory)
    now(without.write32(COP_BASE + CopReg.LIMIT, 5))
    assert not now(without.read32(COP_BASE + CopReg.LIMIT))


def test_storage() -> None:
    """Registers of sequencer and chip keep the bits that they have."""
    chip, rng = WindowBus(), seeded(600)
    for window in load_all():
        if window.base == CMD_BASE:
            continue
        for register in window.registers:
            if any(field.access != "read, write" for field in register.fields):
                continue
            mask = sum(((1 << it.width) - 1) << it.lsb for it in register.fields)
            value = int(rng.integers(1 << 32))
            chip.write(window.base + register.offset, value)
            assert chip.read(window.base + register.offset) == value & mask, register.name


def test_program_by_register() -> None:
    """START runs a program; status, interrupt and last registers tell."""
    chip = WindowBus()
    length = chip.put_program(COPY)
    with pytest.raises(NoInterruptError, match="IRQ_STATUS is 0x0, IRQ_ENABLE is 0x2"):
        now(chip.bus.wait_interrupt())
    for register, value in {
        SeqReg.UCODE_BASE: UCODE,
        SeqReg.UCODE_LEN: length,
        SeqReg.DDR_BASE_ACT: SOURCE,
        SeqReg.DDR_BASE_OUT: TARGET,
        SeqReg.POS: 77,
        SeqReg.TOKEN: 5,
        SeqReg.CTRL: START,
    }.items():
        chip.seq(register, value)
    assert _doubled(chip, SOURCE, TARGET)
    assert chip.status() == {"DONE": 1, "BUSY": 0, "ERROR": 0, "ERROR_CODE": 0, "ERROR_ENGINE": 0}
    assert chip.read(SEQ_BASE + SeqReg.LAST_POS) == 77
    assert chip.read(SEQ_BASE + SeqReg.LAST_TOKEN) == 5
    assert chip.read(CHIP_BASE + ChipReg.IRQ_STATUS) == 1
    with pytest.raises(NoInterruptError):
        now(chip.bus.wait_interrupt())
    chip.write(CHIP_BASE + ChipReg.IRQ_ENABLE, 1)
    now(chip.bus.wait_interrupt())
    chip.write(CHIP_BASE + ChipReg.IRQ_STATUS, 2)
    assert chip.read(CHIP_BASE + ChipReg.IRQ_STATUS) == 1
    chip.write(CHIP_BASE + ChipReg.IRQ_STATUS, 1)
    assert chip.read(CHIP_BASE + ChipReg.IRQ_STATUS) == 0


def test_failing_program_by_register() -> None:
    """The report stays until STATUS.ERROR is cleared; a soft reset leaves registers alone."""
    chip = WindowBus()
    chip.seq(SeqReg.UCODE_LEN, chip.put_program(FAILING))
    chip.seq(SeqReg.UCODE_BASE, UCODE)
    chip.seq(SeqReg.BASE2, MEMORY_BYTES)
    chip.seq(SeqReg.CTRL, START)
    failed = {
        "DONE": 1,
        "BUSY": 0,
        "ERROR": 1,
        "ERROR_CODE": ErrorCode.READ_ERROR,
        "ERROR_ENGINE": Engine.LD,
    }
    assert chip.status() == failed
    chip.seq(SeqReg.ERROR_INSTR, 99)
    assert chip.read(SEQ_BASE + SeqReg.ERROR_INSTR) == 1
    assert chip.read(SEQ_BASE + SeqReg.ERROR_ADDR) == MEMORY_BYTES
    chip.seq(SeqReg.CTRL, 2)
    chip.seq(SeqReg.STATUS, 0xFFFF_FFFB)
    assert chip.status() == failed
    chip.seq(SeqReg.STATUS, 4)
    assert chip.status() == {"DONE": 1, "BUSY": 0, "ERROR": 0, "ERROR_CODE": 0, "ERROR_ENGINE": 0}
    assert chip.read(SEQ_BASE + SeqReg.ERROR_ADDR) == 0


def test_queue_of_programs() -> None:
    """Two programs and an operation between them, with the descriptors' own registers."""
    chip = WindowBus()
    length = chip.put_program(COPY)
    chip.seq(SeqReg.POS, 1234)
    middle = TARGET + 0x100
    chip.write(CMD_BASE + CmdReg.CQ_BASE, RECORDS)
    chip.write(CMD_BASE + CmdReg.CQ_CTRL, 1 | 3 << 8)
    status = chip.ring(
        launch(UCODE, length, pos=3, token=4, bases=(SOURCE, middle), tag=1),
        scalar(CmdOp.ADD, 20, 22),
        launch(UCODE, length, pos=5, token=6, bases=(middle, TARGET), tag=2),
    )
    assert status == 0x02
    assert _doubled(chip, SOURCE, middle) and _doubled(chip, middle, TARGET)
    assert chip.memory[SOURCE : SOURCE + 64].any()
    records = np.frombuffer(chip.bus.read_memory(RECORDS, 48), "<u4").reshape(3, 4).tolist()
    assert records == [[0x1001_8002, 0, 0, 0], [0x8202, 42, 0, 0], [0x1002_8302, 0, 0, 0]]
    assert chip.read(SEQ_BASE + SeqReg.LAST_POS) == 5
    assert chip.read(SEQ_BASE + SeqReg.LAST_TOKEN) == 6
    assert chip.read(SEQ_BASE + SeqReg.POS) == 1234
    assert chip.read(CHIP_BASE + ChipReg.IRQ_STATUS) == 3
    assert chip.read(CMD_BASE + CmdReg.PERF_OPS) == 3
    now(chip.bus.wait_interrupt())


def test_failing_program_in_the_queue() -> None:
    """0x06, the sequencer's STATUS and the record name the error, and the next entry waits."""
    chip = WindowBus()
    length = chip.put_program(FAILING)
    chip.seq(SeqReg.BASE2, MEMORY_BYTES)
    chip.write(CMD_BASE + CmdReg.CQ_BASE, RECORDS)
    chip.write(CMD_BASE + CmdReg.CQ_CTRL, 1)
    assert chip.ring(launch(UCODE, length, tag=8), scalar(CmdOp.ADD, 1, 1)) == 0x06
    bits = ErrorCode.READ_ERROR << 8 | Engine.LD << 12
    assert chip.read(SEQ_BASE + SeqReg.STATUS) == bits | 5
    record = np.frombuffer(chip.bus.read_memory(RECORDS, 16), "<u4").tolist()
    assert record == [0x1008_8006, 0, bits, 0]
    assert chip.read(CMD_BASE + CmdReg.DESC_TAIL) == 0
    assert chip.read(CMD_BASE + CmdReg.PERF_OPS) == 1


def test_regions_protect_what_the_port_does() -> None:
    """The chip's regions are whole pages; a locked one stays."""
    chip = WindowBus()
    region = CHIP_BASE + ChipReg.REGION0_BASE
    chip.write(region, 0x0000)
    chip.write(region + 4, 0x1FFF)
    square = pack(OWNER | WRITEBACK | CmdOp.VRELU_S8, 0, 0x1FFC, 0)
    outside = pack(OWNER | WRITEBACK | CmdOp.VRELU_S8, 0, 0x2000, 0)
    chip.write(CMD_BASE + CmdReg.GEMM_CFG, 4)
    assert chip.ring(square, outside) == 0x94
    assert chip.read(CMD_BASE + CmdReg.DESC_TAIL) == 1
    chip.write(region + 0x10, 0x2000)
    chip.write(region + 0x14, 0x2000)
    chip.write(region + 0x18, CHIP_FIELDS["REGION1_CTRL_WRITE"].mask | 4)
    assert chip.ring(square, outside) == 0x02
    assert chip.bus.read_memory(0x1FFC, 8) == bytes(8)
    chip.write(region + 0x18, 0)
    assert chip.read(region + 0x18) == 6
    chip.write(region + 8, 0)
    assert chip.ring(square) == 0x14


def test_soft_reset_reaches_the_port() -> None:
    """CTRL.SOFT_RESET stops a ring that waits for its completion ring."""
    chip = WindowBus()
    chip.write(CMD_BASE + CmdReg.CQ_BASE, RECORDS)
    chip.write(CMD_BASE + CmdReg.CQ_CTRL, 1)
    chip.ring(scalar(CmdOp.ADD, 1, 1), scalar(CmdOp.ADD, 1, 2))
    assert chip.read(CMD_BASE + CmdReg.CTRL_STATUS) == 1
    with pytest.raises(NoInterruptError, match="waits for room"):
        now(chip.bus.wait_interrupt())
    chip.seq(SeqReg.CTRL, 2)
    assert chip.read(CMD_BASE + CmdReg.CTRL_STATUS) == 0
    assert chip.read(CMD_BASE + CmdReg.DESC_TAIL) == 1


def test_places_for_faults() -> None:
    """The port sees the faults that are handed over, programs the same memory."""
    memory = np.zeros(MEMORY_BYTES, np.uint8)
    faults = FaultyMemory(memory, read_errors=[(RING, RING)])
    bus = ModelBus(memory, faults=faults)
    assert bus.faults is faults
    now(bus.write32(CMD_BASE + CmdReg.DESC_BASE, RING))
    now(bus.write32(CMD_BASE + CmdReg.DESC_HEAD, 1))
    now(bus.write32(CMD_BASE + CmdReg.CMD_PARAM, 1))
    now(bus.write32(CMD_BASE + CmdReg.CTRL_STATUS, START))
    assert now(bus.read32(CMD_BASE + CmdReg.DESC_STATUS)) & 0xFF == 0x14


def test_bad_arguments() -> None:
    """Errors name what was given and what is allowed."""
    chip = WindowBus()
    with pytest.raises(ValueError, match=r"given address 0x2, allowed multiples of 4 < 0x400"):
        chip.read(2)
    with pytest.raises(ValueError, match=r"given address 0x400,"):
        chip.write(0x400, 0)
    with pytest.raises(ValueError, match=r"given -0x1, allowed 0 to 2\^32-1"):
        chip.write(SEQ_BASE + SeqReg.POS, -1)
    with pytest.raises(ValueError, match=r"given 2 bytes at 0xffff, allowed up to 0x10000"):
        chip.bus.write_memory(0xFFFF, b"ab")


def test_what_depends_on_cycles() -> None:
    """The addresses that a comparison with hardware leaves out are the counters of cycles."""
    names = {
        f"{window.base:#x}.{register.name}"
        for window in load_all()
        for register in window.registers
        if window.base + register.offset in CYCLE_ADDRESSES
    }
    assert len(names) == len(CYCLE_ADDRESSES) == 3 + 20
    assert {"0x0.PERF_CYCLES", "0x300.CYCLES_LO", "0x300.STALL5"} <= names
