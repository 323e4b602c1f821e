# SPDX-License-Identifier: Apache-2.0
"""The same ELF file prints the same on the core and on the emulator, with golden and with RTL."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest

from npu.firmware import compile as firmware
from npu.firmware.plan import IMAGE
from spec.paths import BUILD
from tb.run import processes, runner
from tb.run.build import Configuration
from tb.run.registry import BenchTest
from tb.soc import given_program, program_run
from tb.soc.elf_file import Elf
from tests.needs import needs
from tests.soc import support


@cache
def _on_golden(name: str) -> bytes:
    needs("emulator")
    from tb.soc import emulator

    host = emulator.Emulator(firmware.compile_program(name))
    assert host.run() == 0
    return bytes(host.output)


def test_on_the_core() -> None:
    """The core with the chip beside it prints what the emulator with golden prints."""
    ran = support.run(firmware.compile_program("npu_test"), "host-npu-test")
    assert (ran.output, ran.code) == (_on_golden("npu_test"), 0)


@pytest.mark.parametrize("mood", range(len(support.HARSH)))
def test_on_the_core_in_other_moods(mood: int) -> None:
    """Neither memory latency nor gaps on the buses change what an instruction does."""
    path = firmware.compile_program("npu_test")
    ran = support.run(path, f"npu-test-{mood}", support.HARSH[mood])
    assert (ran.output, ran.code) == (_on_golden("npu_test"), 0)


@pytest.mark.parametrize("floats", ["soft", "hard"])
def test_on_the_rtl_as_coprocessor(floats: firmware.Floats) -> None:
    """An emulated core, with and without float registers, and the RTL behind the agent's port."""
    needs("emulator")
    from tb.soc import emulator_job as inside

    configuration = Configuration()
    assert configuration.binary.exists(), f"{configuration.binary} is not built: run make test"
    program = firmware.compile_program("npu_test", firmware.FirmwareTarget(floats=floats))
    folder = BUILD / "runs" / configuration.folder.name / f"emulator-{floats}"
    test = BenchTest(inside.__name__, inside.emulate.name, "emulates a core")
    job = runner.Job(test, configuration, place=folder)
    result = _simulated(job, {inside.REQUEST: {"program": str(program)}}, inside.RESULT)
    assert result["code"] == 0
    assert bytes.fromhex(str(result["output"])) == _on_golden("npu_test")


def _simulated(job: runner.Job, requests: dict[str, object], answer: str) -> dict[str, object]:
    """Run a job that reads requests and writes an answer, JSON all of them."""
    runner.prepare(job)
    for name, content in requests.items():
        (job.folder / name).write_text(json.dumps(content), encoding="utf-8")
    outcome = runner.outcome(job, processes.wait(runner.launch(job)), 0.0)
    assert outcome.passed, outcome.message
    result: dict[str, object] = json.loads((job.folder / answer).read_text(encoding="utf-8"))
    runner.discard_images(job)
    return result


def test_three_doors(tmp_path: Path) -> None:
    """Instructions, descriptors and microcode in one program, side by side, none disturbed."""
    plan = given_program.plan_of("weights/checkpoints/gpt2-tiny", "The parser accepts", 6)
    program = given_program.compiled("three_doors", plan, place=f"test-{tmp_path.name}")
    elf = Elf.load(program.path, IMAGE)
    ran = program_run.run_program(
        *(support.machine(), elf),
        name=f"test-three-doors-{tmp_path.name}",
        image=program.image,
        memory_end=program.end,
    )
    lines = ran.output.decode().splitlines()
    assert (ran.entries, ran.code) == (0, 0), lines
    assert lines[-1] == "side by side: 6 rounds of both between 6 tokens, 0 wrong"
