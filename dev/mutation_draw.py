# SPDX-License-Identifier: Apache-2.0
"""Which mutants a campaign has: drawn by a seed, or by what has changed, or by their names.

The order in which a seed draws is that of a campaign of any size: a larger one begins with all of a
smaller one. Three rounds take one mutant of each file of more than 40 lines, the rest comes from
all that are left, each as likely as every other.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from dev.mutation_model import Design
from dev.mutation_sites import Mutant
from spec.paths import ROOT, RTL
from tb.run import registry

LONG = 40
"""Lines of a file from which on it has mutants of its own in every campaign that is long enough."""
ROUNDS = 3
"""Mutants that such a file has then."""


class MutationError(ValueError):
    """A campaign that cannot be run, or a report that is not of these sources."""


def drawn(design: Design, seed: str) -> list[Mutant]:
    """Return all mutants of a design in the order in which a seed draws them.

    Args:
        design: the RTL.
        seed: any text.
    """
    draw = random.Random(f"mutants {seed}")
    left = list(design.mutants)
    draw.shuffle(left)
    by_file: dict[str, list[Mutant]] = {}
    for mutant in left:
        by_file.setdefault(mutant.file, []).append(mutant)
    long = [file for file in by_file if design.files[file].lines > LONG]
    first: list[Mutant] = []
    for number in range(ROUNDS):
        draw.shuffle(long)
        first += [by_file[file][number] for file in long if number < len(by_file[file])]
    taken = set(first)
    return [*first, *(mutant for mutant in left if mutant not in taken)]


def changed(
    mutants: Iterable[Mutant], lines: Mapping[Path, set[int]], rtl: Path = RTL
) -> list[Mutant]:
    """Return the mutants in lines that have changed.

    Args:
        mutants: what there is.
        lines: that have changed, by file from the project's folder; a file without lines is new.
        rtl: the folder of the RTL in the worktree.

    Raises:
        MutationError: there are none.
    """
    home = rtl.relative_to(ROOT)
    new = {file for file, some in lines.items() if not some and (ROOT / file).exists()}
    found = [
        mutant
        for mutant in mutants
        for file in [home / mutant.file]
        if file in new or mutant.line in lines.get(file, ())
    ]
    if not found:
        raise MutationError(f"CHANGED: no line of {home} that differs has a mutant")
    return found


def check_files(names: Iterable[str], rtl: Path = RTL) -> None:
    """Refuse names of which the part before a colon is no file of the RTL.

    Raises:
        MutationError: the message lists near ones.
    """
    files = sorted(path.stem for path in rtl.rglob("*.sv"))
    for name in names:
        stem = name.split(":")[0]
        if stem not in files:
            raise MutationError(
                f"MUTANTS: given {name!r}, no file of {rtl.name}/ is called {stem}"
                f"{registry.near(stem, files)}"
            )


def named(mutants: Sequence[Mutant], names: Sequence[str]) -> list[Mutant]:
    """Return the mutants that names of mutants or of files choose, in their order.

    Raises:
        MutationError: a mutant is not there; the message lists near ones.
    """
    check_files(names)
    known = {mutant.name for mutant in mutants}
    for name in names:
        if ":" in name and name not in known:
            kin = sorted(each for each in known if each.startswith(name.split(":")[0] + ":"))
            raise MutationError(
                f"MUTANTS: given {name!r}, no mutant is called so{registry.near(name, kin)}"
            )
    return [each for each in mutants if {each.name, each.name.split(":")[0]} & {*names}]
