# SPDX-License-Identifier: Apache-2.0
"""The proofs of `make formal`: the table fits the design, a few hold, faults are refuted."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.needs import needs

needs("synth")

from dev import formal
from dev.yosys import SynthesisError
from npu.commands.arguments import UsageError
from spec.paths import RTL
from tb.run import build

QUICK = ("fifo", "skid_buffer", "axil_slave.BStays_A", "cop_reader")


def test_every_assertion_has_an_entry_and_every_entry_an_assertion() -> None:
    """What no entry names would be proved by nobody."""
    labels = {
        f"{path.stem.removeprefix('formal_')}.{label}"
        for path in formal.CHECKERS.glob("*.sv")
        for label in re.findall(r"(\w+_A) :\s+assert", path.read_text(encoding="utf-8"))
    }
    proofs = [proof.name for proof in formal.all_proofs()]
    assert labels == set(proofs) and len(proofs) == len(labels) >= 40


def test_every_fault_is_a_line_of_the_design() -> None:
    """Its text stands in its file once; what takes its place is something else."""
    for proof in formal.all_proofs():
        text = (RTL / proof.file).read_text(encoding="utf-8")
        assert text.count(proof.before) == 1 and proof.before != proof.after, proof.name


def test_some_hold_and_their_faults_are_refuted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that take no time; all of them are in the suite of `make regress`."""
    build.generate()
    folder = formal.FOLDER.with_name(f"formal-{tmp_path.name}")
    monkeypatch.setattr(formal, "FOLDER", folder)
    verdicts = formal.prove(formal.chosen(QUICK), 1, lambda _: None)
    assert len(verdicts) == 9 and all(verdict.holds for verdict in verdicts), verdicts


def test_what_does_not_hold_is_told_with_its_cycle(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault in place of the design, and a fault that is none."""
    build.generate()
    (proof,) = formal.chosen(["fifo.Room_A"])
    folder = formal.FOLDER / proof.top / "wrong"
    files = formal._with_fault(proof, formal._files(proof.top), folder)
    formal._netlists(proof.top, [proof], files, folder)
    said = formal._decide(folder / f"{proof.assertion}.aig")
    assert re.fullmatch(r"refuted in cycle \d+: build/formal/formal_fifo/wrong/Room_A.txt", said)
    trace = (folder / f"{proof.assertion}.txt").read_text(encoding="utf-8")
    assert re.search(r"^cycle 1: .*\bvalid_i=0x1\b", trace, re.M), trace
    harmless = formal.FormalProof(**{**vars(proof), "after": f"{proof.before} // the same"})
    monkeypatch.setattr(formal, "_kept", lambda p, files: vars(formal._verdict(p, files)))
    (verdict,) = formal.prove([harmless], 1, lambda _: None)
    assert verdict.verdict == "its fault is not refuted: proved" and not verdict.holds


def test_a_proof_that_is_not_decided_is_none() -> None:
    """What ABC says nothing of is told as such, with its log."""
    folder = formal.FOLDER / "odd"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "Odd_A.aig").write_text("no netlist", encoding="utf-8")
    said = formal._decide(folder / "Odd_A.aig")
    assert said == "not decided: build/formal/odd/Odd_A.log"
    assert not formal.ProofVerdict("odd.Odd_A", said, 0.0).holds


def test_names_that_are_none_are_refused() -> None:
    """With those that are near, and a table with what an entry lacks."""
    with pytest.raises(UsageError, match="no proof is called 'axi_reed'; near: axi_read"):
        formal.chosen(["axi_reed"])
    assert {proof.block for proof in formal.chosen(["fifo", "axi_read"])} == {"fifo", "axi_read"}
    with pytest.raises(SynthesisError, match=r"proofs.toml: fifo.Order_A: .*'after'"):
        formal.table('[fifo.Order_A]\nsays = "x"\nfile = "x"\nbefore = "x"\n')


def test_what_does_not_hold_after_every_step_is_not_proved_by_induction() -> None:
    """An assertion that is true, but not of whatever state it is true of."""
    (proof,) = formal.chosen(["fifo.Order_A"])
    folder = formal.FOLDER / proof.top / "induction"
    build.generate()
    folder.mkdir(parents=True, exist_ok=True)
    formal._netlists(proof.top, [proof], formal._files(proof.top), folder)
    assert formal._decide(folder / f"{proof.assertion}.aig") == "proved"
    said = formal._decide(folder / f"{proof.assertion}.aig", induction=True)
    assert said.startswith("not decided")
