# SPDX-License-Identifier: Apache-2.0
"""The workflow of continuous integration asks for what there is, and for all of it."""

from __future__ import annotations

import argparse
import fnmatch
import json
import re
import shlex
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest
import yaml

from dev.regression import command
from npu.cli.command_line import COMMANDS
from npu.commands.arguments import TIERS
from spec.paths import ROOT

WORKFLOW = ROOT / ".github" / "workflows" / "ci.yml"
NPU = ".venv/bin/npu"
_EXPRESSION = re.compile(r"\$\{\{(.*?)\}\}")
_VARIABLE = re.compile(r"\$\(?\w+\)?")


@cache
def workflow() -> dict[str, Any]:
    """Return the workflow."""
    found: dict[str, Any] = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))
    return found


def jobs() -> dict[str, dict[str, Any]]:
    """Return its jobs by name."""
    found: dict[str, dict[str, Any]] = workflow()["jobs"]
    return found


def shards() -> dict[str, list[str]]:
    """Return the shards of the jobs that have some."""
    matrices = {name: job.get("strategy", {}).get("matrix", {}) for name, job in jobs().items()}
    return {name: matrix["shard"] for name, matrix in matrices.items() if "shard" in matrix}


def uploads() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield what is uploaded, with the job that does it."""
    for name, job in jobs().items():
        for step in job["steps"]:
            if step.get("uses", "").startswith("actions/upload-artifact@"):
                yield name, step["with"]


def commands() -> list[list[str]]:
    """Return all commands of all jobs as words; the first shard stands for all."""
    found = []
    for name, job in jobs().items():
        shard = shards().get(name, [""])[0]
        for step in job["steps"]:
            text = _EXPRESSION.sub(shard, step.get("run", ""))
            text = re.sub(r"\w+=\$\((.*?)\)", r"\1", text)
            found += [shlex.split(part) for part in re.split(r"\n|&&", text) if part.strip()]
    return found


def of(program: str) -> list[list[str]]:
    """Return the arguments of all calls of a program."""
    return [words[words.index(program) + 1 :] for words in commands() if program in words]


def regress_parser() -> argparse.ArgumentParser:
    """Return the parser of `npu regress`."""
    parser = argparse.ArgumentParser()

    def add(name: str, function: Callable[[argparse.Namespace], int]) -> argparse.ArgumentParser:
        return parser

    command.add_commands(add)
    return parser


def test_every_target_of_make_is_in_the_makefile() -> None:
    """And so is every variable that it is given."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    calls = of("make")
    assert len(calls) > 4
    for words in [words for words in calls if "install" not in words]:
        for word in words:
            name, given, _ = word.partition("=")
            line = rf"^{name} \?=" if given else rf"^{name}:"
            assert re.search(line, makefile, re.M), word


def test_every_command_of_npu_takes_its_options() -> None:
    """As its parser says."""
    calls = of(NPU)
    assert len(calls) > 2
    for name, *words in calls:
        assert name in COMMANDS
        assert name == "regress", "add its parser here"
        regress_parser().parse_args([_VARIABLE.sub("smoke", word) for word in words])


def test_every_script_is_there() -> None:
    """Named by its path from the root."""
    scripts = [word for words in commands() for word in words if re.match(r"(\.ci|dev)/", word)]
    assert scripts
    assert all((ROOT / script).is_file() for script in scripts)


@pytest.mark.parametrize("job", ["smoke", "full"])
def test_shards_are_complete(job: str) -> None:
    """1/n to n/n, each once; every one of them runs its tier, and goes on if another fails."""
    given = shards()[job]
    assert given == [f"{number}/{len(given)}" for number in range(1, len(given) + 1)]
    assert job in TIERS
    assert jobs()[job]["strategy"]["fail-fast"] is False
    runs = [step.get("run", "") for step in jobs()[job]["steps"]]
    assert f"make regress TIER={job} SHARD=${{{{ matrix.shard }}}}" in runs


def test_models_are_built_for_the_tier_that_runs() -> None:
    """The events of the full tier are those for which its simulators are built."""
    events = re.findall(r"== '(\w+)'", jobs()["full"]["if"])
    list_of = json.dumps(events)
    assert workflow()["env"]["TIER"] == (
        f"${{{{ contains(fromJSON('{list_of}'), github.event_name) && 'full' || 'smoke' }}}}"
    )
    others = re.findall(r"== '(\w+)'", jobs()["smoke"]["if"])
    # YAML takes the word `on` for true.
    assert {*events, *others} == set(workflow()[True])  # type: ignore[index]


def test_artifacts_have_names_of_their_own() -> None:
    """Also those of the shards of one job; the last job fetches the results of all shards."""
    names = [(job, each["name"]) for job, each in uploads()]
    assert len({name for _, name in names}) == len(names)
    for job, name in names:
        assert ("strategy.job-index" in name) == (job in shards()), name
    (fetched,) = [step["with"] for step in jobs()["report"]["steps"] if "download" in str(step)]
    matching = [each for _, each in uploads() if fnmatch.fnmatch(each["name"], fetched["pattern"])]
    assert len(matching) == len(shards())
    assert all(".regress" in each["path"].split() for each in matching)
    assert set(shards()) <= set(jobs()["report"]["needs"])
    assert any(fetched["path"] in word for words in of(NPU) for word in words)


def test_results_are_uploaded_though_their_folder_is_hidden() -> None:
    """Each upload of results says so, or would be without them."""
    hidden = [each for _, each in uploads() if ".regress" in each["path"].split()]
    assert len(hidden) == len(shards()) + 1
    assert all(each["include-hidden-files"] is True for each in hidden)
