# SPDX-License-Identifier: Apache-2.0
"""The archive of `make ip`: complete, the same each time, and right about ports and registers."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tarfile
from dataclasses import dataclass, replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

from tests.needs import needs

needs("ip")

from dev import constraints, gates, integration_page
from dev.ip import archive, contents, ip_commands, registers, top_ports
from npu import optional
from npu.cli import command_line
from spec.configurations import CHIPS, USUAL
from spec.paths import RTL
from spec.regs import CHIP_BASE, SEQ_BASE, ChipReg, SeqReg, source
from spec.regs.generated import CHIP_ID_VALUE, CHIP_VERSION_REG_MAP_VALUE
from tb.run import build
from tests.ip_files import SPACE, registers_of

KNOWN = contents.Release(USUAL, "1.2.3", "0" * 40)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The archive of the usual chip, unpacked in an empty folder."""
    build.generate()
    empty = tmp_path_factory.mktemp("ip")
    packed = archive.write(KNOWN, empty / "made")
    with tarfile.open(packed) as opened:
        opened.extractall(empty / "there")
    return empty / "there" / KNOWN.name


def _listed(folder: Path, name: str) -> list[str]:
    lines = (folder / name).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith(("//", "-"))]


def test_digests_are_those_of_all_files(folder: Path) -> None:
    """Nothing is without one but the list itself; every file names its source or licence."""
    lines = (folder / archive.DIGESTS).read_text(encoding="utf-8").splitlines()
    digests = {name: digest for digest, name in (line.split("  ") for line in lines)}
    there = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
    assert there.keys() == {*digests, archive.DIGESTS}
    for name, digest in digests.items():
        assert hashlib.sha256(there[name].read_bytes()).hexdigest() == digest, name
        head = there[name].read_text(encoding="utf-8")[:400]
        assert name in ("LICENSE", "VERSION") or "SPDX" in head or "Generated " in head, name


def test_the_same_archive_each_time(tmp_path: Path, folder: Path) -> None:
    """Whenever and wherever it is made; another configuration is another one."""
    del folder  # the sources are generated
    first, second = (archive.write(KNOWN, tmp_path / name).read_bytes() for name in ("a", "b"))
    assert first == second
    other = archive.write(replace(KNOWN, chip=CHIPS["a4"]), tmp_path / "a")
    assert other.read_bytes() != first


def test_lists_name_the_same_files(folder: Path) -> None:
    """File list, FuseSoC, Bender and IP-XACT, in the same order; all are there."""
    listed = _listed(folder, "tessera.f")
    assert listed[0] == "tessera.vlt"
    bench = _listed(folder, "sim/smoke.f")
    core = yaml.safe_load((folder / "tessera.core").read_text("utf-8").partition("\n")[2])
    files = {
        name: [each for file in found["files"] for each in file]
        for name, found in core["filesets"].items()
    }
    assert files["rtl"] == listed
    assert files["sim"] == bench
    *sources, last = yaml.safe_load((folder / "Bender.yml").read_text("utf-8"))["sources"]
    assert sources == listed[1:]
    assert last == {"target": "simulation", "files": bench}
    tree = ElementTree.parse(folder / "tessera.xml")
    assert [each.text for each in tree.iterfind(".//i:file/i:name", SPACE)] == listed[1:]
    found = {str(path.relative_to(folder)) for path in folder.rglob("*.sv")}
    model = f"registers/{registers.MAP}_uvm_pkg.sv"
    assert found | {"rtl/tessera.v"} == {*listed[1:], *bench, model}


def _elaborate(folder: Path, top: str, *lists: str) -> None:
    files = [folder / name for each in lists for name in _listed(folder, each)]
    top_ports.elaborated([file for file in files if file.suffix != ".vlt"], top)


@pytest.mark.parametrize("top", ["npu_top", "tessera"])
def test_tops_elaborate_as_they_stand(folder: Path, top: str) -> None:
    """From the list alone, without a parameter."""
    _elaborate(folder, top, "tessera.f")


