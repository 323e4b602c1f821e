# SPDX-License-Identifier: Apache-2.0
"""`npu soc --gdb`, `--profile` and `--cycles`: programs seen from outside."""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from npu.cli import command_line
from npu.firmware import compile as firmware
from npu.optional import GDB
from spec.isa.cop_generated import CopOp
from spec.paths import DOCS, ROOT
from tb.soc import gdb_server
from tb.soc.elf_file import Elf
from tb.soc.program_run import MachineKnobs
from tests.needs import needs
from tests.soc import support
from tests.soc.gdb_client import GdbClient

needs("emulator")

from tb.soc.emulated_run import KILLED, counted  # behind the check that it can be imported
from tb.soc.emulator import RAM_BYTES, Emulator
from tb.soc.gdb_target import COPROCESSOR, CSRS, EmulatedTarget
from tb.soc.instruction_profile import summed

PAGE = DOCS / "own-program.md"
_ELSEWHERE = re.compile(r"0x\w{3,}|npu\.h:\d+\n\d+")
"""Addresses, and lines of a header: another library moves them."""
CODE = 5
"""Exit code of the program below."""
PROGRAM = f"""#include "npu.h"
#include "print.h"
volatile int turns = 3;
__attribute__((noinline)) int once(int x) {{ return (int)NPU_RELU(x) + 1; }}
int main(void) {{
  int sum = 0;
  for (int i = 0; i < turns; i++) sum += once(i);
  print("%d\\n", sum);
  return {CODE};
}}
"""


@dataclass
class Session:
    """`npu soc --gdb` in a process of its own.

    Attributes:
        process: the command; what it prints is read at the end.
        port: that it waits at.
        elf: its program.
    """

    process: subprocess.Popen[str]
    port: int
    elf: Elf

    def end(self) -> tuple[int, str]:
        """Return exit status and output."""
        output, _ = self.process.communicate(timeout=60)
        return self.process.returncode, output


