# SPDX-License-Identifier: Apache-2.0
"""The benches of single blocks as second witnesses, for what the tests of the chip miss.

They do not count as kills. A survivor that one of them notices lacks a test of the chip; one that
none notices either may be no fault at all.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from dev.mutation_model import PROBE
from dev.mutation_sites import Mutant
from spec.paths import GENERATED, HDL
from tb.run import build, parallel, registry, runner, sources, units

_MOST = 2
"""Blocks that are asked about a file: each is a build."""
LIMIT_S = 300.0
"""Wall-clock limit of a test of a block."""


@dataclass(frozen=True)
class MutantBlock(units.UnitConfiguration):
    """A block alone, with the mutants of a model in it."""

    @property
    def options(self) -> list[str]:
        """Those of every block, and the notes that its choices call."""
        return [*super().options, str(PROBE)]


def blocks_with(files: Iterable[str], rtl: Path) -> dict[str, list[str]]:
    """Return for files of the RTL the blocks in whose bench they are, the smallest benches alone.

    Args:
        files: their paths from the folder of the RTL.
        rtl: that folder.
    """
    hdl = [*rtl.rglob("*.sv"), *GENERATED.rglob("*.sv"), *HDL.glob("*.sv")]
    hdl += units.UNIT_HDL.glob("*.sv")
    needed = {
        block: sources.closure(f"unit_{block}", hdl)
        for block in units.blocks()
        if block not in units.VARIANTS
    }
    blocks = sorted(needed, key=lambda block: (len(needed[block]), block))
    return {file: [each for each in blocks if rtl / file in needed[each]][:_MOST] for file in files}


def witnesses(
    survivors: Mapping[int, Mutant], rtl: Path, place: Path, seed: int, workers: int
) -> dict[int, str]:
    """Return for each survivor the tests of blocks that notice it, with a comma between them.

    Args:
        survivors: by the number that chooses each.
        rtl: the copy of the RTL that has them.
        place: folder for the folders of the runs.
        seed: of all random choices.
        workers: runs side by side.

    Raises:
        build.BuildError: a block cannot be built.
    """
    by_file = blocks_with({mutant.file for mutant in survivors.values()}, rtl)
    homes = {number: by_file[mutant.file] for number, mutant in survivors.items()}
    seen: dict[int, list[str]] = {number: [] for number in survivors}
    for block in sorted({block for some in homes.values() for block in some}):
        model = MutantBlock(block=block, rtl=rtl, label=f"mutants-{block}")
        build.build(model)

        def fails(
            test: registry.BenchTest, number: int, model: build.Configuration = model
        ) -> tuple[str, int]:
            folder = place / f"{test.name}-{number}"
            plusargs = (f"fault={number}",)
            job = runner.Job(test, model, seed, place=folder, plusargs=plusargs, limit_s=LIMIT_S)
            passed = runner.run(job).passed
            shutil.rmtree(folder, ignore_errors=True)
            return test.name, -1 if passed else number

        concerned = [number for number, some in homes.items() if block in some]
        tasks = [
            partial(fails, test, number)
            for test in units.tests_of(block)
            for number in (0, *concerned)
        ]
        ended = parallel.in_order(tasks, workers)
        broken = {name for name, number in ended if number == 0}
        for name, number in ended:
            if number > 0 and name not in broken:
                seen[number].append(name)
        shutil.rmtree(model.folder, ignore_errors=True)
    return {number: ",".join(names) for number, names in seen.items()}
