# SPDX-License-Identifier: Apache-2.0
"""Mutants of the RTL: which there are, how they are drawn and judged, on runs that are made up."""

from __future__ import annotations

import json
import subprocess
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dev import (
    mutation,
    mutation_common,
    mutation_draw,
    mutation_model,
    mutation_report,
    mutation_runs,
    mutation_units,
    mutation_verdict,
)
from dev.coverage.changed import lines_since
from dev.mutation_model import Design
from dev.mutation_sites import Mutant, mutants_of
from dev.mutation_verdict import Equivalent, Verdict
from dev.sv_source import SvSource, constant_functions
from spec.configurations import CHIPS, USUAL
from spec.paths import ROOT, RTL
from tb.run import build, registry, runner, together

MODULE = """
module m #(
  parameter int unsigned Depth = 3
) (
  input logic clk_i,
  input logic rst_ni,
  input logic [7:0] a_i,
  output logic [7:0] y_o
);
  localparam int unsigned Width = twice(4);
  typedef enum logic [1:0] {A = 2'd1, B = 2'd2} state_t;
  logic [7:0] q;
  logic [Width-1:0] unused;
  function automatic int twice(int x);
    return x + x;
  endfunction
  if (Depth > 2) begin : g_deep
    assign unused = '0;
  end
  assign y_o = q + a_i;
  always_comb begin
    for (int i = 0; i < 8; i++) begin
      if (a_i[2] && q != '0) unused[i] = a_i[5:3] == 3'd5;
    end
    case (q)
      8'd9: unused = 8'(a_i);
      default: unused = a_i == 8'd7 ? q : a_i;
    endcase
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      q <= '0;
    end else if (!a_i[0]) q <= ~a_i;
  end
  n #(.Depth(4)) u_n (
    .a_i(q - 8'd1),
    .y_o(unused[6:4])
  );
  Rule_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) q != 8'd77)
  else $error("m: no");
endmodule
"""
MUTANTS = {
    "14": set(),
    "18": {"constant: '0 -> '1"},
    "20": {"arithmetic: + -> -"},
    "23": {
        "logical: && -> ||",
        "relational: != -> ==",
        "relational: == -> !=",
        "condition: a_i[2] && q != '0 -> !(a_i[2] && q != '0)",
        "constant: 2 -> 3",
        "constant: '0 -> '1",
        "slice: 5:3 -> (5) - 1:(3) - 1",
        "constant: 3'd5 -> 3'd6",
        "drop: unused[i] = a_i[5:3] == 3'd5; dropped",
    },
    "26": {"drop: unused = 8'(a_i); dropped"},
    "27": {
        "relational: == -> !=",
        "constant: 8'd7 -> 8'd8",
        "arms: a_i == 8'd7 ? q : a_i -> a_i == 8'd7 ? (a_i) : (q)",
        "drop: unused = a_i == 8'd7 ? q : a_i; dropped",
    },
    "32": {"constant-reset: '0 -> '1", "drop-reset: q <= '0; dropped"},
    "33": {"not: !a_i[0] -> a_i[0]", "not: ~a_i -> a_i", "drop: q <= ~a_i; dropped"}
    | {"constant: 0 -> 1"},
    "36": {"arithmetic: - -> +", "constant: 8'd1 -> 8'd2"},
}
"""Lines of the module, and what can be wrong with each; the others have nothing."""


@pytest.fixture(scope="module")
def design() -> Design:
    """The RTL."""
    return Design.read()


def _small(folder: Path, text: str = MODULE) -> Design:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "m.sv").write_text(text, encoding="utf-8")
    return Design.read(folder)


def _found(text: str) -> list[Mutant]:
    source = SvSource(text)
    return mutants_of("m.sv", source, constant_functions([source]))


def test_mutants_of_a_module() -> None:
    """Each operator, and nothing where a value is decided before the simulation runs."""
    found: dict[str, set[str]] = {}
    for mutant in _found(MODULE):
        found.setdefault(str(mutant.line), set()).add(f"{mutant.operator}: {mutant.change}")
    assert found == {line: some for line, some in MUTANTS.items() if some}


def test_a_place_is_a_whole_expression() -> None:
    """So that a difference that the rest of the expression hides is none."""
    places = {(each.line, each.operator): each.mutated for each in _found(MODULE)}
    assert places[23, "slice"] == "a_i[(5) - 1:(3) - 1] == 3'd5"
    assert places[23, "logical"] == "a_i[2] || q != '0"
    assert places[36, "arithmetic"] == "q + 8'd1"


