# SPDX-License-Identifier: Apache-2.0
"""A netlist beside its RTL: a queue, its planted faults, what is compared, what is refused."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from dev import icarus, lockstep, synth
from dev.yosys import SynthesisError
from npu import optional
from npu.cli import command_line
from tb.run import build, sources, verilator
from tests.needs import needs

FIFO = synth.SynthBlock("fifo", "npu_fifo", {"Depth": 16})
CYCLES = 504
DRIVER = """
module driver;
  logic clk_i = 0, rst_ni = 0, valid_i = 0, ready_i = 0, data_i = 0, ready_o, valid_o, data_o;
  npu_fifo #(.Depth(16)) u_fifo (.*);
  always #5 clk_i = !clk_i;
  always @(negedge clk_i) {valid_i, ready_i, data_i} = 3'($urandom);
  initial begin
    repeat (4) @(negedge clk_i);
    rst_ni = 1;
    repeat (500) @(negedge clk_i);
    $finish;
  end
endmodule
"""
NETLIST = """module x_netlist(clk_i, a_i, q_o, r_o);
  input clk_i;
  wire clk_i;
  input [1:0] a_i;
  output q_o;
  output [31:0] r_o;
  reg q_o;
  reg [31:0] r_o = 32'h00000000;
  reg [7:0] \\u_m.mem_q  [15:0];
  assign \\u_m.a[1]  = 4'h8 >> { a_i[1], a_i[0] };
  assign _b_ = 8'h8f >> { q_o, a_i[1], a_i[0] };
endmodule
"""


@pytest.fixture(scope="module")
def simulator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A queue with its netlist beside it, in which three LUTs can be wrong."""
    needs("synth")
    build.generate()
    folder = tmp_path_factory.mktemp("lockstep")
    place = lockstep.FOLDER.with_name(f"lockstep-{folder.name}")
    netlist = lockstep.write_netlist(FIFO, sources.rtl_sources(), place).named
    texts = {
        "netlist.v": lockstep.with_faults(netlist, 3),
        "lockstep.sv": lockstep.checker(netlist, FIFO.top),
        "driver.sv": DRIVER,
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    tool = verilator.find()
    words = [*tool.command, "--binary", "--timing", "--assert", "--x-initial", "0", "-Wno-fatal"]
    words += ["--top-module", "driver", "-Mdir", str(folder / "made"), "-CFLAGS", "-O0"]
    words += ["-MAKEFLAGS", shlex.join(tool.make_variables)]
    files = [*sources.closure(FIFO.top, sources.rtl_sources()), *(folder / name for name in texts)]
    run = subprocess.run(
        [*words, *map(str, files)],
        env={"PATH": "/usr/bin:/bin", **tool.environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    return folder / "made" / "Vdriver"


def _said(simulator: Path, *plusargs: str) -> str:
    run = subprocess.run([simulator, *plusargs], capture_output=True, text=True, check=False)
    return run.stdout + run.stderr


def test_a_queue_is_its_netlist(simulator: Path) -> None:
    """In every cycle, from power-up on; the checker says how many, and how many outputs."""
    assert f"\nlockstep: {CYCLES} cycles, 3 outputs" in f"\n{_said(simulator)}"


@pytest.mark.parametrize("fault", [1, 2, 3])
def test_a_fault_of_the_netlist_is_told(simulator: Path, fault: int) -> None:
    """By the name of an output, the cycle and both values."""
    said = _said(simulator, f"+netlist_fault={fault}")
    assert re.search(r"Same_(\w+)_A: cycle \d+: \1 is [01], in the netlist [01]", said), said
    assert "lockstep: 504 cycles" not in said


def test_every_output_is_compared() -> None:
    """Those of the netlist, each with its own assertion; inputs are handed on."""
    text = lockstep.checker(NETLIST, "x")
    assert re.findall(r"Same_(\w+)_A", text) == ["q_o", "r_o"]
    assert "bind x lockstep u_lockstep (.*);" in text
    assert ".a_i(a_i)," in text and ".r_o(net_r_o)" in text
    assert "logic [31:0] net_r_o;" in text
    with pytest.raises(SynthesisError, match="netlist of x has no output"):
        lockstep.checker(NETLIST.replace("output", "input"), "x")


def test_faults_are_off_unless_they_are_asked_for() -> None:
    """All over the netlist; too few LUTs are refused."""
    text = lockstep.with_faults(NETLIST, 2)
    assert "assign \\u_m.a[1]  = (4'h8 >> { a_i[1], a_i[0] }) ^ (fault == 1);" in text
    assert "assign _b_ = (8'h8f >> { q_o, a_i[1], a_i[0] }) ^ (fault == 2);" in text
    assert text.index("integer fault;") < text.index("fault == 1")
    assert '=%d", fault)) fault = 0;' in text
    with pytest.raises(SynthesisError, match="given a netlist of 2 LUTs, allowed 3 at least"):
        lockstep.with_faults(NETLIST, 3)


def test_icarus_begins_with_zeros_as_well() -> None:
    """Memories, and registers without a first value; the others have theirs."""
    assert icarus.unset(NETLIST) == [("q_o", 0), ("\\u_m.mem_q", 16)]


def test_what_is_missing_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Icarus, which only one part needs; and the group of yosys, without which there is nothing."""
    monkeypatch.setenv(optional.BARE, "1")
    with pytest.raises(SynthesisError, match=r"^no Icarus Verilog, apt install iverilog$"):
        icarus.run(NETLIST, tmp_path)
    monkeypatch.setattr("dev.yosys.PACKAGE", "pyosys-that-nobody-has")
    monkeypatch.setattr(optional, "missing", lambda *_: "no group synth, ...")
    assert command_line.main(["lockstep"]) == 2
    said = capsys.readouterr().err
    assert said == "npu: yosys is not installed: no group synth, ...\n"
