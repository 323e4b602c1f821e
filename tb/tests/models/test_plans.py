# SPDX-License-Identifier: Apache-2.0
"""Plans: verified, bound to addresses and replayed, by registers and by the descriptor ring."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import cocotb
import numpy as np

from golden import session
from golden.graph import run
from npu.compiler import compile_model
from npu.compiler.model_plan import Place
from npu.compiler.network import compile_network
from npu.driver import generate
from npu.driver.chip import PAGE, MemoryRegion
from npu.driver.command import CommandBuffer, CommandPort, ProgramDescriptor
from npu.driver.command.buffer import PLACES
from npu.driver.command.descriptor import ENTRY
from npu.graph.form import Graph
from npu.graph.operations.port import FORMATS, TILED
from npu.planner.decoder_plan import plan_of_decoder
from npu.planner.network_plan import plan_of
from npu.planner.partition import subgraph
from npu.runtime.plan_files import files_of, plan_from
from npu.runtime.prepare import bases_from, prepare
from npu.runtime.replay import DrivenChip
from npu.runtime.sequence import SequenceEntry, SequenceError, load_sequence, run_sequence
from spec.isa import ErrorCode
from spec.isa.operands import up
from spec.regs import StartState
from tb.bench import logs
from tb.bench.dut import Dut
from tb.bench.environment import Bench, full
from tb.stimulus.random_graphs import random_graph
from tb.tests.models.plans import BOTH, FULL, LIMIT, SHORT, compare, drawn, loaded, product, spread
from weights.quantize import quantize_checkpoint
from weights.shipped import CHECKPOINTS as CHECKPOINT_FOLDER

TAGS = ("plans", "long")
TIMED = ("test_plans_batch_without_gaps",)

PLACEMENTS = 10
MOST_BETWEEN = 60
"""Cycles from the end of a program to the first dispatch of the next one of its batch."""
MIXED_SHORT, MIXED_FULL = 2, 30
"""Networks of a run."""
PRODUCTS = 100
"""Products of a full run; three seeds make 300."""
COUNT = 3
"""Tokens that the host picks one by one, and launches of a batch."""
CHECKPOINTS = ("gpt2", "llama", "mistral", "qwen2")


@cocotb.test
async def test_plans_at_ten_placements(dut: Dut) -> None:
    """One file, ten sets of addresses, by registers and by the ring: golden's outputs each time."""
    bench = await Bench.start(dut)
    bench.bus.limit = LIMIT
    for _ in range(FULL if full() else SHORT):
        plan, inputs, expected = drawn(bench, 3)
        for number in range(PLACEMENTS):
            prepared = prepare(plan, spread(bench.random, plan))
            replay = await loaded(bench, prepared)
            by = BOTH[number % 2]
            found = await replay.run(inputs, by)
            compare(found, expected, f"{prepared.bases}, by {by}")


@cocotb.test
async def test_plans_batch_without_gaps(dut: Dut) -> None:
    """Three launches of a batch within 60 cycles of one another leave what three starts leave."""
    bench = await Bench.start(dut)
    bench.bus.limit = LIMIT
    for _ in range(FULL if full() else SHORT):
        plan, inputs, expected = drawn(bench, 3)
        replay = await loaded(bench, prepare(plan))
        apart = await replay.run(inputs)
        before = await _milestones(bench)
        together = await replay.run(inputs, "ring")
        compare(apart, expected, "registers")
        for name, tensor in apart.tensors.items():
            assert np.array_equal(tensor, together.tensors[name], equal_nan=True), name
        gaps = _gaps(
            *(new[len(old) :] for old, new in zip(before, await _milestones(bench), strict=True))
        )
        assert len(gaps) == 2, gaps
        assert max(gaps) <= MOST_BETWEEN, gaps
        dut._log.info("cycles between programs: %s", gaps)


async def _milestones(bench: Bench) -> tuple[logs.Records, logs.Records]:
    """Return what engines have done and the milestones, from the start of the test on."""
    await bench.sync()
    return (
        np.fromfile(bench.run_dir / logs.EVENTS_FILE, logs.EVENT),
        np.fromfile(bench.run_dir / logs.TRACE_FILE, logs.EVENT),
    )


def _gaps(events: logs.Records, trace: logs.Records) -> list[int]:
    """Return the cycles from each end of a program to the first dispatch behind it."""
    ends = trace["cycle"][trace["kind"] == logs.FINISH].astype(int)
    begun = events["cycle"][events["kind"] == logs.DISPATCH].astype(int)
    return [int(begun[begun > end].min() - end) for end in ends if (begun > end).any()]


