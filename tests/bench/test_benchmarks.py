# SPDX-License-Identifier: Apache-2.0
"""The benchmarks: bars, timed intervals, timelines, the page of the documentation."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from npu.asm import assemble
from npu.cli import command_line
from npu.compiler.ideal import LeastWork
from spec.configurations import USUAL
from spec.isa import Engine, Opcode
from tb.bench import logs
from tb.benchmarks import bars, publish, some
from tb.benchmarks.against_int8 import Claim, FormatVerdict, verdicts
from tb.benchmarks.bars import Bar
from tb.benchmarks.benchmark import Benchmark, Interval
from tb.benchmarks.catalogue import CASES, NIGHTLY
from tb.benchmarks.format_benchmarks import CLAIMS
from tb.benchmarks.measure import RunFigures, interval, program_of
from tb.benchmarks.soc_benchmarks import SOC_CASES
from tb.run import build, runner, timeline
from tb.run.registry import BenchTest

PROGRAM = assemble("GEMM dst=0x0 src0=0x100 src1=0x200 M=1 N=16 K=16 out=i32\nBARRIER gemm\nEND")


def _records(*rows: tuple[int, int, int, int, int]) -> logs.Records:
    """Return records of (cycle, kind, engine, instr, word[0])."""
    records = np.zeros(len(rows), logs.EVENT)
    for record, (cycle, kind, engine, instr, state) in zip(records, rows, strict=True):
        record["cycle"], record["kind"], record["engine"] = cycle, kind, engine
        record["instr"], record["word"][0] = instr, state
    return records


EVENTS = _records(
    (1040, logs.DISPATCH, 0, 0, 0),
    (1090, logs.DONE, Engine.GEMM, 0, 0),
    (1091, logs.DISPATCH, 0, 1, 0),
    (1092, logs.DISPATCH, 0, 2, 0),
)
TRACE = _records(
    (1000, logs.START, 0, 0, 0),
    (1000, logs.STATE, logs.SEQUENCER, 0, logs.FETCH),
    (1040, logs.STATE, logs.SEQUENCER, 0, logs.WORK),
    (1041, logs.TAKE, Engine.GEMM, 0, 0),
    (1041, logs.STATE, logs.SEQUENCER, 1, logs.STATES.index("barrier")),
    (1042, logs.STATE, Engine.GEMM, 0, logs.PIPELINE),
    (1050, logs.STATE, Engine.GEMM, 0, logs.WORK),
    (1060, logs.STATE, Engine.GEMM, 0, logs.STATES.index("SRAM write port")),
    (1064, logs.STATE, Engine.GEMM, 0, logs.WORK),
    (1091, logs.STATE, Engine.GEMM, 0, logs.IDLE),
    (1091, logs.STATE, logs.SEQUENCER, 2, logs.WORK),
    (1096, logs.INTERRUPT, 0, 0, 0),
)


def test_every_benchmark_has_landed() -> None:
    """Each has a landed figure, and no other name has one."""
    assert list(bars.landed()) == list(CASES)


def test_smoke_tier() -> None:
    """It has most of the benchmarks, all kinds but whole models, a small part of their cycles."""
    landed = bars.landed()
    smoke = {name for name, case in CASES.items() if not case.long}
    usual = {name for name, case in CASES.items() if case.chip is USUAL}
    assert len(smoke & usual) > 0.8 * len(usual)
    assert {name.rpartition("_")[2] for name in smoke - usual} == {"a4"}  # built for tests anyway
    assert sum(landed[name] for name in smoke) < 0.2 * sum(landed.values())
    kinds = {name.partition("_")[0] for name in CASES}
    whole = {"gqa", "greedy", "net", "prefill", "small", "spec", "verify"}
    assert kinds - {name.partition("_")[0] for name in smoke} == whole
    assert [name for name, case in SOC_CASES.items() if case.long] == ["soc_bytelm_fp32"]


def test_arrays_of_other_sizes() -> None:
    """The same benchmarks on each; the least time is that of its array, or of the bus."""
    others = [case for case in CASES.values() if case.chip is not USUAL]
    same: dict[str, list[Benchmark]] = {}
    for case in others:
        same.setdefault(case.name.removesuffix(f"_{case.chip.name}"), []).append(case)
    assert list(same) == ["gemm_sram_128", "gemm_stream_m16", "block_s1", "block_s16"]
    for cases in same.values():
        assert [case.chip.array_dim for case in cases] == [4, 8, 32]
    assert [case.work.ideal_cycles for case in same["gemm_sram_128"]] == [1 << 17, 1 << 15, 1 << 11]
    assert {case.work.ideal_cycles for case in same["block_s1"]} == {3416}


def test_a_dram_gives_a_part_of_the_bus() -> None:
    """Its benchmarks have the same work, and are held against what a plain reader gets."""
    usual, dram = (CASES[f"gemm_stream_m1_{name}"] for name in ("l40", "ddr4"))
    assert usual.work == dram.work
    assert usual.ideal_cycles == 148_992 < dram.ideal_cycles == 156_669  # over 0.951
    assert dram.ratio(2 * 156_669) == 2
    assert "latency" not in dram.parameters


def test_benchmarks_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each once, in the order given, of the chip, of the machine and nightly ones; then no more."""
    asked: list[list[str]] = []
    built: list[object] = []

    def run_some(cases: list[Any], *_: object) -> int:
        asked.append([case.name for case in cases])
        return 0

    monkeypatch.setattr(some, "run_some", run_some)
    monkeypatch.setattr(build, "generate", lambda: None)
    monkeypatch.setattr(build, "build", built.append)
    for names, models in (("block_s16", 1), ("soc_generate,block_s16,soc_generate", 2)):
        built.clear()
        assert command_line.main(["bench", names]) == 0
        assert len(built) == models
    assert command_line.main(["bench", "nightly"]) == 0
    assert asked == [["block_s16"], ["soc_generate", "block_s16"], [*NIGHTLY]]


