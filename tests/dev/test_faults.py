# SPDX-License-Identifier: Apache-2.0
"""Faults become choices at run time, many in one file; those that cannot be chosen are refused."""

from __future__ import annotations

import json
from difflib import unified_diff
from pathlib import Path

import pytest
from pyslang import DiagnosticEngine
from pyslang.driver import Driver

from dev import fault_merge, faults
from dev.sv_source import SvSource, constant_functions
from spec.configurations import USUAL
from spec.paths import ROOT, RTL
from tb.run import build, runner
from tb.run.sources import rtl_sources

MODULE = """
module m (
  input logic clk_i,
  input logic [7:0] a_i,
  output logic [7:0] y_o
);
  localparam int unsigned Width = 8;
  logic [7:0] q;
  logic en;
  function automatic logic [7:0] half(logic [7:0] x);
    if (x == '0) return 8'd1;
    return x >> 1;
  endfunction
  assign y_o = q + a_i;  // the sum
  always_ff @(posedge clk_i) begin
    if (en) q <= a_i;
    else if (a_i[0]) q <= half(a_i);
    else q <= '0;
  end
  n u_n (
    .clk_i,
    .en_i(en),
    .y_o ()
  );
endmodule
"""


def _merged(*changes: tuple[str, str], text: str = MODULE) -> str | None:
    """Return the merged text, blanks reduced; fault n replaces its first text by the second."""
    original = SvSource(text)
    constant = constant_functions([original])
    edits = []
    for number, (old, new) in enumerate(changes, 1):
        assert text.count(old) == 1
        changed = SvSource(text.replace(old, new))
        found = fault_merge.differences(original, changed, number, constant)
        if found is None:
            return None
        edits += found
    merged = original.edited(edits)
    assert not SvSource(merged).is_broken
    return " ".join(merged.split())


def _contains(merged: str | None, part: str) -> bool:
    return merged is not None and " ".join(part.split()) in merged


def test_nothing_changed() -> None:
    """Comments and blanks are no difference; connections by name only are written out."""
    merged = _merged(("  // the sum", ""), ("y_o = q", "y_o  =  q"))
    assert merged == " ".join(MODULE.replace(".clk_i,\n    .en", ".clk_i(clk_i),\n    .en").split())


MERGES: dict[str, tuple[tuple[tuple[str, str], ...], str]] = {
    # Neither side gives the other its width or sign, as the operands of `?:` would.
    "an assignment is chosen whole": (
        (("q + a_i", "32'(q) >>> 1"),),
        """
        always_comb /* assign */ begin if (npu_fault_pkg::fault == 1) begin
        y_o = 32'(q) >>> 1; end else begin y_o = q + a_i; end end // the sum
        """,
    ),
    # The `else` behind a choice is still that of the `if` in front of it.
    "a statement keeps its else": (
        (("q <= a_i", "q <= ~a_i"),),
        """
        if (en) begin if (npu_fault_pkg::fault == 1) begin q <= ~a_i; end
        else begin q <= a_i; end end
        else if (a_i[0])
        """,
    ),
    # What stands behind the `else` in front of it is another statement.
    "a dropped branch": (
        (("else if (a_i[0]) q <= half(a_i);", ""),),
        """
        if (en) q <= a_i;
        else begin if (npu_fault_pkg::fault == 1) begin q <= '0; end
        else begin if (a_i[0]) q <= half(a_i); else q <= '0; end end
        """,
    ),
    # In a function too, which goes on with the next one.
    "a dropped statement": (
        (("if (x == '0) return 8'd1;", ""),),
        """
        begin if (npu_fault_pkg::fault == 1) begin end
        else begin if (x == '0) return 8'd1; end end return x >> 1;
        """,
    ),
    # It comes behind the one that it stands behind.
    "an added statement": (
        (("    else q <= '0;\n", "    else q <= '0;\n    en <= 1'b1;\n"),),
        "else q <= '0; if (npu_fault_pkg::fault == 1) begin en <= 1'b1; end end",
    ),
    # The original of one is the choice between the original and the other.
    "two faults of one line": (
        (("q + a_i", "q"), ("q + a_i", "a_i")),
        """
        always_comb /* assign */ begin if (npu_fault_pkg::fault == 1) begin y_o = q; end else begin
        begin if (npu_fault_pkg::fault == 2) begin y_o = a_i; end else begin y_o = q + a_i; end end
        end end
        """,
    ),
    # A choice in one branch of a statement that is chosen as a whole.
    "a fault inside of another one's statement": (
        (("if (en) q", "if (!en) q"), ("half(a_i);", "a_i;")),
        """
        end else begin if (en) q <= a_i; else if (a_i[0])
        begin if (npu_fault_pkg::fault == 2) begin q <= a_i; end else begin q <= half(a_i); end end
        else q <= '0; end end
        """,
    ),
    # By its name or by name only; the choice stands in the parentheses.
    "the connection of an input": (
        ((".clk_i,\n    .en", ".clk_i(clk_i && en),\n    .en"), (".en_i(en)", ".en_i(1'b0)")),
        """
        .clk_i(((npu_fault_pkg::fault == 1) ? (clk_i && en) : (clk_i))),
        .en_i(((npu_fault_pkg::fault == 2) ? (1'b0) : (en))),
        """,
    ),
}
"""Changes of the module, and what its merged text then contains."""


