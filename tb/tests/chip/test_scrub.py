# SPDX-License-Identifier: Apache-2.0
"""Between two hosts: what the first has left can be read without a scrub, and not behind one.

The first host does the same twice with other secrets. Whatever differs afterwards, in memories and
registers or in what a program can store, tells of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import cocotb
import numpy as np

from npu.asm import Program, assemble
from npu.driver.command.port import CommandPort
from npu.driver.errors import RequestError
from npu.driver.scrub import scrub, scrub_of
from spec.isa.coprocessor import CopOp, encode
from spec.isa.operands import share_bytes
from spec.regs import CMD_BASE, COP_BASE, SEQ_BASE, CmdReg, CopReg, SeqReg
from tb.bench.dut import Dut
from tb.bench.environment import INPUT, OUTPUT, STREAM, Bench
from tb.bench.offers import Offer, OfferPlayer
from tb.bench.residue import KINDS, residue
from tb.bench.scoreboard import compare_images

TAGS = ("seq", "cmd", "cop", "vec")

MEMORY = 0x0060_0000
"""Of the program that clears."""
BASES = (INPUT, OUTPUT, 0, 0, 0, 0, 0, 0)
LIMIT = 200_000
"""Cycles that a program may take."""
ROW = 1 << 14
FIRST_HOST = """
    DMA_LOAD dst=0 M=SRAM//ROW N=ROW b=0
    BARRIER ld
    GELU dst=0 src0=0 M=1 N=16 stream
    LAYERNORM dst=0x8000 src0=0x1000 M=1 N=NORM_MAX stream
    GEMM dst=0x10000 src0=0x18000 M=ACC_ROWS N=2*EDGE K=EDGE B=stream q=ch table
    GEMM dst=0x20000 src0=0x28000 M=1 N=2048 K=EDGE B=stream out=i32
    END
