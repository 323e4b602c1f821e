# SPDX-License-Identifier: Apache-2.0
"""The bench of the command port itself: words, random work, messages, rows of the table."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from golden.command import tiles
from golden.command.memory import MemorySilenceError
from golden.command.model import ModelBus
from spec.regs import CMD_BASE, CmdOp, CmdReg
from tb.bench.host import RtlBus
from tb.bench.knobs import Knobs
from tb.bench.scoreboard import MismatchError
from tb.command.chip_and_model import PairBus
from tb.command.command_coverage import required, used
from tb.command.descriptor_words import (
    SCALARS,
    TILES,
    DescriptorWords,
    Extension,
    Record,
    TileWords,
    launch,
)
from tb.command.faulty_descriptors import configuration_faults
from tb.command.faulty_memory import ModelMemory
from tb.command.random_descriptors import Maker, allowed, any_tile, is_reserved, legal_tile

SIZES = (64, 128, 256)


def test_words_of_a_descriptor() -> None:
    """Every field has its place."""
    tile = TileWords.gemm(2, 3, 7, (1, 2, 4), (5, 6, 8))
    assert (tile.cfg, tile.base, tile.stride) == (0x070302, 0x040201, 0x080605)
    extension = Extension.of_tile(tile, 0x1234, 0xAB)
    made = DescriptorWords(9, 1, 2, 3, (20, 36), True, extension)
    first = 1 << 31 | 1 << 30 | 36 << 24 | 20 << 16 | 1 << 8 | 1 << 4 | 9
    assert made.words == (first, 1, 2, 3, 0x1234, 0x070302, 0x040201, 0xAB080605)
    assert made.places == 2
    assert DescriptorWords(9, owner=False, flipped=6).words == (9 ^ 6, 0, 0, 0)
    assert launch(0x40, 5, token=1, base0=2, base1=3, pos=4, tag=6).words == (
        *(1 << 31 | 0x30, 1, 2, 3),
        *(0x40, 5, 4, 6 << 24),
    )


def test_record() -> None:
    """A record is taken apart; reserved bits are refused."""
    words = [0x1A00_0000 | 0xCD << 16 | 1 << 15 | 5 << 8 | 0x44, 7, 8, 9]
    record = Record.of(np.array(words, "<u4").tobytes())
    assert record == Record(0x44, 5, 1, 0xCD, 10, True, 7, 8, 9)
    words[0] |= 1 << 11
    with pytest.raises(ValueError, match="reserved bits"):
        Record.of(np.array(words, "<u4").tobytes())


@pytest.mark.parametrize("size", SIZES)
def test_legal_tiles_are_legal(size: int) -> None:
    """The model accepts every one of them, and refuses some of the others."""
    random = np.random.default_rng(1)
    for op in (*TILES, CmdOp.VRELU_S8):
        refused = 0
        for _ in range(200):
            for legal in (True, False):
                made = (legal_tile if legal else any_tile)(random, op, size)
                decoded = tiles.ScratchTile.decode(made.cfg, made.base, made.stride, size)
                try:
                    tiles.check(op, decoded, size)
                except tiles.TilesRefusedError:
                    assert not legal, f"{op.name} {made}"
                    refused += 1
        assert 20 < refused < 180, f"{op.name}: {refused} of 200"


def test_reserved_lanes() -> None:
    """Operands that are made allowed have no reserved lane, and others stay as they are."""
    fp8, ternary = CmdOp.DOT4_FP8_E4M3, CmdOp.DOT16_S2
    for op, value, found in (
        (fp8, 0x007F_FF01, 0x007E_FE01),
        (ternary, 0xC000_0003, 0x8000_0002),
        (CmdOp.ADD, 0xFFFF_FFFF, 0xFFFF_FFFF),
    ):
        assert is_reserved(op, value, ternary=True) == (value != found)
        assert allowed(op, value, ternary=True) == found
    assert allowed(ternary, 3, ternary=False) == 3


def test_rows() -> None:
    """What descriptors can cover is asked for, each row once, and everything can be covered."""
    rows = required()
    assert len(rows) == len(set(rows))
    random = np.random.default_rng(2)
    covered = {"CMD.PROGRAM launch"} | used(launch(0, 1), ternary=False)
    for ternary in (False, True):
        maker = Maker(random, 64, ternary)
        for op in CmdOp:
            for _ in range(30):
                tile = legal_tile(random, op, 64) if op not in SCALARS else TileWords()
                covered |= used(maker.plain(op, tile), ternary=ternary)
                covered |= used(maker.extended(op), ternary=ternary)
            writing = DescriptorWords(op, writeback=True)
            covered |= used(writing, ternary=ternary) if op not in SCALARS else set()
    assert covered == {row for row in rows if "register" not in row}


@pytest.mark.parametrize("size", SIZES)
def test_faults_have_names(size: int) -> None:
    """Every wrong descriptor is described once."""
    names = [name for name, _, _ in configuration_faults(size)]
    assert len(names) == len(set(names)) > 60


def test_memory_obeys_the_knobs() -> None:
    """Silence and errors strike the words that they name, reads or writes."""
    memory = ModelMemory(np.zeros(256, np.uint8))
    memory.obey(Knobs(read_silent=1, silent_first=64, silent_last=79))
    assert memory.read(48, 16) == bytes(16)
    memory.write(64, b"abcd")
    with pytest.raises(MemorySilenceError):
        memory.read(60, 8)
    memory.obey(Knobs())
    memory.settle()
    assert memory.read(60, 8) == bytes(4) + b"abcd"


class _Chip:
    """The model as if it were the chip, with a memory of its own; one register reads wrong."""

    def __init__(self, size: int, wrong: dict[int, int]) -> None:
        memory = np.zeros(size, np.uint8)
        self._model = ModelBus(memory)
        self._wrong = wrong
        self.dut = SimpleNamespace(cycle=SimpleNamespace(value=77), irq=SimpleNamespace(value=0))
        self.memory = SimpleNamespace(data=memory)

    async def read32(self, address: int) -> int:
        return await self._model.read32(address) ^ self._wrong.get(address, 0)

    async def write32(self, address: int, value: int) -> None:
        await self._model.write32(address, value)

    def read_memory(self, address: int, size: int) -> bytes:
        return self._model.read_memory(address, size)

    def write_memory(self, address: int, data: bytes) -> None:
        self._model.write_memory(address, data)


def _pair(wrong: dict[int, int]) -> tuple[PairBus, Any]:
    memory = ModelMemory(np.zeros(4096, np.uint8))
    chip = _Chip(4096, wrong)
    return PairBus(cast(RtlBus, chip), ModelBus(memory.data, faults=memory), memory), chip


def test_chip_and_model_agree() -> None:
    """Equal ones compare equal, whatever their cycles."""
    bus, _ = _pair({CMD_BASE + CmdReg.PERF_CYCLES: 0x55})
    asyncio.run(bus.compare())


def test_mismatch_of_a_register() -> None:
    """The message names register, field, both values, the cycle, and what happened before."""
    bus, _ = _pair({CMD_BASE + CmdReg.DESC_STATUS: 4 << 9 | 0x40})

    async def session() -> None:
        await bus.write32(CMD_BASE + CmdReg.OP_A, 0x1234)
        await bus.compare()

    with pytest.raises(MismatchError) as caught:
        asyncio.run(session())
    text = str(caught.value)
    assert "DESC_STATUS (0x04c): expected 0x00000001, actual 0x00000841" in text
    assert "INDEX expected 0x0, actual 0x4" in text
    assert "OWNER expected 0x0, actual 0x1" in text
    assert "EMPTY" not in text
    assert "cycle 77" in text
    assert "write OP_A (0x000) 0x00001234" in text


def test_mismatch_of_memory() -> None:
    """Every byte counts, but for the cycles in completion records."""
    bus, chip = _pair({})
    bus.records.append(range(256, 512))
    chip.memory.data[256 + 12] = 1
    asyncio.run(bus.compare())
    chip.memory.data[256 + 11] = 2
    with pytest.raises(MismatchError, match="memory differs in 1 bytes, first at 0x10b"):
        asyncio.run(bus.compare())


def test_mismatch_of_the_line() -> None:
    """An interrupt that only one of them raises is found."""
    bus, chip = _pair({})
    chip.dut.irq.value = 1
    with pytest.raises(MismatchError, match="interrupt line: expected 0, actual 1"):
        asyncio.run(bus.compare())