@pytest.mark.parametrize("what", MERGES)
def test_a_fault_is_a_choice(what: str) -> None:
    """Between the original and what was changed, so small that nothing around it changes."""
    changes, part = MERGES[what]
    assert _contains(_merged(*changes), part)


def test_an_added_register() -> None:
    """Declaration and process are just added; what they are used for is chosen."""
    process = "logic [7:0] last_q;\n  always_ff @(posedge clk_i) last_q <= a_i;\n"
    merged = _merged(("  assign y_o = q + a_i;", f"  {process}  assign y_o = last_q;"))
    assert _contains(merged, " ".join(process.split()))
    assert _contains(merged, "begin y_o = last_q; end else begin y_o = q + a_i; end")


def test_a_dropped_process() -> None:
    """Its body does nothing."""
    text = MODULE.replace("endmodule", "  always_comb begin\n    en = a_i[1];\n  end\nendmodule")
    assert _contains(
        _merged(("  always_comb begin\n    en = a_i[1];\n  end\n", ""), text=text),
        "always_comb begin if (npu_fault_pkg::fault == 1) begin end else begin begin en",
    )


@pytest.mark.parametrize(
    "change",
    [
        ("Width = 8", "Width = 9"),
        ("logic [7:0] q;", "logic [6:0] q;"),
        ("output logic [7:0] y_o", "output logic [6:0] y_o"),
        ("posedge clk_i", "negedge clk_i"),
        (".y_o ()", ".y_o (q)"),
        ("assign y_o = ", "assign q = "),
        ("n u_n", "o u_n"),
        ("  n u_n", "  always_comb en = a_i[3];\n  n u_n"),
        ("  n u_n", "  o u_o (.en_o(en));\n  n u_n"),
        ("y_o = q + a_i;", "y_o = q + ;"),
    ],
    ids=lambda change: change[1].strip(),
)
def test_refused(change: tuple[str, str]) -> None:
    """What is decided before the simulation runs, a second driver, what is no SystemVerilog."""
    assert _merged(change) is None


def test_a_function_of_a_parameter_is_refused() -> None:
    """Also one that such a function calls: it must not depend on a variable."""
    text = MODULE.replace("Width = 8", "Width = twice(4)").replace(
        "  assign",
        "  function automatic int twice(int x);\n    return half(x);\n  endfunction\n  assign",
    )
    assert _merged(("return x >> 1", "return x"), text=text) is None
    assert _merged(("return x >> 1", "return x")) is not None


