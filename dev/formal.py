# SPDX-License-Identifier: Apache-2.0
"""Proofs of control and protocols for all time: property-directed reachability on netlists.

A module of `tb/hdl/formal` has a block of the design, unchanged, with free inputs, says what its
surroundings keep to (`assume`) and what the block must (`assert`). Yosys turns it into gates with
one output for each assertion, ABC's `pdr` finds an invariant that holds it down for ever, from
reset on, or inputs that break it. One that contains its invariant is proved by induction.
`tb/hdl/formal/proofs.toml` says of each assertion what it means, and has a fault that must refute
it.
"""

from __future__ import annotations

import json
import re
import subprocess
import time
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path

from dev import yosys
from dev.yosys import SynthesisError
from npu.commands.arguments import UsageError
from spec.paths import BUILD, HDL, REPORTS, ROOT
from tb.run import sources

CHECKERS = HDL / "formal"
TABLE = CHECKERS / "proofs.toml"
FOLDER = BUILD / "formal"
REPORT = REPORTS / "formal.json"
SECONDS = 100
"""A proof that takes more is not counted as one."""

SCRIPT = """
read_slang --threads 1 --top {top} {files}
prep -top {top} -flatten
memory_map -formal
async2sync
chformal -lower
opt -full
dffunmap
setundef -undriven -anyseq
techmap
opt -fast
dffunmap
opt_clean
design -save all
{outputs}
"""
OUTPUT = """
design -load all
delete t:$assert {top}/{assertion} %d
opt_clean
aigmap
opt_clean
write_aiger -I -B -zinit -no-startoffset -map {folder}/{assertion}.map {folder}/{assertion}.aig
"""
"""Registers that no reset reaches begin with anything."""
WAIVED = ("like $anyseq",)
"""The backend's word for inputs."""
PROVED, REFUTED = "Property proved", "was asserted in frame"
FRAMES = 30
"""Cycles from the beginning that are looked at in front of an induction, which takes one."""
REACHABILITY = f"pdr -T {SECONDS}"
INDUCTION = f"bmc3 -T {SECONDS} -F {FRAMES}; ind -T {SECONDS} -F 2"
BEGINS, STEPS = f"No output asserted in {FRAMES} frames", "Networks are equivalent"
"""What ABC says of an induction."""
NO_REGISTERS, CONSTANT = re.compile(r"lat =\s+0\b"), "UNSATISFIABLE"
"""What ABC says of a netlist that `scorr` has made a constant, which `pdr` does not decide."""


@dataclass(frozen=True)
class FormalProof:
    """An assertion of a checker.

    Attributes:
        top: the checker's module.
        assertion: its label there.
        says: what it means.
        file: of the design, where the fault is planted, under rtl/.
        before, after: the text that the fault changes, and into what.
        induction: whether it contains all that it takes: holds after every step if before.
    """

    top: str
    assertion: str
    says: str
    file: str
    before: str
    after: str
    induction: bool = False

    @property
    def block(self) -> str:
        """What the checker is called."""
        return self.top.removeprefix("formal_")

    @property
    def name(self) -> str:
        """What it is called: checker and assertion."""
        return f"{self.block}.{self.assertion}"


@dataclass(frozen=True)
class ProofVerdict:
    """What became of a proof.

    Attributes:
        proof: its name.
        verdict: "proved"; else why it is not one.
        seconds: of ABC, for the proof and for the refutation of its fault.
    """

    proof: str
    verdict: str
    seconds: float

    def __str__(self) -> str:
        return f"{self.proof:32} {self.seconds:7.1f}  {self.verdict}"

    @property
    def holds(self) -> bool:
        """Whether it is proved, and its fault refuted."""
        return self.verdict == "proved"


def table(text: str) -> list[FormalProof]:
    """Return the proofs of a table as `proofs.toml` has it.

    Raises:
        SynthesisError: an entry lacks a field or has another one.
    """
    found = []
    for top, entries in tomllib.loads(text).items():
        for assertion, fields in entries.items():
            try:
                found.append(FormalProof(f"formal_{top}", assertion, **fields))
            except TypeError as error:
                raise SynthesisError(f"{TABLE.name}: {top}.{assertion}: {error}") from None
    return found


def all_proofs() -> list[FormalProof]:
    """Return the proofs of the tree."""
    return table(TABLE.read_text(encoding="utf-8"))


def chosen(names: Sequence[str]) -> list[FormalProof]:
    """Return the proofs that are named, or whose checker is; all without a name.

    Raises:
        UsageError: a name is neither.
    """
    everything = all_proofs()
    known = {proof.name for proof in everything} | {proof.block for proof in everything}
    for name in names:
        if name not in known:
            near = ", ".join(get_close_matches(name, sorted(known))) or "see docs/formal.md"
            raise UsageError(f"no proof is called {name!r}; near: {near}")
    return [p for p in everything if not names or p.name in names or p.block in names]


def write_report(verdicts: Sequence[ProofVerdict]) -> None:
    """Write what became of all proofs."""
    REPORT.parent.mkdir(parents=True, exist_ok=True)
    rows = [asdict(verdict) for verdict in verdicts]
    REPORT.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def _abc() -> Path:
    spec = find_spec("pyosys")
    if spec is None or spec.origin is None:
        yosys.tool_version()  # says how it is installed
        raise SynthesisError("pyosys has no folder")
    return Path(spec.origin).parent / "yosys-abc"


