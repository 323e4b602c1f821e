# SPDX-License-Identifier: Apache-2.0
"""Programs in the instruction-level model: registers, prefix, stream, ends and bus errors."""

from __future__ import annotations

import numpy as np
import pytest

from golden.machine import ChipConfig, Machine, StartState
from spec.isa import Engine, ErrorCode, Instruction, Opcode, SetReg, VecOp
from tests.python.golden import golden_programs as gp
from tests.python.golden.golden_programs import END, ProgramBench, pfx, set_register
from tests.python.golden.golden_support import seeded

NOP = Instruction(Opcode.NOP)


def load(dst: int, offset: int = 0, base: int = 0, rows: int = 1, size: int = 16) -> Instruction:
    """Return a DMA_LOAD of rows of `size` bytes; dst in words, offset in bytes."""
    halves = offset & 0xFFFF, offset >> 16
    return Instruction(Opcode.DMA_LOAD, 0, dst, *halves, rows, size, 0, base)


def fail(bench: ProgramBench) -> tuple[ErrorCode, Engine, int, int]:
    """Run and return the error; the SRAM must hold what the log says and nothing else."""
    before = bench.sram.copy()
    result = bench.run()
    assert result.error is not None
    for write in result.sram_writes:
        before[write.address * 16 :][: write.data.size] = write.data.reshape(-1)
    assert np.array_equal(before, bench.sram)
    report = result.error
    return report.code, report.engine, report.instr, report.address


def test_bases_and_set() -> None:
    """Loads through BASE0, BASE7 set, and BASE0 with an addition that wraps."""
    rng = seeded(400)
    program = [load(0), set_register(SetReg.BASE7, 0x24000), load(1, 0x20, 7)]
    program += [set_register(SetReg.BASE0, 0xFFFF_F000, add=True), load(2), END]
    bench = ProgramBench(program)
    bench.memory[0x8000:] = rng.integers(0, 256, gp.MEMORY_BYTES - 0x8000)
    result = bench.run()
    assert result.error is None
    assert result.executed == 6
    for word, address in enumerate((0x20000, 0x24020, 0x1F000)):
        assert np.array_equal(bench.sram[16 * word :][:16], bench.memory[address:][:16])
    assert [write.instr for write in result.sram_writes] == [0, 2, 4]


def test_set_position() -> None:
    """POS set and added to decides how many columns of a causal row are visible."""
    word = Instruction(Opcode.SOFTMAX, gp.CAUSAL, 0x10, 0, 0x100, 1, 16, 0, 2)
    program = [set_register(SetReg.POS, 4), set_register(SetReg.POS, 3, add=True), word, END]
    bench = ProgramBench(program, pos=9)
    bench.put(0, np.zeros((1, 16), np.int16))
    assert bench.run().error is None
    assert np.count_nonzero(bench.get(0x100, (1, 16), np.uint16)) == 8


def table_share(value: int) -> bytes:
    """Return a table whose every entry is `value`."""
    return bytes([value]) * 256


GELU = Instruction(Opcode.GELU, 0, 0x10, 0, 0, 1, 16, 0, 1)


def test_shares_follow_the_program_and_set_stream() -> None:
    """Two shares in order, then the first again; the pop offset at the end is the stream's end."""
    again = [set_register(SetReg.STREAM, 0), Instruction(Opcode.GELU, 0, 0x30, 0, 0, 1, 16, 0, 1)]
    second = Instruction(Opcode.GELU, 0, 0x20, 0, 0, 1, 16, 0, 1)
    program = [GELU, second, *again, set_register(SetReg.STREAM, 512), END]
    bench = ProgramBench(program, table_share(11) + table_share(22))
    result = bench.run()
    assert result.error is None
    assert result.stream_offset == 512
    assert [int(bench.sram[address]) for address in (0x100, 0x200, 0x300)] == [11, 22, 11]


@pytest.mark.parametrize(
    ("program", "stream", "expected"),
    [
        ([GELU, END], 192, (ErrorCode.STREAM_END, Engine.SEQ, 0, 0)),
        ([GELU, GELU, END], 448, (ErrorCode.STREAM_END, Engine.SEQ, 1, 0)),
        ([GELU, GELU, END], 256, (ErrorCode.STREAM_END, Engine.SEQ, 1, 0)),
        ([GELU, END], 512, (ErrorCode.STREAM_LEFT, Engine.SEQ, 1, 0)),
        ([set_register(SetReg.STREAM, 64), END], 128, (ErrorCode.STREAM_LEFT, Engine.SEQ, 1, 0)),
        ([NOP], 0, (ErrorCode.NO_END, Engine.SEQ, 1, 0)),
        ([], 0, (ErrorCode.NO_END, Engine.SEQ, 0, 0)),
        ([NOP, pfx()], 0, (ErrorCode.NO_END, Engine.SEQ, 2, 0)),
    ],
)
def test_ends(
    program: list[Instruction], stream: int, expected: tuple[ErrorCode, Engine, int, int]
) -> None:
    """Shares past the stream's end, an END in the middle of the stream, programs without END."""
    assert fail(ProgramBench(program, bytes(stream))) == expected


