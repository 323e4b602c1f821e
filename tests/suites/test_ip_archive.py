# SPDX-License-Identifier: Apache-2.0
"""The archive of `make ip` in an empty folder: its bench, its bring-up in C, its registers."""

from __future__ import annotations

import os
import resource
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.needs import needs

needs("ip")

from dev.ip import archive, contents
from spec.configurations import CHIPS, ChipParameters
from tb.run import build, verilator
from tests.ip_files import registers_of

MOST_SECONDS = 120.0
"""Of processor time, for building and running the bench."""
PASSED = "tessera: smoke test passed: 64 bytes"


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment with a program `verilator`, as a system has one."""
    tool = verilator.find()
    folder = tmp_path_factory.mktemp("bin")
    program = folder / "verilator"
    exports = [f"export {name}={shlex.quote(text)}" for name, text in tool.environment.items()]
    flags = shlex.join(tool.make_variables)
    command = f'exec {shlex.join(tool.command)} "$@" -MAKEFLAGS {shlex.quote(flags)}'
    program.write_text("\n".join(["#!/bin/sh", *exports, command, ""]), encoding="utf-8")
    program.chmod(0o755)
    kept = {name: text for name, text in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS")}
    home = {"HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    return {**kept, **home, "PATH": f"{folder}:{os.environ['PATH']}"}


def _unpacked(chip: ChipParameters, folder: Path) -> Path:
    build.generate()
    release = contents.Release(chip, "0.0.1", "0" * 40)
    packed = archive.write(release, folder / "made")
    subprocess.run(["tar", "-xzf", str(packed), "-C", str(folder)], check=True)
    home = folder / release.name
    subprocess.run(["sha256sum", "--quiet", "-c", archive.DIGESTS], cwd=home, check=True)
    return home


def _run(command: list[str], folder: Path, environment: Mapping[str, str]) -> str:
    run = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-4000:]
    return run.stdout


def _processor_time() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_the_bench_needs_only_verilator(tmp_path: Path, tools: dict[str, str]) -> None:
    """With the commands of its README, within two minutes; a broken chip is seen."""
    home = _unpacked(CHIPS["a16"], tmp_path)
    readme = (home / "README.md").read_text(encoding="utf-8")
    make, run = [line.split() for line in readme.splitlines() if line.startswith("    ")][:2]
    begun = _processor_time()
    _run(make, home, tools)
    assert PASSED in _run(run, home, tools)
    assert _processor_time() - begun < MOST_SECONDS
    vector = home / "rtl/vec/npu_vec_pkg.sv"
    text = vector.read_text(encoding="utf-8")
    right, wrong = "VecRelu) found.least = '0;", "VecRelu) found.least = '1;"
    assert text.count(right) == 1
    vector.write_text(text.replace(right, wrong), encoding="utf-8")
    _run(make, home, tools)
    broken = subprocess.run(run, cwd=home, env=tools, capture_output=True, text=True, check=False)
    assert broken.returncode != 0
    assert "of the result is" in broken.stdout + broken.stderr


def test_fusesoc_runs_the_bench_by_name(tmp_path: Path, tools: dict[str, str]) -> None:
    """The smallest chip."""
    home = _unpacked(CHIPS["a4"], tmp_path)
    command = [sys.executable, "-m", "fusesoc.main", f"--config={tmp_path / 'none.conf'}"]
    command += ["--cores-root", str(home), "run", "--target", "smoke", "--build-root", "work"]
    assert PASSED in _run([*command, "tessera:npu:tessera-a4"], tmp_path, tools)


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory, tools: dict[str, str]) -> Path:
    """Chip and memory as a program, of a chip that has every field of every register."""
    home = _unpacked(CHIPS["a8"], tmp_path_factory.mktemp("machine"))
    page = (home / "README.md").read_text(encoding="utf-8")
    (command,) = (line for line in page.splitlines() if "npu_bringup_rtl.cpp" in line)
    _run(["sh", "-c", command], home, tools)
    return home


def test_the_bring_up_runs_on_the_rtl(machine: Path, tools: dict[str, str]) -> None:
    """The C of the archive, beside chip and memory."""
    said = _run(["obj_dir/Vtessera_machine"], machine, tools)
    assert said == "npu: bring-up passed\n"


def _wrong(text: str, machine: Path, tools: dict[str, str]) -> list[str]:
    """Return what the RTL says otherwise than an IP-XACT file.

    Each register is read behind the reset; then the fields that hold what software writes are
    written, twice, and read back. Registers with commands in them are only read.
    """
    found = registers_of(text)
    lines: list[str] = []
    expected: list[tuple[int, int]] = []
    for register in found:
        known = [field for field in register.fields if field.read and field.reset is not None]
        lines.append(f"r {register.address:x}")
        expected.append(register.bits(known, {field.name: field.reset or 0 for field in known}))
    for register in found:
        if any(field.write and not field.read for field in register.fields):
            continue
        plain = [field for field in register.fields if field.plain]
        for flip in (0x5A5A5A5A, 0xA5A5A5A5):
            values = {field.name: flip >> field.lsb & field.mask for field in plain}
            word = register.bits(plain, values)[1]
            lines += [f"w {register.address:x} {word:x}", f"r {register.address:x}"]
            expected += [(0, 0), register.bits(plain, values)]
    assert len([each for each in expected if each[0]]) > 150
    said = subprocess.run(
        ["obj_dir/Vtessera_machine", "--registers"],
        cwd=machine,
        env=tools,
        input="\n".join([*lines, ""]),
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    read = [0 if line == "ok" else int(line, 16) for line in said]
    return [
        f"{line}: {value:#010x}, expected {word:#010x} in {mask:#010x}"
        for line, value, (mask, word) in zip(lines, read, expected, strict=True)
        if value & mask != word
    ]


def test_every_register_is_what_ipxact_says(machine: Path, tools: dict[str, str]) -> None:
    """Resets, and fields that hold what is written; what the file has wrong is named."""
    text = (machine / "tessera.xml").read_text(encoding="utf-8")
    assert _wrong(text, machine, tools) == []
    reset = "<ipxact:value>'h1000</ipxact:value>"
    assert text.count(reset) == 2, "MEM_TIMEOUT and DESC_TIMEOUT"
    other = _wrong(text.replace(reset, "<ipxact:value>'h1001</ipxact:value>"), machine, tools)
    assert [line.split(",")[0] for line in other] == ["r c0: 0x00001000", "r 370: 0x00001000"]
    narrow = text.replace("<ipxact:bitWidth>24<", "<ipxact:bitWidth>25<")
    assert len(_wrong(narrow, machine, tools)) > 1
