# SPDX-License-Identifier: Apache-2.0
"""Networks with states as users run them: sessions, plans, sequences, the command line."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.needs import needs

needs("graphs")

import onnx

import tessera
from golden.command.model import ModelBus
from golden.graph import run_steps
from npu.cli import command_line
from npu.driver.chip import Chip
from npu.firmware.plan import PlanError, firmware_network
from npu.graph.form import GraphError
from npu.graph.states import States
from npu.planner.build_plan import CompileOptions, build_plan
from npu.planner.partition import partition
from npu.runtime.plan_files import PLAN, PlanFileError, files_of, plan_from
from npu.runtime.prepare import prepare
from npu.runtime.replay import DrivenChip
from npu.runtime.sequence import SequenceEntry, load_sequence, run_sequence
from spec.isa.operands import up
from tests.python.graph.state_networks import CELLS, PAIRS, cell, lstm_cell, lstm_operator, samples
from tests.python.plans.plan_damage import damages, with_record

STEPS = 100


def test_a_hundred_runs_of_an_lstm_are_those_of_golden() -> None:
    """Bit by bit, and near those in real numbers."""
    x, graph = samples(STEPS, 5), cell().passes["fuse"]
    wanted = run_steps(graph, {"x": x})["y"]
    session = tessera.Session(cell().plan)
    found = np.stack([session.run({"x": one})["y"] for one in x])
    np.testing.assert_array_equal(found, wanted)
    real = run_steps(cell().passes["import"], {"x": x})["y"]
    assert np.abs(found - real).max() < 0.1 * np.abs(real).max()
    alone = np.stack([run_steps(graph, {"x": one[None]})["y"][0] for one in x])
    assert np.abs(alone - real).max() > 0.3 * np.abs(real).max()


def test_an_lstm_of_the_host_hands_on_real_numbers() -> None:
    """Its state is no integer anywhere; onnxruntime says what it leaves."""
    import onnxruntime

    x = samples(6)[:, None]
    session = tessera.load(lstm_operator(), calibrate={"x": samples(32)[:, None]}, state=PAIRS)
    other = onnxruntime.InferenceSession(lstm_operator().SerializeToString())
    h = c = np.zeros((1, 1, CELLS), np.float32)
    for one in x:
        wanted, h, c = other.run(None, {"x": one, "h": h, "c": c})
        (found,) = session.run(None, {"x": one})
        assert np.abs(found - wanted).max() < 0.05
    assert np.abs(h).max() > 0.1


def test_a_function_of_jax_has_states_by_their_names() -> None:
    """Arguments and results are called as StableHLO has them; no samples are given for a state."""
    import jax.numpy as jnp

    weights = np.random.default_rng(7).standard_normal((16, 16)).astype(np.float32) / 4

    def step(x: Any, h: Any) -> Any:  # noqa: ANN401
        left = jnp.tanh((x + h) @ weights)
        return left @ weights, left

    x = np.random.default_rng(8).standard_normal((32, 1, 16)).astype(np.float32)
    h = np.zeros((1, 16), np.float32)
    session = tessera.from_jax(step, (h, h), calibrate=[x], state={"h": "result[1]"})
    assert (session.inputs, session.outputs) == (("x",), ("result[0]",))
    for one in x[:5]:
        y, h = step(one, h)
        assert np.abs(session.run({"x": one})["result[0]"] - y).max() < 0.05


def test_a_session_keeps_states_until_it_is_reset() -> None:
    """They are neither taken nor given; what a user gives for one is refused."""
    session, x = tessera.Session(cell().plan), samples(2)
    assert (session.inputs, session.outputs) == (("x",), ("y",))
    first, second = (session.run({"x": x[0]})["y"] for _ in range(2))
    assert not np.array_equal(first, second)
    session.reset()
    np.testing.assert_array_equal(session.run({"x": x[0]})["y"], first)
    with pytest.raises(GraphError, match="input 'h': given a value, allowed none: it is a state"):
        session.run({"x": x[0], "h": np.zeros((1, CELLS), np.int8)})
    np.testing.assert_array_equal(session.run({"x": x[0]})["y"], second)
    assert "State c: 16 bytes, kept by the host." in str(session.report())


def test_plans_of_a_sequence_share_states() -> None:
    """Three entries of one plan are three runs; without states each begins anew."""
    prepared, x = prepare(cell().plan), samples(3)

    async def run(states: States | None) -> np.ndarray:
        chip = DrivenChip(await Chip.connect(ModelBus(np.zeros(up(prepared.end), np.uint8))))
        entries = [
            SequenceEntry(name, prepared, {"x": f"x{name}"}, states=states)
            for name in ("0", "1", "2")
        ]
        await load_sequence(chip, entries)
        given = {f"x{number}": one for number, one in enumerate(x)}
        runs = await run_sequence(chip, entries, given)
        return np.stack([one.outputs["y"] for one in runs])

    graph = cell().passes["fuse"]
    wanted = run_steps(graph, {"x": x})["y"]
    found = asyncio.run(run(States(cell().plan.graph)))
    np.testing.assert_array_equal(found, wanted)
    anew = asyncio.run(run(None))
    np.testing.assert_array_equal(anew[1], run_steps(graph, {"x": x[1:2]})["y"][0])
    assert not np.array_equal(anew, wanted)


def test_every_entry_of_a_state_in_a_plan_is_refused_when_it_is_another() -> None:
    """And entries of states in a plan that has none."""
    files = files_of(cell().plan)
    record = json.loads(files[PLAN])
    assert record["states"][0] == {
        "input": "h",
        "output": "h_out",
        "bytes": CELLS,
        "kept": "host",
    }
    assert plan_from(files).graph.states[1].input == "c"
    tried = 0
    for damage in damages(record):
        if damage.path.startswith("states"):
            with pytest.raises(PlanFileError, match=r"states.*: given .*, allowed "):
                plan_from(with_record(files, damage.record))
            tried += 1
    assert tried > 30
    plain = build_plan(lstm_cell(), CompileOptions(calibrate="random:2")).plan
    without = files_of(plain)
    assert "states" not in json.loads(without[PLAN])
    with pytest.raises(PlanFileError, match=r"states: given .*, allowed nothing"):
        plan_from(with_record(without, json.loads(without[PLAN]) | {"states": record["states"]}))


def test_the_command_line_runs_steps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As many outputs as inputs, which golden says beforehand."""
    onnx.save(lstm_cell(), tmp_path / "net.onnx")
    np.save(tmp_path / "x.npy", samples(5))
    np.savez(tmp_path / "samples.npz", x=samples(64))
    arguments = ["compile", f"{tmp_path}/net.onnx", "-o", f"{tmp_path}/net"]
    arguments += ["--calibrate", f"{tmp_path}/samples.npz", "--state", "h=h_out"]
    assert command_line.main([*arguments, "--state", "c=c_out"]) == 0
    told = capsys.readouterr().out
    assert "1 of 1 outputs equal golden.graph on 3 drawn inputs, and states behind each" in told
    assert "int8[1,16] scale" in told
    assert "next c_out" in told
    run = ["run", f"{tmp_path}/net", "--input", f"{tmp_path}/x.npy", "--steps"]
    assert command_line.main([*run, "5"]) == 0
    found = np.load(tmp_path / "net" / "run" / "outputs.npz")
    wanted = run_steps(cell().passes["fuse"], {"x": samples(5)})
    assert found.files == ["y"]
    np.testing.assert_array_equal(found["y"], wanted["y"])
    capsys.readouterr()
    for line, message in (
        ([*run, "4"], "--steps 4: given input 'x' of shape [5, 1, 12], allowed a first axis of 4"),
        (run[:-1], "input 'x' has shape [5, 1, 12], allowed [1, 12]"),
        ([*arguments, "--state", "h=c_out"], "--state: given an input twice, allowed each once"),
    ):
        assert command_line.main(line) != 0
        assert message in " ".join(capsys.readouterr().err.split())
    with pytest.raises(SystemExit):
        command_line.main([*arguments, "--state", "h"])
    assert "given 'h', allowed INPUT=OUTPUT" in capsys.readouterr().err


def test_what_runs_a_network_once_or_in_parts_refuses_states() -> None:
    """A core, and delegates."""
    x = {"x": samples(1)[0]}
    with pytest.raises(PlanError, match="plan: given states h, c, allowed none"):
        firmware_network(cell().plan, x)
    with pytest.raises(GraphError, match="state 'h': given one, allowed none"):
        partition(cell().passes["import"], calibrate="random:2")
