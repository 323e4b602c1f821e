# SPDX-License-Identifier: Apache-2.0
"""What `make power` makes of toggles and netlists: parsers, sums, bar, page, a small block."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dev import synth
from dev.power import engines, gate_netlist, library, measure, report
from dev.power.gate_netlist import GateNetlist
from dev.power.gate_netlist import synthesise as mapped
from dev.power.toggles import Activity, Toggles
from dev.power.token import Token, benchmark
from dev.yosys import SynthesisError
from npu import optional
from npu.cli import command_line
from npu.commands import last_resort
from spec.paths import BUILD
from tb.benchmarks.catalogue import CASES
from tb.benchmarks.measure import RunFigures
from tests.needs import needs

LIBRARY = """library(small) {
cell (NAND2X1) {
  area : 24;
  pin(A)  {
    direction : input;
    capacitance : 0.02;
  }
  pin(B)  {
    direction : input;
    capacitance : 0.03;
  }
  pin(Y)  {
    direction : output;
    capacitance : 0;
    function : "(!((A B)+!(A^B)))";
  }
}
cell (DFFPOSX1) {
area : 96;
  ff (DS0000,P0002) {
  }
  pin(CLK)  {
    direction : input;
    capacitance : 0.05;
    internal_power() {
      rise_power(passive_energy_template_2x1) {
        index_1 ("0.0, 0.2");
        values ("0.1, 0.3");
      }
      fall_power(passive_energy_template_2x1) {
        index_1 ("0.1, 0.2");
        values ("0.5, 0.9");
      }
    }
  }
  pin(D)  {
    direction : input;
    capacitance : 0.01;
  }
  pin(Q)  {
    direction : output;
    function : "DS0000";
  }
}
}
"""
SAIF = """(SAIFILE
 (INSTANCE top
  (NET
   (clk_i (T0 5) (T1 5) (TZ 0) (TX 0) (TB 0) (TC 20))
  )
  (INSTANCE gen\\[1\\]
   (INSTANCE u_b
    (NET
     (row_q\\[0\\] (T0 5) (T1 25) (TZ 0) (TX 0) (TB 0) (TC 1))
     (row_q\\[1\\] (T0 5) (T1 0) (TZ 0) (TX 0) (TB 0) (TC 2))
     (list_q[0]\\[0\\] (T0 5) (T1 0) (TZ 0) (TX 0) (TB 0) (TC 3))
     (list_q[0]\\[1\\] (T0 5) (T1 0) (TZ 0) (TX 0) (TB 0) (TC 4))
     (list_q[1]\\[0\\] (T0 5) (T1 0) (TZ 0) (TX 0) (TB 0) (TC 5))
     (list_q[1]\\[1\\] (T0 5) (T1 0) (TZ 0) (TX 0) (TB 0) (TC 6))
    )
   )
  )
  (INSTANCE u_c
   (NET
    (one_q (T0 5) (T1 0) (TZ 0) (TX 0) (TB 0) (TC 7))
   )
  )
 )
)
"""
SPENT = measure.Spent(clock=20.0, registers=10.0, logic=70.0, ratio=0.8, known=1.0)


def test_toggles_are_found_by_the_names_of_a_netlist(tmp_path: Path) -> None:
    """By place in vectors and arrays; arrays that are one row of bits begin with their last."""
    path = tmp_path / "a.saif"
    path.write_text(SAIF, encoding="utf-8")
    toggles = Toggles(path, "top", cycles=10, period=5)

    def count(name: str) -> float | None:
        found = toggles.find(name)
        return None if found is None else found.toggles * 10

    assert toggles.find("clk_i") == Activity(2.0, 0.1)
    assert [count(f"gen[1].u_b.row_q[{bit}]") for bit in range(3)] == [1, 2, None]
    assert [count(f"gen[1].u_b.list_q[1][{bit}]") for bit in range(2)] == [5, 6], "a memory"
    assert [count(f"gen[1].u_b.list_q[{bit}]") for bit in range(5)] == [5, 6, 3, 4, None]
    assert (count("u_c.one_q"), count("u_c.two_q"), count("one_q")) == (7, None, None)
    assert toggles.bits("gen[1].u_b.list_q") == 4
    assert [*toggles.ending("one_q")] == ["u_c."]
    assert Toggles(path, "top.u_c", 10, 5).find("one_q") == Activity(0.7, 0.0)
    with pytest.raises(ValueError, match=r"^a\.saif: nothing below top\.u_d$"):
        Toggles(path, "top.u_d", 10, 5)


def _cells(tmp_path: Path) -> dict[str, library.Cell]:
    path = tmp_path / "small.lib"
    path.write_text(LIBRARY, encoding="utf-8")
    return library.read(path)


def test_cells_are_read_from_a_library(tmp_path: Path) -> None:
    """Energies at an edge of 0.1 ns: between two of the table, or the first one."""
    cells = _cells(tmp_path)
    assert cells["NAND2X1"] == library.Cell(
        24.0, {"A": 0.02, "B": 0.03}, "Y", "(~((A&B)|~(A^B)))", 0.0, 0.0, 0.0
    )
    register = cells["DFFPOSX1"]
    assert register.clock_pj == pytest.approx(0.2 + 0.5)
    assert register.charge_pj == pytest.approx(0.05 * 1.8**2)
    assert (register.output, register.function, register.data_pj) == ("Q", "", 0.0)


def _cell(kind: str, **pins: int) -> dict[str, Any]:
    ways = {pin: "output" if pin in "QY" else "input" for pin in pins}
    connections = {pin: [bit] for pin, bit in pins.items()}
    return {"type": kind, "port_directions": ways, "connections": connections}


def _netlist(tmp_path: Path) -> GateNetlist:
    """Two registers, one of them behind a clock gate, one gate that drives one of them."""
    gate = {
        "type": synth.CLOCK_GATE,
        "connections": {"clk_i": [2], "enable_i": [3], "clk_o": [4]},
    }
    cells = {
        "u_gate": gate,
        "a": _cell("DFFPOSX1", CLK=2, D=7, Q=5),
        "b": _cell("DFFPOSX1", CLK=4, D=5, Q=6),
        "c": _cell("NAND2X1", A=5, B=6, Y=7),
    }
    names = {"clk_i": [2], "on_i": [3], "a_q": [5], "b_q": [6]}
    nets = {name: {"bits": bits, "hide_name": 0} for name, bits in names.items()}
    nets |= {"$y": {"bits": [7], "hide_name": 1}}
    return GateNetlist({"cells": cells, "netnames": nets}, _cells(tmp_path), tmp_path)


def test_clocks_cost_what_their_edges_do(tmp_path: Path) -> None:
    """Each domain with its own; one that is not known runs always."""
    net = _netlist(tmp_path)
    one = 0.7 + 0.05 * 1.8**2
    assert net.domains() == {"clk_i": pytest.approx(one), "u_gate.clk_o": pytest.approx(one)}
    cells = dict(net.library)
    cells["LATCH"] = replace(cells["DFFPOSX1"], clock_pj=3.0, charge_pj=1.0)
    net.library = cells
    known = {"clk_i": Activity(2.0, 0.5), "u_gate.clk_o": Activity(0.5, 0.1)}
    assert measure.clocks(net, known.get) == pytest.approx(one + one / 4 + 4.0)
    assert measure.clocks(net, lambda _: None) == pytest.approx(2 * one + 4.0)
    assert measure.block_clock_pj(cells) == pytest.approx(4 * one + 4.0)


def test_toggles_are_counted_gate_by_gate(tmp_path: Path) -> None:
    """A gate that is XOR here follows one input in every cycle while the other one rests."""
    net = _netlist(tmp_path)
    assert net.area() == 24 + 2 * 96
    known = {"a_q": Activity(1.0, 0.5), "b_q": Activity(0.0, 0.0)}
    activities, share = net.activities(known.get)
    assert (activities, share) == ({5: known["a_q"], 6: known["b_q"]}, 1.0)
    assert net.counted(activities) == pytest.approx(0.01 * 1.8**2 / 2)
    assert net.counted(dict.fromkeys((5, 6), Activity(0.0, 0.5))) == 0.0
    assert net.counted(dict.fromkeys((5, 6), Activity(1.0, 0.5))) == 0.0, "both at once"
    half, share = net.activities({"a_q": Activity(0.4, 0.3)}.get)
    assert (half[6], share) == (Activity(0.4, 0.3), 0.5), "like the others"


def test_opensta_is_told_of_no_share_that_it_cannot_multiply(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is rarely high, or rarely low, is so a little more often; what never is, never."""
    monkeypatch.setattr(gate_netlist, "ROOT", tmp_path)
    net = _netlist(tmp_path)
    for high, said in ((1e-9, "0.001"), (1 - 1e-9, "0.999"), (0.0, "0"), (1.0, "1"), (0.4, "0.4")):
        script = net.write(dict.fromkeys((5, 6), Activity(0.1, high)), 20.0).read_text("utf-8")
        assert script.count(f" -activity 0.1 -duty {said}\n") == 2, (high, script)