def test_a_part_is_not_published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures of the smoke tier do not become the page's."""
    entries = [{"name": name} for name, case in CASES.items() if not case.long]
    report = tmp_path / "bench.json"
    report.write_text(json.dumps(entries), encoding="utf-8")
    monkeypatch.setattr(publish, "JSON", report)
    monkeypatch.setattr(publish, "STREAM", report)
    monkeypatch.setattr(publish, "PICTURES", ())
    with pytest.raises(publish.PublishError, match=r"^batch_gqa_1000 was not measured: run"):
        publish.run()


def test_page_shows_the_landed_figures() -> None:
    """Each figure of the page is within its bar, and none is better than what has landed."""
    page = publish.PAGE.read_text(encoding="utf-8")
    table, _, narrow = page.partition(publish.NARROW)
    shown = {
        name: int(cycles.replace(",", ""))
        for name, cycles in re.findall(r"^\| (\w+) \| ([\d,]+) \|", table, re.MULTILINE)
    }
    assert shown.keys() == CASES.keys() | bars.BENCH.keys()
    for name, cycles in bars.landed().items():
        assert cycles <= shown[name] <= bars.limit(cycles), f"{name}: {shown[name]}, has {cycles}"

    held = re.findall(r"^\| (fmt_\w+) \| ([\d,]+) .* \| met \|$", narrow, re.MULTILINE)
    assert [name for name, _ in held] == [claim.name for claim in CLAIMS]
    assert all(int(cycles.replace(",", "")) == shown[name] for name, cycles in held)


def _held(claim: Claim, cycles: int, bytes_read: int) -> FormatVerdict:
    entries = [
        {"name": "wide", "cycles": 1000, "bytes_read": 16_000},
        {"name": "narrow", "cycles": cycles, "bytes_read": bytes_read},
    ]
    (found,) = verdicts([claim], entries)
    return found


@pytest.mark.parametrize(
    ("claim", "cycles", "bytes_read", "met"),
    [
        (Claim("narrow", "wide", most=1.01), 505, 8000, True),
        (Claim("narrow", "wide", most=1.01), 506, 8000, False),
        (Claim("narrow", "wide", most=1.01), 505, 7999, False),
        (Claim("narrow", "wide", cycles=700), 700, 1, True),
        (Claim("narrow", "wide", cycles=700), 701, 16_000, False),
        (Claim("narrow", "wide", share=0.5), 500, 8000, True),
        (Claim("narrow", "wide", most=1.01, share=0.5), 501, 8000, False),
    ],
)
def test_narrow_weights_against_int8(claim: Claim, cycles: int, bytes_read: int, met: bool) -> None:
    """Cycles may fall a little less than bytes do, or have a limit of their own."""
    assert _held(claim, cycles, bytes_read).met is met


