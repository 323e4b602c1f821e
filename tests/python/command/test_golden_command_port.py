# SPDX-License-Identifier: Apache-2.0
"""The command port's registers: access kinds, start, clear, errors, counters by hand."""

from __future__ import annotations

import numpy as np
import pytest

from golden.command import CYCLE_REGISTERS, FaultyMemory, PortModel
from spec.regs import CMD_BASE, CmdOp, CmdReg
from spec.regs.source import load_all
from tests.python.command.command_bench import (
    CLEAR,
    OWNER,
    START,
    WRITEBACK,
    CommandBench,
    pack,
    scalar,
    tile,
)
from tests.python.golden.golden_support import seeded

WRITE_ONLY_EFFECT = ("CTRL_STATUS", "PERF_THERMAL_THROTTLE", "PERF_ERRORS", "CMD_IRQ")
FULL = tile(2, 3, 7, 0, 14, 36, 7, 3, 12)


def _documented() -> list[tuple[str, int, int, int, int]]:
    """Return (name, offset, writable bits, reset value, bits of wide fields) of every register."""
    window = next(window for window in load_all() if window.base == CMD_BASE)
    found = []
    for register in window.registers:
        writable = reset = wide = 0
        for field in register.fields:
            mask = ((1 << field.width) - 1) << field.lsb
            writable |= mask if field.access == "read, write" else 0
            reset |= (field.reset or 0) << field.lsb if "write 1" not in field.access else 0
            wide |= mask if field.name.endswith("_WIDE") else 0
        found.append((register.name, register.offset, writable, reset, wide))
    return found


@pytest.mark.parametrize("size", [64, 128, 256])
def test_access(size: int) -> None:
    """Reset values, writable bits and byte strobes are as the register description says."""
    rng = seeded(300 + size)
    port = PortModel(FaultyMemory(np.zeros(64, np.uint8)), scratch_bytes=size)
    expected = {}
    for name, offset, _, reset, _ in _documented():
        expected[offset] = {"CMD_CONFIG": size, "DESC_STATUS": 1}.get(name, reset)
    pages = size // 64 - 1
    for _ in range(8):
        for name, offset, writable, _, wide in _documented():
            assert port.read(offset) == expected[offset], name
            if name in WRITE_ONLY_EFFECT or name.startswith("SCRATCH"):
                continue
            value, strobe = int(rng.integers(1 << 32)), int(rng.integers(16))
            port.write(offset, value, strobe)
            bits = writable & ~(wide if size == 64 else 0)
            bits &= sum(0xFF << 8 * byte for byte in range(4) if strobe >> byte & 1)
            expected[offset] = expected[offset] & ~bits | value & bits
            pending = expected[CmdReg.DESC_HEAD] - expected[CmdReg.DESC_TAIL]
            expected[CmdReg.DESC_STATUS] = 1 | pending % 8 << 19
    port.write(CmdReg.SCRATCH_PAGE, 0xFFFF_FFFF)
    assert port.read(CmdReg.SCRATCH_PAGE) == pages
    for offset in (0x34, 0x38, 0x3C, *range(0xE0, 0x100, 4)):
        port.write(offset, 0xFFFF_FFFF)
        assert port.read(offset) == 0


def test_scratchpad_pages() -> None:
    """Every page keeps its own bytes; strobes choose among them."""
    bench = CommandBench(scratch_bytes=256)
    for page in range(4):
        bench.write(CmdReg.SCRATCH_PAGE, page)
        bench.scratch(bytes(range(64 * page, 64 * page + 64)))
    bench.write(CmdReg.SCRATCH2, 0xAABBCCDD, 0b0101)
    for page in range(4):
        bench.write(CmdReg.SCRATCH_PAGE, page)
        expected = bytearray(range(64 * page, 64 * page + 64))
        if page == 3:
            expected[8], expected[10] = 0xDD, 0xBB
        assert bench.scratch() == expected


