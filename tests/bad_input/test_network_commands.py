# SPDX-License-Identifier: Apache-2.0
"""Commands for networks that are refused: one line, status 2, and the old folder as it was."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.needs import needs

needs("graphs")

import onnx

from npu.cli import command_line
from npu.commands import network_folder
from npu.planner import build_plan
from npu.runtime.plan_files import files_of
from tests.python.compiler.user_networks import model, samples

X = "'x': float32[samples, 1, 1, 28, 28]"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a network, its samples, and what npu compile has made of it."""
    folder = tmp_path_factory.mktemp("networks")
    onnx.save(model(), folder / "net.onnx")
    np.savez(folder / "samples.npz", **samples(4))  # type: ignore[arg-type]
    arguments = ["compile", f"{folder}/net.onnx", "--calibrate", f"{folder}/samples.npz"]
    assert command_line.main([*arguments, "-o", f"{folder}/out"]) == 0
    return folder


@pytest.fixture
def here(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Work in a copy of that folder."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    yield tmp_path


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Run a command and return the line that it refuses with."""
    capsys.readouterr()
    try:
        status: object = command_line.main(list(arguments))
    except SystemExit as error:
        status = error.code
    printed = capsys.readouterr()
    assert (status, printed.out) == (2, ""), (status, printed)
    (line,) = printed.err.splitlines()
    return line


def content(folder: Path) -> dict[str, bytes]:
    """Return every file below a folder."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ([], f"net.onnx: tensor 'x' has no scale: the network is in float and needs samples "
             f"(--calibrate FILE.npz, or random:N), allowed are {X}"),
        (["--calibrate", "none.npz"], "none.npz: cannot be read: No such file or directory"),
        (["--calibrate", "net.onnx"], "net.onnx: given a file that is none, allowed .npz or .npy"),
        (["--calibrate", "random:0"], "net.onnx: random:0, allowed random:1 to random:4096"),
        (["--calibrate", "random:many"], "net.onnx: samples 'random:many', allowed a file"),
        (["--calibrate", "other.npz"], f"net.onnx: samples: unknown 'z'; allowed are {X}"),
        (["--calibrate", "shape.npz"],
         "net.onnx: samples of input 'x': given shape [4, 28, 28], allowed (samples, 1, "),
        (["--calibrate", "kind.npz"],
         "net.onnx: samples of input 'x': given complex128, allowed float32"),
        (["--calibrate", "nan.npz"],
         "net.onnx: samples of input 'x': given nan at [1, 0, 0, 2, 3], allowed finite numbers"),
        (["--calibrate", "empty.npz"], "net.onnx: samples: 0 samples, allowed one or more"),
        (["--calibrate", "random:2", "--npu", "c3"],
         "net.onnx: --npu c3: there is no such operation"),
        (["--calibrate", "random:2", "--host", "c3"],
         "net.onnx: --host c3: there is no such operation"),
        (["--calibrate", "random:2", "--split", "c3"],
         "net.onnx: split: given 'c3', allowed are operations of the chip: "),
        (["--calibrate", "random:2", "--port", "c1"],
         "net.onnx: --port c1: operation 'c1' (conv, Conv) cannot be executed by the command port"),
        (["--shape", "x=1,2"], "net.onnx: input 'x' has shape [1, 1, 28, 28], given [1, 2]"),
        (["--shape", "x"], "npu compile: argument --shape: given 'x', allowed NAME=1,3,224,224"),
        (["--max-error", "0"], "npu compile: argument --max-error: given '0', allowed above 0 to"),
        (["--max-error", "2"], "npu compile: argument --max-error: given '2', allowed above 0 to"),
        (["--shape", "x=1,-2"], "npu compile: argument --shape: given 'x=1,-2', allowed NAME="),
        (["--rows", "4"], "--rows: given for a network, allowed for generation"),
        (["--tokens", "4"], "--tokens: given for a network, allowed for generation"),
        (["--weights", "int5"], "--weights: given the format 'int5', allowed fp4g, "),
        (["--weights", "int4g16", "--config", "a32"],
         "--weights int4g16: given int4g with groups of 16, allowed at least 32, the tile edge"),
        (["--calibrate", "random:2", "--weights", "c3=int4"],
         "net.onnx: --weights c3=int4: no product of the chip with real constant weights is called "
         "so, allowed c"),
    ],
)  # fmt: skip
def test_a_refused_compilation_leaves_the_old_folder(
    here: Path, capsys: pytest.CaptureFixture[str], options: list[str], line: str
) -> None:
    """Whatever is wrong, what lay there is there, and nothing lies beside it."""
    x = samples(4)["x"]
    np.savez("other.npz", z=x)
    np.savez("shape.npz", x=x[:, 0, 0])
    np.savez("kind.npz", x=x.astype(complex))
    np.savez("empty.npz", x=x[:0])
    x[1, 0, 0, 2, 3] = np.nan
    np.savez("nan.npz", x=x)
    before = content(here)
    found = refused(capsys, "compile", "net.onnx", "-o", "out", *options)
    assert found.removeprefix("npu: ").startswith(line), found
    assert content(here) == before