def _netlists(top: str, proofs: Iterable[FormalProof], files: Sequence[Path], folder: Path) -> None:
    """Write a netlist for each assertion, whose output is 1 where it does not hold."""
    outputs = "".join(
        OUTPUT.format(top=top, assertion=proof.assertion, folder=folder.relative_to(ROOT))
        for proof in proofs
    )
    names = " ".join(str(path.relative_to(ROOT)) for path in files)
    yosys.run(SCRIPT.format(top=top, files=names, outputs=outputs), folder, WAIVED)


def _readable(trace: Path, names: Path) -> str:
    """Return a counterexample with a line for each cycle: the checker's inputs that are not 0."""
    inputs = re.findall(r"^input (\d+) (\d+) (\S+)$", names.read_text(encoding="utf-8"), re.M)
    known = {int(place): (name, int(bit)) for place, bit, name in inputs}
    cycles: dict[int, dict[str, int]] = {}
    values = re.findall(r"^pi0*(\d+)@(\d+)=([01])$", trace.read_text(encoding="utf-8"), re.M)
    for place, cycle, value in values:
        row = cycles.setdefault(int(cycle), {})
        name, bit = known.get(int(place), ("", 0))
        if name and value == "1":
            row[name] = row.get(name, 0) | 1 << bit
    return "".join(
        f"cycle {cycle}: {' '.join(f'{name}={value:#x}' for name, value in row.items())}\n"
        for cycle, row in sorted(cycles.items())
    )


def _decide(netlist: Path, induction: bool = False) -> str:
    """Return what ABC says: "proved", "refuted in cycle N", or why it does not know."""
    how = INDUCTION if induction else REACHABILITY
    trace = netlist.with_suffix(".txt")
    commands = (
        f"read_aiger {netlist.relative_to(ROOT)}; fold; strash; scorr; print_stats; "
        f"{how}; write_cex -n {trace.relative_to(ROOT)}; sat"
    )
    done = subprocess.run(
        [str(_abc()), "-c", commands], cwd=ROOT, capture_output=True, text=True, check=False
    )
    netlist.with_suffix(".log").write_text(done.stdout + done.stderr, encoding="utf-8")
    if PROVED in done.stdout or (NO_REGISTERS.search(done.stdout) and CONSTANT in done.stdout):
        return "proved"
    if induction and BEGINS in done.stdout and STEPS in done.stdout:
        return "proved"
    frame = re.search(rf"{REFUTED} (\d+)", done.stdout)
    if frame is not None:
        trace.write_text(_readable(trace, netlist.with_suffix(".map")), encoding="utf-8")
        return f"refuted in cycle {frame[1]}: {trace.relative_to(ROOT)}"
    return f"not decided: {netlist.with_suffix('.log').relative_to(ROOT)}"


def _files(top: str) -> list[Path]:
    return sources.closure(top, [*sources.rtl_sources(), *sorted(CHECKERS.glob("*.sv"))])


def _with_fault(proof: FormalProof, files: Sequence[Path], folder: Path) -> list[Path]:
    """Return the files with the fault of a proof in a copy of one of them.

    Raises:
        SynthesisError: the text that it changes is not there once.
    """
    path = ROOT / "rtl" / proof.file
    text = path.read_text(encoding="utf-8")
    if path not in files or text.count(proof.before) != 1:
        raise SynthesisError(
            f"{proof.name}: {proof.file} is of {proof.top} and has the text once: {proof.before!r}"
        )
    folder.mkdir(parents=True, exist_ok=True)
    changed = folder / path.name
    changed.write_text(text.replace(proof.before, proof.after), encoding="utf-8")
    return [changed if one == path else one for one in files]


def _verdict(proof: FormalProof, files: Sequence[Path]) -> ProofVerdict:
    """Decide a proof whose netlist is there, and whether its fault is refuted."""
    started = time.monotonic()
    said = _decide(FOLDER / proof.top / f"{proof.assertion}.aig", proof.induction)
    if said == "proved":
        folder = FOLDER / proof.top / f"{proof.assertion}-planted"
        _netlists(proof.top, [proof], _with_fault(proof, files, folder), folder)
        refuted = _decide(folder / f"{proof.assertion}.aig", proof.induction)
        if not refuted.startswith("refuted"):
            said = f"its fault is not refuted: {refuted}"
    return ProofVerdict(proof.name, said, round(time.monotonic() - started, 1))


def _kept(proof: FormalProof, files: Sequence[Path]) -> Mapping[str, object]:
    key = yosys.digest(f"{SCRIPT}{OUTPUT}{proof}", files)
    result = FOLDER / proof.top / f"{proof.assertion}.json"
    return yosys.kept(result, key, lambda: asdict(_verdict(proof, files)))[0]


def prove(
    proofs: Sequence[FormalProof], jobs: int, say: Callable[[ProofVerdict], None]
) -> list[ProofVerdict]:
    """Decide proofs; one that was decided on the same files is not decided again.

    Args:
        proofs: in any order.
        jobs: so many at once.
        say: is told of each as it comes.

    Raises:
        SynthesisError: a checker or the design cannot be read, or a planted fault not planted.
    """
    tops = dict.fromkeys(proof.top for proof in proofs)
    files = {top: _files(top) for top in tops}
    for top in tops:
        _netlists(top, [p for p in proofs if p.top == top], files[top], FOLDER / top)

    def decide(proof: FormalProof) -> ProofVerdict:
        found = ProofVerdict(**_kept(proof, files[proof.top]))  # type: ignore[arg-type]
        say(found)
        return found

    with ThreadPoolExecutor(max_workers=jobs) as pool:
        return list(pool.map(decide, proofs))