@contextlib.contextmanager
def waiting(source: Path, *options: str) -> Iterator[Session]:
    """Start a session."""
    words = [sys.executable, "-m", "npu.cli", "soc", str(source), "--gdb", "0", *options]
    process = subprocess.Popen(
        words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        found = re.fullmatch(
            r"waiting for: gdb-multiarch (\S+) -ex 'target remote 127.0.0.1:(\d+)'\n", line
        )
        assert found, line + process.stderr.read()
        yield Session(process, int(found[2]), Elf.load(Path(found[1]), RAM_BYTES))
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Write the program."""
    path = tmp_path / f"debugged-{tmp_path.name}.c"
    path.write_text(PROGRAM, encoding="utf-8")
    return path


def _word(value: int) -> str:
    return value.to_bytes(4, "little").hex()


def test_a_program_is_debugged(source: Path) -> None:
    """Breakpoints, registers and memory of the running program; its text and its exit code."""
    with waiting(source) as session:
        client = GdbClient(session.port)
        once, turns = (session.elf.symbol(name)[0] for name in ("once", "turns"))
        assert client.ask(f"Z0,{once:x},4") == "OK"
        assert client.ask("c") == "S05"
        assert client.ask("p20") == _word(once)
        assert client.ask("pa") == _word(0)
        assert client.ask(f"m{turns:x},4") == _word(3)
        assert client.ask(f"M{turns:x},4:{_word(2)}") == "OK"
        assert client.ask(f"Pa={_word(40)}") == "OK"
        assert client.ask("s") == "S05"
        assert client.ask("p20") == _word(once + 4)
        assert client.ask("c") == "S05"
        assert client.ask("pa") == _word(1)
        assert client.ask(f"z0,{once:x},4") == "OK"
        assert client.ask("c") == f"W{CODE:02x}"
        client.socket.close()
        assert session.end() == (CODE, f"{41 + 2}\n")


def test_a_program_runs_on_without_its_debugger(source: Path) -> None:
    """Detached it comes to its end, breakpoints or not; killed it does not."""
    with waiting(source) as session:
        client = GdbClient(session.port)
        assert client.ask(f"Z0,{session.elf.symbol('once')[0]:x},4") == "OK"
        assert client.ask("D") == "OK"
        assert session.end() == (CODE, "6\n")
    with waiting(source) as session:
        GdbClient(session.port).send("k")
        assert session.end() == (KILLED, "")


def test_a_program_that_does_not_end_is_interrupted() -> None:
    """While it runs; the core then stands somewhere in its loop."""
    with waiting(support.PROGRAMS / "forever.c") as session:
        client = GdbClient(session.port)
        client.send("c")
        assert client.take(1) == b"+"
        client.socket.sendall(b"\3")
        assert client.answer() == "S02"
        client.send("k")
        assert session.end()[0] == KILLED


def test_a_port_in_use(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Ends the command in one line."""
    with gdb_server.listen(0) as other:
        port = other.getsockname()[1]
        assert command_line.main(["soc", str(source), "--gdb", str(port)]) == 2
    assert capsys.readouterr().err == (
        f"npu: --gdb {port}: cannot listen on 127.0.0.1: Address already in use\n"
    )


def _target(name: str) -> tuple[Emulator, EmulatedTarget]:
    emulator = Emulator(support.test_program(name))
    return emulator, EmulatedTarget(emulator)


def test_registers_of_the_coprocessor() -> None:
    """Its acc and the others are registers of GDB, and words of the window in memory."""
    emulator, target = _target("macc_loop")
    target.go(400)
    acc = emulator.port.read(COPROCESSOR["acc"][1])
    number = target.general + len(CSRS)
    assert acc > 0
    assert target.register(number) == acc.to_bytes(8, "little")
    assert target.register(number + 1) == bytes(8)
    assert target.register(number + 5) == bytes(4)
    for window in (0x2000_0000, 0x4000_0200):
        assert target.read(window, 8) == acc.to_bytes(8, "little")
        assert target.read(window + 1, 2) == acc.to_bytes(8, "little")[1:3]
    with pytest.raises(ValueError, match="no register"):
        target.register(number + 6)
    with pytest.raises(ValueError, match="register"):
        target.set_register(number, bytes(8))
    target.write(0x4000_0200, bytes(4))  # a write clears
    assert target.register(number) == bytes(8)
    with pytest.raises(ValueError, match="part of a register"):
        target.write(0x4000_0200, bytes(2))


@pytest.mark.parametrize(
    ("address", "size"),
    [(0x1000_0000, 4), (RAM_BYTES - 2, 4), (0x4000_0000, 4), (0x4000_02FE, 4), (0xFFFF_FFFF, 8)],
)
def test_places_that_a_debugger_cannot_read(address: int, size: int) -> None:
    """The UART, whose input is the program's; what is nowhere."""
    _, target = _target("macc_loop")
    with pytest.raises(ValueError, match="nothing at"):
        target.read(address, size)
    with pytest.raises(ValueError, match="nothing at"):
        target.write(address, bytes(size))


def test_instructions_written_by_a_debugger_are_executed() -> None:
    """Although the core has translated what was there."""
    emulator, target = _target("macc_loop")
    main = emulator.elf.symbol("main")[0]
    target.stops.add(main)
    target.go(100_000)
    before = emulator.register("x10")
    target.go(1)
    target.write(main, bytes.fromhex("13057007"))  # li a0, 119
    target.set_register(target.general - 1, main.to_bytes(4, "little"))
    target.go(1)
    assert before != 119
    assert (emulator.register("x10"), target.pc) == (119, main + 4)


def test_a_debugger_changes_no_result() -> None:
    """Steps and stops at every instruction of the coprocessor print what a run prints."""
    emulator, target = _target("macc_loop")
    main, size = emulator.elf.symbol("main")
    target.stops |= set(range(main, main + size, 4))
    stops = 0
    while emulator.exit_code is None:
        target.go(1_000_000)
        stops += 1
    assert stops > 3000
    assert (emulator.exit_code, bytes(emulator.output)) == (0, b"1501500\n")


def test_float_registers_are_described_where_the_program_uses_them() -> None:
    """A program for ilp32f has f registers, as bits of float32."""
    path = firmware.compile_program("npu_test", firmware.FirmwareTarget(floats="hard"))
    emulator = Emulator(path)
    target = EmulatedTarget(emulator)
    assert 'name="f31"' in target.description
    assert 'name="f31"' not in _target("macc_loop")[1].description
    target.go(100)
    target.set_register(target.general + 3, bytes.fromhex("0000803f"))
    assert emulator.state.f[3] == 0x3F80_0000


def test_instructions_are_counted() -> None:
    """By function and by mnemonic, the coprocessor's too; both sum up to the same."""
    emulator = Emulator(support.test_program("macc_loop"))
    profile = counted(emulator)
    assert emulator.run() == 0
    functions = summed(profile.executed, profile.function)
    mnemonics = summed(profile.executed, profile.mnemonic)
    assert mnemonics["npu.macc"] == 1000
    assert mnemonics["npu.rstacc"] == 2
    assert functions["main"] > 3000
    assert set(functions) <= set(emulator.elf.symbols)
    assert functions.total() == mnemonics.total() == sum(profile.executed.values())
    names = {f"npu.{op.name.lower().replace('_', '.')}" for op in CopOp}
    assert {name for name in mnemonics if name.startswith("npu")} <= names
    assert not any(name.startswith(".") for name in mnemonics)


def test_the_profile_is_that_of_single_steps() -> None:
    """Whoever steps sees the same instructions."""
    stepped = Emulator(firmware.compile_program("hello"))
    places: Counter[int] = Counter()
    while stepped.exit_code is None:
        places[stepped.state.pc] += 1
        stepped.step()
    emulator = Emulator(firmware.compile_program("hello"))
    profile = counted(emulator)
    emulator.run()
    assert profile.executed == places


@pytest.mark.parametrize("name", ["macc_loop", "two_sources"])
@pytest.mark.parametrize("gap", [0, 40])
def test_the_rtl_retires_what_the_emulator_executes(name: str, gap: int) -> None:
    """As often at each address, whatever the buses take; the cycles sum up to the run.

    Behind slow buses the run is over before the store that ends it has retired.
    """
    path = support.test_program(name)
    emulator = Emulator(path)
    profile = counted(emulator)
    emulator.run()
    knobs = MachineKnobs(limit=2_000_000, core_gap=gap)
    ran = support.run(path, f"cycles-{name}-{gap}", knobs, profile=True)
    left = profile.executed - ran.retired
    assert not ran.retired - profile.executed
    assert left.total() <= (1 if gap else 0)
    assert {profile.function(address) for address in left} <= {"exit"}
    assert ran.cycles_at.total() == ran.cycles
    assert all(ran.cycles_at[address] >= count for address, count in ran.retired.items())
    assert ran.cycles > (1.5 if gap else 1) * ran.retired.total()


def test_cycles_are_printed(source: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """Of each function and each instruction, behind what the program prints."""
    assert command_line.main(["soc", str(source), "--cycles"]) == CODE
    output = capfdbinary.readouterr()
    after = re.search(rf"exit code {CODE} after ([\d,]+) cycles", output.err.decode())
    assert after
    figures = rf"^ *all +[\d,]+ +{after[1]} +\d\.\d +100\.0% *$"
    assert len(re.findall(figures, output.out.decode(), re.MULTILINE)) == 2


def test_the_profile_is_printed(source: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """Behind what the program prints; the exit code is the program's."""
    assert command_line.main(["soc", str(source), "--profile"]) == CODE
    printed = capfdbinary.readouterr().out.decode()
    assert printed.startswith("6\nFunctions")
    assert re.search(r"^ *once +\d+ +\d+\.\d% *$", printed, re.MULTILINE)
    assert re.search(r"^ *npu.relu +3 +\d+\.\d% *$", printed, re.MULTILINE)
    totals = re.findall(r"^ *all +(\d+) +100.0% *$", printed, re.MULTILINE)
    assert len(totals) == 2
    assert totals[0] == totals[1]


def test_a_program_that_does_not_end(capsys: pytest.CaptureFixture[str]) -> None:
    """Is over after --limit instructions; the line says where it was."""
    path = str(support.test_program("forever"))
    assert command_line.main(["soc", path, "--profile", "--limit", "3000"]) == 2
    said = capsys.readouterr().err
    assert re.fullmatch(r"npu: .*: no exit within 3,000 instructions: .*\(stuck\+0x.*\)\n", said)


def _shown(head: str, place: int = 0) -> str:
    """Return the indented block of the page that begins with a line, of those that do."""
    page = PAGE.read_text(encoding="utf-8")
    found = re.findall(rf"^    {re.escape(head)}\n(?:(?:    .*)?\n)*", page, re.MULTILINE)
    return "".join(line[4:].rstrip() + "\n" for line in found[place].rstrip().splitlines())


def _page_program(folder: Path) -> Path:
    """Write the first program of the page."""
    found = re.search(r"^```c sum.c\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert found
    path = folder / "sum.c"
    path.write_text(found[1], encoding="utf-8")
    return path


def test_the_session_of_the_page(tmp_path: Path) -> None:
    """GDB, given what the page gives it, prints what stands there."""
    needs("gdb-multiarch")
    shown = _shown("(gdb) break main")
    commands = re.findall(r"^\(gdb\) (.*)$", shown, re.MULTILINE)
    with waiting(_page_program(tmp_path), "--compiler", "zig") as session:
        words = [GDB, "-nx", "-batch", str(session.elf.path)]
        words += ["-ex", f"target remote 127.0.0.1:{session.port}"]
        for command in commands:
            words += ["-ex", rf"echo (gdb) {command}\n", "-ex", command]
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
        assert session.end() == (0, "the dot product is 300\n")
    printed = done.stdout[done.stdout.find("(gdb)") :].replace(f"{tmp_path}/", "").expandtabs()
    assert _ELSEWHERE.sub("", printed) == _ELSEWHERE.sub("", shown), done.stderr


@pytest.mark.parametrize(("place", "option"), [(0, "--profile"), (1, "--cycles")])
def test_the_profiles_of_the_page(
    place: int, option: str, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """The command prints the table that stands there."""
    shown = _shown("Functions", place)
    program = _page_program(tmp_path)
    assert command_line.main(["soc", str(program), "--compiler", "zig", option]) == 0
    printed = capfdbinary.readouterr().out.decode()
    lines = "".join(line.rstrip() + "\n" for line in printed.splitlines())
    assert lines.startswith(f"the dot product is 300\n{shown}")