@pytest.mark.parametrize(
    ("text", "new"),
    [
        ("'0", "'1"),
        ("'1", "'0"),
        ("7", "8"),
        ("1'b0", "1'd1"),
        ("4'hF", "4'd14"),
        ("8'sd3", "8'sd4"),
    ],
)
def test_the_next_constant_has_the_same_width(text: str, new: str) -> None:
    """A constant that would not fit becomes one less."""
    (change,) = [
        each.new
        for each in _found(f"module m; assign y = x + {text}; endmodule")
        if each.operator == "constant"
    ]
    assert change == new


def test_a_model_chooses(tmp_path: Path) -> None:
    """One side of each choice is the original, also around another choice; a drop keeps `else`."""
    design = _small(tmp_path / "rtl")
    some = [each for each in design.mutants if each.line in (20, 23, 33)]
    mutants = dict(enumerate(some, 1))
    copy = mutation_model.write(design, mutants, tmp_path / "copy")
    text = (copy / "m.sv").read_text(encoding="utf-8")
    assert not SvSource(text).is_broken
    assert (
        "y_o = (npu_fault_pkg::takes(1, (q - a_i) != ((q + a_i) + 64'sd0)) ? (q - a_i) : (q + a_i))"
        in text
    )
    (drop,) = [n for n, each in mutants.items() if each.line == 33 and each.operator == "drop"]
    assert f"begin if (!npu_fault_pkg::takes({drop}, 1'b1)) begin q <=" in text
    package = (copy / "npu_fault_pkg.sv").read_text(encoding="utf-8")
    assert all(f"// {number}: {each.name}\n" in package for number, each in mutants.items())


def test_a_drawing_is_that_of_its_seed(design: Design) -> None:
    """A larger one begins with a smaller one; no mutant comes twice."""
    one = mutation_draw.drawn(design, "a")
    assert [each.name for each in mutation_draw.drawn(design, "a")] == [each.name for each in one]
    assert [each.name for each in mutation_draw.drawn(design, "b")] != [each.name for each in one]
    assert len({each.name for each in one}) == len(one) > 10_000


DECLARE = {"cop/npu_cop_func_pkg.sv", "host/npu_host_pkg.sv", "npu_pkg.sv"}
"""Files of types, and of functions of which tables are made before the simulation runs."""


def test_every_long_file_has_three(design: Design) -> None:
    """In the first 600, whatever the seed; but for files that have fewer in all."""
    for seed in ("a", "b"):
        first = Counter(each.file for each in mutation_draw.drawn(design, seed)[: mutation.COUNT])
        few = {
            file: first[file]
            for file, source in design.files.items()
            if source.lines > mutation_draw.LONG and first[file] < mutation_draw.ROUNDS
        }
        every = Counter(each.file for each in design.mutants)
        assert few == {file: every[file] for file in few}
        assert {*few} == DECLARE