async def _apart_and_together(
    bench: Bench, starts: Sequence[StartState], ring: int, end: int
) -> None:
    """Start programs one by one by registers, then as one batch: the same in all of memory.

    Args:
        bench: with all that they need in memory.
        starts: of the programs; they differ in what a descriptor brings.
        ring: address for the descriptors.
        end: of the memory that they use.
    """
    region = MemoryRegion(0, up(end, PAGE), read=True, write=True)
    await bench.chip.protect([region])
    before = bench.memory.snapshot()
    left = []
    for start in starts:
        await bench.chip.execute(start)
        left.append(bench.memory.snapshot())
    assert all(not np.array_equal(*pair) for pair in pairwise([before, *left]))
    bench.memory.stage(0, before)
    port = await CommandPort.connect(bench.bus)
    await port.prepare(starts[0])
    buffer = await CommandBuffer.open(port, ring)
    for tag, start in enumerate(starts):
        buffer.add(ProgramDescriptor.of(start, tag))
    await buffer.submit()
    await buffer.wait()
    await port.clear()
    together, words = bench.memory.snapshot(), slice(ring, ring + PLACES * ENTRY)
    together[words] = before[words]
    bench.memory.data[words] = before[words]
    differ = np.flatnonzero(together != left[-1])
    assert not differ.size, f"{differ.size} bytes, the first at {differ[0]:#x}"


@cocotb.test
async def test_plans_launch_their_own_bases(dut: Dut) -> None:
    """Launches of a batch with arenas and constants of their own leave what each leaves alone."""
    bench = await Bench.start(dut)
    bench.bus.limit = LIMIT
    for _ in range(FULL if full() else SHORT):
        plan, _, _ = drawn(bench, 1)
        prepared = [prepare(plan)]
        while len(prepared) < COUNT:
            arena = prepared[-1].end // PAGE * PAGE + PAGE
            constants = up(arena + plan.arena, PAGE)
            bases = replace(prepared[0].bases, arena=arena, constants=constants)
            prepared.append(prepare(plan, bases))
        for one in prepared:
            await loaded(bench, one)
            bench.memory.stage(one.bases.arena, bench.random.bytes(plan.arena))
        starts = [one.starts[0] for one in prepared]
        await _apart_and_together(bench, starts, prepared[0].bases.ring, prepared[-1].end)


@cocotb.test
async def test_plans_launch_their_own_tokens(dut: Dut) -> None:
    """Steps of a decoder in one batch take each its own token to its own position."""
    bench = await Bench.start(dut)
    bench.bus.limit = LIMIT
    for family in CHECKPOINTS if full() else [str(bench.random.choice(CHECKPOINTS))]:
        model = quantize_checkpoint(str(CHECKPOINT_FOLDER / f"{family}-tiny"))
        compiled = compile_model(model, bench.limits, cache="memory")
        rows = int(bench.random.integers(2, 20))
        plan = plan_of_decoder(compiled, rows, logits=True, name=family)
        prepared = prepare(plan, spread(bench.random, plan))
        await loaded(bench, prepared)
        vocab = compiled.shape.vocab
        ids = bench.random.integers(0, vocab, rows).astype(np.uint32)
        bench.memory.stage(prepared.address("prompt"), ids)
        generation = prepared.generation()
        assert generation.prompt is not None
        assert generation.step is not None
        await bench.chip.execute(generation.prompt)
        tokens = bench.random.choice(vocab, COUNT, replace=False)
        starts = [
            replace(generation.step, pos=rows + number, token=int(token))
            for number, token in enumerate(tokens)
        ]
        await _apart_and_together(bench, starts, prepared.bases.ring, prepared.end)


@cocotb.test
async def test_plans_port_products(dut: Dut) -> None:
    """Products in every format, by register and by descriptor: golden's, and counted as such."""
    bench = await Bench.start(dut)
    bench.bus.limit = LIMIT
    port = await CommandPort.connect(bench.bus)
    names = list(FORMATS)
    for number in range(PRODUCTS if full() else len(names)):
        name = names[number % len(names)]
        m, k, n = (int(one) for one in bench.random.integers(1, (6, 40, 6)))
        graph, inputs = product(bench.random, name, (m, k, n))
        plan = plan_from(files_of(plan_of(compile_network(graph, bench.limits))))
        replay = await loaded(bench, prepare(plan, spread(bench.random, plan)))
        before = await port.counters()
        found = await replay.run(inputs, BOTH[int(bench.random.integers(2))])
        after = await port.counters()
        where = f"{name}, {m} x {k} x {n}"
        compare(found, run(graph, inputs), where)
        macs = m * k * n if name in TILED else 0
        assert after.macs - before.macs == macs == found.products["product"].macs, where
        assert after.ops - before.ops == found.products["product"].operations, where
        assert after.errors == before.errors, where