def test_bad_arguments() -> None:
    """Errors name what was given and what is allowed."""
    memory = FaultyMemory(np.zeros(64, np.uint8))
    port = PortModel(memory)
    with pytest.raises(ValueError, match=r"offset 0x2,"):
        port.read(2)
    with pytest.raises(ValueError, match=r"offset 0x100,"):
        port.write(0x100, 0)
    with pytest.raises(ValueError, match="given 0x100000000"):
        port.write(0, 1 << 32)
    with pytest.raises(ValueError, match=r"scratch_bytes: given 96, allowed \(64, 128, 256\)"):
        PortModel(memory, scratch_bytes=96)
    with pytest.raises(ValueError, match=r"FaultyMemory.data: given uint8\(63,\)"):
        FaultyMemory(np.zeros(63, np.uint8))


def test_start_and_clear() -> None:
    """DONE raises the interrupt until it is cleared; both bits at once clear, then start."""
    bench = CommandBench()
    assert not bench.port.irq
    assert bench.operate(CmdOp.ADD, 0xFFFF_FFFF, 3) == (2, 0)
    assert bench.read(CmdReg.CTRL_STATUS) == 2 and bench.port.irq
    bench.write(CmdReg.CTRL_STATUS, CLEAR)
    assert bench.read(CmdReg.CTRL_STATUS) == 0 and not bench.port.irq
    assert bench.read(CmdReg.RESULT) == 2
    bench.write(CmdReg.CTRL_STATUS, 0xFFFF_FF00 | START, 0b1110)
    assert bench.read(CmdReg.CTRL_STATUS) == 0
    bench.write(CmdReg.OPCODE, CmdOp.SUB)
    bench.write(CmdReg.CTRL_STATUS, START | CLEAR)
    assert bench.read(CmdReg.RESULT) == 0xFFFF_FFFC and bench.port.irq
    assert bench.counters() == {"OPS": 2}


def test_clear_leaves_what_it_should() -> None:
    """CLEAR clears the ring's status and counters, not PERF_*; PERF_ERRORS does those."""
    bench = CommandBench()
    assert bench.read(CmdReg.DESC_STATUS) == 1
    assert bench.run(scalar(CmdOp.ADD, 1, 2), pack(0, 0, 0, 0)) == 0x44
    assert bench.read(CmdReg.DESC_STATUS) == 0x44 | 1 << 9 | 1 << 19
    assert bench.counters() == {
        "OPS": 1, "ERRORS": 1, "UNSUPPORTED_OPS": 1, "DESC_BYTES_READ": 32, "DESC_READ_BEATS": 8,
    }  # fmt: skip
    bench.write(CmdReg.CTRL_STATUS, CLEAR)
    assert bench.read(CmdReg.DESC_STATUS) == 1 << 19
    assert bench.counters() == {"OPS": 1, "ERRORS": 1, "UNSUPPORTED_OPS": 1}
    bench.write(CmdReg.PERF_THERMAL_THROTTLE, 99)
    bench.write(CmdReg.PERF_THERMAL_THROTTLE, 0, 0b1000)
    bench.write(CmdReg.PERF_THERMAL_THROTTLE, 0, 0)
    assert bench.counters()["THERMAL_THROTTLE"] == 2
    bench.write(CmdReg.PERF_ERRORS, 0xFFFF_FFFE)
    assert bench.counters()["ERRORS"] == 1
    bench.write(CmdReg.PERF_ERRORS, 1)
    assert bench.counters() == {}
    assert (bench.read(CmdReg.RESULT), bench.read(CmdReg.DESC_TAIL)) == (3, 1)


def test_the_ring_status_outlives_an_operation_by_register() -> None:
    """A start by register leaves DESC_STATUS alone."""
    bench = CommandBench()
    bench.run(scalar(CmdOp.ADD, 1, 2))
    bench.write(CmdReg.CMD_PARAM, 0)
    bench.operate(CmdOp.MUL_LO, 1 << 31, 6)
    assert bench.read(CmdReg.DESC_STATUS) == 2
    assert bench.read(CmdReg.RESULT_HI) == 3


