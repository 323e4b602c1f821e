# SPDX-License-Identifier: Apache-2.0
"""What the coprocessor accepts, which registers it asks for, and its register window."""

from __future__ import annotations

import numpy as np
import pytest

from golden.coprocessor import RD, RS1, RS2, Coprocessor, FaultCode, decode
from golden.coprocessor.faults import RefusedError
from tests.python.coprocessor.coprocessor_support import (
    CODES,
    COUNT_IN_RD,
    COUNT_IN_RS2,
    FLOAT,
    INT,
    CopMachine,
    word,
)
from tests.python.golden.golden_support import seeded

FLOAT_RESULTS = ("FRSQRT", "FRELU", "FGELU", "FRSTACC", "FVRSQRT", "FVREDUCE", "FVMAX")
RESULTS = (
    *FLOAT_RESULTS,
    *("RELU", "QMUL", "CLAMP", "GELU", "RSTACC", "VRSQRT", "VREDUCE", "VMAX"),
)
READS = {
    **dict.fromkeys(COUNT_IN_RD, RS1 | RS2 | RD),
    **dict.fromkeys((*COUNT_IN_RS2, "MACC", "QMUL", "FMACC"), RS1 | RS2),
    **dict.fromkeys(("RSTACC", "FRSTACC"), 0),
}
"""Registers read, of those that do not read rs1 alone."""
FLOATS = {"FMACC": RS1 | RS2, "FRSQRT": RS1 | RD, "FRELU": RS1 | RD, "FGELU": RS1 | RD}


def legal(opcode: int, funct3: int, funct7: int) -> str | None:
    """Return the name of an instruction, as the specification lists codes."""
    for name, code in CODES.items():
        if code[:2] == (opcode, funct3) and (funct3 or code[2] == funct7):
            return name
    return None


def test_every_code() -> None:
    """Both opcodes with every funct3 and funct7, and random register fields."""
    rng = seeded(1)
    cop = CopMachine().cop
    counted = 0
    for opcode in (INT, FLOAT):
        for funct3 in range(8):
            for funct7 in range(128):
                places = int(rng.integers(0, 1 << 15))
                code = opcode | funct3 << 12 | funct7 << 25
                offered = code | (places & 31) << 7 | (places >> 5) << 15
                name = legal(opcode, funct3, funct7)
                answer = cop.offer(offered)
                assert answer.accept == (name is not None), hex(offered)
                if name is None:
                    assert answer == (False, False, 0, 0)
                    continue
                counted += 1
                assert answer.writeback == (name in RESULTS), name
                assert answer.register_read == READS.get(name, RS1), name
                result_bits = RD if name in FLOAT_RESULTS else 0
                assert answer.floats == FLOATS.get(name, result_bits), name
    assert counted == 7 + 7 * 128 + 14 + 3 * 128


def test_other_opcodes_are_refused() -> None:
    """Every other opcode, compressed ones among them."""
    rng = seeded(2)
    cop = CopMachine().cop
    for opcode in set(range(128)) - {INT, FLOAT}:
        for _ in range(4):
            offered = int(rng.integers(0, 1 << 25)) << 7 | opcode
            assert not cop.offer(offered).accept
            with pytest.raises(RefusedError):
                cop.execute(offered)


def test_two_registers_are_not_enough_for_counts_in_rd() -> None:
    """With CopNumRs = 2 they are refused, and nothing else is."""
    cop = Coprocessor(CopMachine().memory, num_rs=2)
    for name in CODES:
        assert cop.offer(word(name)).accept == (name not in COUNT_IN_RD)


def test_offsets_are_signed() -> None:
    """12 bits, in the fields of LDVEC and STVEC."""
    for name in ("LDVEC", "STVEC"):
        for offset in (0, 1, 31, 32, 2047, -1, -32, -33, -2048):
            offered = word(name, offset=offset)
            op = decode.decode(offered)
            assert op is not None
            assert decode.fields(op, offered).offset == offset


def test_reset_values() -> None:
    """All zero but LIMIT, CTRL and CONFIG."""
    cop = CopMachine().cop
    found = {offset: cop.read(offset) for offset in range(0, 0x100, 4) if cop.read(offset)}
    assert found == {0x44: 2, 0x54: 256, 0x7C: 0x311}


def test_accumulators_are_read_and_cleared() -> None:
    """Reads do not disturb; writes to the lower words clear, others do nothing."""
    machine = CopMachine()
    machine.run("MACC", -(1 << 31), 3)
    machine.run("FMACC", 0x3FC0_0000, 0xBF80_0000)
    machine.put(0x40, [1, 2, 3, 4, 5, 6, 7, 8], np.uint8)
    machine.run("LDVEC", 0x40, rd=0)
    machine.run("LDVEC", 0x44, rd=3)
    state = {
        0x00: 0x8000_0000,
        0x04: 0xFFFF_FFFE,
        0x08: 0x0403_0201,
        0x14: 0x0807_0605,
        0x1C: 0xBFF8_0000,
    }
    fixed = {0x44: 2, 0x54: 256, 0x58: 4, 0x7C: 0x311}

    def found() -> dict[int, int]:
        read = {offset: machine.cop.read(offset) for offset in range(0, 0x100, 4)}
        return {offset: value for offset, value in read.items() if value}

    assert found() == state | fixed
    for offset in (0x04, 0x08, 0x14, 0x1C, 0x20, 0x3C, 0x40, 0x48, 0x4C, 0x50, 0x7C, 0xFC):
        machine.cop.write(offset, 0)
    assert found() == state | fixed
    machine.cop.write(0x00, 123)
    assert found() == {key: state[key] for key in (0x08, 0x14, 0x1C)} | fixed
    machine.cop.write(0x18, 456)
    assert found() == {key: state[key] for key in (0x08, 0x14)} | fixed


def test_fault_registers() -> None:
    """What the first fault was, until CLEAR; TRAP is kept as written."""
    machine = CopMachine()
    machine.memory.read_errors = [(0x110, 0x110)]
    machine.run("VREDUCE", 0x103, 6)
    found = [machine.cop.read(offset) for offset in (0x40, 0x44, 0x48, 0x4C, 0x50)]
    assert found == [2 | FaultCode.BUS << 4, 2, word("VREDUCE"), 0x10F, 3]
    machine.cop.write(0x44, 0)
    assert machine.cop.read(0x44) == 0 and machine.cop.offer(word("MACC")).accept
    machine.run("VMAC", 0, 0, 257)
    assert [machine.cop.read(offset) for offset in (0x40, 0x50)] == [2 | FaultCode.BUS << 4, 3]
    machine.cop.write(0x44, 3)
    found = [machine.cop.read(offset) for offset in (0x40, 0x44, 0x48, 0x4C, 0x50)]
    assert found == [0, 2, 0, 0, 0]
    machine.run("VMAC", 0, 0, 257)
    assert machine.cop.read(0x40) == 2 | FaultCode.LENGTH << 4


def test_limit_and_counter() -> None:
    """LIMIT keeps 20 bits; INSTRS counts faulting instructions too, and a write clears it."""
    machine = CopMachine()
    machine.cop.write(0x54, 0xFFF0_1234)
    assert machine.cop.read(0x54) == 0x0_1234
    machine.run("VMAC", 0, 0, 0x1234)
    assert machine.cop.fault is None
    machine.run("VMAC", 0, 0, 0x1235)
    assert machine.cop.read(0x58) == 2
    machine.cop.write(0x58, 77)
    assert machine.cop.read(0x58) == 0
