# SPDX-License-Identifier: Apache-2.0
"""What happens inside the simulator: text is generated from the plan that lies in the folder."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import cocotb
import numpy as np
import numpy.typing as npt

from npu.driver import generate
from npu.driver.generate import Generated, PromptPlan
from npu.driver.sampling import Sampler
from tb.bench.dut import Dut
from tb.bench.environment import reset
from tb.bench.host import RtlBus, RtlChip, TimedFinish
from tb.bench.knobs import Knobs
from tb.bench.memory import Memory

REQUEST, RESULT = "request.json", "result.json"
TOKENS, LOGITS = "tokens.bin", "logits.bin"
"""Where the tokens of single steps (u32), and logits that were sampled from (int16), grow."""


async def asked(dut: Dut) -> tuple[Path, dict[str, Any], RtlChip]:
    """Return the run's folder, the request that lies in it, and the chip before its memory."""
    run_dir = Path(str(cocotb.plusargs["run_dir"]))
    request: dict[str, Any] = json.loads((run_dir / REQUEST).read_text(encoding="utf-8"))
    Knobs(**request["knobs"]).apply(dut)
    await reset(dut)
    memory = Memory.map(run_dir / "memory.bin")
    return run_dir, request, await RtlChip.connect(RtlBus(dut, memory, request["limit"]))


@cocotb.test
async def generate_text(dut: Dut) -> None:
    """Run the request of the run's folder; the memory is staged already."""
    run_dir, request, chip = await asked(dut)
    plan = PromptPlan.of_json(request["plan"])
    count, ends = request["count"], request["ends"]
    if request["stepped"]:
        generated = await _stepped(chip, plan, count, ends, run_dir)
    elif request["sampling"] is None:
        generated = await generate.greedy(chip, plan, count, ends[: generate.MOST_ENDS])
    else:
        generated = await _sampled(chip, plan, request, run_dir)
    _save(run_dir, generated, chip.finishes)


async def _sampled(
    chip: RtlChip, plan: PromptPlan, request: dict[str, Any], run_dir: Path
) -> Generated:
    sampler = Sampler(**request["sampling"])
    with (run_dir / TOKENS).open("wb") as tokens, (run_dir / LOGITS).open("wb") as logits:

        def keep(token: int, values: npt.NDArray[np.int16]) -> None:
            logits.write(values.tobytes())
            tokens.write(token.to_bytes(4, "little"))
            tokens.flush()

        return await generate.sampled(
            chip, plan, request["count"], sampler.choose, request["ends"], keep
        )


async def _stepped(
    chip: RtlChip, plan: PromptPlan, count: int, ends: list[int], run_dir: Path
) -> Generated:
    """Start the chip once per token, so that the logs hold each step as a program of its own."""
    launch = plan.prompt
    assert launch is not None and plan.step is not None
    ids: list[int] = []
    cycles: list[int] = []
    with (run_dir / TOKENS).open("wb") as tokens:
        while True:
            finish = await chip.execute(launch)
            cycles.append(finish.counters.cycles)
            word = chip.bus.read_memory(plan.tokens, 4)
            tokens.write(word)
            tokens.flush()
            ids.append(int.from_bytes(word, "little"))
            if len(ids) == count or ids[-1] in ends:
                return Generated(ids, cycles)
            launch = replace(plan.step, pos=plan.prompt_length + len(ids) - 1, token=ids[-1])


def _save(run_dir: Path, generated: Generated, finishes: list[TimedFinish]) -> None:
    result = {
        "ids": generated.ids,
        "cycles": generated.cycles,
        "seconds": sum(finish.waited.seconds for finish in finishes),
        "counters": [asdict(finish.counters) for finish in finishes],
    }
    (run_dir / RESULT).write_text(json.dumps(result), encoding="utf-8")
