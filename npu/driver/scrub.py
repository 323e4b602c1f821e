# SPDX-License-Identifier: Apache-2.0
"""Clears what one host's programs have left in a chip before another host gets it.

What a program may read of an earlier one is in SRAM; in the scratchpad, operands and results of the
command port; in the coprocessor's registers. Accumulators, tables, parameters of norms and the
stream's FIFO keep data that no instruction reads; it is overwritten all the same. No circuit does
this: the vector engine clears 16 bytes of SRAM in a cycle, all of it in the time of one pass, while
a stream of zeros goes through the other engines beside it.
"""

from __future__ import annotations

from dataclasses import dataclass

from npu.asm import Program, assemble
from npu.driver.chip import Chip
from npu.driver.command.port import CommandPort
from npu.driver.errors import WORD, RequestError, whole
from npu.driver.identity import ChipInfo
from spec.isa import LINE
from spec.isa.operands import share_bytes, up
from spec.regs import CMD_BASE, CMD_FIELDS, CmdReg, StartState

_LONGEST_ROW = 1 << 14
"""Bytes of a row in which SRAM is cleared."""
_TEXT = """
    ; the other engines work on the zeros below REST while what is behind it is cleared
    VEC op=clamp dst=0 src0=0 lo=0 hi=0 M=REST//ROW N=ROW
    BARRIER vec
    GELU dst=TABLE src0=TABLE M=1 N=16 stream
    VEC op=clamp dst=REST src0=REST lo=0 hi=0 M=(END-REST)//ROW N=ROW
    LAYERNORM dst=NORMED src0=NORM M=1 N=NORM_MAX stream
    ; two column tiles: both banks of accumulators, both sets of weights
    GEMM dst=SUMS src0=ROWS M=ACC_ROWS N=2*EDGE K=EDGE B=stream q=ch table
    .if TILES  ; until the whole FIFO has been written
    GEMM dst=LONG src0=ROWS M=1 N=TILES*EDGE K=EDGE B=stream out=i32
    .endif
    END
"""


@dataclass(frozen=True)
class Scrub:
    """A program that clears a chip.

    Attributes:
        program: its words.
        stream_bytes: of its stream, which is all zeros.
    """

    program: Program
    stream_bytes: int

    @property
    def image(self) -> bytes:
        """The stream and behind it the program, as they lie in memory."""
        return bytes(self.stream_bytes) + self.program.image()

    def start(self, memory: int) -> StartState:
        """Return how the program starts whose image lies at an address, a multiple of 64."""
        words = len(self.program.instructions)
        return StartState(memory + self.stream_bytes, words, memory, self.stream_bytes)


def scrub_of(info: ChipInfo) -> Scrub:
    """Return what clears a chip.

    Raises:
        RequestError: its SRAM is too small for a row of the longest norm and all accumulators.
    """
    limits = info.limits
    edge, rows = limits.edge, limits.acc_rows
    tiles = max(0, -((4 * limits.norm_max - info.fifo_bytes) // (edge * edge)))
    places, at = {}, 0
    for name, size in (
        ("TABLE", 16),
        ("NORM", 2 * limits.norm_max),
        ("NORMED", limits.norm_max),
        ("ROWS", rows * edge),
        ("SUMS", rows * 2 * edge),
        ("LONG", 4 * tiles * edge),
    ):
        places[name] = at
        at = up(at + size)
    end = limits.sram_bytes
    row = min(_LONGEST_ROW, end & -end)
    rest = up(at, row)
    if rest >= end:
        raise RequestError("scrub", f"a chip with {end:,} bytes of SRAM", f"{rest + row:,} or more")
    symbols = places | {"REST": rest, "ROW": row, "END": end, "TILES": tiles}
    symbols |= {"EDGE": edge, "ACC_ROWS": rows, "NORM_MAX": limits.norm_max}
    program = assemble(_TEXT, filename="scrub", symbols=symbols, limits=limits)
    return Scrub(program, sum(share_bytes(word, edge) for word in program.instructions))


async def scrub(chip: Chip, memory: int) -> int:
    """Clear what earlier programs have left in an idle chip; afterwards it is idle.

    Stops the coprocessor's instructions and clears its registers, as a soft reset does. Memory,
    regions and registers that hold addresses or settings stay as they are.

    Args:
        chip: to clear.
        memory: address of a piece of memory, a multiple of 64, that the chip may read; its first
            `len(scrub_of(chip.info).image)` bytes are overwritten.

    Returns:
        cycles of the program.

    Raises:
        RequestError: the chip is busy, or an argument is wrong; nothing was changed.
        ProgramFailed: the chip could not read the piece of memory.
    """
    scrub = scrub_of(chip.info)
    image = scrub.image
    whole("scrub.memory", memory, 0, WORD + 1 - len(image), LINE)
    if (await chip.state())["BUSY"]:
        raise RequestError("scrub", "a running program", "an idle chip")
    port = await _port(chip)
    await chip.soft_reset()
    while (await chip.state())["BUSY"]:
        pass
    chip.stage([(memory, image)])
    finish = await chip.execute(scrub.start(memory))
    await chip.clear_counters()
    if port is not None:
        await port.write_scratch(0, bytes(port.scratch_bytes))
        await port.add(0, 0)
        await port.write_tile((0, 0, 0))
        await port.clear()
        await port.clear_counters()
    return finish.counters.cycles


async def _port(chip: Chip) -> CommandPort | None:
    """Return the command port of a chip, None if it has none.

    Raises:
        RequestError: it is at work.
    """
    config = await chip.bus.read32(CMD_BASE + CmdReg.CMD_CONFIG)
    if not CMD_FIELDS["CMD_CONFIG_SCRATCH_BYTES"].get(config):
        return None
    status = await chip.bus.read32(CMD_BASE + CmdReg.CTRL_STATUS)
    if CMD_FIELDS["CTRL_STATUS_BUSY"].get(status):
        raise RequestError("scrub", "a running operation of the command port", "an idle chip")
    return await CommandPort.connect(chip.bus)