def test_a_refused_instruction_leaves_older_results() -> None:
    """What is older has finished, what is refused or younger has changed nothing."""
    program = [load(0), load(0xFFFF), load(1), END]
    bench = ProgramBench(program)
    bench.memory[0x20000:0x20010] = 9
    result = bench.run()
    assert result.error is not None
    assert result.error.code == ErrorCode.SRAM_RANGE
    assert (result.error.instr, result.error.address) == (1, 0xFFFF0)
    assert result.executed == 1
    assert np.all(bench.sram[:16] == 9)
    assert np.all(bench.sram[16:] == gp.GUARD)


def test_bus_errors() -> None:
    """Accesses beyond memory name engine, instruction and first word outside."""
    end = gp.MEMORY_BYTES
    program = [load(0, end - 0x20000 - 16, rows=3), END]
    expected = (ErrorCode.READ_ERROR, Engine.LD, 0, end)
    assert fail(ProgramBench(program)) == expected
    store = Instruction(Opcode.DMA_STORE, 0, 0, 0, 4, 1, 16, 0, 0)
    assert fail(ProgramBench([NOP, store, END])) == (ErrorCode.WRITE_ERROR, Engine.ST, 1, 0x60000)

    config = ChipConfig()
    memory, sram = np.zeros(64, np.uint8), np.zeros(config.sram_bytes, np.uint8)
    result = Machine(config, memory, sram).run(StartState(0, 10))
    assert result.error is not None
    assert result.error.code == ErrorCode.READ_ERROR
    assert (result.error.engine, result.error.instr) == (Engine.SEQ, 4)
    assert result.error.address == 64

    memory[:32] = np.frombuffer(GELU.encode() + END.encode(), np.uint8)
    result = Machine(config, memory, sram).run(StartState(0, 2, 0x1000, 256))
    assert result.error is not None
    assert result.error.code == ErrorCode.READ_ERROR
    assert (result.error.engine, result.error.address) == (Engine.STREAM, 0x1000)


def test_a_prefix_serves_one_instruction() -> None:
    """The second copy has natural pitches again."""
    copy = Instruction(Opcode.VEC, 0, 0x40, 0, 0, 2, 16, 0, VecOp.COPY2D)
    second = Instruction(Opcode.VEC, 0, 0x80, 0, 0, 2, 16, 0, VecOp.COPY2D)
    bench = ProgramBench([pfx(cp=3, ap=2), copy, second, END])
    rows = np.arange(48, dtype=np.uint8).reshape(3, 16)
    bench.put(0, rows)
    result = bench.run()
    assert result.executed == 3
    assert [write.instr for write in result.sram_writes] == [1, 1, 2]
    assert np.array_equal(bench.get(0x400, (2, 16), np.uint8, 48), rows[[0, 2]])
    assert np.array_equal(bench.get(0x800, (2, 16), np.uint8), rows[:2])


def test_no_state_survives_a_run() -> None:
    """A second run starts from the start state, not from what SET has left."""
    program = [load(0), set_register(SetReg.BASE0, 0x24000), END]
    bench = ProgramBench(program)
    bench.memory[0x20000:0x20010] = 1
    bench.memory[0x24000:0x24010] = 2
    bench.run()
    bench.run()
    assert np.all(bench.sram[:16] == 1)


def test_arguments_are_checked() -> None:
    """Arrays and start states of the wrong form are refused by name."""
    config, memory = ChipConfig(), np.zeros(64, np.uint8)
    with pytest.raises(ValueError, match=r"Machine\.sram: given uint8\(64,\), allowed .* 262144"):
        Machine(config, memory, memory)
    with pytest.raises(ValueError, match=r"Machine\.memory"):
        Machine(config, np.zeros(60, np.uint8), np.zeros(config.sram_bytes, np.uint8))
    with pytest.raises(ValueError, match="stream_len"):
        StartState(0, 1, 0, 100)
    with pytest.raises(ValueError, match="bases"):
        StartState(0, 1, bases=(0,))
