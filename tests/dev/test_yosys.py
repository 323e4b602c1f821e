# SPDX-License-Identifier: Apache-2.0
"""How scripts of yosys run, and how their results are kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from dev import synth, yosys
from tests.needs import needs

needs("synth")


def test_a_script_runs_and_its_log_is_kept(tmp_path: Path) -> None:
    """The log is what it printed."""
    log = yosys.run("log what it says\n", tmp_path)
    assert "\nwhat it says\n" in log
    assert (tmp_path / "log.txt").read_text(encoding="utf-8") == log


def test_what_yosys_refuses_is_the_error(tmp_path: Path) -> None:
    """Not that a process ended."""
    with pytest.raises(yosys.SynthesisError, match=r"^ERROR: No such command: nothing_such"):
        yosys.run("nothing_such\n", tmp_path)


def test_a_warning_is_a_finding_unless_it_is_waived(tmp_path: Path) -> None:
    """A part of its line waives it, for this run only."""
    script = "read_verilog <<EOT\nmodule m(output y); assign y = z; endmodule\nEOT\n"
    with pytest.raises(yosys.SynthesisError, match=r"Warning: Identifier `\\z' is implicitly"):
        yosys.run(script, tmp_path)
    yosys.run(script, tmp_path, waived=("is implicitly declared",))


def test_planted_faults_are_refused() -> None:
    """Latches, loops and the others, and the module whose figures are known."""
    synth.check_planted()


def test_figures_are_kept_as_long_as_nothing_changes(tmp_path: Path) -> None:
    """A text and the contents of the files decide."""
    source, result = tmp_path / "a.sv", tmp_path / "own" / "result.json"
    source.write_text("module a; endmodule\n", encoding="utf-8")
    made: list[int] = []

    def figures(text: str) -> tuple[int, bool]:
        def make() -> dict[str, int]:
            made.append(len(made))
            return {"number": made[-1]}

        found, kept = yosys.kept(result, yosys.digest(text, [source]), make)
        return found["number"], kept

    assert figures("script") == (0, False)
    assert figures("script") == (0, True)
    assert figures("another") == (1, False)
    source.write_text("module b; endmodule\n", encoding="utf-8")
    assert figures("another") == (2, False)


def test_nothing_is_kept_of_what_fails(tmp_path: Path) -> None:
    """Nor are figures of an earlier run: they are of other inputs."""
    result = tmp_path / "result.json"
    yosys.kept(result, "before", lambda: {"lut": 1})

    def refuse() -> dict[str, int]:
        raise yosys.SynthesisError("a latch")

    with pytest.raises(yosys.SynthesisError, match="a latch"):
        yosys.kept(result, "after", refuse)
    assert yosys.kept(result, "before", lambda: {"lut": 2}) == ({"lut": 2}, False)
