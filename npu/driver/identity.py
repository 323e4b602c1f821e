# SPDX-License-Identifier: Apache-2.0
"""Which chip is behind a bus: identification, versions and sizes out of the chip's window."""

from __future__ import annotations

from dataclasses import dataclass

from npu.driver.bus import Bus, RegisterAccess, access
from npu.driver.errors import RequestError
from spec.isa import ISA_VERSION, LINE
from spec.isa.operands import Limits
from spec.regs import CHIP_BASE, CHIP_FIELDS, ChipReg
from spec.regs.generated import CHIP_ID_VALUE, CHIP_VERSION_REG_MAP_VALUE


@dataclass(frozen=True, slots=True)
class ChipInfo:
    """What the chip's window says about it.

    Attributes:
        version: major and minor version of the chip.
        limits: what the compiler must know of it.
        fifo_bytes: size of the stream FIFO.
        axi_bytes: bytes of a beat on the memory bus.
    """

    version: tuple[int, int]
    limits: Limits
    fifo_bytes: int
    axi_bytes: int


async def identify(bus: Bus) -> int:
    """Return VERSION of the chip behind a bus.

    Raises:
        RequestError: the chip is another one, or its register map has another version.
    """
    places = (ChipReg.ID, ChipReg.VERSION)
    found, version = await access(bus, [RegisterAccess(CHIP_BASE + place) for place in places])
    if found != CHIP_ID_VALUE:
        raise RequestError("ID", f"{found:#010x}", f"{CHIP_ID_VALUE:#010x}")
    found = CHIP_FIELDS["VERSION_REG_MAP"].get(version)
    if found != CHIP_VERSION_REG_MAP_VALUE:
        raise RequestError("VERSION.REG_MAP", found, str(CHIP_VERSION_REG_MAP_VALUE))
    return version


async def chip_info(bus: Bus) -> ChipInfo:
    """Return what the chip behind a bus says about itself.

    Raises:
        RequestError: another chip, register map or instruction set than this driver knows.
    """
    version = await identify(bus)
    isa = CHIP_FIELDS["VERSION_ISA"].get(version)
    if isa != ISA_VERSION:
        raise RequestError("VERSION.ISA", isa, str(ISA_VERSION))
    places = (ChipReg.CONFIG0, ChipReg.CONFIG1, ChipReg.CONFIG2)
    array, rows, rest = await access(bus, [RegisterAccess(CHIP_BASE + place) for place in places])
    fields = CHIP_FIELDS
    return ChipInfo(
        version=(
            fields["VERSION_CHIP_MAJOR"].get(version),
            fields["VERSION_CHIP_MINOR"].get(version),
        ),
        limits=Limits(
            array_dim=fields["CONFIG0_ARRAY_DIM"].get(array),
            sram_bytes=fields["CONFIG0_SRAM_KIB"].get(array) * 1024,
            acc_rows=fields["CONFIG1_ACC_ROWS"].get(rows),
            norm_max=fields["CONFIG2_NORM_MAX"].get(rest),
            narrow_formats=bool(fields["CONFIG2_NARROW_FORMATS"].get(rest)),
        ),
        fifo_bytes=fields["CONFIG1_FIFO_LINES"].get(rows) * LINE,
        axi_bytes=fields["CONFIG2_AXI_BYTES"].get(rest),
    )
