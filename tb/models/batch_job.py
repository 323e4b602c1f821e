# SPDX-License-Identifier: Apache-2.0
"""What happens inside the simulator: texts whose passes have several rows, of one or of all."""

from __future__ import annotations

import json
from dataclasses import asdict
from functools import partial

import cocotb
import numpy as np
import numpy.typing as npt

from npu.compiler import CompiledModel
from npu.driver.batch import Batched, BatchRequest, batched
from npu.driver.sampling import Sampler
from npu.driver.speculate import speculated
from npu.planner.batch_placement import BatchPlacement
from npu.planner.placement import Placement
from tb.bench.dut import Dut
from tb.models.generation_job import LOGITS, RESULT, TOKENS, asked

MODEL = "model.tsr"


@cocotb.test
async def generate_texts(dut: Dut) -> None:
    """Run the request of the run's folder, on the model that lies there."""
    run_dir, request, chip = await asked(dut)
    placement = Placement(CompiledModel.load((run_dir / MODEL).read_bytes()))
    guesses = request["guesses"]
    programs = BatchPlacement(placement, request["batch"], request["positions"], guesses + 1)
    chip.stage(placement.pieces)
    requests = [BatchRequest(**each) for each in request["requests"]]
    samplers = [Sampler(**settings) for settings in request["sampling"]]
    with (run_dir / TOKENS).open("wb") as tokens, (run_dir / LOGITS).open("wb") as logits:
        # Pairs of text and token (u32), and the logits of each, as they come.
        def keep(number: int, token: int, values: npt.NDArray[np.int16]) -> None:
            logits.write(values.tobytes())
            tokens.write(np.array([number, token], "<u4").tobytes())
            tokens.flush()

        if guesses:
            result = Batched([])
            for number, one in enumerate(requests):
                choose = samplers[number].choose
                alone = await speculated(
                    chip, programs, one, guesses, choose, partial(keep, number)
                )
                result.texts += alone.texts
                result.passes += alone.passes
        else:
            result = await batched(
                chip, programs, requests, lambda number, row: samplers[number].choose(row), keep
            )
    record = {
        "texts": [
            {"ids": text.ids, "error": None if text.error is None else text.error.text}
            for text in result.texts
        ],
        "passes": [asdict(each) for each in result.passes],
        "seconds": sum(finish.waited.seconds for finish in chip.finishes),
    }
    (run_dir / RESULT).write_text(json.dumps(record), encoding="utf-8")