"""
SECOND_HOST = "DMA_STORE dst=0 M=SRAM//ROW N=ROW b=1\nEND"
OF_THE_PORT = (CmdReg.OP_A, CmdReg.OP_B, CmdReg.ACC, CmdReg.RESULT, CmdReg.RESULT_HI)
OF_THE_COPROCESSOR = (CopReg.ACC_LO, CopReg.ACC_HI, CopReg.FACC_LO, CopReg.FACC_HI, CopReg.VREG0)


@dataclass
class _Chip:
    """A chip that hosts use one after the other."""

    bench: Bench

    def _program(self, text: str) -> Program:
        limits = self.bench.limits
        sizes = {"EDGE": limits.edge, "ACC_ROWS": limits.acc_rows, "NORM_MAX": limits.norm_max}
        return assemble(text, symbols={"SRAM": limits.sram_bytes, "ROW": ROW, **sizes})

    async def _runs(self, text: str, stream: bytes = b"", token: int = 0) -> None:
        words = self._program(text).instructions
        await self.bench.chip.execute(self.bench.load(words, stream, bases=BASES, token=token))

    @property
    def has_port(self) -> bool:
        """Whether it has a command port."""
        return int(str(cocotb.plusargs["scratch_bytes"])) > 0

    @property
    def has_coprocessor(self) -> bool:
        """Whether it has a coprocessor."""
        return int(str(cocotb.plusargs["cop_sources"])) > 0

    def _secret(self, count: int) -> bytes:
        return self.bench.random.integers(1, 256, count, np.uint8).tobytes()

    async def first_host(self) -> None:
        """Leave a secret wherever an instruction, a register or an operation can."""
        bench = self.bench
        bench.memory.stage(INPUT, self._secret(bench.limits.sram_bytes))
        words = self._program(FIRST_HOST).instructions
        size = sum(share_bytes(word, bench.limits.edge) for word in words)
        await self._runs(FIRST_HOST, self._secret(size), int.from_bytes(self._secret(3), "little"))
        if self.has_port:
            port = await CommandPort.connect(bench.bus)
            await port.write_scratch(0, self._secret(port.scratch_bytes))
            a, b, acc = np.frombuffer(self._secret(12), np.uint32).tolist()
            await port.mul_lo(a, b)
            await port.write(CmdReg.ACC, acc)
            await port.clear()
        if self.has_coprocessor:
            a, b, place = (int(one) for one in bench.random.integers(1 << 24, 1 << 30, 3))
            offers = [
                Offer(encode(CopOp.MACC, 0, 1, 2), (a, b, 0)),
                Offer(encode(CopOp.FMACC, 0, 1, 2), (a, b, 0)),
                Offer(encode(CopOp.LDVEC, 0, 1), (INPUT + place % 4096 * 4, 0, 0)),
            ]
            await OfferPlayer(bench.dut, bench.run_dir).play(offers)

    async def second_host(self) -> dict[str, object]:
        """Return what can be found of the first one."""
        bench = self.bench
        found: dict[str, object] = {}
        if self.has_port:
            port = await CommandPort.connect(bench.bus)
            found["scratchpad"] = await port.read_scratch(0, port.scratch_bytes)
            found["operands and results"] = await self._read(CMD_BASE, *OF_THE_PORT)
        if self.has_coprocessor:
            found["coprocessor"] = await self._read(COP_BASE, *OF_THE_COPROCESSOR)
        found["last token"] = await self._read(SEQ_BASE, SeqReg.LAST_TOKEN)
        found |= await residue(bench.dut, bench.run_dir)
        await self._runs(SECOND_HOST)
        found["what a program stores"] = bench.memory.read(OUTPUT, bench.limits.sram_bytes)
        return found

    async def _read(self, window: int, *registers: int) -> list[int]:
        return [await self.bench.bus.read32(window + one) for one in registers]


@cocotb.test
async def test_scrub_leaves_nothing(dut: Dut) -> None:
    """Every kind of memory and register tells of a secret, until the chip is scrubbed."""
    chip = _Chip(await Bench.start(dut))
    bench = chip.bench
    bench.bus.limit = LIMIT
    told, left = [], []
    for _ in range(2):
        await chip.first_host()
        told.append(await chip.second_host())
        cycles = await scrub(bench.chip, MEMORY)
        left.append(await chip.second_host())
    silent = [kind for kind in told[0] if told[0][kind] == told[1][kind]]
    assert not silent, f"without a scrub nothing is left in {silent}"
    for kind, found in left[0].items():
        assert found == left[1][kind], f"{kind} tells of the secret behind a scrub"
    assert not any(left[0][kind] for kind in KINDS), "a memory is not zero"
    words = bench.limits.sram_bytes // 16
    dut._log.info("scrubbed in %d cycles, %d words of SRAM", cycles, words)
    a_word = 1 if bench.config.array_dim >= 16 else 2  # cycles, of the vector engine
    assert cycles <= 1.15 * a_word * words


@cocotb.test
async def test_scrub_is_a_program(dut: Dut) -> None:
    """Chip and model make the same of it, without a race, whatever is in the chip before."""
    bench = await Bench.start(dut)
    made = scrub_of(bench.chip.info)
    assert made.stream_bytes >= bench.chip.info.fifo_bytes
    bench.memory.stage(STREAM, bytes(made.stream_bytes))
    start = made.start(STREAM)
    bench.memory.stage(start.ucode_base, made.program.image())
    await bench.run(made.program.instructions, start)
    compare_images(np.zeros(bench.limits.sram_bytes, np.uint8), await bench.sync(), "SRAM")


@cocotb.test
async def test_scrub_waits_for_nobody(dut: Dut) -> None:
    """A running program is not disturbed: the scrub is refused, and works behind it."""
    bench = await Bench.start(dut)
    bench.bus.limit = LIMIT
    loop = assemble("again: NOP\nLOOP to=again\nEND").instructions
    await bench.chip.start(bench.load(loop, loop_left=2000, kv_cap=4000))
    before = await bench.sync()
    try:
        await scrub(bench.chip, MEMORY)
    except RequestError as error:
        assert "running program" in str(error)
    else:
        raise AssertionError("a chip with a running program was scrubbed")
    compare_images(before, await bench.sync(), "SRAM")
    await bench.bus.wait_interrupt()
    assert (await bench.chip.finish()).error is None
    await scrub(bench.chip, MEMORY)
    assert not (await bench.sync()).any()
