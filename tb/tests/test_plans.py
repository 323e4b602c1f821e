# SPDX-License-Identifier: Apache-2.0
"""Plans: verified, bound to addresses and replayed, by registers and by the descriptor ring."""

from __future__ import annotations

from collections.abc import Mapping

import cocotb
import numpy as np

from golden import session
from golden.graph import run
from npu.compiler import compile_model
from npu.compiler.model_plan import Place
from npu.compiler.network import compile_network
from npu.driver import generate
from npu.driver.chip import PAGE
from npu.driver.command import CommandPort
from npu.driver.errors import RequestError
from npu.graph.form import (
    Array,
    Attribute,
    Element,
    Graph,
    Operation,
    Target,
    Tensor,
    TensorType,
)
from npu.graph.form import Place as GraphPlace
from npu.graph.operations.port import FORMATS, GROUPED, TILED
from npu.isa import ErrorCode
from npu.planner.decoder_plan import plan_of_decoder
from npu.planner.network_plan import plan_of
from npu.planner.partition import subgraph
from npu.regs import SEQ_FIELDS, SeqReg
from npu.runtime.plan import Plan
from npu.runtime.plan_files import files_of, plan_from
from npu.runtime.prepare import Bases, Prepared, bases_from, prepare, sizes_of
from npu.runtime.replay import By, DrivenChip, NetworkRun, Replay, ReplayError
from npu.runtime.sequence import Entry, SequenceError, load_sequence, run_sequence
from tb.bench import logs
from tb.bench.dut import Dut
from tb.bench.environment import Bench, full
from tb.bench.knobs import Knobs
from tb.stimulus.port_operands import port_operands
from tb.stimulus.random_graphs import random_graph
from weights.quantize import quantize_checkpoint
from weights.shipped import CHECKPOINTS as CHECKPOINT_FOLDER

LIMIT = 4_000_000
"""Cycles that a batch may take."""
PLACEMENTS = 10
ROOM = 8 << 20
"""Bytes of memory over which parts are spread."""
MOST_BETWEEN = 60
"""Cycles from the end of a program to the first dispatch of the next one of its batch."""
BOTH: tuple[By, ...] = ("registers", "ring")
SHORT, FULL = 1, 12
MIXED_SHORT, MIXED_FULL = 2, 30
"""Networks of a run."""
PRODUCTS = 100
"""Products of a full run; three seeds make 300."""
COUNT = 3
"""Tokens that the host picks one by one."""
CHECKPOINTS = ("gpt2", "llama", "mistral", "qwen2")
PORT = GraphPlace(Target.PORT, "drawn for the command port")


def _drawn(bench: Bench, launches: int) -> tuple[Plan, Mapping[str, Array], Mapping[str, Array]]:
    """Return a random network cut into launches, inputs, and what golden makes of them.

    The plan has been written and read back: its verification is part of every test.
    """
    while True:
        seed = int(bench.random.integers(1 << 32))
        graph, inputs = random_graph(seed, operations=(6, 14))
        whole = compile_network(graph, bench.limits)
        if len(whole.segments) != 1 or len(whole.segments[0].first_word) < launches:
            continue
        names = list(whole.segments[0].first_word)
        cuts = np.sort(bench.random.choice(len(names) - 1, launches - 1, replace=False))
        network = compile_network(graph, bench.limits, split=[names[i] for i in cuts])
        plan = plan_from(files_of(plan_of(network)))
        if prepare(plan).batches[0].launches == tuple(range(launches)):
            return plan, inputs, run(graph, inputs)


