# SPDX-License-Identifier: Apache-2.0
"""`npu soc`, `npu firmware` and plans refuse in one line, before anything is built."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npu import optional
from npu.cli import command_line
from npu.commands import build_folder
from npu.commands.files import FileError
from npu.firmware import compile as firmware
from npu.firmware import plan
from tb.soc.elf_file import Elf
from tests.bad_input.nothing import nothing_there

ENTRY, PARTS_AT, SECTIONS_AT, FLAGS, SECTIONS = 24, 28, 32, 36, 48
FIRST_ADDRESS, FIRST_BYTES, FIRST_SIZE = 12, 16, 20
"""Offsets of fields in the ELF header and in a program header."""
ROOM = 1 << 20


@pytest.fixture(autouse=True)
def nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every attempt to build or to simulate an error."""
    nothing_there(monkeypatch)


@cache
def sound_program() -> bytes:
    """Return a sound program."""
    return firmware.compile_program("hello").read_bytes()


@pytest.fixture
def sound() -> bytes:
    """Return a sound program."""
    return sound_program()


def refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Run a command in this process and return the line that it refuses with."""
    try:
        status: object = command_line.main(arguments)
    except SystemExit as error:
        status = error.code
    printed = capsys.readouterr()
    lines = printed.err.splitlines()
    assert (status, printed.out, len(lines)) == (2, "", 1), (status, printed)
    return lines[0]


def put(data: bytes, offset: int, form: str, value: int) -> bytes:
    """Return bytes with a number at an offset replaced."""
    changed = bytearray(data)
    struct.pack_into(form, changed, offset, value)
    return bytes(changed)


def first_part(data: bytes, field: int, value: int) -> bytes:
    """Return a program with a field of its first part replaced."""
    return put(data, struct.unpack_from("<I", data, PARTS_AT)[0] + field, "<I", value)


def cut_off(data: bytes) -> bytes:
    """Return a program without sections that ends in the middle of its first part."""
    stripped = put(put(data, SECTIONS_AT, "<I", 0), SECTIONS, "<H", 0)
    part = struct.unpack_from("<I", data, PARTS_AT)[0]
    start, size = (struct.unpack_from("<I", data, part + field)[0] for field in (4, FIRST_BYTES))
    return stripped[: start + size // 2]


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda _: b"", "given no sound ELF file"),
        (lambda _: b"#!/bin/sh\n", "given no sound ELF file"),
        (lambda data: data[:40], "given no sound ELF file"),
        (lambda data: put(data, 18, "<H", 62), "given an ELF file for EM_X86_64, 32 bits, little-"),
        (lambda data: put(data, 18, "<H", 40), "given an ELF file for EM_ARM, 32 bits, little-"),
        (lambda data: put(data, 16, "<H", 1), "given an ELF file of type ET_REL, allowed ET_EXEC"),
        (lambda data: put(data, 16, "<H", 3), "given an ELF file of type ET_DYN, allowed ET_EXEC"),
        (lambda data: put(data, ENTRY, "<I", 4), "given the entry 0x4, allowed 0x0, where the cor"),
        (
            lambda data: put(data, ENTRY, "<I", 0xFFFF_FFFC),
            "given the entry 0xfffffffc, allowed 0x0",
        ),
        (
            lambda data: first_part(data, FIRST_ADDRESS, 0x1000),
            "given the entry 0x0 without a part there, allowed 0x0",
        ),
        (
            lambda data: first_part(data, FIRST_SIZE, 0x1000_0001),
            "given a part at 0x0 to 0x10000000, allowed 0 to 0xfffffff, memory",
        ),
        (
            lambda data: first_part(data, FIRST_ADDRESS, 0x1000_0000),
            "given a part at 0x10000000 to 0x",
        ),
        (lambda data: first_part(data, FIRST_SIZE, 4), "given a part at 0x0 with "),
        (cut_off, "given a part at 0x0 with "),
        (
            lambda data: put(data, FLAGS, "<I", 2),
            "given a program for float registers (ilp32f), allowed ilp32: the core has",
        ),
        (
            lambda data: put(data, FLAGS, "<I", 4),
            "given a program for double registers (ilp32d)",
        ),
    ],
)
def test_programs_that_cannot_run(
    change: Callable[[bytes], bytes],
    line: str,
    sound: bytes,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The line names the file, what was given and what is allowed."""
    path = tmp_path / "program.elf"
    path.write_bytes(change(sound))
    assert refused(["soc", str(path)], capsys).startswith(f"npu: {path}: {line}")


