# SPDX-License-Identifier: Apache-2.0
"""The scoreboard notices each kind of difference and names the first one."""

from __future__ import annotations

import numpy as np
import pytest

from golden.machine import ErrorReport, RunResult, SramWrite
from npu.asm import assemble
from npu.driver.counters import ChipCounters
from spec.isa import Engine, ErrorCode
from tb.bench.logs import SRAM_WRITE
from tb.bench.scoreboard import (
    Compared,
    Count,
    Image,
    MismatchError,
    Writes,
    compare_errors,
    compare_images,
    compare_writes,
    count_bytes,
)
from tb.models.model_report import Line, render, total

PROGRAM = assemble("""
    VEC op=add dst=0x100 src0=0x0 src1=0x40 M=1 N=32
    BARRIER vec
    VEC op=relu dst=0x200 src0=0x100 M=1 N=32 cp=64
    END
""").instructions


def _log(*records: tuple[int, int, int, int]) -> Writes:
    """Return (cycle, instruction, word, fill) records as a log."""
    log = np.zeros(len(records), SRAM_WRITE)
    for index, (cycle, instr, word, fill) in enumerate(records):
        log[index] = (cycle, instr, 4, word, np.full(16, fill))
    return Writes.of_log(log)


def _model() -> Writes:
    two = np.stack([np.full(16, 7, np.uint8), np.full(16, 8, np.uint8)])
    writes = [SramWrite(0, 0x10, two), SramWrite(3, 0x20, two)]
    return Writes.of_model(RunResult(None, writes, executed=4, macs=0, races=[], stream_offset=0))


GOOD = ((5, 0, 0x10, 7), (6, 0, 0x11, 8), (9, 3, 0x21, 8), (10, 3, 0x20, 7))


def test_equal_logs_pass_in_any_order_within_an_instruction() -> None:
    """Order within an instruction is the engine's own affair."""
    compare_writes(_model(), _log(*GOOD), PROGRAM)
    compare_writes(_model(), _log(*reversed(GOOD)), PROGRAM)


def test_wrong_data_is_named_with_instruction_place_and_time() -> None:
    """The message holds the disassembly, both values, the cycle and the tensor."""
    log = _log(*GOOD[:1], (6, 0, 0x11, 9), *GOOD[2:])
    with pytest.raises(MismatchError) as caught:
        compare_writes(_model(), log, PROGRAM, lambda instr, byte: f"tensor{instr}@{byte:#x}")
    text = str(caught.value)
    for part in ("instruction 0 (VEC", "tensor0@0x110", "0x08, actual 0x09", "cycle 6", "60 ns"):
        assert part in text, text
    assert "1 of 4 written words differ" in text
    assert (caught.value.instr, caught.value.cycle) == (0, 6)


def test_missing_and_unexpected_writes_are_named() -> None:
    """The first in program order wins; what never happened has no time."""
    never = r"instruction 0 .*never wrote SRAM word 0x110"
    with pytest.raises(MismatchError, match=never) as missing:
        compare_writes(_model(), _log(GOOD[0], *GOOD[2:]), PROGRAM)
    assert (missing.value.instr, missing.value.cycle) == (0, -1)
    written = r"instruction 3 .*cp=0x40.*wrote SRAM word 0x220"
    with pytest.raises(MismatchError, match=written) as extra:
        compare_writes(_model(), _log(*GOOD, (11, 3, 0x22, 0)), PROGRAM)
    assert (extra.value.instr, extra.value.cycle) == (3, 11)


def test_every_write_of_a_word_counts() -> None:
    """A word that is written again later, by the same instruction, is compared each time."""
    log = _log((1, 0, 0x10, 99), *GOOD)
    with pytest.raises(MismatchError, match=r"instruction 0 .*0x100: expected 0x07, actual 0x63"):
        compare_writes(_model(), log, PROGRAM)
    log = _log(*GOOD, (11, 0, 0x10, 7))
    with pytest.raises(MismatchError, match=r"turn 1: wrote SRAM word 0x100, which it must not"):
        compare_writes(_model(), log, PROGRAM)


def _turns(*fills: int) -> list[SramWrite]:
    return [SramWrite(0, 0x10, np.full((2, 16), fill, np.uint8)) for fill in fills]


