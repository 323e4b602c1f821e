# SPDX-License-Identifier: Apache-2.0
"""What a host does with a chip, from identification to the next program after an error.

One coroutine on the driver's chip; it runs on the RTL, on the reference, and would on hardware.
"""

from __future__ import annotations

from npu.asm import assemble
from npu.driver.chip import PAGE, Chip, MemoryRegion
from npu.driver.errors import ProgramFailed
from spec.regs import ChipReg, SeqReg, StartState

PROGRAM, INPUT, OUTPUT = 0x1_0000, 0x2_0000, 0x3_0000
COPY = assemble(
    """
    DMA_LOAD dst=0 off=0 M=1 N=64 b=0
    BARRIER ld
    DMA_STORE dst=0 off=0 M=1 N=64 b=1
    END
    """
)
STORE_AT = 2
"""The word of COPY that stores."""
COUNT = assemble("again: NOP\nLOOP to=again\nEND")


def _bases(source: int, destination: int) -> tuple[int, ...]:
    return (source, destination, 0, 0, 0, 0, 0, 0)


async def _set_up(chip: Chip) -> list[str]:
    """Set everything that a host sets before its first program."""
    await chip.set_timeout(5000)
    await chip.set_stream_limit(4)
    await chip.enable_interrupts(program=True, command=False)
    code = MemoryRegion(PROGRAM, PAGE, read=True, write=False)
    data = MemoryRegion(INPUT, 2 * (OUTPUT - INPUT), read=True, write=True)
    await chip.protect([code, data])
    places = [ChipReg.MEM_TIMEOUT, ChipReg.IRQ_ENABLE]
    places += [ChipReg.REGION0_LIMIT, ChipReg.REGION1_CTRL, ChipReg.REGION2_CTRL]
    found = [f"{place.name} {await chip.read_chip(place):#x}" for place in places]
    return [*found, f"STREAM_LIMIT {await chip.read_seq(SeqReg.STREAM_LIMIT)}"]


async def _copy(chip: Chip, data: bytes) -> list[str]:
    """Copy bytes through the SRAM."""
    chip.stage([(PROGRAM, COPY.image()), (INPUT, data), (OUTPUT, bytes(len(data)))])
    start = StartState(PROGRAM, len(COPY.instructions), bases=_bases(INPUT, OUTPUT))
    finish = await chip.execute(start)
    assert finish.error is None
    return [f"copied {chip.bus.read_memory(OUTPUT, len(data)).hex()}"]


async def _loop(chip: Chip) -> list[str]:
    """Let the chip count its turns, and look at what it leaves."""
    chip.stage([(PROGRAM, COUNT.image())])
    start = StartState(PROGRAM, len(COUNT.instructions), pos=7, token=3, loop_left=4, kv_cap=100)
    finish = await chip.execute(start)
    assert finish.last == await chip.last()
    return [f"left {finish.last}", f"report {await chip.status()}"]


async def _refusal(chip: Chip) -> list[str]:
    """Run a program into the end of its context; clear the report."""
    chip.stage([(PROGRAM, COUNT.image())])
    start = StartState(PROGRAM, len(COUNT.instructions), pos=7, loop_left=4, kv_cap=9)
    try:
        await chip.execute(start)
    except ProgramFailed as error:
        seen = [f"refused: {error}", f"report {await chip.report() == error.report}"]
    else:
        seen = ["not refused"]
    await chip.clear_error()
    return [*seen, f"cleared {await chip.report()} {await chip.state()}"]


async def _idle(chip: Chip) -> dict[str, int]:
    """Return the state once a soft reset is through: a few cycles where the bus is quiet."""
    for _ in range(8):
        if not (now := await chip.state())["BUSY"]:
            break
    return now


async def session(chip: Chip, data: bytes) -> list[str]:
    """Drive a chip that has been reset; return what was seen, line by line.

    Args:
        chip: with memory up to 0x4_0000.
        data: 64 bytes to copy.
    """
    seen = [f"chip {chip.info.version} with beats of {chip.info.axi_bytes} bytes"]
    seen += await _set_up(chip)
    seen += await _copy(chip, data)
    seen += await _loop(chip)
    seen += await _refusal(chip)
    await chip.clear_counters()
    seen += await _copy(chip, data[::-1])
    await chip.abort()
    await chip.soft_reset()
    return [*seen, f"at the end {await _idle(chip)}"]