def test_the_bench_elaborates_and_a_missing_file_is_seen(folder: Path) -> None:
    """The check can fail."""
    _elaborate(folder, contents.SMOKE, "tessera.f", "sim/smoke.f")
    with pytest.raises(top_ports.SourceError, match="UnknownModule"):
        _elaborate(folder, contents.SMOKE, "sim/smoke.f")


@pytest.mark.parametrize("chip", CHIPS.values(), ids=lambda chip: chip.name)
def test_defaults_are_the_configuration(chip: object, folder: Path) -> None:
    """Those of npu_top, for each configuration; a parameter that it lacks is named."""
    del folder
    assert isinstance(chip, type(USUAL))
    text = (RTL / "npu_top.sv").read_text(encoding="utf-8")
    changed = contents.with_defaults(text, chip.parameters)
    for name, value in chip.parameters.items():
        assert re.search(
            rf"^ *parameter (int unsigned|bit) {name} = (1'b)?{value},?( |$)", changed, re.M
        )
    with pytest.raises(top_ports.SourceError, match="given parameter Nothing"):
        contents.with_defaults(text, {"Nothing": 1})


# -------------------------------------------------------------------------------------------------
# Registers
# -------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class SeenField:
    """A field as one of the files has it; `reset` is None if that does not say."""

    lsb: int
    width: int
    read: bool
    write: bool
    reset: int | None


Seen = dict[tuple[int, str], SeenField]
"""By address and name."""


def _expected(*, shared: bool) -> Seen:
    """Return the fields of the maps that the RTL is made of.

    Args:
        shared: those too that are only written and share bits with others.
    """
    found: Seen = {}
    for window in source.load_all():
        for register in window.registers:
            for field in register.fields:
                bits = ((1 << field.width) - 1) << field.lsb
                over = any(
                    ((1 << other.width) - 1) << other.lsb & bits
                    for other in register.fields
                    if other != field
                )
                read, write = "read" in field.access, "write" in field.access
                pulse = field.access == "write 1, reads 0"
                if over and (pulse or not read) and not shared:
                    continue
                found[window.base + register.offset, field.name] = SeenField(
                    field.lsb, field.width, read and not pulse, write, field.reset
                )
    return found


def _ipxact(text: str) -> Seen:
    return {
        (register.address, field.name): SeenField(
            field.lsb, field.width, field.read, field.write, field.reset
        )
        for register in registers_of(text)
        for field in register.fields
    }


def test_ipxact_has_every_field(folder: Path) -> None:
    """Address, bits, access and reset of each, those of the maps; one that is changed is seen."""
    text = (folder / "tessera.xml").read_text(encoding="utf-8")
    assert _ipxact(text) == _expected(shared=True)
    broken = text.replace(
        "<ipxact:value>'h1000</ipxact:value>", "<ipxact:value>'h1001</ipxact:value>"
    )
    assert _ipxact(broken) != _ipxact(text)


def test_uvm_model_has_every_field(folder: Path) -> None:
    """But for those that are only written and share bits, which UVM would call an error."""
    text = (folder / f"registers/{registers.MAP}_uvm_pkg.sv").read_text(encoding="utf-8")
    assert _uvm(text) == _expected(shared=False)
    assert not re.search(r"\bSTART\b.*WO", _class(text, "npu_cmd_regs__CTRL_STATUS"))


def _class(text: str, name: str) -> str:
    found = re.search(rf"^ *class {name} extends .*?^ *endclass", text, re.M | re.S)
    assert found, name
    return found[0]


_CONFIGURE = re.compile(
    r"this\.(\w+)\.configure\(this, (\d+), (\d+), \"(\w+)\", \d, 'h([0-9a-f]+), (\d), \d, \d\);"
)
_INSTANCE = re.compile(r"^ *(?:rand )?(\w+) (\w+)(?:\[(\d+)\])?;$", re.M)
_PLACE = re.compile(
    r"this\.default_map\.add_(?:reg|submap)\(this\.(\w+)(?:\[\w+\])?(?:\.default_map)?, "
    r"'h([0-9a-f]+)(?: ?\+ ?\w+ ?\* ?'h([0-9a-f]+))?"
)