def test_a_reserved_lane() -> None:
    """RESULT stays, the operation counts, and is an error but not an unsupported one."""
    bench = CommandBench()
    kept = bench.operate(CmdOp.MUL_LO, 0x12345678, 0x9ABCDEF0)
    assert bench.operate(CmdOp.DOT4_FP8_E4M3, 0x007F0000, 0) == kept
    assert bench.read(CmdReg.CTRL_STATUS) == 6
    assert bench.counters() == {"OPS": 2, "ERRORS": 1}
    assert bench.field("DEBUG_OPCODE") == CmdOp.DOT4_FP8_E4M3
    bench.write(CmdReg.CMD_PARAM, 2)
    assert bench.operate(CmdOp.DOT16_S2, 0, 3 << 30) == kept
    bench.write(CmdReg.CMD_PARAM, 0)
    assert bench.operate(CmdOp.DOT16_S2, 3 << 30, 3 << 30) == (1, 0)
    assert bench.read(CmdReg.CTRL_STATUS) == 2
    assert bench.counters() == {"OPS": 4, "ERRORS": 2}


def test_tiles_by_register() -> None:
    """A GEMM and a VRELU leave RESULT; a refused tile changes nothing and is unsupported."""
    bench = CommandBench()
    kept = bench.operate(CmdOp.SUB, 3, 5)
    data = bytes(range(120, 184))
    bench.scratch(data)
    bench.shape(FULL)
    assert bench.operate(CmdOp.GEMM_S8) == kept
    values = np.frombuffer(data, np.int8).astype(np.int64)
    product = values[:14].reshape(2, 7) @ values[14:35].reshape(7, 3)
    assert bench.scratch() == data[:36] + product.astype("<i4").tobytes() + data[60:]
    assert bench.counters() == {"OPS": 2, "MACS": 42, "SCRATCH_BYTES": 108}

    before = bench.scratch()
    bench.shape((64, 1, 0))
    assert bench.operate(CmdOp.VRELU_S8) == kept
    assert bench.read(CmdReg.CTRL_STATUS) == 6 and bench.scratch() == before
    bench.shape((5, 4 | 40 << 8, 0))
    assert bench.operate(CmdOp.VRELU_S8) == kept
    positive = bytes(byte if byte < 128 else 0 for byte in before[4:9])
    assert bench.scratch() == before[:40] + positive + before[45:]
    assert positive != before[4:9]
    assert bench.counters() == {
        "OPS": 3, "MACS": 42, "SCRATCH_BYTES": 118, "ERRORS": 1, "UNSUPPORTED_OPS": 1,
    }  # fmt: skip


def test_counters_wrap() -> None:
    """Counters are 32 bits."""
    bench = CommandBench()
    bench.port.state.counters[CmdReg.PERF_OPS] = 0xFFFF_FFFF
    bench.operate(CmdOp.ADD)
    assert bench.counters() == {}


def test_soft_reset_while_idle() -> None:
    """Registers, status, counters and the entries of the ring stay."""
    bench = CommandBench()
    bench.run(scalar(CmdOp.ADD, 5, 6), pack(OWNER | WRITEBACK, 0, 0, 0))
    before = {register: bench.read(register) for register in CmdReg}
    bench.port.soft_reset()
    assert {register: bench.read(register) for register in CmdReg} == before


def test_cycles_are_not_modelled() -> None:
    """What counts cycles reads 0 whatever has happened, and nothing else is exempt."""
    bench = CommandBench()
    bench.run(scalar(CmdOp.ADD, 5, 6))
    assert {CmdReg(it).name for it in CYCLE_REGISTERS} == {
        "PERF_CYCLES", "PERF_STALL_CYCLES", "DESC_TIMEOUT_COUNT",
    }  # fmt: skip
    assert all(bench.read(register) == 0 for register in CYCLE_REGISTERS)
