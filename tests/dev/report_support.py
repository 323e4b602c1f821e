# SPDX-License-Identifier: Apache-2.0
"""A made regression for the tests of the page: as large as a full one, with hostile texts.

    python -m tests.dev.report_support FOLDER

writes it, so that the page can be looked at: RESULTS=FOLDER/results.sqlite, reports in
FOLDER/build/reports.
"""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
import sys
from collections.abc import Iterable
from contextlib import closing
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from dev import formal, synth
from dev.mutation_verdict import MISMATCH, Verdict
from dev.plan_standing import Standing
from dev.regression import tree
from dev.regression.results import Results
from dev.regression.task import ExecutedRow, Outcome, Task
from dev.report.collect import Places
from dev.report.executed import areas
from spec.paths import DOCS
from tb.benchmarks import bars
from tb.run import registry, units
from weights.figures import FORMATS_FILE

HOSTILE = """<script>alert("1")</script> & 'quotes' </table></body> {{ 7 * 7 }}"""
MESSAGE = f"""RunMismatchError: instruction 289 (GEMM dst=0x3fa30 M=14 N=31 K=35): {HOSTILE}
SRAM byte 0x3fa4e: expected 0x00, actual 0xff at cycle 9837, 98370 ns
6067 of 52119 written words differ"""
BEGUN = datetime(2026, 3, 1, 2, 0, tzinfo=UTC)
UNSEEN = ("GEMM MXFP6E3", "COP.VMAC TIMEOUT")
"""Rows that no test of a made run executes."""
MUTANTS = (
    Verdict("npu_skid:31:1", "cells/npu_skid.sv", 31, "not", "!ready_i -> ready_i", MISMATCH),
)
"""A campaign of one."""
ONLY_FAILED = "CMD.GEMM_S4 stream"
"""A row that only a failing test executes."""


def planned(seeds: int) -> list[Task]:
    """Return a task for each test of the tree and seed, and some without a simulation."""
    numbers = range(1, seeds + 1)
    tasks = [
        Task("rtl", test.name, "fast-a16", seed, True)
        for test in registry.discover()
        for seed in numbers
    ]
    tasks += [
        Task("unit", test.name, f"fast-{units.block_of(test)}", seed)
        for test in units.tests_of()
        for seed in numbers
    ]
    tasks += [Task("sweep", name, "", 1, True) for name in ("exp_float32", "rsqrt_float32")]
    return [*tasks, Task("python", "tests/soc/test_hosts.py", "", 1, True)]


