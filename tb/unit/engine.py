# SPDX-License-Identifier: Apache-2.0
"""An engine alone runs random programs of its own instructions; SRAM and memory must equal golden.

The chip's own sequencer decodes the words. Operands are put where they belong before a program
starts, and lie apart within it, so that each byte of the result is some instruction's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import cocotb
import numpy as np
import numpy.typing as npt

from golden.machine import ChipConfig, Machine, RunResult, StartState
from npu.asm import disassemble
from spec.isa import WORD, Instruction, Opcode
from tb.bench.dut import Dut
from tb.bench.environment import PROGRAM, STREAM
from tb.stimulus.random_case import Case, Generator, check_legal, draw
from tb.stimulus.simple_cases import DMA_BASES
from tb.stimulus.sram_space import NoRoomError, Space
from tb.unit.world import UnitBench, World

LIMIT = 400_000
"""Cycles that a program may take."""
CHIP = ChipConfig(array_dim=int(str(cocotb.plusargs["array_dim"])))
"""The sizes that the wrapper has."""


class WrongByteError(AssertionError):
    """The block and golden differ."""


@dataclass
class EngineBench:
    """An engine in its bench.

    Attributes:
        unit: what all benches have.
        cache_in_sram: whether programs find the K/V cache in SRAM; else in memory.
    """

    unit: UnitBench
    cache_in_sram: bool = False

    @classmethod
    def of(cls, dut: Dut) -> EngineBench:
        """Return the bench around a wrapper."""
        return cls(UnitBench.of(dut.u_engine))

    async def run_random(
        self, generators: Sequence[Generator], programs: int, most: int = 12
    ) -> None:
        """Run random programs of at most so many instructions that are drawn from generators."""
        for _ in range(programs):
            await self.run_program(draw(self.unit.random, generators, most))

    async def run_program(self, generators: Sequence[Generator]) -> None:
        """Run an instruction of each generator in a random world, as many as find room at once."""
        left = list(generators)
        while left:
            cases = _cases(self.unit.random, left)
            await self.run(cases, World.draw(self.unit.random))
            del left[: len(cases)]

    async def run(self, cases: Sequence[Case], world: World) -> None:
        """Run a program of these cases.

        Raises:
            WrongByteError: SRAM or memory differ from golden's; names the first difference.
            LateError: the program has not ended.
        """
        program, start = self._load(cases)
        sram, memory = np.array(self.unit.sram.data), np.array(self.unit.memory.data)
        model = Machine(CHIP, memory, sram, races=False).run(start)
        if model.error is not None:
            raise ValueError(f"a legal program was refused by golden: {model.error}")
        await self.unit.run(
            world,
            LIMIT,
            words=len(program),
            stream_bytes=start.stream_len,
            cache_in_sram=int(self.cache_in_sram),
        )
        for name, expected, actual in (
            ("SRAM", sram, self.unit.sram.data),
            ("memory", memory, self.unit.memory.data),
        ):
            if not np.array_equal(expected, actual):
                raise WrongByteError(
                    f"{_difference(name, expected, actual, model, program)}; {world}"
                )

    def _load(self, cases: Sequence[Case]) -> tuple[list[Instruction], StartState]:
        """Put a program, its stream and its operands where they belong."""
        program = [word for case in cases for word in case.words]
        check_legal(program, CHIP.array_dim)
        program.append(Instruction(Opcode.END))
        stream = b"".join(case.stream for case in cases)
        for address, data in (fill for case in cases for fill in case.fills):
            self.unit.sram.stage(address, data)
        self.unit.memory.stage(PROGRAM, b"".join(word.encode() for word in program))
        if stream:
            self.unit.memory.stage(STREAM, stream)
        start = StartState(PROGRAM, len(program), STREAM, len(stream), bases=DMA_BASES)
        return program, replace(start, kv_in_memory=not self.cache_in_sram)


def _cases(random: np.random.Generator, generators: Sequence[Generator]) -> list[Case]:
    """Return a case of each generator, as many as find room beside each other."""
    space = Space(random, CHIP.sram_bytes // WORD)
    cases: list[Case] = []
    for generator in generators:
        try:
            cases.append(generator(random, space))
        except NoRoomError:
            if not cases:
                raise
            break
    return cases


def _difference(
    name: str,
    expected: npt.NDArray[np.uint8],
    actual: npt.NDArray[np.uint8],
    model: RunResult,
    program: Sequence[Instruction],
) -> str:
    """Return the first difference between two images, and whose result it is."""
    wrong = np.flatnonzero(expected != actual)
    word = int(wrong[0]) // WORD
    here = slice(word * WORD, (word + 1) * WORD)
    return (
        f"{name}: {wrong.size} wrong bytes, first at {int(wrong[0]):#x}"
        f"{_writer(name, word, model, program)}: "
        f"expected {expected[here].tobytes().hex()}, actual {actual[here].tobytes().hex()}"
    )


def _writer(name: str, word: int, model: RunResult, program: Sequence[Instruction]) -> str:
    """Say which instruction writes a word of SRAM or memory, if one does."""
    writers = [
        write.instr
        for write in model.sram_writes
        if name == "SRAM" and write.address <= word < write.address + len(write.data)
    ]
    writers += [w.instr for w in model.memory_writes if name == "memory" and word in w.words]
    if not writers:
        return ", which nobody should write"
    instr = writers[-1]
    first = instr - 1 if instr and program[instr - 1].opcode == Opcode.PFX else instr
    return f", a result of word {instr}: {disassemble(program[first : instr + 1]).strip()}"