@pytest.mark.parametrize("name", [name for name in CASES if name.startswith("fmt_stream")])
def test_stream_of_narrow_weights_is_at_the_bus(name: str) -> None:
    """The bar of a streaming GEMM in each format is within 1 % of the bytes' time."""
    assert bars.limit(bars.landed()[name]) <= 1.01 * CASES[name].work.ideal_cycles


@pytest.mark.parametrize(
    ("bar", "ratio", "cycles", "met"),
    [
        (Bar(1), 1.0, 9_999, True),
        (Bar(1), 1.0001, 0, False),
        (Bar(0.8, least=True), 0.8, 0, True),
        (Bar(0.8, least=True), 0.7999, 0, False),
        (Bar(5000, cycles=True), 1.4, 5000, True),
        (Bar(5000, cycles=True), 0.5, 5001, False),
    ],
)
def test_bar(bar: Bar, ratio: float, cycles: int, met: bool) -> None:
    """The limit itself is good enough; each bar looks at its own figure only."""
    assert bar.met(ratio, cycles) is met


def test_bars_are_two_thousandths_above() -> None:
    """What has landed and 0.2 % more, rounded down."""
    assert [bars.limit(cycles) for cycles in (3, 499, 500, 51_664)] == [3, 499, 501, 51_767]


def _entries(**cycles: int) -> list[dict[str, object]]:
    return [{"name": name, "cycles": value} for name, value in cycles.items()]


def test_ratchet() -> None:
    """Lower figures and new benchmarks land, higher ones by name only; what is gone goes."""
    landed = {"same": 500, "gone": 7, "faster": 1000, "slower": 1000}
    entries = _entries(same=500, faster=900, slower=1002, new=5, callbacks=9)
    expected = {"same": 500, "faster": 900, "slower": 1000, "new": 5}
    assert bars.ratchet(landed, entries) == expected
    assert bars.ratchet(landed, entries, ["slower"]) == expected | {"slower": 1002}
    with pytest.raises(ValueError, match="no benchmark of the last run is called other"):
        bars.ratchet(landed, entries, ["other", "same"])


def test_landed_figures_are_written_as_they_are_read(tmp_path: Path) -> None:
    """Names, cycles and their order."""
    figures = {"second": 1_234_567, "first": 3}
    bars.write(figures, tmp_path / "landed.toml")
    assert list(bars.landed(tmp_path / "landed.toml").items()) == list(figures.items())


def _case(timed: Interval) -> Benchmark:
    return Benchmark(
        "any", {}, LeastWork(), CASES["dma_4k"].load, interval=timed, opcode=Opcode.GEMM
    )


@pytest.mark.parametrize(
    ("timed", "cycles"),
    [
        (Interval.PROGRAM, 96),
        (Interval.INSTRUCTION, 49),
        (Interval.DISPATCHED, 50),
        (Interval.CHAIN, 50),
    ],
)
def test_interval(timed: Interval, cycles: int) -> None:
    """Each kind of interval has the ends that it names."""
    assert interval(_case(timed), PROGRAM.instructions, EVENTS, TRACE) == cycles


def test_interval_needs_both_ends() -> None:
    """A log that lacks one of the ends gives no figure."""
    with pytest.raises(ValueError, match="1 begins and 0 ends"):
        interval(_case(Interval.PROGRAM), PROGRAM.instructions, EVENTS, TRACE[:-1])


LOOPED = _records(
    (500, logs.DISPATCH, 0, 0, 0),
    (510, logs.DONE, Engine.GEMM, 0, 0),
    (1040, logs.DISPATCH, 0, 0, 0),
    (1090, logs.DONE, Engine.GEMM, 0, 0),
    (1110, logs.DISPATCH, 0, 0, 0),
    (1150, logs.DONE, Engine.GEMM, 0, 0),
)
"""A program of before, and then two turns of a loop around one instruction."""
LOOPED_TRACE = _records(
    (490, logs.START, 0, 0, 0),
    (501, logs.TAKE, Engine.GEMM, 0, 0),
    (520, logs.INTERRUPT, 0, 0, 0),
    (1000, logs.START, 0, 0, 0),
    (1041, logs.TAKE, Engine.GEMM, 0, 0),
    (1111, logs.TAKE, Engine.GEMM, 0, 0),
    (1160, logs.INTERRUPT, 0, 0, 0),
)


def test_interval_of_turns() -> None:
    """Turns are timed from dispatch to dispatch."""
    last = LOOPED[LOOPED["cycle"] >= 1000], LOOPED_TRACE[LOOPED_TRACE["cycle"] >= 1000]
    assert interval(_case(Interval.TURNS), PROGRAM.instructions, *last) == 70


