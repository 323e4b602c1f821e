# SPDX-License-Identifier: Apache-2.0
"""What hostile runs draw, and what they let pass."""

from __future__ import annotations

import numpy as np
import pytest

from golden.machine import ChipConfig, Machine, StartState
from spec.isa import WORD, Engine
from tb.bench.environment import PROGRAM, STREAM
from tb.bench.knobs import Knobs
from tb.bench.memory import Memory
from tb.bench.scoreboard import MismatchError
from tb.stimulus.dependent_programs import Surroundings, draw
from tb.stimulus.hostile_runs import FAULTS, HostileScene, one_of, plan


@pytest.fixture(name="scene", scope="module")
def _scene() -> HostileScene:
    """Return a program of dependent instructions that the model has run."""
    random = np.random.default_rng(3)
    memory = Memory(random.integers(0, 256, 1 << 24, np.uint8))
    sram = random.integers(0, 256, ChipConfig().sram_bytes, np.uint8)
    program = draw(random, Surroundings(ChipConfig(), memory, sram), loop=True)
    memory.stage(PROGRAM, b"".join(word.encode() for word in program.words))
    memory.stage(STREAM, program.stream)
    draft, length = program.draft, len(program.stream)
    start = StartState(PROGRAM, len(program.words), STREAM, length, **draft.registers)
    new = sram.copy(), memory.snapshot()
    model = Machine(ChipConfig(), new[1], new[0], races=False).run(start)
    return HostileScene(program, start, model, (sram, memory.data), new)


def test_faults_lie_where_the_program_goes(scene: HostileScene) -> None:
    """Every range of errors begins at a word that is read, or written, and someone is to blame."""
    random = np.random.default_rng(1)
    for fault, written in (("READ_ERROR", False), ("WRITE_ERROR", True)):
        for _ in range(50):
            knobs = plan(random, scene, [fault]).knobs
            assert (knobs.read_error, knobs.write_error) == (not written, written)
            word = knobs.error_first // WORD
            assert word in scene.touched(written=written)
            assert any(
                scene.uses(engine, instr, word, written=written)
                for engine in (Engine.LD, Engine.ST, Engine.SEQ, Engine.STREAM)
                for instr in range(len(scene.program.words))
            )


def test_all_knobs_are_drawn(scene: HostileScene) -> None:
    """Each knob of the memory has several values, with every fault in the plan."""
    random = np.random.default_rng(2)
    plans = [plan(random, scene, FAULTS) for _ in range(100)]
    for name in ("latency", "spread", "gap", "silent"):
        for side in ("read", "write"):
            assert len({getattr(one.knobs, f"{side}_{name}") for one in plans}) > 1
    for name in ("ar_stall", "aw_stall", "w_stall", "host_stall", "interleave"):
        assert len({getattr(one.knobs, name) for one in plans}) > 1
    assert len({bool(one.silence) for one in plans}) == 2


def test_what_a_stopped_program_may_leave(scene: HostileScene) -> None:
    """Old bytes and complete ones pass, and every state between; another byte does not."""
    steps = [(write.words, write.data) for write in scene.model.memory_writes]
    assert steps
    old, new = scene.old[1], scene.new[1]
    one_of("memory", old, steps, old)
    one_of("memory", old, steps, new)
    between = old.copy()
    for words, data in steps[: len(steps) // 2]:
        between.reshape(-1, WORD)[words] = data
    one_of("memory", old, steps, between)
    between[int(steps[0][0][0]) * WORD] ^= 0x5A
    with pytest.raises(MismatchError, match="1 bytes that are neither old nor the program's"):
        one_of("memory", old, steps, between)


def test_a_hostile_memory_leaves_what_a_test_asks_for() -> None:
    """Only knobs that a test leaves as usual are drawn, and errors or silence never are."""
    asked = Knobs(read_latency=3, read_error=1, error_last=9)
    drawn = Knobs.hostile(np.random.default_rng(7))
    both = asked.or_else(drawn)
    assert both.read_latency == 3
    assert both.write_latency == drawn.write_latency != Knobs().write_latency
    assert (both.read_error, both.error_last, both.read_silent) == (1, 9, 0)
    assert asked.or_else(Knobs()) == asked