def rows_of_tests(tasks: Iterable[Task], chance: random.Random) -> dict[str, list[str]]:
    """Return the rows that each test on the chip executes."""
    isa, command, coprocessor = areas().values()
    found: dict[str, list[str]] = {}
    for name in dict.fromkeys(task.name for task in tasks if task.kind == "rtl"):
        part = coprocessor if name.startswith("test_cop") else isa
        part = command if name.startswith("test_cmd") else part
        found[name] = chance.sample(part, chance.randint(8, len(part) // 2))
    names = list(found)
    for row in (*isa, *command, *coprocessor):
        for name in chance.sample(names, 2):
            found[name].append(row)
    hidden = {*UNSEEN, ONLY_FAILED}
    return {name: [row for row in rows if row not in hidden] for name, rows in found.items()}


def write_results(path: Path, runs: int = 13, seeds: int = 3, failures: int = 9) -> None:
    """Write a database of runs: the last with all texts, those before with times and verdicts.

    Args:
        path: of the file.
        runs: how many, the last one included; the fourth is interrupted.
        seeds: of each test in simulation, 1 upwards.
        failures: results of the last run that failed.
    """
    chance = random.Random(5)
    tasks = planned(seeds)
    rows = rows_of_tests(tasks, chance)
    cycles = {task.name: chance.randint(2_000, 900_000) for task in tasks}
    chip = [task for task in tasks if task.kind == "rtl"]
    results = Results(path)
    for number in range(1, runs + 1):
        last = number == runs
        options: dict[str, object] = {"seeds": seeds, "jobs": 16}
        options |= {"complete": True, "filter": HOSTILE}
        # The last two are of the same sources.
        tree = "5a" * 32 if number >= runs - 1 else f"{chance.getrandbits(256):064x}"
        revision = f"{chance.getrandbits(160):040x}"
        run = results.begin("full", options, tasks, tree, revision, dirty=last)
        broken = set(chance.sample(chip, failures if last else chance.choice((0, 0, 0, 2))))
        ended = tasks[: len(tasks) // 2 if number == 4 else len(tasks) - 3 * last]
        outcomes = []
        for index, task in enumerate(ended):
            grown = 1.06 if last and index % 50 == 0 else 1.0
            ticks = int(cycles[task.name] * grown) + task.seed
            outcome = Outcome(
                task,
                "passed",
                "",
                seconds=ticks / 60_000 * (0.9 + 0.2 * chance.random()),
                cycles=ticks,
                rows=_counts(rows.get(task.name, ()), chance) if last else (),
                repeat=f"make TESTCASE={task.name} SEED={task.seed} FULL=1",
                worker=chance.choice(("local", "tcp://10.0.0.7:8786")),
                attempt=2 if last and index in (10, 500) else 1,
            )
            outcomes.append(_failed(outcome, index) if task in broken else outcome)
        results.add(run, outcomes)
        results.end(run, "interrupted" if number == 4 else "finished", 1080 + 240 * chance.random())
    if runs:
        results.note(run, f"worker tcp://10.0.0.7:8786 was lost, {HOSTILE}")
    results.close()
    with closing(sqlite3.connect(path)) as database, database:
        for number in range(1, runs + 1):
            begun = BEGUN + timedelta(days=number)
            ended_at = begun + timedelta(minutes=20)
            database.execute(
                "UPDATE runs SET begun = ?, ended = ?, host = ? WHERE id = ?",
                (begun.isoformat(), ended_at.isoformat(), "build-7.example", number),
            )


def _counts(rows: Iterable[str], chance: random.Random) -> tuple[ExecutedRow, ...]:
    return tuple(ExecutedRow(row, chance.randint(1, 400), chance.randint(1, 40)) for row in rows)


def _failed(outcome: Outcome, index: int) -> Outcome:
    """Return the outcome as a failure, every other one with an endless message."""
    endless = "\n" + f"  {HOSTILE} word {index}\n" * 400
    name = f"{outcome.task.name}-{outcome.task.seed}"
    return replace(
        outcome,
        status="failed",
        message=MESSAGE if index % 2 else MESSAGE + endless,
        rows=(*outcome.rows, ExecutedRow(ONLY_FAILED, 3, 1)),
        output=f"drew {index} cases of {HOSTILE}\n" * 90,
        log=f"cocotb says {HOSTILE}\n" * 25,
        waves=f"build/waves/{name}.gtkw",
    )


def write_waves(places: Places) -> None:
    """Write the waves of every other failure of the last run."""
    with closing(sqlite3.connect(places.results)) as database:
        waves = [
            row[0]
            for row in database.execute(
                "SELECT waves FROM results WHERE waves != '' AND run = (SELECT max(id) FROM runs)"
            )
        ]
    for wave in sorted(waves)[::2]:
        path = places.root / wave
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("[dumpfile]\n", encoding="utf-8")


def write_reports(folder: Path) -> None:
    """Write one of each JSON report and picture."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in _contents().items():
        (folder / name).write_text(json.dumps(content, indent=1), encoding="utf-8")
    (folder / "coverage").mkdir(exist_ok=True)
    for page in ("index", "npu_gemm", "npu_seq"):
        (folder / "coverage" / f"{page}.html").write_text("<!doctype html>", encoding="utf-8")
    for name in ("roofline", "timeline-block_s16", "timeline-tiny_decode_gpt2_p64"):
        shutil.copy(DOCS / "images" / f"{name}.png", folder)


def _figure(hit: int, every: int, explained: int = 0) -> dict[str, Any]:
    return {"hit": hit, "all": every, "explained": explained, "open": every - hit - explained}


def _contents() -> dict[str, Any]:
    chance = random.Random(7)
    landed = bars.landed()
    bench: list[dict[str, Any]] = [
        {
            "name": name,
            "parameters": {},
            "cycles": cycles if name != "block_s16" else cycles * 2,
            "ideal_cycles": int(cycles * 0.97) or 1,
            "bound": chance.choice(("bus", "mac")),
            "ratio": 1.0309,
            "bytes_read": cycles * 15,
            "bytes_written": cycles // 3,
            "macs": cycles * 90,
            "sim_kcycles_per_s": 190.5,
            "python_callbacks": 12,
        }
        for name, cycles in landed.items()
    ]
    model = {"family": "gpt2", "windows": 883, "tokens": 112_141, "seconds": 60.2}
    model |= {"float_bits": 2.0129, "max_loss": 0.006, "min_agreement": 0.94}
    models = [
        model | {"model": name, "integer_bits": 2.0129 * (1 + loss), "agreement": 0.96}
        for name, loss in (("gpt2-tiny", 0.0034), ("llama-tiny", 0.0031), ("qwen2-tiny", 0.0071))
    ]
    published = json.loads(FORMATS_FILE.read_text(encoding="utf-8"))["formats"]
    formats = [
        {"figures": one, "max_loss": 0.05 if "int4g32" in one["recipe"] else None}
        for one in published
    ]
    modules = ["gemm", "seq", "vec", "nrm", "softmax", "cmd", "cop", "host", "sram", "streamer"]
    faults = [
        {
            "fault": f"{number:02}-a-fault-with-a-name",
            "test": "test_gemm_random",
            "noticed": number != 77,
            "reason": MESSAGE if number != 77 else f"the test passed {HOSTILE}",
            "seconds": 4.3,
        }
        for number in range(1, 144)
    ]
    return {
        "bench.json": bench,
        "stream.json": {
            "block": "gpt2-tiny, layer 0, fused",
            "bytes": 54_656,
            "necessary_bytes": 54_528,
            "ratio": 1.0023,
            "pieces": [],
        },
        "quality.json": {"python": "3.11.7", "models": models, "formats": formats},
        "synth.json": [
            {
                "block": block.name,
                "top": block.top,
                "parameters": dict(block.parameters),
                "lut": chance.randint(300, 90_000),
                "ff": chance.randint(300, 40_000),
                "dsp": chance.randint(0, 256),
                "memory_bits": chance.randint(0, 2_000_000),
                "seconds": 40.2,
                "modules": [block.top],
            }
            for block in synth.BLOCKS
        ],
        "faults.json": faults,
        "mutation.json": {
            "digest": tree.read(tree.DESIGN).digest,
            "seed": "0123456789ab",
            "seeds": [1],
            "tests": 305,
            "verdicts": [asdict(one) for one in MUTANTS],
        },
        "formal.json": [
            {"proof": proof.name, "verdict": "proved", "seconds": 3.2}
            for proof in formal.all_proofs()
        ],
        "lockstep.json": {
            "digest": tree.read(tree.DESIGN).digest,
            "chip": "a4",
            "runs": [
                {
                    "test": "test_gpt2_block_token",
                    "outputs": 39,
                    "cycles": 4032,
                    "difference": "",
                }
            ],
            "planted": 20,
            "seen": 9,
            "icarus": "a program of 3 instructions, 8 bytes as golden has them",
        },
        "test_plan.json": [
            asdict(Standing("transfers", "engine", 7, 13, 0, ["test_dma_bad"], 803, 801))
        ],
        "cop_sweep.json": [
            {
                "function": "exp_float32",
                "inputs": 1 << 32,
                "reached": 2_206_203_904,
                "undecided": 12,
                "closest": 9,
                "closest_input": 1,
                "near": [1, 2],
                "wrong": [],
                "seconds": 210.4,
            }
        ],
        "plan_damage.json": {
            "harmless": {},
            "plans": {
                "port": {
                    "tried": 46_646,
                    "harmless_share": 0.000193,
                    "programs": {"other_programs": 143, "replayed": {"done": 60}},
                }
            },
        },
        "unit_times.json": [
            {"block": "vec", "module": "npu_vec", "wall_s": 21.3, "processor_s": 38.9}
        ],
        "timeline-block_s16.json": {"traceEvents": []},
        "coverage.json": {
            "conditions": {"models": ["cov-a16"], "tests": [], "seeds": [1], "runs": 400}
            | {"revision": "0123456789ab"},
            "line": _figure(0, 0),
            "branch": _figure(0, 0),
            "modules": [
                {
                    "module": f"npu_{name}",
                    "file": f"rtl/{name}/npu_{name}.sv",
                    "line": _figure(190 - 7 * index, 200, index),
                    "branch": _figure(88 - 3 * index, 100, 2),
                }
                for index, name in enumerate(modules)
            ],
            "problems": [],
        },
    }


def made(folder: Path, **sizes: int) -> Places:
    """Write a whole regression into a folder and return its places."""
    places = Places(folder / "results.sqlite", folder / "build" / "reports", folder)
    write_results(places.results, **sizes)
    write_reports(places.reports)
    write_waves(places)
    return places


if __name__ == "__main__":
    print(made(Path(sys.argv[1])))
