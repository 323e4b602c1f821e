# SPDX-License-Identifier: Apache-2.0
"""Programs of the user's own: compiled with the library, run, and told where they trap."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from npu.cli import command_line
from npu.firmware import compile as firmware
from spec.paths import ROOT
from tb.soc.elf_file import Elf
from tb.soc.trap_names import TrapNames
from tests.needs import needs
from tests.soc import support

MAIN = """#include "print.h"
#include "shared.h"
int main(void) { print("%d\\n", twice(SHARED)); return CODE; }
"""
TWICE = """#include "shared.h"
int twice(int x) { return 2 * x; }
"""
TRAPS = """#include "soc.h"
__attribute__((noinline)) void wrong(void) { __asm__ volatile(".4byte 0"); }
int main(void) { wrong(); return 0; }
"""


@pytest.fixture
def sources(tmp_path: Path) -> list[str]:
    """Write a program of two sources and a header in another folder; return its arguments."""
    (tmp_path / "headers").mkdir()
    (tmp_path / "headers" / "shared.h").write_text("#define SHARED 21\nint twice(int x);\n")
    (tmp_path / "main.c").write_text(MAIN, encoding="utf-8")
    (tmp_path / "twice.c").write_text(TWICE, encoding="utf-8")
    names = [str(tmp_path / "main.c"), str(tmp_path / "twice.c")]
    return [*names, "-I", str(tmp_path / "headers"), "--flag=-DCODE=7"]


def test_c_sources_run(sources: list[str]) -> None:
    """Compiled with headers and flags of their own; the exit code is the command's."""
    support.machine()
    words = [sys.executable, "-m", "npu.cli", "soc", *sources]
    ran = subprocess.run(words, cwd=ROOT, capture_output=True, check=False)
    assert (ran.returncode, ran.stdout) == (7, b"42\n"), ran.stderr


def test_c_sources_become_an_elf_file(
    sources: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Where -o says, or in build/firmware/own; names are those of the folder one is in."""
    monkeypatch.chdir(tmp_path)
    names = [Path(word).name if word.endswith(".c") else word for word in sources]
    assert command_line.main(["firmware", *names, "-o", "out.elf"]) == 0
    assert command_line.main(["firmware", *names]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first == "out.elf"
    assert second.startswith("build/firmware/own/main-")
    assert (tmp_path / first).read_bytes() == (ROOT / second).read_bytes()


def test_what_the_compiler_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Names the user's file, its line, and what is wrong."""
    source = tmp_path / "wrong.c"
    source.write_text("int main(void) {\n  return nothing;\n}\n", encoding="utf-8")
    assert command_line.main(["firmware", str(source)]) == 2
    said = capsys.readouterr().err
    assert said.startswith("npu: compiling wrong with ")
    assert "wrong.c:2:10: error: " in said


@pytest.mark.parametrize("flag", ["--version", "-c"])
def test_a_compiler_that_makes_no_program(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], flag: str
) -> None:
    """Is told; an older program of the name is neither run in its place nor overwritten."""
    source, output = tmp_path / "other.c", tmp_path / "out.elf"
    source.write_text("int main(void) { return 0; }\n", encoding="utf-8")
    output.write_bytes(b"old")
    words = ["firmware", str(source), "-o", str(output), f"--flag={flag}"]
    assert command_line.main(words) == 2
    said = capsys.readouterr()
    assert re.search(rf" made no program: given the flags {flag}, allowed ", said.err)
    assert (said.out, output.read_bytes()) == ("", b"old")


def traps(tmp_path: Path, text: str) -> Path:
    """Compile a program."""
    source = tmp_path / "traps.c"
    source.write_text(text, encoding="utf-8")
    return firmware.compile_sources([source], "traps", output=tmp_path / "traps.elf")


def test_a_trap_is_told_by_name(tmp_path: Path) -> None:
    """Of the machine: the function stands beside the address; the exit code is 128 + cause."""
    support.machine()
    words = [sys.executable, "-m", "npu.cli", "soc", str(traps(tmp_path, TRAPS))]
    ran = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 130
    (line,) = ran.stdout.splitlines()
    assert line.startswith("trap: mcause 2 at ")
    assert re.search(r", instruction 00000000 \(wrong\+0x\w+\)$", line)


def test_a_trap_of_the_emulator_is_told_by_name(tmp_path: Path) -> None:
    """The same text; what the program printed itself is as it was."""
    needs("emulator")
    from tb.soc.emulator import Emulator

    emulator = Emulator(traps(tmp_path, TRAPS))
    assert emulator.run() == 130
    assert re.search(r", instruction 00000000 \(wrong\+0x\w+\)\n$", emulator.text)
    assert emulator.output.endswith(b", instruction 00000000\n")


def test_names_in_lines_about_traps(tmp_path: Path) -> None:
    """Whole lines or bytes one by one; other lines, and places that have no name, stay."""
    elf = Elf.load(traps(tmp_path, TRAPS), 1 << 20)
    place, _ = elf.symbol("wrong")
    lines = (
        b"trap: mcause 5 at %08x\n" % (place + 4),
        b"coprocessor: fault 3, instruction 0000000b, address %08x, index 2\n" % place,
        b"a trap: mcause 5 at %08x\n" % place,
        b"trap: mcause 5 at 7ffffff0\n",
        bytes(range(256)),
    )
    whole = b"".join(lines)
    named = whole.replace(b"at %08x\n" % (place + 4), b"at %08x (wrong+0x4)\n" % (place + 4))
    named = named.replace(b"index 2\n", b"index 2 (wrong+0x0)\n")
    assert TrapNames(elf).added(whole) == named
    names = TrapNames(elf)
    assert b"".join(names.added(bytes([byte])) for byte in whole) == named
