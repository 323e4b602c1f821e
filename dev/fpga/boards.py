# SPDX-License-Identifier: Apache-2.0
"""The boards of `fpga/`: parameters of their chips, and what the device has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from npu.driver.serial_bus import BAUD
from spec.configurations import CHIPS
from spec.isa.operands import Limits
from spec.paths import BUILD, FPGA
from tb.run import sources

HOME = FPGA
FOLDER = BUILD / "fpga"
TOP = "npu_board_evn"
"""Of the device; `npu_board` is what is in it beside its clock."""
INNER = "npu_board"
PINS = HOME / f"{TOP}.lpf"
PLL = "EHXPLLL"
"""A cell of the device; `fpga/EHXPLLL.sv` stands for it in a simulator."""
CRYSTAL = 12
"""MHz of the board's clock."""


class BoardError(ValueError):
    """No such board, or one that the device has no room for."""


@dataclass(frozen=True)
class Board:
    """A board.

    Attributes:
        name: that of the configuration of its chip's array.
        array_dim, sram_kib, acc_rows, fifo_kib, norm_max: parameters of `npu_top`.
        memory_kib: KiB of memory.
        times, shares: its clock is `times` shares of the crystal's, which has `shares` of them.
        baud: bits a second of the serial port.
    """

    name: str
    array_dim: int
    sram_kib: int = 32
    acc_rows: int = 128
    fifo_kib: int = 4
    norm_max: int = 128
    memory_kib: int = 128
    times: int = 8
    shares: int = 3
    baud: int = BAUD

    @property
    def limits(self) -> Limits:
        """What a compiler has to know of its chip."""
        return Limits(self.array_dim, self.sram_kib << 10, self.acc_rows, self.norm_max, False)

    @property
    def memory_bytes(self) -> int:
        """Of its memory, from address 0 on."""
        return self.memory_kib << 10

    @property
    def megahertz(self) -> int:
        """Its clock."""
        return CRYSTAL * self.times // self.shares

    @property
    def divisor(self) -> int:
        """Cycles of a bit of the serial port."""
        return self.megahertz * 1_000_000 // self.baud

    @property
    def parameters(self) -> Mapping[str, int]:
        """Those of `npu_board`."""
        return {
            "ArrayDim": self.array_dim,
            "SramKiB": self.sram_kib,
            "AccRows": self.acc_rows,
            "FifoKiB": self.fifo_kib,
            "NormMax": self.norm_max,
            "MemoryKiB": self.memory_kib,
            "Divisor": self.divisor,
        }


BOARDS = {board.name: board for board in (Board("a4", 4), Board("a8", 8))}
"""The first is the usual one."""
USUAL = next(iter(BOARDS.values()))


@dataclass(frozen=True)
class Device:
    """Cells of a device."""

    lut4: int
    multipliers: int
    block_rams: int


DEVICE = Device(83_640, 156, 208)
"""LFE5UM5G-85F."""
CHIP = replace(CHIPS["a4"], narrow_formats=False)
"""What is in the chip of a board."""


def named(name: str) -> Board:
    """Return the board of a name.

    Raises:
        BoardError: there is none.
    """
    if name not in BOARDS:
        raise BoardError(f"given {name!r}, allowed {', '.join(BOARDS)}: chips for a board")
    return BOARDS[name]


def check_fits(board: Board, used: Device, device: Device = DEVICE) -> None:
    """Raise BoardError unless a device has the cells that a board needs."""
    names = {"lut4": "LUT4", "multipliers": "multipliers", "block_rams": "block RAMs"}
    for field, text in names.items():
        if (needs := getattr(used, field)) > (has := getattr(device, field)):
            raise BoardError(f"{board.name} does not fit: {needs:,} {text}, the device has {has:,}")


def board_sources() -> list[Path]:
    """Return the sources of chip and board, in the order in which they are read."""
    return sources.in_order([*sources.rtl_sources(), *HOME.glob("*.sv")])


def waivers() -> list[Path]:
    """Return the Verilator control files of chip and board; they go before the sources."""
    return [*sources.waivers(), *sorted(HOME.glob("*.vlt"))]