def _uvm(text: str) -> Seen:
    found: Seen = {}

    def walk(name: str, base: int) -> None:
        body = _class(text, name)
        for field, width, lsb, access, reset, has in _CONFIGURE.findall(body):
            known = int(reset, 16) if int(has) else None
            found[base, field] = SeenField(
                int(lsb), int(width), not access.startswith("WO"), access != "RO", known
            )
        types = {each: (kind, int(count or 1)) for kind, each, count in _INSTANCE.findall(body)}
        for each, offset, stride in _PLACE.findall(body):
            kind, count = types[each]
            for index in range(count):
                walk(kind, base + int(offset, 16) + index * int(stride or "0", 16))

    walk(registers.MAP, 0)
    return found


def test_header_has_every_field(folder: Path) -> None:
    """Place and bits of each; values that never change."""
    text = (folder / "sw/npu_regs.h").read_text(encoding="utf-8")
    values = {
        name: int(value, 0) for name, value in re.findall(r"#define (\w+) (\w+)u$", text, re.M)
    }
    for window in source.load_all():
        prefix = f"NPU_{window.key.upper()}"
        for register in window.registers:
            assert values[f"{prefix}_BASE"] == window.base
            assert values[f"{prefix}_{register.name}"] == register.offset
            for field in register.fields:
                if field.name == "VALUE":
                    continue
                name = f"{prefix}_{register.name}_{field.name}"
                assert values[f"{name}_LSB"] == field.lsb
                assert values[f"{name}_MASK"] == ((1 << field.width) - 1) << field.lsb


# -------------------------------------------------------------------------------------------------
# Ports
# -------------------------------------------------------------------------------------------------
def test_ipxact_maps_every_port_of_the_wrapper(folder: Path) -> None:
    """Each exists in the module and belongs to one bus interface."""
    tree = ElementTree.parse(folder / "tessera.xml")
    ports = [each.text for each in tree.iterfind(".//i:model/i:ports/i:port/i:name", SPACE)]
    mapped = [each.text for each in tree.iterfind(".//i:physicalPort/i:name", SPACE)]
    verilog = (folder / "rtl/tessera.v").read_text(encoding="utf-8").partition(");\n")[0]
    assert sorted(map(str, mapped)) == sorted(map(str, ports))
    assert ports == re.findall(r"^  (?:input |output) wire .*?(\w+),?$", verilog, re.M)
    buses = [each.text for each in tree.iterfind(".//i:busInterface/i:name", SPACE)]
    assert sorted(map(str, buses)) == ["aclk", "aresetn", "irq", "m_axi", "s_axil"]


def test_constraints_are_those_of_the_timing_flow(folder: Path) -> None:
    """One source: the same commands, with other numbers; each port has a delay."""
    text = (folder / "constraints/npu_top.sdc").read_text(encoding="utf-8")
    timed = gates.TIMING.format(
        liberty="", folder="", top="", constraints=constraints.sdc(str(gates.PERIOD))
    )

    def commands(lines: str) -> list[str]:
        words = [
            line.split()[:4] for line in lines.splitlines() if "-clock" in line or "create_" in line
        ]
        return [" ".join(word for word in each if word[0] not in "$0123456789") for each in words]

    assert commands(text) == commands(timed)
    ports = re.findall(r"^ +(?:input|output) .*?(\w+),?(?: *//.*)?$", _top(folder), re.M)
    constrained = re.findall(r"(\w+)\*", text)
    assert sorted(constrained) == sorted({*ports} - {"clk_i", "rst_ni"})


def _top(folder: Path) -> str:
    text = (folder / "rtl/npu_top.sv").read_text(encoding="utf-8")
    return text.partition("\n) (\n")[2].partition("\n);\n")[0]


# -------------------------------------------------------------------------------------------------
# The page
# -------------------------------------------------------------------------------------------------
def test_the_page_has_every_port(folder: Path) -> None:
    """Of the buses, each with its meaning; the others stand in sentences."""
    page = integration_page.FILE.read_text(encoding="utf-8")
    assert page == integration_page.filled(page)
    named = re.findall(r"^\| `(\w+_[io])` \| (?:in|out)put \| [^|]+ \| \w[^|]+ \|$", page, re.M)
    top = _top(folder)
    found = integration_page.ports(f"\n) (\n{top}\n);\n")
    assert {*named, "clk_i", "rst_ni", "irq_o"} == {port.name for port in found}
    assert all(port.meaning for port in found)
    with pytest.raises(ValueError, match="allowed ports and comments"):
        integration_page.ports("\n) (\n  wire x\n);\n")