def test_timeline_of_a_loop() -> None:
    """Each turn has a slice of its own; what ran before the last start is left out."""
    line = timeline.build("any", PROGRAM.instructions, LOOPED, LOOPED_TRACE)
    assert line.cycles == 160
    times = [(part.dispatched, part.taken, part.end) for part in line.slices["gemm"]]
    assert times == [(40, 41, 91), (110, 111, 151)]


def test_sums_of_programs() -> None:
    """A benchmark of several programs has the sums of their figures."""
    parts = [RunFigures(1, 2, 3, 4, 5, 0.5, 7), RunFigures(10, 20, 30, 40, 50, 1.0, 70)]
    assert RunFigures.total(parts) == RunFigures(11, 22, 33, 44, 55, 1.5, 77)


def test_timeline() -> None:
    """Instructions, their waits and those of the sequencer, from the start of the program."""
    line = timeline.build("any", PROGRAM.instructions, EVENTS, TRACE)
    assert line.cycles == 96
    (part,) = line.slices["gemm"]
    assert (part.name, part.start, part.end, part.dispatched) == ("GEMM #0", 42, 91, 40)
    assert part.text.startswith("GEMM dst=0x0")
    assert part.waited() == {"pipeline fills or drains": 8, "SRAM write port": 4}
    assert [(wait.start, wait.end, wait.reason, text) for wait, text in line.held] == [
        (0, 40, "microcode", ""),
        (41, 91, "barrier", "BARRIER gemm"),
    ]


def test_chrome_trace() -> None:
    """A track per engine and the sequencer; slices carry names, times and reasons."""
    events = timeline.chrome(timeline.build("any", PROGRAM.instructions, EVENTS, TRACE))[
        "traceEvents"
    ]
    tracks = [e["args"]["name"] for e in events if e["name"] == "thread_name"]
    assert tracks == ["ld", "st", "gemm", "smx", "nrm", "vec", "sequencer"]
    slices = {(e["name"], e["ts"], e["dur"], e["tid"]) for e in events if e["ph"] == "X"}
    assert slices == {
        ("GEMM #0", 42, 49, 2),
        ("pipeline fills or drains", 42, 8, 2),
        ("SRAM write port", 60, 4, 2),
        ("microcode", 0, 40, 6),
        ("barrier", 41, 50, 6),
    }


def test_published_page() -> None:
    """The figures go between the markers, and nothing else changes."""
    page = f"above\n{publish.BEGIN}\nold\n{publish.END}\nbelow\n"
    changed = publish.replaced(page, "new")
    assert changed == f"above\n{publish.BEGIN}\nnew\n{publish.END}\nbelow\n"
    for broken in ("no markers", page + page, f"{publish.END}\n{publish.BEGIN}"):
        with pytest.raises(ValueError, match="needs one line"):
            publish.replaced(broken, "new")


def test_page_can_be_published() -> None:
    """The page in the tree has the markers."""
    publish.replaced(publish.PAGE.read_text(encoding="utf-8"), "")


def test_benchmark_on_the_rtl(tmp_path: Path) -> None:
    """A run gives figures that fit its shape, and a timeline in which everything has its place."""
    configuration = build.Configuration()
    build.build(configuration)
    case = CASES["gemm_catch_up"]
    test = BenchTest("tb.benchmarks.measure", case.name, case.name)
    result = runner.run(runner.Job(test, configuration, place=tmp_path / case.name))
    assert result.passed, result.message
    figures = RunFigures.load(result.job.folder, result.job.test.name)
    assert figures.macs == case.work.macs
    assert case.work.ideal_cycles < figures.cycles < figures.program_cycles
    events = np.fromfile(result.job.folder / "events.bin", logs.EVENT)
    trace = np.fromfile(result.job.folder / "trace.bin", logs.EVENT)
    line = timeline.build(case.name, program_of(result.job.folder), events, trace)
    assert [len(line.slices[engine]) for engine in timeline.ENGINES] == [0, 0, 1, 1, 0, 0]
    for (part,) in (line.slices["gemm"], line.slices["smx"]):
        assert 0 < part.dispatched < part.taken < part.start < part.end < line.cycles
        times = [part.start, *(t for wait in part.waits for t in (wait.start, wait.end)), part.end]
        assert times == sorted(times)
    assert line.samples["stream"].sum() * 16 == 30_720
    assert line.samples["fifo"].max() == 30_720 // 16
