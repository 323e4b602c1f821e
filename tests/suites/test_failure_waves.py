# SPDX-License-Identifier: Apache-2.0
"""The waves of a failure on a wrong design are at the cycle at which it goes wrong, and of no more.

A chip loads 5,000 words as it should, and flips a bit of the next one; an assertion in a block does
not hold any more after 3,000 cycles. So the waveform itself tells where that is, whatever the bench
has found.
"""

from __future__ import annotations

import re
import shutil
import struct
from pathlib import Path

import pytest
import pywellen

from npu import optional
from spec.configurations import CHIPS
from spec.paths import BUILD, RTL
from tb.bench import failure
from tb.run import build, failure_waves, registry, runner, units
from tests.needs import needs

RIGHT = "  assign wr_req_o.data  = word & mask;\n"
WRONG = """  logic [15:0] written_q = '0;
  always_ff @(posedge clk_i) if (write) written_q <= written_q + 16'd1;
  assign wr_req_o.data  = (word & mask) ^ word_t'(written_q == 16'd5000);
"""
PROBE = "tb_top.u_probe"
FILL = "tb_top.dut.u_core.u_engines.u_load.u_fill"


ASSERTED = """  logic [31:0] cycles_q = '0;
  always_ff @(posedge clk_i) cycles_q <= cycles_q + 32'd1;
  Short_A :
  assert property (@(posedge clk_i) cycles_q != 32'd3000)
  else $error("%m: too long");

endmodule
"""


def _wrong(label: str, file: str, right: str, wrong: str) -> Path:
    """Return a copy of the RTL in which something is otherwise."""
    needs(*optional.WAVES)
    rtl = BUILD / label / "rtl"
    shutil.rmtree(rtl, ignore_errors=True)
    shutil.copytree(RTL, rtl)
    text = (rtl / file).read_text(encoding="utf-8")
    assert text.count(right) == 1
    (rtl / file).write_text(text.replace(right, wrong), encoding="utf-8")
    return rtl


@pytest.fixture(scope="module")
def wrong_chip() -> build.Configuration:
    """Build a small chip with the wrong load, which can record waves."""
    rtl = _wrong("wrong-load", "dma/npu_dma_fill.sv", RIGHT, WRONG)
    model = build.Configuration(kind="debug", chip=CHIPS["a4"], rtl=rtl, label="wrong-load")
    build.build(model)
    return model


@pytest.fixture(scope="module")
def wrong_block() -> units.UnitConfiguration:
    """Build the vector engine with the assertion."""
    rtl = _wrong("wrong-vec", "vec/npu_vec.sv", "endmodule\n", ASSERTED)
    model = units.UnitConfiguration(kind="debug", rtl=rtl, label="wrong-vec", block="vec")
    build.build(model)
    return model


def _values(fst: Path, signal: str) -> dict[int, int]:
    """Return time in nanoseconds and value of each change of a signal."""
    found: dict[int, int] = {}

    def keep(time: int, _: object, value: int) -> None:
        found[time] = value

    pywellen.Waveform(str(fst)).stream_changes(keep, [signal])
    return found


def _end(fst: Path) -> int:
    """Return the time in nanoseconds at which a waveform ends, which its header says."""
    with fst.open("rb") as file:
        _, _, _, end = struct.unpack(">BQQQ", file.read(25))
    assert isinstance(end, int)
    return end


def _at(fst: Path, signal: str, time: int) -> int:
    """Return the value of a signal at a time."""
    return next(value for at, value in reversed(_values(fst, signal).items()) if at <= time)


def test_the_waves_of_a_wrong_write(wrong_chip: build.Configuration) -> None:
    """A word that the chip writes wrong after a long time, and what the viewer opens with."""
    (test,) = registry.select(["test_dma_random"], registry.discover())
    job = runner.Job(test, wrong_chip)
    assert not runner.run(job).passed
    told = failure.load(job.folder, test.name)
    assert told is not None
    recorded = failure_waves.record(job)
    save_file, found = recorded.save_file, recorded.failure
    assert save_file is not None, recorded.text
    assert found == told

    fst, time = save_file.with_suffix(".fst"), found.cycle * 10
    assert found.cycle > failure_waves.BEFORE
    clock = _values(fst, "tb_top.clk")
    assert min(clock) == time - failure_waves.BEFORE * 10
    assert max(clock) == time + failure_waves.AFTER * 10
    wrong = _values(fst, f"{FILL}.written_q")
    begin = next(at for at, value in wrong.items() if value == 5000)
    end = next(at for at, value in wrong.items() if value == 5001)
    assert begin < time < end
    assert end - time == 5, "the write is accepted at the end of the cycle"

    assert (found.engine, _at(fst, f"{PROBE}.sram_wr_instr.[0]", time)) == ("LD", found.instr)
    assert _at(fst, f"{PROBE}.sram_wr_fire", time) & 1
    said = re.search(r"SRAM byte (0x\w+): .*actual (\w{32})\)", found.message)
    assert said is not None, found.message
    assert _at(fst, f"{PROBE}.sram_wr_addr.[0]", time) == int(said[1], 16) // 16
    data = _at(fst, f"{PROBE}.sram_wr_data.[0]", time)
    assert data.to_bytes(16, "little").hex() == said[2]

    lines = save_file.read_text(encoding="utf-8").splitlines()
    assert f"[timestart] {time - 640}" in lines
    (marks,) = (line.split() for line in lines if line.startswith("*"))
    assert marks[1:3] == [str(time), str(time)]


def test_the_waves_of_an_assertion(wrong_block: units.UnitConfiguration) -> None:
    """The simulator has stopped at it: what was before is there, and room for the viewer behind."""
    (test,) = registry.select(["unit_vec_random"], units.tests_of("vec"))
    job = runner.Job(test, wrong_block)
    result = runner.run(job)
    assert "Assertion failed in unit_vec.u_vec.Short_A" in result.message
    recorded = failure_waves.record(job)
    save_file, found = recorded.save_file, recorded.failure
    assert save_file is not None, recorded.text
    assert found is not None
    assert found.cycle == 3000
    fst, time = save_file.with_suffix(".fst"), found.cycle * 10
    cycles = _values(fst, "unit_vec.u_vec.cycles_q")
    assert list(cycles.values()) == list(range(3000 - failure_waves.BEFORE, 3001))
    assert max(cycles) == time - 5
    assert _end(fst) == time + failure_waves.AFTER * 10