def test_a_number_of_the_rtl_is_named_once() -> None:
    """What is not there is told."""
    assert integration_page.constant("FetchBurst", "seq/npu_fetch.sv") == 16
    with pytest.raises(ValueError, match="given Nothing, allowed"):
        integration_page.constant("Nothing", "seq/npu_fetch.sv")


# -------------------------------------------------------------------------------------------------
# Bring-up in C
# -------------------------------------------------------------------------------------------------
def test_the_bring_up_says_what_is_wrong(folder: Path, tmp_path: Path) -> None:
    """Compiled for this system without a warning; files stand for registers and memory."""
    program, memory = tmp_path / "mapped", tmp_path / "memory"
    sources = [str(folder / "sw" / name) for name in ("npu_bringup.c", "npu_bringup_mapped.c")]
    flags = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-std=c11", "-D_DEFAULT_SOURCE"]
    subprocess.run(["gcc", *flags, "-o", str(program), *sources], check=True)
    memory.write_bytes(bytes(0x4000))

    def says(values: dict[int, int], size: str = "0x4000") -> tuple[int, str]:
        registers_file = tmp_path / "registers"
        image = bytearray(0x1000)
        for place, value in values.items():
            image[place : place + 4] = value.to_bytes(4, "little")
        registers_file.write_bytes(image)
        words = [registers_file, "0", memory, "0", "0x80000000", size]
        command = [str(program), *map(str, words)]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        return run.returncode, (run.stdout + run.stderr).strip()

    chip = {CHIP_BASE + ChipReg.ID: CHIP_ID_VALUE, CHIP_BASE + ChipReg.IRQ_STATUS: 1}
    version = CHIP_BASE + ChipReg.VERSION
    status = SEQ_BASE + SeqReg.STATUS
    assert says({}) == (1, "ID: no chip answers")
    other = "VERSION.REG_MAP: the header is of another version of the chip"
    assert says(chip | {version: CHIP_VERSION_REG_MAP_VALUE + 1}) == (1, other)
    chip |= {version: CHIP_VERSION_REG_MAP_VALUE}
    assert says(chip | {status: 2}) == (1, "STATUS.BUSY: a program runs already")
    assert says(chip)[1].startswith("STATUS.DONE: an interrupt without")
    assert says(chip | {status: 5})[1].startswith("STATUS.ERROR: the program failed")
    assert says(chip | {status: 1}) == (1, "memory: the result is wrong")
    assert says(chip, "0x1001") == (
        2,
        "BYTES: given 0x1001, allowed multiples of 4096 from 12288",
    )
    assert memory.read_bytes()[0x1000] == 11, "it was staged"


# -------------------------------------------------------------------------------------------------
# Tools and commands
# -------------------------------------------------------------------------------------------------
def test_fusesoc_reads_the_core(folder: Path, tmp_path: Path) -> None:
    """By its name, in a folder without anything else, down to the files of the smoke bench."""
    run = subprocess.run(
        [
            *(sys.executable, "-m", "fusesoc.main", f"--config={tmp_path / 'none.conf'}"),
            *("--cores-root", str(folder), "run", "--setup", "--target", "smoke"),
            *("--build-root", str(tmp_path), "tessera:npu:tessera-a16"),
        ],
        cwd=tmp_path,
        env={**os.environ, "HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    (made,) = tmp_path.rglob("*.vc")
    assert "tessera_smoke.sv" in made.read_text(encoding="utf-8")


def test_what_is_missing_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In one line with the command that brings it."""
    monkeypatch.setattr(optional, "has", lambda name: name != "ip")
    assert command_line.main(["ip"]) == 2
    assert capsys.readouterr().err == "npu: no group ip, python3 dev/bootstrap.py ip\n"
    assert ip_commands.BAD_INPUT