def test_the_folder_of_a_plan_is_no_checkpoint(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Commands for checkpoints name what is for plans."""
    assert refused(capsys, "inspect", "out") == (
        "npu: out: given the folder of a plan, allowed is npu explain out"
    )
    found = refused(capsys, "soc", "generate", "--model", "out")
    assert found.startswith("npu: --model out: given the folder of a plan, allowed is a Hugging")
    arguments = ["compile", "net.onnx", "--calibrate", "random:2", "-o", "out", "--host", "c2"]
    assert command_line.main(arguments) == 0
    found = refused(capsys, "soc", "network", "--model", "out")
    assert re.match(r"npu: steps\[\d+\]: given host '\S+', allowed a network whose", found)


def test_what_the_chip_cannot_do_is_no_wish(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--npu says why an operation is impossible there."""
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Det", ["x"], ["y"], name="volume")],
        "net",
        [onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, (2, 3, 3))],
        [onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, (2,))],
    )
    onnx.save(onnx.helper.make_model(graph), here / "det.onnx")
    arguments = ("compile", "det.onnx", "--calibrate", "random:2", "-o", "o", "--npu", "volume")
    line = refused(capsys, *arguments)
    assert line.startswith("npu: det.onnx: --npu volume: ")
    assert "Det" in line
    assert not (here / "o").exists()


@pytest.mark.parametrize(
    ("target", "line"),
    [
        ("none/out", "npu: none/out: cannot be written: there is no folder none"),
        ("net.onnx", "npu: net.onnx: cannot be written: there is a file of this name"),
        (".", "npu: .: holds 'net.onnx', which npu compile has not written"),
    ],
)
def test_an_output_that_is_none_is_refused_first(
    here: Path, capsys: pytest.CaptureFixture[str], target: str, line: str
) -> None:
    """Before anything is read, and what lies there stays."""
    before = content(here)
    found = refused(capsys, "compile", "net.onnx", "--calibrate", "random:2", "-o", target)
    assert found.startswith(line)
    assert content(here) == before


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
@pytest.mark.parametrize("at", ["build_plan", "_fill", "_swap", "rename"])
def test_an_interrupted_compilation_leaves_the_old_folder(
    here: Path, monkeypatch: pytest.MonkeyPatch, error: type[BaseException], at: str
) -> None:
    """Wherever it is interrupted: while compiling, writing, or taking the old one's place."""
    before = content(here)

    def fail(*_: object, **__: object) -> None:
        raise error("stop")

    if at == "rename":
        real, calls = Path.rename, []

        def second(path: Path, target: Path) -> Path:
            calls.append(path)
            if len(calls) == 2:
                fail()
            return real(path, target)

        monkeypatch.setattr(Path, "rename", second)
    else:
        monkeypatch.setattr(network_folder, at, fail)
    arguments = ["compile", "net.onnx", "--calibrate", "random:2", "-o", "out"]
    assert command_line.main(arguments) in (2, 130)
    monkeypatch.undo()
    assert content(here) == before


