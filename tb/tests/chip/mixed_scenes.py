# SPDX-License-Identifier: Apache-2.0
"""Random work for all front doors of the chip at once: a program, the ring, the coprocessor.

The program is a random one or that of a random graph. Each door has a piece of memory of its own,
so that the order in which they come to the bus does not matter: one model of the chip executes them
one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import cocotb
import numpy as np
import numpy.typing as npt
from cocotb.triggers import ClockCycles

from golden.command.model import ModelBus
from golden.coprocessor import Coprocessor
from golden.machine import StartState
from npu.driver.chip import start_accesses
from spec.isa.operands import Limits
from spec.regs import CHIP_BASE, CHIP_FIELDS, SEQ_BASE, SEQ_FIELDS, ChipReg, CmdOp, CmdReg
from spec.regs.generated import CopReg, SeqReg
from tb.bench import graph_coverage
from tb.bench.environment import Bench, reset
from tb.bench.knobs import Knobs
from tb.bench.offers import Offer, OfferPlayer
from tb.bench.scenes import Keep, chosen, names_of
from tb.bench.scoreboard import MismatchError, compare_images
from tb.command.chip_and_model import PairBus
from tb.command.command_session import RING, CommandSession
from tb.command.descriptor_words import SCALARS, DescriptorWords, TileWords, launch
from tb.command.faulty_memory import ModelMemory
from tb.command.random_descriptors import Maker
from tb.cop.cop_memory import CopMemory
from tb.cop.cop_session import CopSession
from tb.cop.random_offers import MANNERS, OfferMaker, Pieces, describe
from tb.stimulus.dependent_programs import Dependent, Draft, Surroundings, draw
from tb.tests.chip.scene_graphs import SceneGraph, draw_graph

CASES, DESCRIPTORS, OFFERS = 12, 10, 25
"""Most parts of a scene: cases of its program, descriptors, instructions of the coprocessor."""
GRAPHS = 0.2
"""Share of the scenes whose program comes from a graph."""
TOGETHER = 3
"""Descriptors that are put into the ring at once."""
LIMIT = 300_000
"""Cycles that a scene may take."""
_START, _CMD_IRQ = SEQ_FIELDS["CTRL_START"].mask, CHIP_FIELDS["IRQ_ENABLE_CMD"].mask


@dataclass(frozen=True)
class MixedScene:
    """What the three doors are given.

    Attributes:
        draft: of the program; without cases there is none, or that of the graph.
        graph: what the program was compiled from, None for another one or none.
        launched: the program is started by the ring, else by registers.
        descriptors: for the ring.
        offers: for the coprocessor.
        pieces: what the coprocessor's list finds in memory.
        limit: the coprocessor's register LIMIT.
        knobs: the memory.
    """

    draft: Draft
    graph: SceneGraph | None
    launched: bool
    descriptors: Sequence[DescriptorWords]
    offers: Sequence[Offer]
    pieces: Pieces
    limit: int
    knobs: Knobs

    @property
    def parts(self) -> list[str]:
        """Names of all parts, as KEEP= takes them."""
        return [
            *self.draft.names,
            *(self.graph.names if self.graph else ()),
            *names_of("r", self.descriptors),
            *names_of("c", self.offers),
        ]

    def keeping(self, keep: Keep) -> MixedScene:
        """Return the scene with some of its parts."""
        return replace(
            self,
            draft=self.draft.keeping(keep),
            graph=self.graph.keeping(keep) if self.graph else None,
            descriptors=chosen("r", self.descriptors, keep),
            offers=chosen("c", self.offers, keep),
        )


def draw_mixed(
    random: np.random.Generator, around: Surroundings, limits: Limits, scratch_bytes: int
) -> MixedScene:
    """Return a random scene.

    Args:
        random: the generator.
        around: chip, memory and SRAM; lists of rows are put into its memory.
        limits: sizes of the chip, for graphs.
        scratch_bytes: size of the command port's scratchpad.
    """
    graph = draw_graph(random, limits) if random.random() < GRAPHS else None
    draft = Draft((), None, {})
    if graph is None:
        loop = bool(random.integers(2))
        draft = draw(random, around, loop=loop, cases=int(random.integers(3, CASES + 1))).draft
    maker = Maker(random, scratch_bytes)
    descriptors = [
        maker.plain(SCALARS[int(random.integers(len(SCALARS)))], TileWords())
        if random.random() < 0.3
        else maker.extended(CmdOp(int(random.integers(16))))
        for _ in range(int(random.integers(1, DESCRIPTORS + 1)))
    ]
    limit = int(random.choice((256, 64, 1000)))
    offers = OfferMaker(
        random, limit=limit, manner=MANNERS[int(random.integers(len(MANNERS)))], cuts=False
    )
    made = offers.list(int(random.integers(1, OFFERS + 1)))
    return MixedScene(
        draft,
        graph,
        bool(random.random() < 0.3),
        descriptors,
        made,
        dict(offers.pieces),
        limit,
        Knobs() if random.random() < 0.3 else Knobs.hostile(random),
    )


@dataclass
class _Doors:
    """A chip after reset and its model, with what the host does at each door.

    Attributes:
        bench: the bench around the chip.
        command: registers and ring.
        cop: the coprocessor's port.
        sram: that of the model.
    """

    bench: Bench
    command: CommandSession
    cop: CopSession
    sram: npt.NDArray[np.uint8]

    @classmethod
    async def open(cls, bench: Bench, knobs: Knobs) -> _Doors:
        """Put a model beside a chip that has been reset."""
        scratch_bytes = int(str(cocotb.plusargs["scratch_bytes"]))
        memory = ModelMemory(bench.memory.snapshot())
        memory.obey(knobs)
        cop_memory = CopMemory(memory.data, knobs=knobs)
        coprocessor = Coprocessor(cop_memory, num_rs=int(str(cocotb.plusargs["cop_sources"])))
        sram = await bench.sync()
        model = ModelBus(
            memory.data,
            config=bench.config,
            scratch_bytes=scratch_bytes,
            faults=memory,
            sram=sram,
            coprocessor=coprocessor,
        )
        command = CommandSession(bench, PairBus(bench.bus, model, memory), memory, scratch_bytes)
        await command.write(CmdReg.DESC_BASE, RING)
        player = OfferPlayer(bench.dut, bench.run_dir)
        return cls(bench, command, CopSession(bench, player, cop_memory, coprocessor), sram)

    async def start_program(self, start: StartState) -> None:
        """Write the registers that a program starts with."""
        for one in start_accesses(start)[:-1]:
            # The interrupt line is the command port's.
            is_enable = one.address == CHIP_BASE + ChipReg.IRQ_ENABLE
            await self.command.bus.write32(one.address, _CMD_IRQ if is_enable else one.value or 0)

    async def run_ring(self, descriptors: Sequence[DescriptorWords]) -> bool:
        """Have the ring execute descriptors, a few at a time.

        Returns:
            whether program and coprocessor were both still at work behind some of them.
        """
        together = False
        for first in range(0, len(descriptors), TOGETHER):
            if not await self.command.run(*descriptors[first : first + TOGETHER]):
                raise MismatchError(f"the ring failed at descriptor {first} or behind it")
            together |= self.cop.player.playing and bool((await self.bench.chip.state())["BUSY"])
        return together

    async def end_program(self) -> None:
        """Wait for the end of the program; compare its report and what it left in SRAM."""
        for _ in range(LIMIT // 50):
            if not (await self.bench.chip.state())["BUSY"]:
                break
            await ClockCycles(self.bench.dut.clk, 50)
        for register in (SeqReg.STATUS, SeqReg.ERROR_INSTR, SeqReg.ERROR_ADDR, SeqReg.LAST_TOKEN):
            await self.command.bus.read32(SEQ_BASE + register)
        compare_images(self.sram, await self.bench.sync(), "SRAM")


async def run_mixed(bench: Bench, scene: MixedScene, program: Dependent) -> bool:
    """Run a scene on a chip fresh from reset; all doors work at once.

    Args:
        bench: around the chip.
        scene: what they are given.
        program: that of its draft.

    Returns:
        whether all doors were seen at work together.

    Raises:
        MismatchError: chip and model differ.
        DeviceError: the chip did not end.
    """
    await reset(bench.dut)
    await bench.set_knobs(scene.knobs)
    start = bench.load(program.words, program.stream, **scene.draft.registers)
    if scene.graph is not None:
        scene.graph.stage(bench.memory)
        start = scene.graph.start
    for address, data in scene.pieces.items():
        bench.memory.stage(address, data)
    doors = await _Doors.open(bench, scene.knobs)
    await doors.cop.write(CopReg.LIMIT, scene.limit)
    await doors.cop.write(CopReg.CTRL, 0)  # an instruction that fails does not end the list
    if scene.offers:
        doors.cop.player.begin(scene.offers)
    descriptors = list(scene.descriptors)
    if scene.draft.cases or scene.graph is not None:
        await doors.start_program(start)
        if scene.launched:
            place, length, pos = start.ucode_base, start.ucode_len, start.pos
            words = launch(place, length, base0=start.bases[0], base1=start.bases[1], pos=pos)
            descriptors.insert(len(descriptors) // 2, words)
        else:
            await doors.command.bus.write32(SEQ_BASE + SeqReg.CTRL, _START)
    together = await doors.run_ring(descriptors)
    await doors.end_program()
    answers = await doors.cop.player.finish(len(scene.offers), LIMIT)
    doors.cop.check(scene.offers, answers)
    await doors.cop.compare()
    await doors.command.compare()
    if scene.graph is not None:
        scene.graph.check(bench.memory)
        bench.add_hits(graph_coverage.samples(scene.graph.graph))
    return together


def describe_mixed(scene: MixedScene, program: Dependent) -> str:
    """Return a scene and its program for people, part by part."""
    return "\n".join(
        [
            f"; a program that {'the ring' if scene.launched else 'the host'} starts",
            scene.graph.text() if scene.graph else program.text().rstrip(),
            *(f"descriptor {one}" for one in scene.descriptors),
            *(f"instruction {describe(one)}  {one}" for one in scene.offers),
            f"LIMIT={scene.limit}; memory: {scene.knobs.unusual}",
        ]
    )