def _spread(random: np.random.Generator, plan: Plan) -> Bases:
    """Return random addresses in a random order, multiples of 64."""
    order = [str(name) for name in random.permutation(Bases.names())]
    sizes = sizes_of(plan)
    used = sum(sizes.values()) + 64 * len(sizes)
    gaps = np.sort(random.integers(0, (ROOM - used) // 64, len(order)))
    found, at = {}, 0
    for name, gap in zip(order, gaps, strict=True):
        # The arena of a decoder with a cache in memory begins at a multiple of 256.
        found[name] = -(-(at + 64 * int(gap)) // plan.alignment) * plan.alignment
        at = found[name] - 64 * int(gap) + -(-sizes[name] // 64) * 64
    return Bases(**found)


def _compare(found: NetworkRun, expected: Mapping[str, Array], where: str) -> None:
    for name, value in expected.items():
        assert np.array_equal(found.outputs[name], value, equal_nan=True), f"{where}: {name}"


async def _loaded(bench: Bench, prepared: Prepared) -> Replay:
    driven = DrivenChip(bench.chip)
    await driven.load(prepared)
    return Replay(prepared, driven)


@cocotb.test
async def test_plans_at_ten_placements(dut: Dut) -> None:
    """One file, ten sets of addresses, by registers and by the ring: golden's outputs each time."""
    bench = await Bench.start(dut)
    bench.bus.limit = LIMIT
    for _ in range(FULL if full() else SHORT):
        plan, inputs, expected = _drawn(bench, 3)
        for number in range(PLACEMENTS):
            prepared = prepare(plan, _spread(bench.random, plan))
            replay = await _loaded(bench, prepared)
            by = BOTH[number % 2]
            found = await replay.run(inputs, by)
            _compare(found, expected, f"{prepared.bases}, by {by}")


@cocotb.test
async def test_plans_batch_without_gaps(dut: Dut) -> None:
    """Three launches of a batch within 60 cycles of one another leave what three starts leave."""
    bench = await Bench.start(dut)
    bench.bus.limit = LIMIT
    for _ in range(FULL if full() else SHORT):
        plan, inputs, expected = _drawn(bench, 3)
        replay = await _loaded(bench, prepare(plan))
        apart = await replay.run(inputs)
        before = await _milestones(bench)
        together = await replay.run(inputs, "ring")
        _compare(apart, expected, "registers")
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
        np.fromfile(bench.run_dir / "events.bin", logs.EVENT),
        np.fromfile(bench.run_dir / "trace.bin", logs.EVENT),
    )


def _gaps(events: logs.Records, trace: logs.Records) -> list[int]:
    """Return the cycles from each end of a program to the first dispatch behind it."""
    ends = trace["cycle"][trace["kind"] == logs.FINISH].astype(int)
    begun = events["cycle"][events["kind"] == logs.DISPATCH].astype(int)
    return [int(begun[begun > end].min() - end) for end in ends if (begun > end).any()]


@cocotb.test
async def test_plans_stopped_by_the_bus(dut: Dut) -> None:
    """An error of the memory names the segment; nothing outside the arena; the next run works."""
    bench = await Bench.start(dut)
    bench.bus.limit = LIMIT
    for by in BOTH:
        plan, inputs, expected = _drawn(bench, 3)
        prepared = prepare(plan, bases_from(plan, PAGE))
        replay = await _loaded(bench, prepared)
        number = 1
        address = prepared.address(plan.segments[number].writes[0])
        before = bench.memory.snapshot()
        await bench.set_knobs(Knobs(write_error=1, error_first=address, error_last=address + 15))
        try:
            await replay.run(inputs, by)
            raise AssertionError("no error")
        except ReplayError as error:
            step = plan.steps[error.step]
            text = str(error)
            assert f"segments[{step.segment}]" in text, text
            assert address // 16 * 16 <= _address(text) < address + 16, text
            assert ErrorCode.WRITE_ERROR.name in text, text
        await bench.set_knobs(Knobs())
        first, end = prepared.bases.arena, prepared.bases.arena + plan.arena
        after = bench.memory.snapshot()
        ring = prepared.bases.ring
        after[ring : ring + 128] = before[ring : ring + 128]
        assert np.array_equal(before[:first], after[:first])
        assert np.array_equal(before[end:], after[end:])
        _compare(await replay.run(inputs, by), expected, "the run behind")


def _address(text: str) -> int:
    """Return the address that a report names last."""
    return int(text.rpartition("0x")[2].split()[0].rstrip(".,"), 16)


@cocotb.test
async def test_plans_need_an_idle_chip(dut: Dut) -> None:
    """Nothing is written while a program or the ring runs."""
    bench = await Bench.start(dut)
    bench.bus.limit = LIMIT
    plan, inputs, expected = _drawn(bench, 3)
    prepared = prepare(plan)
    replay = await _loaded(bench, prepared)
    await bench.chip.start(prepared.starts[0])
    before = bench.memory.snapshot()
    try:
        await _loaded(bench, prepared)
        raise AssertionError("not refused")
    except RequestError as error:
        assert str(error) == "chip: given a running program, allowed an idle chip", error
    assert np.array_equal(before[: 1 << 16], bench.memory.snapshot()[: 1 << 16])
    await bench.chip.abort()
    await bench.bus.wait_interrupt()
    await bench.chip.write_seq(SeqReg.STATUS, SEQ_FIELDS["STATUS_ERROR"].mask)
    _compare(await replay.run(inputs, "ring"), expected, "the run behind")


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
        graph, inputs = _product(bench.random, name, (m, k, n))
        plan = plan_from(files_of(plan_of(compile_network(graph, bench.limits))))
        replay = await _loaded(bench, prepare(plan, _spread(bench.random, plan)))
        before = await port.counters()
        found = await replay.run(inputs, BOTH[int(bench.random.integers(2))])
        after = await port.counters()
        where = f"{name}, {m} x {k} x {n}"
        _compare(found, run(graph, inputs), where)
        macs = m * k * n if name in TILED else 0
        assert after.macs - before.macs == macs == found.products["product"].macs, where
        assert after.ops - before.ops == found.products["product"].operations, where
        assert after.errors == before.errors, where


def _product(
    random: np.random.Generator, name: str, shape: tuple[int, int, int]
) -> tuple[Graph, dict[str, Array]]:
    """Return a graph of one product of two inputs, and their values."""
    group = int(random.integers(1, shape[1] + 1)) if name == GROUPED else 0
    values = dict(zip("abs", port_operands(random, name, shape, group), strict=False))
    tensors = {
        key: Tensor(key, TensorType(value.shape, Element.of(value.dtype)))
        for key, value in values.items()
    }
    tensors["y"] = Tensor("y", TensorType((shape[0], shape[2]), Element.I32))
    exact = name in ("fp16", "bf16") and bool(random.integers(2))
    attributes: dict[str, Attribute] = {"format": name, "group": group, "exact": exact}
    one = Operation("product", "portmatmul", tuple(values), ("y",), attributes, "test", PORT)
    return Graph("product", tuple(values), ("y",), tensors, (one,)), values


@cocotb.test
async def test_plans_mixed(dut: Dut) -> None:
    """Programs, products on the command port and the host in one network: golden's outputs."""
    bench = await Bench.start(dut)
    bench.bus.limit = LIMIT
    for number in range(MIXED_FULL if full() else MIXED_SHORT):
        seed = int(bench.random.integers(1 << 32))
        graph, inputs = random_graph(seed, operations=(4, 20), mixed=True)
        plan = plan_from(files_of(plan_of(compile_network(graph, bench.limits))))
        replay = await _loaded(bench, prepare(plan, _spread(bench.random, plan)))
        found = await replay.run(inputs, BOTH[number % 2])
        _compare(found, run(graph, inputs), f"random_graph({seed}, mixed=True)")


@cocotb.test
async def test_plans_decoder(dut: Dut) -> None:
    """The plan of a decoder from its files, anywhere: by registers, by the ring, token by token."""
    bench = await Bench.start(dut)
    bench.bus.limit = LIMIT
    for family in CHECKPOINTS if full() else [str(bench.random.choice(CHECKPOINTS))]:
        model = quantize_checkpoint(str(CHECKPOINT_FOLDER / f"{family}-tiny"))
        where: Place = "memory" if bench.random.integers(2) else "sram"
        compiled = compile_model(model, bench.limits, cache=where)
        rows = int(bench.random.integers(110, 125))
        count = min(COUNT, compiled.shape.context - rows + 1)
        ids = [int(one) for one in bench.random.integers(0, compiled.shape.vocab, rows)]
        expected = session.generate(model, ids, compiled.shape.context - rows + 1)
        plan = plan_from(files_of(plan_of_decoder(compiled, rows, logits=True, name=family)))
        for by in BOTH:
            prepared = prepare(plan, _spread(bench.random, plan))
            replay = await _loaded(bench, prepared)
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


def _entries(bench: Bench, graph: Graph) -> list[Entry]:
    """Return a network as three plans, each of which takes what those before it have made."""
    cuts = np.sort(bench.random.choice(len(graph.operations) - 1, 2, replace=False)) + 1
    pieces = np.split(np.arange(len(graph.operations)), cuts)
    found: list[Entry] = []
    made: dict[str, str] = {}
    at = PAGE
    for number, piece in enumerate(pieces):
        part = subgraph(graph, [graph.operations[i] for i in piece])
        plan = plan_of(compile_network(part, bench.limits))
        prepared = prepare(plan, bases_from(plan, at))
        at = prepared.end
        takes = {name: made[name] for name in part.inputs if name in made}
        found.append(Entry(f"part{number}", prepared, takes, BOTH[int(bench.random.integers(2))]))
        made |= {name: f"part{number}.{name}" for name in part.outputs}
    return found
