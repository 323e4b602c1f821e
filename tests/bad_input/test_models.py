# SPDX-License-Identifier: Apache-2.0
"""Models, programs and files that commands refuse: one line, status 2, nothing built or written."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from npu.cli import command_line
from spec.paths import ROOT
from tb.models import profile
from tests.bad_input.nothing import nothing_there
from weights.checkpoint import CheckpointShape
from weights.synthetic import random_checkpoint, shape_of, write_checkpoint

MODEL = str(ROOT / "weights" / "checkpoints" / "gpt2-tiny")
PROMPT = ["--prompt", "The parser"]


@pytest.fixture(autouse=True)
def no_build(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every attempt to build an error: a bad input must not get that far."""
    nothing_there(monkeypatch)


def refused(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    """Run a command in this process and return the line that it refuses with."""
    try:
        status: object = command_line.main([str(argument) for argument in arguments])
    except SystemExit as error:
        status = error.code
    printed = capsys.readouterr()
    lines = printed.err.splitlines()
    assert (status, printed.out, len(lines)) == (2, "", 1), (status, printed)
    return lines[0]


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["generate"], "npu generate: the following arguments are required: MODEL"),
        (
            ["generate", MODEL],
            "npu generate: one of the arguments --prompt --prompt-file --prompts is required",
        ),
        (["chat"], "npu chat: the following arguments are required: MODEL"),
        (
            ["chat", MODEL],
            "npu chat: one of the arguments QUESTION --prompt-file --prompts is required",
        ),
        (
            ["generate", MODEL, *PROMPT, "--config", "a12"],
            "npu generate: argument --config: given 'a12', allowed a16, a4, a8, a32",
        ),
        (
            ["generate", MODEL, *PROMPT, "--cache", "disk"],
            "npu generate: argument --cache: invalid choice: 'disk'",
        ),
        (
            ["generate", MODEL, *PROMPT, "--latency", "65536"],
            "npu generate: argument --latency: given '65536', allowed whole numbers 1 to 65535",
        ),
        (
            ["profile", MODEL, *PROMPT, "--tokens", "1"],
            "npu profile: argument --tokens: given '1', allowed whole numbers from 2",
        ),
        (
            ["profile", MODEL, *PROMPT, "--tokens", "120"],
            "npu: tokens: given 120 after a prompt of 10, allowed 1 to 119",
        ),
        (["profile", MODEL, "--prompt", ""], "npu: prompt: given an empty text"),
        (["compile", MODEL], "npu compile: the following arguments are required: -o/--output"),
        (
            ["compile", MODEL, "-o", "x", "--rows", "0"],
            "npu compile: argument --rows: given '0', allowed whole numbers from 1",
        ),
        (["inspect", "no such thing"], "npu: load_checkpoint: given 'no such thing', which is no"),
        (["asm", "x.npu", "-D", "N"], "npu asm: argument -D/--define: given 'N', allowed NAME=INT"),
        (["asm", "x.npu", "-D", "N=a"], "npu asm: argument -D/--define: given 'N=a', allowed NAME"),
        (["asm", "x.npu", "-D", "1=1"], "npu asm: argument -D/--define: given '1=1', allowed NAME"),
        (["asm", "/no/such.npu"], "npu: /no/such.npu: cannot be read: No such file or directory"),
        (["disasm", "/"], "npu: /: cannot be read: Is a directory"),
    ],
)
def test_command_line(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    line: str,
) -> None:
    """Options and names."""
    monkeypatch.setattr(profile, "require_pictures", lambda: None)
    assert refused(capsys, *arguments).startswith(line)


SMALL = {"hidden": 16, "layers": 1, "heads": 1, "ffn": 16, "vocab": 256, "context": 16}


@pytest.mark.parametrize(
    ("shape", "line"),
    [
        (shape_of("gpt2", **SMALL | {"ffn": 61440}), "npu: ffn = 61440: an instruction takes at"),
        (
            shape_of("llama", **SMALL | {"hidden": 8208, "head_dim": 16}),
            "npu: hidden 8208: the norm takes",
        ),
        (
            shape_of("llama", **SMALL | {"heads": 300, "head_dim": 2}),
            "npu: kv_heads 300: at most 256 can be named",
        ),
        (
            shape_of("llama", **SMALL | {"context": 40000}),
            "npu: context 40000, window 0: attention over at most 32768 positions is possible",
        ),
    ],
    ids=["ffn", "hidden", "heads", "context"],
)
@pytest.mark.parametrize("command", ["generate", "compile"])
def test_model_that_fits_nowhere(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    shape: CheckpointShape,
    line: str,
    command: str,
) -> None:
    """What does not fit is named before anything is measured, compiled or built."""
    folder = tmp_path / "model"
    write_checkpoint(random_checkpoint(shape, 1), folder)
    rest = PROMPT if command == "generate" else ["-o", str(tmp_path / "model.tsr")]
    assert refused(capsys, command, folder, *rest).startswith(line)
    assert sorted(path.name for path in tmp_path.rglob("*")) == [
        *("config.json", "model", "model.safetensors")
    ]


