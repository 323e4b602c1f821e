# SPDX-License-Identifier: Apache-2.0
"""Runs the netlist of a top beside its RTL: every output is compared in every cycle.

The netlist is that of `make synth`: LUTs, carry chains, flip-flops, multipliers and memories, here
flattened and written as plain Verilog. The chip stays what the bench tests, bound to its modules by
name; the netlist stands beside it, in a checker that is bound into the top, gets the same inputs,
and says which output differs in which cycle. Both begin with zeros in every register and memory, so
that data which no valid goes with, and registers that no reset reaches, are compared as well.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import ClassVar

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from dev import synth, yosys
from dev.yosys import SynthesisError
from npu.commands import progress
from spec.configurations import CHIPS
from spec.paths import BUILD, HDL, REPORTS, ROOT
from tb.run import build, registry, runner, sources

TEMPLATES = HDL / "lockstep"
FOLDER = BUILD / "lockstep"
REPORT = REPORTS / "lockstep.json"
CHIP = CHIPS["a4"]
BLOCK = synth.SynthBlock(CHIP.name, "npu_top", CHIP.parameters)
RUNS = ("test_gpt2_block_token", "test_dependent_filled")
"""A block of GPT-2 on one token; 50 random programs."""
FAULTS = 20
"""LUTs that can be made wrong."""
LEAST_SEEN = 5
"""So many of them the shortest of the runs must see; some are of engines that it does not use."""
CELLS = """
module CARRY4(
  output [3:0] CO, O,
  input CI, CYINIT,
  input [3:0] DI, S
);
  assign O = S ^ {CO[2:0], CI | CYINIT};
  assign CO = (S & {CO[2:0], CI | CYINIT}) | (~S & DI);
endmodule
"""
"""The carry chain of the target, plainly; a LUT, a flip-flop and a multiplier are expressions."""
SCRIPT = f"""
read_rtlil {{mapped}}
hierarchy -top {{top}}
flatten -noscopeinfo
chtype -set $mul t:{synth.DSP}
techmap -map {{folder}}/cells.v
opt_clean -purge
setundef -zero -init
rename {{top}} {{netlist}}
design -save flat
splitnets
opt_clean -purge
write_verilog -noattr {{folder}}/netlist.v
design -load flat
rename -hide w:* i:* %d o:* %d
write_verilog -noattr {{folder}}/short.v
"""
"""The same netlist twice. Verilator sees loops in vectors where there are none, and gets a wire for
each bit; Icarus takes minutes for long names, and gets vectors that are numbered."""
_PORT = re.compile(r"^  (input|output) (\[\d+:0\])? ?(\w+);$", re.M)
_LUT = re.compile(r"^(  assign \S+ += )(\d+'h[0-9a-f]+ >> \{ .*\});$", re.M)
_CHOICE = """  integer fault;
  initial if (!$value$plusargs("netlist_fault=%d", fault)) fault = 0;
"""
_DIFFERENCE = re.compile(r"Same_\w+_A: (cycle \d+: .*)")
_DONE = re.compile(r"^lockstep: (\d+) cycles, (\d+) outputs$", re.M)


@dataclass(frozen=True)
class NetlistPort:
    """A port of a netlist; `range` is Verilog's, "" for one bit."""

    name: str
    is_input: bool
    range: str


@dataclass(frozen=True)
class Netlist:
    """A netlist as plain Verilog: with the names of the source, bit by bit, and with numbers."""

    named: str
    short: str


def ports(text: str) -> list[NetlistPort]:
    """Return the ports of the one module of a netlist."""
    return [NetlistPort(name, kind == "input", bits) for kind, bits, name in _PORT.findall(text)]


def module_of(top: str) -> str:
    """Return what the netlist of a module is called, so that both can be in one simulation."""
    return f"{top}_netlist"