def test_every_fault_can_be_planted(tmp_path: Path) -> None:
    """Every patch applies and elaborates, and almost all of the chip's share one model."""
    chosen = faults.discover()
    planted = faults.plant(chosen, tmp_path)
    assert planted.errors == {}
    assert len([each for each in planted.alone if not each.block]) < len(chosen) / 10
    assert not any(each.block for each in planted.numbers)
    merged = [*(tmp_path / faults.MERGED).rglob("*.sv")]
    assert [path for path in merged if SvSource(path.read_text(encoding="utf-8")).is_broken] == []
    used = "".join(path.read_text(encoding="utf-8") for path in merged)
    for fault, number in planted.numbers.items():
        assert f"npu_fault_pkg::fault == {number})" in used
        assert f"// {number}: {fault.name}\n" in used
    copies = (faults.MERGED, *(fault.name for fault in planted.alone))
    errors = {name: _errors(tmp_path / name / "rtl") for name in copies}
    assert {name: found for name, found in errors.items() if found} == {}


def _errors(rtl: Path) -> list[str]:
    """Return why slang does not elaborate the chip of a folder: a patch may apply and be stale."""
    driver = Driver()
    driver.addStandardArgs()
    words = ("slang", "--top", "npu_top", *build.Configuration().parameters)
    assert driver.parseCommandLine(" ".join((*words, *map(str, rtl_sources(rtl)))))
    assert driver.processOptions() and driver.parseAllSources()
    compilation = driver.createCompilation()
    found = [each for each in compilation.getAllDiagnostics() if each.isError()]
    return DiagnosticEngine.reportAll(compilation.sourceManager, found).splitlines()


LONG = 200
"""Lines of an RTL file from which on a fault in it must be planted."""


def test_every_long_file_has_a_fault() -> None:
    """What is long enough to hide a mistake has one that a test must notice."""
    patches = "".join(fault.path.read_text(encoding="utf-8") for fault in faults.discover())
    without = [
        str(path.relative_to(ROOT))
        for path in sorted(RTL.rglob("*.sv"))
        if len(path.read_text(encoding="utf-8").splitlines()) > LONG
        and f"+++ b/{path.relative_to(ROOT)}\n" not in patches
    ]
    assert without == []


def _write(folder: Path, text: str) -> None:
    (folder / "01-wrong.patch").write_text(text, encoding="utf-8")


def test_a_stale_patch_is_named(tmp_path: Path) -> None:
    """The others are planted all the same."""
    _write(
        tmp_path,
        "Fault: Is not there.\nTest: test_gemm_random\n\n--- a/rtl/cells/npu_fixed_pkg.sv\n"
        "+++ b/rtl/cells/npu_fixed_pkg.sv\n@@ -1,1 +1,1 @@\n-nothing of the kind\n+something\n",
    )
    chosen = [*faults.discover(tmp_path), *faults.discover()[:2]]
    planted = faults.plant(chosen, tmp_path / "planted")
    (error,) = planted.errors.values()
    assert error.startswith("the patch does not apply: error: patch failed: ")
    assert list(planted.numbers) == chosen[1:]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("Test: test_gemm_random\n", "the first lines must be `Fault: ...` and `Test: ...`"),
        ("Fault: A fault.\nTest:\n", "the first lines must be `Fault: ...` and `Test: ...`"),
        ("Fault: A fault.\nTest: test_nothing\n", "there is no test test_nothing"),
    ],
)
def test_a_bad_header_is_named(tmp_path: Path, text: str, line: str) -> None:
    """Before anything is built."""
    _write(tmp_path, text)
    with pytest.raises(faults.FaultError, match=r"01-wrong\.patch: ") as caught:
        faults.discover(tmp_path)
    assert str(caught.value).endswith(line)


def test_a_fault_may_need_the_long_form(tmp_path: Path) -> None:
    """Its header says so; the form counts for the run without it, too."""
    _write(tmp_path, "Fault: A fault.\nTest: test_dma_random FULL=1\n")
    (fault,) = faults.discover(tmp_path)
    assert (fault.test.name, fault.full) == ("test_dma_random", True)
    assert [one.name for one in faults.discover() if one.full] == ["50-stream-wraps-at-64-mib"]