def test_what_opensta_says_is_taken_apart() -> None:
    """Clocks go; inside of cells a toggle is a rise or a fall; D and what is driven stay."""
    inside = 2 * 100.0 + 10.0 + 2 * 3.0
    found = measure.apart([inside, 5.0, 1.0], [8.0, 6.0, 2.0], edges=100.0, data=10.0)
    assert found == pytest.approx((3.0 + 10.0 + 5.0 + 1.0, 4.0 + 6.0 + 2.0))
    with pytest.raises(ValueError, match=r"in another way than 2\.0\.17$"):
        measure.apart([100.0 + 10.0 + 3.0, 5.0, 1.0], [8.0, 6.0, 2.0], 100.0, 10.0)


def test_sums_keep_what_was_counted() -> None:
    """Of several parts, too."""
    both = SPENT + measure.Spent(1.0, 2.0, 30.0, 1.0, 0.5)
    assert (both.total, both.counted, both.known) == pytest.approx((133.0, 119.0, 0.5))


def test_a_byte_costs_more_in_a_larger_memory() -> None:
    """With the root of its size; the figures at 8 and 32 KiB are those of the source, times 16."""
    assert measure.sram_pj(8) == (20.0, 12.5, 30.0)
    assert measure.sram_pj(32)[0] == 40.0


