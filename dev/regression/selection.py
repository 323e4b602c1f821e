# SPDX-License-Identifier: Apache-2.0
"""Chooses tasks: by names, globs, tags and engines, by shard, and by what a change touches."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from dev.coverage.changed import modules_touched
from dev.regression import known as known_tests
from dev.regression.task import Task
from tb.run import registry, units

_SHARE = re.compile(r"([0-9]{1,6})/([0-9]{1,6})")


class SelectionError(ValueError):
    """A filter or shard that chooses nothing."""


def _names_of(task: Task, tests: Mapping[str, registry.BenchTest]) -> set[str]:
    """Return all that a word of a filter may mean by a task."""
    names = {task.name, task.kind, task.model, task.key}
    test = tests.get(task.name)
    if test is not None:
        names |= {test.group, *test.tags}
        if task.kind == "unit":
            names.add(units.block_of(test))
    return names


def chosen(tasks: Sequence[Task], words: Sequence[str]) -> list[Task]:
    """Return the tasks that some word chooses, all without a word.

    Args:
        tasks: what there is.
        words: names of tests, modules, files, blocks, models or kinds, tags, engines, or globs of
            them; with `!` before it: not those.

    Raises:
        SelectionError: a word fits no task, or nothing is left.
    """
    tests = known_tests.tests()
    known = {task: _names_of(task, tests) for task in tasks}
    wanted, unwanted = set[Task](), set[Task]()
    for word in words:
        pattern = word.removeprefix("!")
        hits = {task for task, names in known.items() if fnmatch.filter(names, pattern)}
        if not hits:
            every = sorted({name for names in known.values() for name in names if "/" not in name})
            raise SelectionError(
                f"FILTER: given {word!r}, no test, module, file, block, model, tag or engine of "
                "this tier"
                f"{registry.near(pattern, every)}; tags: {', '.join(registry.TAGS)}"
            )
        (unwanted if word.startswith("!") else wanted).update(hits)
    kept = wanted or set(tasks)
    left = [task for task in tasks if task in kept and task not in unwanted]
    if not left:
        raise SelectionError(f"FILTER: given {','.join(words)!r}, which leaves no test")
    return left


def shard(tasks: Sequence[Task], text: str) -> list[Task]:
    """Return a share of tasks for one of several machines.

    Args:
        tasks: of the whole.
        text: "2/5" for the second of five shares; "" for all.

    Raises:
        SelectionError: the text means no share, or one without tasks.
    """
    if not text:
        return list(tasks)
    share = _SHARE.fullmatch(text)
    if share is None or not 1 <= int(share[1]) <= int(share[2]):
        raise SelectionError(f"SHARD: given {text!r}, allowed such as 1/4, the first of four")
    left = list(tasks)[int(share[1]) - 1 :: int(share[2])]
    if not left:
        raise SelectionError(f"SHARD={text}: leaves no test of {len(tasks)}")
    return left


def concerned(tasks: Sequence[Task], files: Iterable[Path], by_lines: Sequence[str]) -> list[str]:
    """Return tests (`Task.test`) in the order in which a change concerns them.

    Those first whose own module has changed, then by what they executed of it; of a change without
    RTL those first that import what has changed.

    Args:
        tasks: of a run with coverage.
        files: that have changed, from the project's folder.
        by_lines: keys of the tasks, those first that executed most of the change.
    """
    paths = list(files)
    tests = known_tests.tests()
    keys = {task.key: task for task in tasks}
    touched = modules_touched(paths)
    own = {path.with_suffix("").as_posix().replace("/", ".") for path in paths}

    def of(modules: Iterable[str]) -> list[Task]:
        return [task for task in tasks if task.name in tests and tests[task.name].module in modules]

    in_rtl = any(path.parts[0] == "rtl" for path in paths)
    order = [*of(own), *([] if in_rtl else of(touched)), *(keys[key] for key in by_lines)]
    return list(dict.fromkeys(task.test for task in order))
