# SPDX-License-Identifier: Apache-2.0
"""Simulators by the digest of what they are built from, so that they are built once.

`build/models/<digest>/<name>` is a simulator that runs wherever this tree's environment is. Who has
the file needs no build: another worker of a cluster, or a job of a CI that has kept the folder.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import cocotb_tools.config

from dev.regression.task import Task
from spec.configurations import CHIPS
from spec.paths import BUILD, GENERATED, HDL, RTL
from tb.run import build, machine, units, verilator
from tb.run import digest as source_digest

STORE = BUILD / "models"
MOST = 120
"""Simulators that are kept, a few megabytes each: those of the last few versions of the sources."""


def configuration_of(name: str, coverage: bool = False) -> build.Configuration:
    """Return the configuration of a task's model.

    Args:
        name: of its folder, without coverage.
        coverage: whether it counts what is executed.

    Raises:
        ValueError: no model has that name.
    """
    if (chip := name.removeprefix("fast-")) in CHIPS and chip != name:
        found = build.Configuration(chip=CHIPS[chip])
    elif name == machine.MachineConfiguration().folder.name:
        found = machine.MachineConfiguration()
    elif (block := name.removeprefix("fast-")) in units.blocks():
        found = units.UnitConfiguration(block=block)
    else:
        raise ValueError(f"given {name!r}, allowed the folder of a model, such as 'fast-a16'")
    return replace(found, coverage=coverage)


def digest(configuration: build.Configuration) -> str:
    """Return the digest of all that a simulator is built from; the sources must be generated."""
    words = [verilator.find().version, configuration.folder.name, configuration.top]
    words += [*configuration.parameters, *map(str, configuration.options)]
    return source_digest.of(words, (RTL, GENERATED, HDL), [build.COCOTB_MAIN])


def digest_of_all(configurations: Iterable[build.Configuration]) -> str:
    """Return the digest of all that some simulators are built from and linked with."""
    # They are linked with cocotb's libraries, whose folder tells Python's version as well.
    words = [str(cocotb_tools.config.libs_dir), *sorted(map(digest, configurations))]
    return source_digest.of(words, ())


def stored(configuration: build.Configuration) -> Path:
    """Return where the simulator is, or would be."""
    return STORE / digest(configuration) / configuration.top


def keep(configuration: build.Configuration, binary: bytes) -> Path:
    """Put a simulator into the store, whole or not at all; return its place."""
    place = stored(configuration)
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=place.parent, delete=False) as file:
        file.write(binary)
    Path(file.name).chmod(0o755)
    Path(file.name).replace(place)
    _prune()
    return place


def provide(configuration: build.Configuration) -> Path:
    """Return a simulator, built unless the store has it.

    Raises:
        BuildError: Verilator or the compiler refused the sources.
    """
    place = stored(configuration)
    if not place.exists():
        keep(configuration, build.build(configuration).read_bytes())
    return place


def needed(tasks: Iterable[Task], coverage: bool) -> list[build.Configuration]:
    """Return the models that tasks run on, each once; large ones first."""
    names = sorted({task.model for task in tasks if task.model})
    found = [configuration_of(name, coverage) for name in names]
    return list(
        dict.fromkeys(sorted(found, key=lambda each: isinstance(each, units.UnitConfiguration)))
    )


def looked_for(tasks: Iterable[Task]) -> list[build.Configuration]:
    """Return the models that files of pytest look for where a build puts them."""
    if any(task.kind in ("python", "nightly") for task in tasks):
        return [build.Configuration(), *machine.models()]
    return []


def _prune() -> None:
    """Remove the simulators that have not been needed for longest."""
    kept = sorted(STORE.glob("*"), key=lambda folder: folder.stat().st_mtime, reverse=True)
    for folder in kept[MOST:]:
        shutil.rmtree(folder, ignore_errors=True)