def test_every_engine_is_there_once() -> None:
    """What one leaves out is another one; each token is a benchmark."""
    names = [engine.name for engine in engines.ENGINES]
    assert len({*names}) == len(names)
    tops = {engine.block.top for engine in engines.ENGINES}
    assert {name for engine in engines.ENGINES for name in engine.without} <= tops
    assert {benchmark("gpt2-tiny", word) for word in ("int8", "int4g32")} <= CASES.keys()


def _report(share: float = 0.05) -> report.PowerReport:
    figures = RunFigures(2000, 1999, 160, 16, 10_000, 1.0, 1)
    token = Token(Path("x.saif"), 2000, figures)
    return report.PowerReport(
        "gpt2-tiny",
        {"int8": token},
        [measure.EngineFigures("softmax", 1, 44.0, 1600, 1.5, {"int8": SPENT})],
        {"int8": [measure.Stated("SRAM", 176.0, 3e3, 2e3, 4e3)]},
        measure.RowFigures(SPENT, measure.Spent(100 * share, 0.0, 0.0, 1.0, 1.0)),
    )


def test_a_row_that_does_not_rest_misses_its_bar() -> None:
    """At most 10 %."""
    assert _report(0.10).worse() == []
    assert _report(0.101).worse() == [
        "an idle row of the array uses 10.1% of an active one, allowed 10%"
    ]


