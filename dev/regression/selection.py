# SPDX-License-Identifier: Apache-2.0
"""Chooses tasks: by names, globs, tags and engines, by shard, and by what a change touches."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence

from dev.regression.task import Task
from tb.run import registry, units


class SelectionError(ValueError):
    """A filter or shard that chooses nothing."""


def _tests() -> dict[str, registry.BenchTest]:
    return {test.name: test for test in [*registry.discover(), *units.tests_of()]}


def _names_of(task: Task, tests: dict[str, registry.BenchTest]) -> set[str]:
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
    tests = _tests()
    known = {task: _names_of(task, tests) for task in tasks}
    wanted, unwanted = set[Task](), set[Task]()
    for word in words:
        pattern = word.removeprefix("!")
        hits = {task for task, names in known.items() if fnmatch.filter(names, pattern)}
        if not hits:
            every = sorted({name for names in known.values() for name in names if "/" not in name})
            raise SelectionError(
                f"FILTER={word}: no test, module, file, block, model, tag or engine of this tier"
                f"{registry.near(pattern, every)}; tags: {', '.join(registry.TAGS)}"
            )
        (unwanted if word.startswith("!") else wanted).update(hits)
    kept = wanted or set(tasks)
    left = [task for task in tasks if task in kept and task not in unwanted]
    if not left:
        raise SelectionError(f"FILTER={','.join(words)}: leaves no test")
    return left


def shard(tasks: Sequence[Task], text: str) -> list[Task]:
    """Return a share of tasks for one of several machines.

    Args:
        tasks: of the whole.
        text: "2/5" for the second of five shares; "" for all.

    Raises:
        SelectionError: the text means no share.
    """
    if not text:
        return list(tasks)
    number, _, count = text.partition("/")
    if not (number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
        raise SelectionError(
            f"SHARD={text}: given {text!r}, allowed such as 1/4, the first of four"
        )
    return list(tasks)[int(number) - 1 :: int(count)]