def test_every_mutant_of_a_sample_elaborates(
    design: Design, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is no SystemVerilog is replaced by the next one."""
    drawn = mutation_draw.drawn(design, "a")
    monkeypatch.setattr(mutation, "HOME", tmp_path)
    wrong = next(each for each in drawn if each.operator == "relational")
    broken = replace(wrong, mutated="no_such_name", operator="broken")
    request = mutation.Request([broken, *drawn], 300, USUAL, [1], 1, "digest")
    found = mutation.legal(design, request)
    assert len(found) == 300
    assert broken not in found
    assert {*found} <= {*drawn[:310]}


def test_names_choose(design: Design) -> None:
    """Of mutants or of files; an unknown one is told with near ones."""
    drawn = mutation_draw.drawn(design, "a")
    of_file = mutation_draw.named(drawn, ["npu_fetch"])
    assert {each.file for each in of_file} == {"seq/npu_fetch.sv"}
    assert mutation_draw.named(drawn, [of_file[3].name]) == [of_file[3]]
    with pytest.raises(mutation_draw.MutationError, match=r"no mutant is called so; near: npu_fet"):
        mutation_draw.named(drawn, ["npu_fetch:1:1:drop"])


def test_a_change_has_the_mutants_of_its_lines(tmp_path: Path) -> None:
    """A new file has all of its own; a change without any is told."""
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "x"]):
        _git(tmp_path, *words)
    (tmp_path / "m.sv").write_text(MODULE, encoding="utf-8")
    _git(tmp_path, "add", "m.sv")
    _git(tmp_path, "commit", "-q", "-m", "m")
    (tmp_path / "m.sv").write_text(MODULE.replace("q + a_i", "a_i + q"), encoding="utf-8")
    assert lines_since("HEAD", tmp_path) == {Path("m.sv"): {20}}

    mutants = _found(MODULE)
    home = RTL.relative_to(RTL.parent)
    assert [each.line for each in mutation_draw.changed(mutants, {home / "m.sv": {20}})] == [20]
    with pytest.raises(mutation_draw.MutationError, match="no line of rtl that differs has a mut"):
        mutation_draw.changed(mutants, {home / "m.sv": {1}})


def _git(folder: Path, *words: str) -> None:
    user = ["-c", "user.name=x", "-c", "user.email=x@x"]
    subprocess.run(["git", "-C", str(folder), *user, *words], check=True)


# --------------------------------------------------------------------------------------------------
# Judging
# --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("message", "fate"),
    [
        ("MismatchError: byte 3", "mismatch"),
        ("MemoryMismatchError: byte 3", "mismatch"),
        ("the simulator stopped: [5] %Error: x.sv:3: Assertion failed in a.Rule_A", "assertion"),
        ("AssertionError: list 0: memory differs in 4 bytes, first at 0x6: expected 1", "mismatch"),
        ("AssertionError: assert 3 == 4", "check"),
        ("DeviceError: no interrupt within 9 cycles: x", "time-out"),
        ("the simulator ended (no end within 36 s) before any test had run:\n", "time-out"),
        ("the simulator stopped: %Error: Active region did not converge", "broken"),
        ("the simulator ended (-11) before any test had run:\n", "broken"),
    ],
)
def test_fates(message: str, fate: str) -> None:
    """By what the test says that has failed."""
    assert mutation_verdict.fate_of(message) == fate


SEES = {
    "test_gemm_random": "MismatchError: byte 3",
    "test_vec_random": "the simulator ended (no end within 36 s) before any test had run:\n",
}
"""Tests, and what each says of the mutant that it notices: the first and the second."""


SECOND = "unit_m_random"
"""The test of a block that notices the fourth."""


class _Chip:
    """Stands in for model and simulator: three mutants, of which the third shows nowhere.

    Attributes:
        ran: the tests that ran with a mutant, by its number.
        built: how many models were built.
    """

    def __init__(self, broken: str = "") -> None:
        self.ran: dict[int, list[str]] = {}
        self.built = 0
        self._broken = broken

    def build(self, configuration: build.Configuration) -> Path:
        self.built += 1
        return configuration.binary

    def run(self, job: runner.Job) -> runner.TestResult:
        return self.together(job)[0]

    def together(self, job: runner.Job) -> list[runner.TestResult]:
        job.folder.mkdir(parents=True)
        results = []
        for test in job.tests:
            message = "it never works" if test.name == self._broken else ""
            if job.plusargs == ("differs",):
                notes = np.array([(1, 500), (2, 500), (4, 500)], mutation_runs._NOTE)
                (job.folder / "differs.bin").write_bytes(notes.tobytes())
            else:
                number = int(job.plusargs[0].removeprefix("fault="))
                self.ran.setdefault(number, []).append(test.name)
                names = [*SEES]
                if number <= 2 and test.name == names[number - 1]:
                    message = SEES[test.name]
            results.append(runner.TestResult(job_of(job, test), not message, message, "", 1.0))
        return results


def job_of(job: runner.Job, test: registry.BenchTest) -> runner.Job:
    """Return the job of one test of a process."""
    return runner.Job(test, job.configuration, place=job.folder)


def _campaign(
    folder: Path, patch: pytest.MonkeyPatch, chip: _Chip, said: list[str]
) -> mutation.Campaign:
    patch.setattr(build, "build", chip.build)
    patch.setattr(runner, "run", chip.run)
    patch.setattr(together, "run", chip.together)
    patch.setattr(mutation, "HOME", folder / "mutation")
    patch.setattr(time, "monotonic", lambda: 0.0)
    patch.setattr(mutation, "RUNS", folder / "runs")
    patch.setattr(mutation, "witnesses", lambda some, *_: {n: SECOND * (n == 4) for n in some})
    patch.setattr(mutation, "legal", lambda _, request: [*request.mutants[: request.count]])
    design = _small(folder / "rtl")
    names = [*SEES, "test_softmax_random"]
    tests = registry.select(names, registry.discover())
    request = mutation.Request(design.mutants[:5], 4, USUAL, [1], 1, "digest")
    return mutation.Campaign(design, request, said.append, tests)


def test_a_campaign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed, out of time, shown nowhere, survivor; a second one knows all of it already."""
    chip, said = _Chip(), list[str]()
    campaign = _campaign(tmp_path, monkeypatch, chip, said)
    verdicts = campaign.run([])
    fates = [(each.fate, each.test, each.shows) for each in verdicts]
    assert fates == [
        ("mismatch", "test_gemm_random", 3),
        ("time-out", "test_vec_random", 3),
        ("unseen", "", 0),
        ("survivor", "", 3),
    ]
    assert (chip.built, 3 in chip.ran, len(chip.ran[4])) == (1, False, 3)
    assert [each.second for each in verdicts] == ["", "", "", SECOND]
    assert [each.survives for each in verdicts] == [False, False, True, True]

    chip.ran.clear()
    assert _campaign(tmp_path, monkeypatch, chip, said).run([]) == verdicts
    assert (chip.built, chip.ran) == (1, {})
    assert "4 mutants: 0 shown equivalent, 4 known from before" in said


def test_what_the_usual_chip_lacks_is_tried_on_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the tests of that chip, and no further where it is noticed there; others stay."""
    chip, said = _Chip(), list[str]()
    campaign = _campaign(tmp_path, monkeypatch, chip, said)
    verdicts = campaign.run([])
    found = mutation.on_others(campaign, verdicts, CHIPS.values())
    assert [found[0], found[1], found[3]] == [verdicts[0], verdicts[1], verdicts[3]]
    assert (verdicts[2].fate, found[2].fate, found[2].test) == (
        "unseen",
        "mismatch",
        "test_gemm_random",
    )
    assert found[2].mutant == verdicts[2].mutant
    assert chip.built == 2


def test_long_tests_come_early_where_they_notice_much() -> None:
    """Seconds count less in tests of the folder, and in those that are random or compare cycles."""
    names = ["test_stream_learns_the_latency", "test_softmax_random", "test_program_end_only"]
    tests = registry.select([*names, "test_kv_speed"], registry.discover())
    bench = mutation_runs.Bench(build.Configuration(), Path(), 1, 1)
    seconds = dict(zip(names, (30.0, 10.0, 9.0), strict=True)) | {"test_kv_speed": 26.0}
    bench.sound = {n: mutation_runs.Sound(s, frozenset({1})) for n, s in seconds.items()}
    mutant = replace(_found(MODULE)[0], file="mem_port/npu_mem_port.sv")
    ordered = [test.name for test in bench.order(1, mutant, tests)]
    assert ordered == [names[1], "test_kv_speed", names[0], names[2]]


def test_a_campaign_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind the last verdict that was written whole; other sources begin anew."""
    chip, said = _Chip(), list[str]()
    campaign = _campaign(tmp_path, monkeypatch, chip, said)
    verdicts = campaign.run([])
    path = campaign.store().path
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    kept = next(line for line in lines if '"mismatch"' in line)
    path.write_text(kept + lines[1][:20], encoding="utf-8")
    chip.ran.clear()
    assert _campaign(tmp_path, monkeypatch, chip, said).run([]) == verdicts
    assert (chip.built, 1 in chip.ran, 2 in chip.ran) == (2, False, True)

    other = _campaign(tmp_path, monkeypatch, chip, said)
    other.request = replace(other.request, digest="other")
    assert other.run([]) == verdicts
    assert chip.built == 3


def test_a_test_that_fails_without_a_mutant_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is named, and counts for nothing; without any that passes there is no campaign."""
    chip, said = _Chip("test_gemm_random"), list[str]()
    campaign = _campaign(tmp_path, monkeypatch, chip, said)
    verdicts = campaign.run([])
    assert campaign.unfit == {"test_gemm_random": "it never works"}
    assert (verdicts[0].fate, verdicts[0].shows) == ("survivor", 2)
    campaign.tests = (
        campaign.tests[:1]
        if campaign.tests[0].name == "test_gemm_random"
        else [test for test in campaign.tests if test.name == "test_gemm_random"]
    )
    with pytest.raises(mutation_draw.MutationError, match="no test passes without a mutant"):
        campaign.run([])


def test_an_equivalent_mutant_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is known by file, text of the line and change, wherever the line has moved."""
    chip, said = _Chip(), list[str]()
    campaign = _campaign(tmp_path, monkeypatch, chip, said)
    first = campaign.request.mutants[0]
    line = campaign.design.files["m.sv"].line(first.line).strip()
    shown = Equivalent("m.sv", line, first.change, "reason", "nobody reads it")
    verdicts = campaign.run([shown])
    assert (verdicts[0].fate, verdicts[0].reason) == ("equivalent", "reason: nobody reads it")
    assert len(verdicts) == 4


def test_a_file_is_in_benches_of_blocks() -> None:
    """At most in two; the top of the chip is in none."""
    files = ["seq/npu_fetch.sv", "cmd/npu_cmd_pkg.sv", "npu_top.sv"]
    found = mutation_units.blocks_with(files, RTL)
    assert found["cmd/npu_cmd_pkg.sv"] == ["cmd"]
    assert (len(found["seq/npu_fetch.sv"]), found["npu_top.sv"]) == (2, [])


def test_equivalents_are_of_mutants_that_there_are(design: Design) -> None:
    """One of a line that has changed asks for another proof."""
    entries = mutation_verdict.equivalents()
    places = {
        (each.file, design.files[each.file].line(each.line).strip(), each.change)
        for each in design.mutants
    }
    places |= {(each.file, each.old_line, each.what) for each in mutation_common.all_changes()}
    assert [each for each in entries if (each.file, each.line, each.change) not in places] == []


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            '[[equivalent]]\nfile = "a"\n',
            "entry 1: given file, allowed file, line, change, by, rea",
        ),
        (
            '[[equivalent]]\nfile="a"\nline="b"\nchange="c"\nby="hope"\nreason="d"\n',
            "entry 1: by: given 'hope', allowed 'sat', 'reason'",
        ),
    ],
)
def test_a_wrong_equivalent_is_named(tmp_path: Path, text: str, line: str) -> None:
    """With what is allowed."""
    path = tmp_path / "equivalents.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(mutation_draw.MutationError) as caught:
        mutation_verdict.equivalents(path)
    assert line in str(caught.value)


