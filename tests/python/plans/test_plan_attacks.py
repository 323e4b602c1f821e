# SPDX-License-Identifier: Apache-2.0
"""A sample of what `make regress` tries in full, in tests/suites/test_plan_attacks.py."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from tests.needs import needs

needs("graphs")

from npu.cli.command_line import run
from npu.commands.files import FileError, fresh
from npu.commands.last_resort import Refusal
from npu.graph import host_process
from npu.graph.evaluate import evaluate
from npu.graph.form import Attribute, Element, Graph, GraphError, Operation, Tensor, TensorType
from npu.image import unpack
from npu.runtime.plan_files import GRAPH, IMAGE, PlanFileError, plan_from
from spec.paths import DOCS
from tests.python.plans.plan_attacks import BASES, base, campaign, kinds
from tests.python.plans.plan_damage import resealed

SAMPLE = 200


def test_a_long_name_in_a_graph_is_not_told_whole() -> None:
    """The message stays a line that one can read."""
    files = base("onnx")
    text = unpack(files[IMAGE]).sections[GRAPH].decode() + f"output %{'x' * 3000}\n"
    with pytest.raises(PlanFileError) as refused:
        plan_from(resealed(files, GRAPH, text.encode()))
    assert "graph: given one with" in str(refused.value) and len(str(refused.value)) < 700


def test_plans_of_strangers_do_no_harm(tmp_path: Path) -> None:
    """Refused in one line, or what the plan says: within seconds, memory and its folder."""
    found = campaign(tmp_path, range(SAMPLE))
    assert found["tried"] == SAMPLE
    assert {*kinds()} <= {*found["kinds"]}


@pytest.mark.parametrize("name", BASES)
def test_what_a_step_carries_is_what_the_importer_makes(name: str) -> None:
    """The plans that are attacked are taken as they are, and their steps evaluated."""
    graph = plan_from(base(name)).graph
    (one,) = [one for one in graph.operations if one.kind == "host"]
    value = np.random.default_rng(1).standard_normal((8, 64)).astype(np.float32)
    given = [value, np.array(1)][: len(one.inputs)]
    (found,) = host_process.evaluate(graph, one, given)
    wanted = np.cumsum(value, 1) if name == "onnx" else np.sort(value, -1)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


def test_an_evaluator_that_nobody_knows_is_named() -> None:
    """Nothing is imported that a graph names."""
    attributes: dict[str, Attribute] = {
        "evaluator": "os",
        "operator": "system",
        "payload": b"",
        "reason": "",
    }
    kind = TensorType((1,), Element.F32)
    tensors = {name: Tensor(name, kind) for name in "xy"}
    operation = Operation("o", "host", ("x",), ("y",), attributes)
    graph = Graph("g", ("x",), ("y",), tensors, (operation,))
    with pytest.raises(GraphError, match="evaluator 'os', allowed onnx, stablehlo"):
        evaluate(graph, {"x": np.zeros(1, np.float32)})


def test_a_process_that_has_died_is_started_again() -> None:
    """The next operation is evaluated as if nothing had been."""
    graph = plan_from(base("onnx")).graph
    (one,) = [one for one in graph.operations if one.kind == "host"]
    given = [np.ones((8, 64), np.float32), np.array(1)]
    before = host_process.evaluate(graph, one, given)
    assert host_process.CHILD.process is not None
    host_process.CHILD.process.kill()
    host_process.CHILD.process.wait()
    after = host_process.evaluate(graph, one, given)
    np.testing.assert_array_equal(before, after)


def test_an_interrupted_question_leaves_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next one is answered by another process."""
    graph = plan_from(base("onnx")).graph
    (one,) = [one for one in graph.operations if one.kind == "host"]
    first, second = (np.full((8, 64), value, np.float32) for value in (1, 2))
    host_process.evaluate(graph, one, [first, np.array(1)])

    def interrupted(*_: object) -> bool:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("multiprocessing.connection.Connection.poll", interrupted)
        with pytest.raises(KeyboardInterrupt):
            host_process.evaluate(graph, one, [first, np.array(1)])
    (found,) = host_process.evaluate(graph, one, [second, np.array(1)])
    np.testing.assert_array_equal(found, np.cumsum(second, 1))


def test_a_file_takes_the_place_of_a_link_and_not_of_its_end(tmp_path: Path) -> None:
    """And in a folder that is a link nothing is written."""
    mine, run = tmp_path / "mine", tmp_path / "run"
    mine.write_text("mine")
    run.mkdir()
    (run / "out").symlink_to(mine)
    with fresh(run / "out") as place:
        place.write_text("new")
    assert ((run / "out").read_text(), mine.read_text()) == ("new", "mine")
    assert not (run / "out").is_symlink()
    (tmp_path / "link").symlink_to(run)
    with (
        pytest.raises(FileError, match="given a link, allowed a folder"),
        fresh(tmp_path / "link" / "out"),
    ):
        pass
    assert [one.name for one in run.iterdir()] == ["out"]


def test_the_page_says_what_a_step_may_take() -> None:
    """In seconds and in megabytes."""
    page = (DOCS / "plans.md").read_text(encoding="utf-8")
    assert f"{host_process.SECONDS} s of processor time and {host_process.MEGABYTES} MB" in page


@pytest.mark.parametrize("harm", ["a link", "a pipe", "a link of a folder"])
def test_explain_reads_files_of_the_folder_alone(harm: str, tmp_path: Path) -> None:
    """The text of a pass is a file of whoever made the plan as well."""
    folder, outside = tmp_path / "plan", tmp_path / "outside"
    passes = folder / "passes"
    outside.mkdir()
    (outside / "1-import.txt").write_text("mine")
    folder.mkdir()
    for name, data in base("onnx").items():
        (folder / name).write_bytes(data)
    if harm == "a link of a folder":
        passes.symlink_to(outside)
    else:
        passes.mkdir()
        file = passes / "1-import.txt"
        os.mkfifo(file) if harm == "a pipe" else file.symlink_to(outside / "1-import.txt")
    with pytest.raises(Refusal, match=r"given (a link|what is no file), allowed a f"):
        run(["explain", str(folder), "--pass", "import"])