def test_a_compilation_takes_the_place_of_the_old_one(here: Path) -> None:
    """Nothing of the older network is left, and no folder beside it."""
    before = content(here / "out")
    (here / "out" / "run").mkdir()
    arguments = ["compile", "net.onnx", "--calibrate", "random:2", "-o", "out", "--host", "c2"]
    assert command_line.main(arguments) == 0
    after = content(here / "out")
    assert after["plan.json"] != before["plan.json"]
    assert not (here / "out" / "run").exists()
    assert sorted(path.name for path in here.iterdir()) == ["net.onnx", "out", "samples.npz"]


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["run", "none/"], "npu: none: given a name without plan.json, allowed is a folder"),
        (["run", "."], "npu: .: given a folder without plan.json"),
        (
            ["run", "net.onnx"],
            "npu: net.onnx: given a file, allowed is the folder that npu compile",
        ),
        (["run", "out"], "npu: inputs: missing 'x'; allowed are 'x': float32[1, 1, 28, 28]"),
        (["run", "out", "--input", "none.npy"], "npu: none.npy: cannot be read: No such file"),
        (["run", "out", "--input", "net.onnx"], "npu: net.onnx: given a file that is none"),
        (["run", "out", "--input", "z=x.npy"], "npu: inputs: unknown 'z'"),
        (["run", "out", "--input", "x=samples.npz"], "npu: --input x=samples.npz: given a name"),
        (["run", "out", "--input", "samples.npz"], "npu: input 'x' has shape [4, 1, 1, 28, 28]"),
        (["run", "out", "--input", "x.npy"], "npu: input 'x' has shape [28]"),
        (["run", "out", "--input", "random", "--output", "none/y.npz"], "npu: none/y.npz: cannot"),
        (["run", "test_gemm_random"], "npu: test_gemm_random: given a name without plan.json"),
        (["run", "out", "--on", "moon"], "npu run: argument --on: invalid choice: 'moon'"),
        (["explain", "none"], "npu: none: given a name without plan.json"),
        (["explain", "out", "--op", "c3"], "npu: operation 'c3': there is none of this name"),
        (["explain", "out", "--pass", "dream"], "npu explain: argument --pass: invalid choice"),
    ],
)
def test_commands_that_make_no_sense_are_refused(
    here: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], line: str
) -> None:
    """Folders, inputs, operations and passes that there are not."""
    np.save(here / "x.npy", np.zeros(28, np.float32))
    assert refused(capsys, *arguments).startswith(line)


def test_a_damaged_folder_is_refused(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Running and explaining check every byte first."""
    image = here / "out" / "image.bin"
    image.write_bytes(image.read_bytes()[:-1] + b"\x55")
    for command in ("run", "explain"):
        line = refused(capsys, command, str(here / "out"))
        plan = image.with_name("plan.json")
        assert line.startswith(f"npu: {plan}: image.sha256: given ")


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--keep", "--rows", "3"], "--rows: given for a network, allowed for generation"),
        (["--calibrate", "random:3", "--plan", "A"], "--plan: given for a network, allowed for"),
        (["--npu", "x", "--calibrate", "random:1"],
         "gpt2-tiny: --npu x: there is no such operation, allowed for example embedding"),
        (["--shape", "x=1"], "gpt2-tiny: 'x' is no input, allowed tokens, and past for a state"),
        (["--calibrate", "random:1", "--weights", "qkv=int4"],
         "gpt2-tiny: --weights qkv=int4: no product of the chip with real constant weights is"),
        (["--state", "tokens=logits"], "gpt2-tiny: state tokens=logits: given int32[1,64] and"),
    ],
)  # fmt: skip
def test_a_checkpoint_as_a_network_is_refused_as_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], line: str
) -> None:
    """Nothing is ignored in silence, and nothing is written."""
    found = refused(capsys, "compile", "gpt2-tiny", "-o", str(tmp_path / "out"), *options)
    assert found.startswith(f"npu: {line}"), found
    assert not list(tmp_path.iterdir())


def test_options_of_generation_go_together(capsys: pytest.CaptureFixture[str]) -> None:
    """One that needs another says so."""
    line = refused(capsys, "compile", "gpt2-tiny", "-o", "file", "--tokens", "3")
    assert line == "npu: --tokens: given without --plan, allowed with it"


def test_the_command_and_the_library_build_the_same(here: Path) -> None:
    """`npu compile` and `tessera.load` are one path."""
    built = build_plan.build_plan(
        here / "net.onnx", build_plan.CompileOptions(calibrate=dict(np.load("samples.npz")))
    )
    found = content(here / "out")
    assert found["image.bin"] == files_of(built.plan)["image.bin"]