def _patch_of(old: str, new: str) -> str:
    """Return the patch that replaces a text of a package of the RTL, which is there once."""
    (path,) = [path for path in RTL.rglob("npu_*_pkg.sv") if old in path.read_text("utf-8")]
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1
    before, after = (part.splitlines(keepends=True) for part in (text, text.replace(old, new)))
    name = path.relative_to(ROOT)
    return "".join(unified_diff(before, after, f"a/{name}", f"b/{name}"))


MESSAGES = {"fault=1": "MismatchError", "fault=2": "", "fault=3": "the simulator ended (1)"}
"""How the runs end with their faults."""


def test_verdicts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Noticed is what fails by a check, in a test that passes without the fault.

    Models and runs are made up: of the seven faults two are built alone, and the second of these
    does not build.
    """
    sums = "y = $signed({x, 1'b0}) >>> shift;"
    for number, (change, test) in enumerate(
        [
            ((sums, "y = $signed({x, 1'b0}) << shift;"), "test_gemm_random"),
            ((sums, "y = $signed({x, 1'b1}) >>> shift;"), "test_gemm_random"),
            ((sums, "y = {x, 1'b0};"), "test_gemm_random"),
            ((sums, "y = '1;"), "test_dma_random"),
            (("MaxBurst = 32;", "MaxBurst = 16;"), "test_dma_boundaries"),
            (("MaxBurst = 32;", "MaxBurst = 8;"), "test_dma_boundaries"),
            ((sums, "y = '0;"), "test_cmd_absent"),
        ]
    ):
        header = f"Fault: Number {number}.\nTest: {test}\n\n"
        (tmp_path / f"{number}.patch").write_text(header + _patch_of(*change), encoding="utf-8")
    built: list[str] = []
    ran: list[tuple[str, str, tuple[str, ...]]] = []

    def built_model(configuration: build.Configuration) -> Path:
        built.append(configuration.label)
        if configuration.label == "fault-5":
            raise build.BuildError("no such size")
        return configuration.binary

    def ended(job: runner.Job) -> runner.TestResult:
        ran.append((job.test.name, job.configuration.label, job.plusargs))
        message = MESSAGES.get(job.plusargs[0], "MismatchError") if job.plusargs else ""
        if job.test.name == "test_dma_random":
            message = "it never works"
        return runner.TestResult(job, not message, message, "", 1.0)

    monkeypatch.setattr(build, "build", built_model)
    monkeypatch.setattr(runner, "run", ended)
    monkeypatch.setattr(faults, "PLANTED", tmp_path / "planted")
    said: list[str] = []
    verdicts = faults.run_all(faults.discover(tmp_path), USUAL, 1, 1, said.append)
    assert [(verdict.noticed, verdict.reason) for verdict in verdicts] == [
        (True, "MismatchError"),
        (False, "test_gemm_random passes"),
        (False, "the simulator ended (1)"),
        (False, "test_dma_random fails without it: it never works"),
        (True, "MismatchError"),
        (False, "no such size"),
        (False, "test_cmd_absent is for another chip than a16"),
    ]
    assert built == ["fault-merged", "fault-4", "fault-5"]
    assert ran == [
        ("test_gemm_random", "fault-merged", ()),
        ("test_dma_random", "fault-merged", ()),
        ("test_dma_boundaries", "fault-merged", ()),
        ("test_gemm_random", "fault-merged", ("fault=1",)),
        ("test_gemm_random", "fault-merged", ("fault=2",)),
        ("test_gemm_random", "fault-merged", ("fault=3",)),
        ("test_dma_boundaries", "fault-4", ("fault=0",)),
    ]
    assert "5 faults in one model, 2 built alone" in said
    assert sum("[7/7]" in line for line in said) == 1

    report = tmp_path / "reports" / "faults.json"
    faults.write_report(verdicts, report)
    rows = json.loads(report.read_text(encoding="utf-8"))
    assert [row["fault"] for row in rows] == list("0123456")
    assert rows[1] == {
        "fault": "1",
        "test": "test_gemm_random",
        "noticed": False,
        "reason": "test_gemm_random passes",
        "seconds": 1.0,
    }