def test_cache_that_does_not_fit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A cache is put into the SRAM only if it has room there."""
    folder = tmp_path / "model"
    shape = shape_of("llama", **SMALL | {"heads": 4, "head_dim": 16, "context": 4096})
    write_checkpoint(random_checkpoint(shape, 1), folder)
    line = refused(capsys, "generate", folder, *PROMPT, "--cache", "sram")
    assert line.startswith("npu: the K/V cache of 4096 positions, 1 layers, 4 heads of 16 needs")


def test_compiled_file_that_cannot_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The folder of the output must be there; a prompt that is too long writes nothing."""
    path = tmp_path / "none" / "model.tsr"
    line = refused(capsys, "compile", MODEL, "-o", path)
    assert line == f"npu: {path}: cannot be written: No such file or directory"
    path = tmp_path / "model.tsr"
    line = refused(capsys, "compile", MODEL, "-o", path, "--rows", "129")
    assert line.startswith("npu: context full: 129 rows from position 0 end at 129")
    assert list(tmp_path.iterdir()) == []


def test_bad_program_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A mistake is named by file, line and column, and no words are written."""
    path = tmp_path / "mine.npu"
    path.write_text("NOP\n  NOPE\n")
    for command in ("asm", "inspect"):
        line = refused(capsys, command, path)
        assert line.startswith(f"npu: {path}:2:3: unknown instruction NOPE: allowed are NOP, ")
    path.write_text("GEMM dst=0 src0=0 M=S N=1 K=1\n")
    assert refused(capsys, "asm", path).startswith(f"npu: {path}:1:21: M: symbol S is not defined")
    path.write_text(".equ S=1\n")
    line = refused(capsys, "asm", path, "-D", "S=2")
    assert line == f"npu: {path}:1:6: symbol S is given from outside"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("data", [b"", b" \n\t\n", b"NOP\x00\n", b"\xff\xfe", bytes(16)])
def test_file_that_is_no_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], data: bytes
) -> None:
    """What is no text is not assembled."""
    path = tmp_path / "mine.npu"
    path.write_bytes(data)
    line = refused(capsys, "asm", path)
    assert line == f"npu: {path}: given {len(data)} bytes that are no text, allowed is UTF-8 text"


def test_words_would_overwrite_their_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A text called .bin needs another name for its words."""
    path = tmp_path / "mine.bin"
    path.write_text("END\n")
    for options in ([], ["-o", str(path)], ["-o", f"{tmp_path}/../{tmp_path.name}/mine.bin"]):
        line = refused(capsys, "asm", path, *options)
        assert line == f"npu: {path}: its words would overwrite it: name another file with -o"
    assert path.read_text() == "END\n"


@pytest.mark.parametrize("size", [0, 1, 15, 17])
def test_words_that_are_not_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], size: int
) -> None:
    """Words are 16 bytes."""
    path = tmp_path / "words.bin"
    path.write_bytes(bytes(size))
    line = refused(capsys, "disasm", path)
    assert line == f"npu: {path}: given {size} bytes, allowed are whole words of 16 bytes"


@pytest.mark.parametrize(
    "data",
    [b"", b"\x89PNG\r\n\x1a\n" + bytes(32), b"\xee" * 32, bytes(15), b"TSRNPAC\x00" + bytes(8)],
)
def test_file_of_no_kind(tmp_path: Path, capsys: pytest.CaptureFixture[str], data: bytes) -> None:
    """A file that is nothing known is refused with all that is allowed."""
    path = tmp_path / "thing.tsr"
    path.write_bytes(data)
    line = refused(capsys, "inspect", path)
    start = f"npu: {path}: given a file of {len(data)} bytes, allowed are a packed file, a program"
    assert line.startswith(start)


def test_damaged_packed_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A packed file is taken whole or not at all."""
    path = tmp_path / "model.tsr"
    path.write_bytes(b"TSRNPACK" + bytes(8))
    assert refused(capsys, "inspect", path).startswith(f"npu: {path}: length: given 16 bytes")


def test_folder_without_checkpoint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder must hold a checkpoint."""
    line = refused(capsys, "inspect", tmp_path)
    assert line == f"npu: {tmp_path}: config.json is missing in {tmp_path}"


def test_bad_end_token(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An end token that is none is refused by file and field."""
    folder = tmp_path / "model"
    shutil.copytree(MODEL, folder)
    (folder / "generation_config.json").write_text('{"eos_token_id": "none"}')
    line = refused(capsys, "generate", folder, *PROMPT)
    assert line.startswith(f"npu: {folder}: generation_config.json eos_token_id: given 'none'")


def test_no_pictures(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Without matplotlib the profile says in one line how to get it."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    line = refused(capsys, "profile", MODEL, *PROMPT)
    assert "matplotlib, which is not installed: run it as make profile" in line