def test_a_report(tmp_path: Path) -> None:
    """By folder, dropped resets apart; the file names the digest of the sources."""
    place = ("x", "seq/x.sv", 3, "logical", "&& -> ||")
    reset = Verdict("y", "seq/x.sv", 4, "drop-reset", "q <= '0; dropped", "survivor", shows=2)
    verdicts = [Verdict(*place, "mismatch", "test_x"), Verdict(*place, "equivalent"), reset]
    table = mutation_report.table(verdicts).splitlines()
    assert [line.split()[:2] for line in table[1:]] == [
        ["seq", "2"],
        ["dropped", "resets"],
        ["all", "3"],
    ]
    assert mutation_report.summary(verdicts).startswith("1 of 2 mutants noticed (50.0 %), 100.0 %")

    path = tmp_path / "mutation.json"
    mutation_report.MutationReport("one", "", "s", [1], "a16", "", 1.0, 3, {}, verdicts).write(path)
    written = json.loads(path.read_text(encoding="utf-8"))
    assert (
        written["digest"] == "one" and [Verdict(**one) for one in written["verdicts"]] == verdicts
    )


# --------------------------------------------------------------------------------------------------
# Common sources
# --------------------------------------------------------------------------------------------------
def test_changes_of_a_module_of_python() -> None:
    """Numbers and operators; not what stands in errors and annotations, nor lengths that follow."""
    text = """'Three 3.'\nA = 1 << 4\n\n
def f(x: '4') -> bool:
    if x < 2.5:
        raise ValueError(3)
    x.reshape(8, -1)
    return True
"""
    found = [(each.line, each.what) for each in mutation_common.changes("a.py", text)]
    assert sorted(found) == [
        (2, "1 -> 2"),
        (2, "1 << 4 -> (1 >> 4)"),
        (2, "4 -> 5"),
        (6, "2.5 -> 3.5"),
        (6, "x < 2.5 -> (x <= 2.5)"),
        (8, "8 -> 9"),
        (9, "True -> False"),
    ]
    for each in mutation_common.changes("a.py", text):
        compile(each.text, "a.py", "exec")


def test_every_common_module_and_witness_is_there() -> None:
    """An unknown one is told with near ones."""
    changes = mutation_common.all_changes()
    assert {each.file for each in changes} == {*mutation_common.WITNESSES}
    for files in (*mutation_common.WITNESSES.values(), mutation_common.INTERFACES):
        assert all((RTL.parent / file).exists() for file in files)


@pytest.mark.parametrize(("what", "who"), [("1 -> 2", "::test_constants_are"), ("0 -> 1", "")])
def test_a_change_is_noticed_or_not(
    what: str, who: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a copy of the tree; of what nobody asks for nobody is told."""
    file = "golden/tables.py"
    constants = mutation_common.WITNESSES[file][:1]
    monkeypatch.setattr(mutation_common, "WITNESSES", {file: constants})
    text = (ROOT / file).read_text(encoding="utf-8") + "\n_UNUSED = [0]\n"
    found = [each for each in mutation_common.changes(file, text) if each.what == what]
    noticed = mutation_common.noticed_by(found[0 if who else -1], tmp_path / "tree")
    assert (bool(noticed), who in noticed) == (bool(who), True)
