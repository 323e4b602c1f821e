# SPDX-License-Identifier: Apache-2.0
"""Compares the model of the datapath with references over all inputs, or a sample of them."""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field

import numpy as np

from golden.coprocessor import functions as golden
from golden.coprocessor.boundaries import NEAREST
from npu.commands import progress
from spec.paths import BUILD
from tb.cop_datapath import model

REPORT = BUILD / "reports" / "cop_sweep.json"
INPUTS = 1 << 32
PART = 1 << 22
"""Inputs that a thread takes at once."""


class TooManyError(RuntimeError):
    """More inputs are undecided or near a boundary than a list holds."""


@dataclass
class Sweep:
    """What came out for a function.

    Attributes:
        function: its name in golden.
        inputs: how many were compared.
        reached: those that went through the datapath; the others have special results.
        undecided: those that double did not decide: golden did.
        closest: least distance of an unrounded result from a boundary, as a power of two of the
            result; `closest_input` has it.
        near: inputs whose result is within 2^-50 of a boundary; of rsqrt_float32 from 1 to 4.
        wrong: inputs whose result is not the right one.
        seconds: wall-clock time.
    """

    function: str
    inputs: int = 0
    reached: int = 0
    undecided: int = 0
    closest: int = 1 << 64
    closest_input: int = 0
    near: list[int] = field(default_factory=list)
    wrong: list[int] = field(default_factory=list)
    seconds: float = 0.0

    def add(self, part: model.Summary, count: int) -> None:
        """Add what a part has found; golden decides what double did not.

        Raises:
            TooManyError: a list of the part is not complete.
        """
        if max(part.undecided, part.near) > model.MOST:
            raise TooManyError(f"{self.function}: {part.undecided} undecided, {part.near} near")
        self.inputs += count
        self.reached += part.reached
        self.undecided += part.undecided
        if part.closest < self.closest:
            self.closest, self.closest_input = int(part.closest), int(part.closest_input)
        self.near += part.near_inputs[: part.near]
        self.wrong += part.wrong_inputs[: min(part.wrong, model.MOST)]
        for x in part.undecided_inputs[: part.undecided]:
            bits, _ = model.compute(self.function, np.array([x], np.uint32))
            if getattr(golden, self.function)(x) != int(bits[0]):
                self.wrong.append(x)

    def findings(self) -> list[str]:
        """Return what is wrong, a line each: ten results at most, near inputs that golden lacks."""
        found = [f"{self.function}: wrong at {x:#010x}" for x in self.wrong[:10]]
        new = set(self.near) - set(NEAREST.get(self.function, ()))
        return found + [f"{self.function}: {x:#010x} is not in NEAREST" for x in sorted(new)]

    def __str__(self) -> str:
        away = f"{self.closest} * 2^-63" if self.reached else "-"
        return (
            f"{self.function:14} {self.inputs:>13,} {self.reached:>13,} {self.undecided:>9,} "
            f"{away:>19} {len(self.near):>5} {len(self.wrong):>5} {self.seconds:>7.1f}"
        )


HEAD = (
    f"{'function':14} {'inputs':>13} {'reached':>13} {'undecided':>9} {'closest to boundary':>19} "
    f"{'near':>5} {'wrong':>5} {'seconds':>7}"
)


def run(function: str, sample: int = INPUTS, seed: int = 1, workers: int = 0) -> Sweep:
    """Compare all inputs of a function, or about `sample` of them in equal steps.

    Args:
        function: one of `model.FUNCTIONS`.
        sample: inputs, at most 2^32.
        seed: of the place where the steps begin.
        workers: threads; 0: as many as there are processors.
    """
    step = INPUTS // min(sample, INPUTS)
    first = random.Random(seed).randrange(step)
    count = (INPUTS - first + step - 1) // step
    result = Sweep(function)
    started = time.monotonic()
    model.library()

    def part(at: int) -> tuple[model.Summary, int]:
        size = min(PART, count - at)
        return model.sweep(function, first + at * step, step, size), size

    def so_far() -> str:
        return f"{100 * result.inputs / count:.0f} %, {len(result.wrong)} wrong"

    with (
        progress.step(f"{function}: {count:,} inputs", so_far),
        ThreadPoolExecutor(workers or os.cpu_count() or 1) as pool,
    ):
        for summary, size in pool.map(part, range(0, count, PART)):
            result.add(summary, size)
    result.seconds = time.monotonic() - started
    return result


def write_report(sweeps: Sequence[Sweep]) -> None:
    """Write build/reports/cop_sweep.json."""
    REPORT.parent.mkdir(parents=True, exist_ok=True)
    rows = [asdict(sweep) for sweep in sweeps]
    REPORT.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