def test_the_tables_have_energy_by_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Energy of a token is that of its cycles; the page has the same, and the report all of it."""
    found = _report()
    assert report.engine_rows(found)[0] == [
        *("softmax", "44.0", "1,600", "1.5", "200.0", "100.0%", "172.0")
    ]
    assert report.part_rows(found) == [
        ["softmax", "int8", "40.0", "20.0", "140.0", "0.80", "100.0%"]
    ]
    assert "6.2 pJ per MAC (5.4 by counting); idle is 5.0% of active" in report.render(found)
    head = "int8: 2,000 cycles, 10,000 MACs;"
    some = f"{head} memories and these engines 203 nJ (174 to 204)"
    assert report.token_lines(found) == [some]
    monkeypatch.setattr(report, "ENGINES", engines.ENGINES[:1])
    assert report.token_lines(found) == [f"{head} chip 203 nJ (174 to 204), 20 pJ a MAC"]
    page = tmp_path / "page.md"
    parts = ("tokens", "engines", "row", "parts", "memories")
    text = "".join(f"<!-- begin {name} -->\n<!-- end {name} -->\n" for name in parts)
    page.write_text(text, encoding="utf-8")
    report.write_page(found, page)
    assert "| softmax | 44.0 | 1,600 | 1.5 | 200.0 | 100.0% | 172.0 |\n" in page.read_text("utf-8")
    page.write_text("no marks\n", encoding="utf-8")
    with pytest.raises(SynthesisError, match=r"page\.md: given parts"):
        report.write_page(found, page)
    report.save(found, tmp_path / "power.json")
    record = json.loads((tmp_path / "power.json").read_text(encoding="utf-8"))
    assert record["engines"][0]["tokens"]["int8"]["clock"] == 20.0
    assert (record["row"]["idle_share"], record["row"]["mac"]) == (0.05, 6.25)


def test_the_page_has_every_engine_and_a_row_that_rests() -> None:
    """The page was written by a run of all of it."""
    text = report.PAGE.read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([a-z-]+)(?: \(\d+\))? \| [\d.,]+ \| [\d,]+ \| ", text, re.M)
    assert rows == [engine.name for engine in engines.ENGINES]
    (share,) = re.findall(r"idle is ([\d.]+)% of active, allowed 10%", text)
    assert float(share) <= 100 * measure.IDLE_MOST


def test_missing_tools_are_named_with_what_brings_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is run."""
    needs("synth")
    monkeypatch.setenv(optional.BARE, "1")
    line = "power: no OpenSTA and cells of 180 nm, apt install opensta qflow-tech-osu018"
    with pytest.raises(last_resort.Refusal, match=f"^{re.escape(line)}$"):
        command_line.run(["power", "rows"])


SMALL = """module power_small (
  input logic clk_i, input logic on_i, input logic [7:0] a_i, output logic [7:0] sum_o
);
  logic clk;
  logic [7:0] a_q, sum_q;
  npu_clock_gate u_gate (.clk_i, .enable_i(on_i), .clk_o(clk));
  always_ff @(posedge clk_i) a_q <= a_i;
  always_ff @(posedge clk) sum_q <= sum_q + a_q;
  assign sum_o = sum_q;
endmodule
"""


def test_a_small_block_spends_what_toggles() -> None:
    """Through yosys and OpenSTA: nothing at rest but clocks, and what registers drive by hand."""
    needs("synth", *optional.GATES)
    folder = BUILD / "power" / "test"
    folder.mkdir(parents=True, exist_ok=True)
    source = folder / "small.sv"
    source.write_text(SMALL, encoding="utf-8")
    gate = Path(engines.__file__).parents[2] / "rtl" / "cells" / "npu_clock_gate.sv"
    net = mapped(synth.SynthBlock("small", "power_small"), (), [source, gate], folder)
    assert len(net.registers) == 16
    assert net.clock_gates == ["u_gate.clk_o"]
    pins = sum(net.domains().values()) / 2
    latch = measure.gate_pj(net.library)

    def find(rate: float) -> measure.Find:
        clocks = {"clk_i": Activity(2.0, 0.5), "u_gate.clk_o": Activity(0.0, 0.0)}
        return lambda name: clocks.get(name, Activity(rate, 0.5))

    rest, slow, fast = (measure.spent(net, [find(rate)]) for rate in (0.0, 0.2, 0.4))
    assert rest.clock == fast.clock == pytest.approx(pins + latch), "the gated half stands still"
    assert rest.registers + rest.logic < 1e-3, "leakage"
    assert fast.logic == pytest.approx(2 * slow.logic, rel=0.01)
    assert fast.known == 1.0
    assert 0.5 < fast.ratio < 2.0
    both = measure.spent(net, [find(0.2), find(0.4)])
    assert both.total == pytest.approx(slow.total + fast.total, rel=0.01)
    loads = sum(
        net.library[cell["type"]].inputs[pin]
        for name, register in net.registers.items()
        for cell in net.cells.values()
        for pin in net.library[cell["type"]].inputs
        if cell["connections"][pin] == register["connections"]["Q"]
    )
    text = (net.folder / "power.txt").read_text(encoding="utf-8")
    driven = float(re.findall(r"^Sequential +\S+ +(\S+) ", text, re.M)[0]) * measure.PERIOD_NS * 1e3
    mean = 0.3
    assert driven == pytest.approx(mean * loads * library.SUPPLY**2 / 2, rel=0.02)