def test_every_turn_of_a_loop_counts() -> None:
    """A wrong word of an earlier turn is named, although the next turn writes it right."""
    result = RunResult(None, _turns(1, 2, 3), executed=9, macs=0, races=[], stream_offset=0)
    good = [(turn, 0, 0x10 + word, turn) for turn in (1, 2, 3) for word in (1, 0)]
    compare_writes(Writes.of_model(result), _log(*good), PROGRAM)
    wrong = [*good[:3], (2, 0, 0x10, 9), *good[4:]]
    with pytest.raises(MismatchError, match=r"instruction 0 .* turn 1: SRAM byte 0x100: expected"):
        compare_writes(Writes.of_model(result), _log(*wrong), PROGRAM)
    with pytest.raises(MismatchError, match=r"instruction 0 .* turn 2: never wrote SRAM word"):
        compare_writes(Writes.of_model(result), _log(*good[:-1]), PROGRAM)


def test_a_write_of_another_instruction_is_noticed() -> None:
    """Equal bytes under a wrong instruction index are a difference."""
    with pytest.raises(MismatchError):
        compare_writes(_model(), _log(*GOOD[:3], (10, 2, 0x20, 7)), PROGRAM)


def test_images_and_errors() -> None:
    """The first byte of an image, and both ends of a program."""
    expected = np.zeros(64, np.uint8)
    actual = expected.copy()
    compare_images(expected, actual, "SRAM")
    actual[[17, 40]] = 3
    with pytest.raises(MismatchError, match="SRAM differs in 2 of 64 bytes, first at 0x11"):
        compare_images(expected, actual, "SRAM")
    report = ErrorReport(ErrorCode.SRAM_RANGE, Engine.SEQ, 5, 0x40)
    compare_errors(report, ErrorReport(ErrorCode.SRAM_RANGE, Engine.SEQ, 5, 0x40))
    with pytest.raises(MismatchError, match="expected None"):
        compare_errors(None, report)


def test_counts() -> None:
    """Every byte that differs counts once, among those that were written or the untouched ones."""
    model, sram, memory = _model(), np.zeros(1024, np.uint8), np.zeros(256, np.uint8)
    sram[0x100:0x110], sram[0x110:0x120] = 7, 8
    sram[0x200:0x210], sram[0x210:0x220] = 7, 8
    stored = np.array([2, 3])

    def compared(log: Writes, sram_: Image, memory_: Image) -> Compared:
        return Compared.of((model, log), (sram, sram_), (memory, memory_), stored)

    good = compared(_log(*GOOD), sram, memory)
    assert good == Compared(Count(64 + 32), Count(1024 - 64 + 256 - 32))
    assert not good.differs
    wrong = _log(GOOD[0], (6, 0, 0x11, 9), *GOOD[2:], (11, 3, 0x22, 0))
    after, stores = sram.copy(), memory.copy()
    after[0x110:0x120] = 9  # the wrong write again: it has been counted
    after[[0x300, 0x3FF]] = 1
    stores[[0, 0x20, 0x21, 0x3F]] = 5
    found = compared(wrong, after, stores)
    assert found.written == Count(5 * 16 + 32, 2 * 16 + 3)
    assert found.untouched == Count(1024 - 80 + 256 - 32, 2 + 1)
    late = sram.copy()
    late[0x101] = 1
    assert compared(_log(*GOOD), late, memory).written.wrong == 1
    for address in (0, 0x101, 0x205, 0x3FF):
        assert compared(_log(*GOOD), sram ^ (np.arange(1024) == address), memory).differs
    for address in (0, 0x20, 0xFF):
        assert compared(_log(*GOOD), sram, memory ^ (np.arange(256) == address)).differs
    missing = compared(_log(*GOOD[:3]), sram, memory)
    assert missing.written == Count(64 + 32, 16)
    assert str(found.written) == "35 of 112"


def test_tensors_are_counted() -> None:
    """In bytes; one of another shape is wrong as a whole."""
    tensor = np.array([[1, 256], [3, 4]], np.int16)
    assert count_bytes(tensor, tensor.T.copy().T) == Count(8, 0)
    assert count_bytes(tensor, tensor + np.array([[0, 1], [257, 0]], np.int16)) == Count(8, 3)
    assert count_bytes(tensor, tensor[:1]) == Count(8, 8)


def test_report() -> None:
    """The table tells written, untouched and tensors apart, and sums them."""
    counters = ChipCounters(16, 16, 9, 1, 1, 1, (), ())
    one = Compared(Count(1000, 3), Count(5000, 1))
    line = Line.of("S=1", 9, one, Count(70, 2), counters, (16, 16), 1.0)
    text = render("blocks", [line, total("all", [line, line])], 256)
    assert "3 of 1,000" in text
    assert "1 of 5,000" in text
    assert "2 of 70" in text
    assert all(part in text for part in ("6 of 2,000", "2 of 10,000", "4 of 140"))