def checker(text: str, top: str) -> str:
    """Return the SystemVerilog that has a netlist beside its RTL and compares their outputs.

    Args:
        text: of the netlist.
        top: the module that it is of.

    Raises:
        SynthesisError: it has no output, so that nothing would be compared.
    """
    found = ports(text)
    outputs = [port for port in found if not port.is_input]
    if not outputs:
        raise SynthesisError(f"the netlist of {top} has no output")
    return filled("lockstep.sv.j2", top=top, netlist=module_of(top), ports=found, outputs=outputs)


def filled(template: str, **values: object) -> str:
    """Return a template of `tb/hdl/lockstep` with values."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,
    )
    return environment.get_template(template).render(**values)


def write_netlist(block: synth.SynthBlock, paths: Sequence[Path], folder: Path) -> Netlist:
    """Synthesise a block as `make synth` does; return its netlist as plain Verilog.

    Nothing is done again that was done with the same sources.

    Args:
        block: to be synthesised.
        paths: sources, of which it takes what it needs.
        folder: below the root of the tree, for what is made.

    Raises:
        SynthesisError: the block was refused.
    """
    with progress.step(f"synthesising {block.top} for {block.name} (1 minute)"):
        synth.synthesise(block, paths, folder)
    own = synth.place(block, folder)
    export = own / "export"
    export.mkdir(exist_ok=True)
    (export / "cells.v").write_text(CELLS, encoding="utf-8")
    mapped = own / "mapped.il"
    script = SCRIPT.format(
        mapped=mapped.relative_to(ROOT),
        top=block.top,
        netlist=module_of(block.top),
        folder=export.relative_to(ROOT),
    )

    def make() -> dict[str, bool]:
        yosys.run(script, export)
        return {"written": True}

    with progress.step(f"writing the netlist of {block.name}"):
        yosys.kept(export / "result.json", yosys.digest(script + CELLS, [mapped]), make)
    named, short = ((export / name).read_text("utf-8") for name in ("netlist.v", "short.v"))
    return Netlist(named, short)


@dataclass(frozen=True)
class LockstepConfiguration(build.Configuration):
    """The bench with a netlist beside the chip; `beside` are netlist and checker."""

    takes: ClassVar[str] = "5 to 10 minutes"

    @property
    def folder(self) -> Path:
        """Where the model is built."""
        return FOLDER / "model"

    @property
    def options(self) -> list[str]:
        """Registers and memories begin with zeros, those of the RTL as well."""
        return [*super().options, "--x-initial", "0"]

    def repeat(self, test: str, seed: int) -> list[str]:
        """Return the words of the command that runs a test on such a model again."""
        return ["make", "lockstep", f"TESTCASE={test}", f"SEED={seed}"]


def prepared(netlist: str) -> LockstepConfiguration:
    """Return the model that has a netlist beside the chip, with the files that it is built from.

    Args:
        netlist: its text.

    Raises:
        SynthesisError: the netlist has no outputs.
    """
    folder = FOLDER / "beside"
    folder.mkdir(parents=True, exist_ok=True)
    files = {"netlist.v": netlist, "lockstep.sv": checker(netlist, BLOCK.top)}
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    waiver = TEMPLATES / "netlist.vlt"
    beside = (waiver, *(folder / name for name in files))
    return LockstepConfiguration(chip=CHIP, beside=beside)


def with_faults(netlist: str, count: int = FAULTS) -> str:
    """Return a netlist that has faults, of which a plusarg of the simulation turns one on.

    With +netlist_fault=3 the third of some LUTs, drawn from all over the netlist, says the opposite
    of what it should; without it none does, and the netlist is the one that was given. So one model
    shows both that nothing differs and that a difference is seen.

    Args:
        netlist: its text.
        count: LUTs that can be wrong, numbered from 1.

    Raises:
        SynthesisError: it has fewer LUTs.
    """
    luts = list(_LUT.finditer(netlist))
    if len(luts) < count:
        raise SynthesisError(f"given a netlist of {len(luts)} LUTs, allowed {count} at least")
    parts, end = [], 0
    for number in range(1, count + 1):
        lut = luts[(2 * number - 1) * len(luts) // (2 * count)]
        parts.append(f"{netlist[end : lut.start()]}{lut[1]}({lut[2]}) ^ (fault == {number});")
        end = lut.end()
    parts.append(netlist[end:])
    head, ports_end, body = "".join(parts).partition(");\n")
    return f"{head}{ports_end}{_CHOICE}{body}"


@dataclass(frozen=True)
class Comparison:
    """How a run beside the netlist ended.

    Attributes:
        test: its name.
        result: of the test, which fails with the first difference.
        cycles: in which outputs were compared.
        outputs: that were compared.
    """

    test: str
    result: runner.TestResult
    cycles: int
    outputs: int

    @property
    def same(self) -> bool:
        """Whether the test passed, and something was compared."""
        return self.result.passed and self.cycles > 0

    @property
    def run(self) -> LockstepRun:
        """The run as the report has it."""
        reason = "" if self.same else self.difference or self.result.message or "no comparison"
        return LockstepRun(self.test, self.outputs, self.cycles, reason)

    @property
    def difference(self) -> str:
        """What the checker says of the first difference, "" if there is none."""
        found = _DIFFERENCE.search(self.result.message)
        return found[1] if found else ""

    def __str__(self) -> str:
        if self.same:
            return f"same    {self.test}: {self.outputs} outputs in {self.cycles:,} cycles"
        return f"DIFFERS {self.test}: {self.run.difference}"


def compare(
    configuration: LockstepConfiguration, name: str, seed: int = 1, fault: int = 0
) -> Comparison:
    """Run a test by name on a built model; see what was compared.

    Args:
        configuration: the model.
        name: of the test.
        seed: of all its random choices.
        fault: of `with_faults`, 0 for none.

    Raises:
        registry.UnknownTestError: no test is called so.
    """
    (test,) = registry.select([name], registry.discover())
    place = FOLDER / "runs" / f"{configuration.folder.name}-{name}-{seed}-{fault}"
    plusargs = (f"netlist_fault={fault}",) if fault else ()
    job = runner.Job(test, configuration, seed, place=place, plusargs=plusargs)
    result = runner.run(job)
    log = (place / runner.LOG).read_text(encoding="utf-8", errors="replace")
    done = _DONE.search(log)
    cycles, outputs = (int(done[1]), int(done[2])) if done else (0, 0)
    return Comparison(name, result, cycles, outputs)


@dataclass(frozen=True, slots=True)
class LockstepRun:
    """What was compared in a run; `difference` is the first one, "" if there is none."""

    test: str
    outputs: int
    cycles: int
    difference: str


@dataclass(frozen=True, slots=True)
class LockstepReport:
    """All of `make lockstep`.

    Attributes:
        digest: of RTL and tests.
        chip: whose netlist it is.
        runs: beside the netlist.
        planted: faults of the netlist that were tried.
        seen: how many of them were.
        icarus: what the program on the netlist alone said, "" where it did not run.
    """

    digest: str
    chip: str
    runs: list[LockstepRun]
    planted: int
    seen: int
    icarus: str

    @property
    def same(self) -> bool:
        """Whether nothing differs."""
        return all(run.cycles > 0 and not run.difference for run in self.runs)

    def write(self) -> None:
        """Write it for the page of results."""
        REPORT.parent.mkdir(parents=True, exist_ok=True)
        REPORT.write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")


def faults_seen(configuration: LockstepConfiguration) -> list[Comparison]:
    """Return the runs in which a planted fault is seen as a difference, of the shortest test."""
    numbers = range(1, FAULTS + 1)
    tried = [compare(configuration, RUNS[0], fault=number) for number in numbers]
    return [found for found in tried if found.difference]


def write_netlist_of_chip() -> Netlist:
    """Return the netlist of the chip.

    Raises:
        SynthesisError: yosys refused it, or is not there.
    """
    return write_netlist(BLOCK, sources.rtl_sources(), FOLDER)