@cocotb.test
async def test_plans_mixed(dut: Dut) -> None:
    """Programs, products on the command port and the host in one network: golden's outputs."""
    bench = await Bench.start(dut)
    bench.bus.limit = LIMIT
    for number in range(MIXED_FULL if full() else MIXED_SHORT):
        seed = int(bench.random.integers(1 << 32))
        graph, inputs = random_graph(seed, operations=(4, 20), mixed=True)
        plan = plan_from(files_of(plan_of(compile_network(graph, bench.limits))))
        replay = await loaded(bench, prepare(plan, spread(bench.random, plan)))
        found = await replay.run(inputs, BOTH[number % 2])
        compare(found, run(graph, inputs), f"random_graph({seed}, mixed=True)")


@cocotb.test
async def test_plans_decoder(dut: Dut) -> None:
    """The plan of a decoder from its files, anywhere: by registers, by the ring, token by token."""
    bench = await Bench.start(dut)
    bench.bus.limit = LIMIT
    for family in CHECKPOINTS if full() else [str(bench.random.choice(CHECKPOINTS))]:
        model = quantize_checkpoint(str(CHECKPOINT_FOLDER / f"{family}-tiny"))
        where: Place = "memory" if bench.random.integers(2) else "sram"
        compiled = compile_model(model, bench.limits, cache=where)
        rows = int(bench.random.integers(110 if full() else 120, 125))
        count = min(COUNT, compiled.shape.context - rows + 1)
        ids = [int(one) for one in bench.random.integers(0, compiled.shape.vocab, rows)]
        expected = session.generate(model, ids, compiled.shape.context - rows + 1)
        plan = plan_from(files_of(plan_of_decoder(compiled, rows, logits=True, name=family)))
        for by in BOTH:
            prepared = prepare(plan, spread(bench.random, plan))
            replay = await loaded(bench, prepared)
            found = await replay.run({"prompt": np.array(ids, np.uint32)}, by)
            assert found.outputs["tokens"].tolist() == expected, f"{family}, cache in {where}, {by}"
        picked = await generate.sampled(
            bench.chip, prepared.generation(), count, lambda row: int(np.argmax(row))
        )
        assert picked.ids == expected[:count], f"{family}, cache in {where}, token by token"


@cocotb.test
async def test_plans_sequence(dut: Dut) -> None:
    """A network cut into three plans that run as one sequence; a failure stops it at its plan."""
    bench = await Bench.start(dut)
    bench.bus.limit = LIMIT
    chip = DrivenChip(bench.chip)
    for _ in range(FULL if full() else SHORT):
        graph, inputs = random_graph(int(bench.random.integers(1 << 32)), operations=(6, 14))
        expected = run(graph, inputs)
        entries = _entries(bench, graph)
        await load_sequence(chip, entries)
        found = await run_sequence(chip, entries, inputs)
        values = {name: value for one in found for name, value in one.outputs.items()}
        for name, value in expected.items():
            assert np.array_equal(values[name], value, equal_nan=True), name
        last = max(i for i, one in enumerate(entries) if one.plan.segments)
        program = entries[last].prepared.starts[0].ucode_base
        whole = bench.memory.read(program, 16)
        bench.memory.stage(program, b"\xff" * 16)
        try:
            await run_sequence(chip, entries, inputs)
            raise AssertionError("no error")
        except SequenceError as error:
            assert error.entry == last, error
            assert f"entries[{last}], plan 'part{last}': steps[" in str(error), error
            assert ErrorCode.ILLEGAL_FIELD.name in str(error), error
            assert len(error.done) == last
        bench.memory.stage(program, whole)
        assert len(await run_sequence(chip, entries, inputs)) == len(entries)


def _entries(bench: Bench, graph: Graph) -> list[SequenceEntry]:
    """Return a network as three plans, each of which takes what those before it have made."""
    cuts = np.sort(bench.random.choice(len(graph.operations) - 1, 2, replace=False)) + 1
    pieces = np.split(np.arange(len(graph.operations)), cuts)
    found: list[SequenceEntry] = []
    made: dict[str, str] = {}
    at = PAGE
    for number, piece in enumerate(pieces):
        part = subgraph(graph, [graph.operations[i] for i in piece])
        plan = plan_of(compile_network(part, bench.limits))
        prepared = prepare(plan, bases_from(plan, at))
        at = prepared.end
        takes = {name: made[name] for name in part.inputs if name in made}
        found.append(
            SequenceEntry(f"part{number}", prepared, takes, BOTH[int(bench.random.integers(2))])
        )
        made |= {name: f"part{number}.{name}" for name in part.outputs}
    return found