def test_files_and_arguments(
    sound: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Missing and empty files, names of nothing, numbers out of range."""
    program, image, missing = (tmp_path / name for name in ("a.elf", "a.img", "no.elf"))
    program.write_bytes(sound)
    image.write_bytes(b"")
    one = str(program)
    lines = {
        ("soc", str(missing)): f"npu: {missing}: cannot be read: No such file",
        ("soc", str(tmp_path)): f"npu: {tmp_path}: cannot be read: Is a directory",
        ("soc", "hallo"): "npu: program: given 'hallo', allowed an ELF file or ",
        ("soc", one, "--image", str(missing)): f"npu: {missing}: cannot be read: No such file",
        ("soc", one, "--image", str(image)): f"npu: {image}: given 0 bytes, allowed 1 to 267386880",
        ("soc", one, "--limit", "0"): "npu soc: argument --limit: given '0', allowed whole number",
        ("soc", one, "--latency", "0"): "npu soc: argument --latency: given '0', allowed whole nu",
        ("soc", "generate", "--tokens", "0"): "npu soc: argument --tokens: given '0', allowed wh",
        ("firmware", "hallo"): "npu: program: given 'hallo', allowed C sources, or bytelm_fp32,",
        ("firmware", "generate"): "npu: program: given 'generate', which needs a model: allowed i",
        ("firmware", "network"): "npu: program: given 'network', which needs a model: allowed is n"
        "pu soc network --model FOLDER",
        ("soc", "network"): "npu: --model: given no folder of a plan, allowed is one that npu com",
        ("soc", "network", "--model", "x"): "npu: --model x: given no folder of a plan, allowed",
    }
    for arguments, line in lines.items():
        assert refused(list(arguments), capsys).startswith(line), arguments
    image.write_bytes(b"x")
    large = first_part(sound, FIRST_SIZE, ROOM + 1)
    program.write_bytes(large)
    said = refused(["soc", one, "--image", str(image)], capsys)
    assert said == (
        f"npu: {one}: given a part at 0x0 to 0x100000, allowed 0 to 0xfffff, below the image"
    )


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--prompt", ""], "npu: prompt: given an empty text, allowed at least one character"),
        (["--prompt", "x" * 129], "npu: prompt: given 129 tokens, allowed 1 to 128 (context)"),
        (
            ["--prompt", "x" * 100, "--tokens", "30"],
            "npu: tokens: given 30 after a prompt of 100, allowed 1 to 29 (the context has 128 ",
        ),
        (
            ["--model", "weights/checkpoints/none"],
            "npu: load_checkpoint: given 'weights/checkpoints/none', ",
        ),
    ],
)
def test_prompts_that_do_not_fit(
    arguments: list[str], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A prompt must fit the context, and so must the tokens behind it."""
    assert refused(["soc", "generate", *arguments], capsys).startswith(line)


def test_plan_that_does_not_fit(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A model must fit the memory behind the programs."""
    monkeypatch.setattr(plan, "ROOM", plan.IMAGE + 4096)
    assert command_line.main(["soc", "generate", "--prompt", "x", "--tokens", "1"]) == 2
    loss, said = capsys.readouterr().err.splitlines()
    assert loss.startswith("integers: ")
    assert said.startswith("npu: plan: given parts and texts of ")
    assert said.endswith(" bytes, allowed 1 to 4,096, the memory from 0x100000 on")


def test_no_compiler(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A missing compiler is named with its package."""
    monkeypatch.setattr(build_folder, "require", lambda: None)
    monkeypatch.setattr(firmware, "compilers", list)
    assert refused(["firmware", "hello", "--compiler", "gcc"], capsys) == (
        "npu: no compiler gcc: install the Debian packages gcc-riscv64-unknown-elf and "
        "picolibc-riscv64-unknown-elf"
    )
    assert refused(["soc", "hello"], capsys) == (
        "npu: no compiler for RISC-V: install the Python package ziglang (make setup) or the "
        "Debian packages gcc-riscv64-unknown-elf and picolibc-riscv64-unknown-elf"
    )


@pytest.mark.parametrize("option", [["--gdb", "0"], ["--profile"]])
def test_no_emulated_core(
    option: list[str],
    sound: bytes,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A missing group is named with what brings it, behind what is wrong with the program."""
    monkeypatch.setattr(optional, "groups", lambda: {"emulator": ("unicorn==0.0.0",)})
    path = tmp_path / "a.elf"
    path.write_bytes(sound)
    assert refused(["soc", str(path), *option], capsys) == (
        "npu: no emulator or disassembler: no group emulator, python3 dev/bootstrap.py emulator"
    )
    path.write_bytes(b"")
    assert "given no sound ELF file" in refused(["soc", str(path), *option], capsys)


def test_a_part_that_is_cut_off(sound: bytes, tmp_path: Path) -> None:
    """Says how much is there; the rest is not taken for zeros."""
    path = tmp_path / "program.elf"
    path.write_bytes(cut_off(sound))
    with pytest.raises(FileError, match=r"at 0x0 with \d+ of its \d+ bytes, allowed a whole file"):
        Elf.load(path, ROOM)


def test_float_registers_need_a_core_with_some(sound: bytes, tmp_path: Path) -> None:
    """The emulator has those of float32, no core has wider ones."""
    path = tmp_path / "program.elf"
    path.write_bytes(put(sound, FLAGS, "<I", 2))
    assert Elf.load(path, ROOM, float_registers=True).floats == 2
    path.write_bytes(put(sound, FLAGS, "<I", 4))
    with pytest.raises(FileError, match=r"double registers \(ilp32d\), allowed ilp32 and ilp32f$"):
        Elf.load(path, ROOM, float_registers=True)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["hello", "--image", "x"], "npu: --image: given for a program by name, allowed for C s"),
        (["hello", "--model", "x"], "npu: --model: given for a program by name, allowed for a p"),
        (["hello", "--prompt", "x"], "npu: --prompt: given for a program by name, allowed for a"),
        (["hello", "--tokens", "9"], "npu: --tokens: given for "),
        (["hello", "--accept-loss"], "npu: --accept-loss: given for "),
        (["hello", "--flag=-O3"], "npu: --flag: given for a program by name, allowed for C sourc"),
        (["hello", "-I", "x"], "npu: --include: given for "),
        (["generate", "--image", "x"], "npu: --image: given for a program with a decoder, allowe"),
        (["network", "--prompt", "x"], "npu: --prompt: given for a program with a network, allow"),
        (["{elf}", "--model", "x"], "npu: --model: given for an ELF file, allowed for "),
        (["{elf}", "--compiler", "gcc"], "npu: --compiler: given for an ELF file, allowed for "),
        (["{elf}", "-I", "x"], "npu: --include: given for an ELF file, allowed for C sources"),
        (["{c}", "--prompt", "x"], "npu: --prompt: given for C sources, allowed for a program"),
        (["no.c"], "npu: no.c: cannot be read: No such file or directory"),
        (["{c}", "hello"], "npu: program: given 2 names, allowed several of C sources only"),
        (["net.onnx"], "npu: program: given a network; allowed is its plan: npu compile net.onnx "),
        (["network", "net.onnx"], "npu: program: given a network; allowed is its plan: npu compil"),
        (["network", "{plan}"], "npu: program: given the folder of a plan; allowed is npu soc net"),
        (["{c}", "--model", "{plan}", "--image", "{elf}"], "npu: --image: given with --model, all"),
        (["{c}", "--model", "x"], "npu: --model x: given no folder of a plan, allowed is one tha"),
        (["{elf}", "--gdb", "65536"], "npu soc: argument --gdb: given '65536', allowed whole numb"),
        (["{elf}", "--gdb", "x"], "npu soc: argument --gdb: given 'x', allowed whole numbers 0 to"),
        (["{elf}", "--gdb"], "npu soc: argument --gdb: expected one argument"),
        (["{elf}", "--gdb", "0", "--profile"], "npu soc: argument --profile: not allowed with arg"),
        (["network", "--gdb", "0"], "npu: --gdb: given with a model or an image, allowed without"),
        (["generate", "--profile"], "npu: --profile: given with a model or an image, allowed with"),
        (["{c}", "--model", "{plan}", "--profile"], "npu: --profile: given with a model or an ima"),
        (["{elf}", "--image", "{c}", "--gdb", "0"], "npu: --gdb: given with a model or an image, "),
        (["{elf}", "--latency", "9", "--gdb", "0"], "npu: --latency: given with --gdb, allowed wi"),
        (["{elf}", "--latency", "9", "--profile"], "npu: --latency: given with --profile, allowed"),
        (["{elf}", "--limit", "9", "--gdb", "0"], "npu: --limit: given with --gdb, allowed withou"),
        (["hello", "--flag=-O0", "--gdb", "0"], "npu: --flag: given for a program by name, allowe"),
        (["no.elf", "--gdb", "0"], "npu: no.elf: cannot be read: No such file or directory"),
        (["{c}", "-I", "no/folder"], "npu: --include no/folder: given no folder, allowed one of h"),
        (["network", "--model", "a/b.tflite"], "npu: --model a/b.tflite: given a file; allowed is "
         "its plan: npu compile a/b.tflite --calibrate random:8 --io int8 -o a/b, then npu soc"),
    ],
)  # fmt: skip
def test_options_that_a_program_cannot_take(
    sound: bytes,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    line: str,
) -> None:
    """Are refused and not passed over."""
    elf, source = tmp_path / "a.elf", tmp_path / "a.c"
    elf.write_bytes(sound)
    source.write_text("int main(void) { return 0; }\n", encoding="utf-8")
    folder = tmp_path / "plan"
    folder.mkdir()
    (folder / "plan.json").touch()
    given_words = [word.format(elf=elf, c=source, plan=folder) for word in arguments]
    assert refused(["soc", *given_words], capsys).startswith(line)
    if {"--flag=-O3", "net.onnx", "no/folder"} & {*arguments}:
        assert refused(["firmware", *given_words], capsys).startswith(line)


@given(data=st.data())
def test_damaged_programs(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Whatever the bytes: a program, or one line."""
    content = sound_program()
    changed = bytearray(content[: data.draw(st.integers(0, len(content)))])
    for place in data.draw(st.lists(st.integers(0, 200), max_size=8)):
        if place < len(changed):
            changed[place] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.getbasetemp() / "damaged.elf"
    path.write_bytes(changed)
    try:
        Elf.load(path, ROOM)
    except FileError as error:
        assert "\n" not in str(error)
