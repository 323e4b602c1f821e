# SPDX-License-Identifier: Apache-2.0
"""Runs the netlist of a top beside its RTL: every output is compared in every cycle.

The netlist is that of `make synth`: LUTs, carry chains, flip-flops, multipliers and memories, here
flattened and written as plain Verilog. The chip stays what the bench tests, bound to its modules by
name; the netlist stands beside it, in a checker that is bound into the top, gets the same inputs,
and says which output differs in which cycle. Both begin with zeros in every register and memory, so
that data which no valid goes with, and registers that no reset reaches, are compared as well.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from dev import synth, yosys
from dev.yosys import SynthesisError
from npu.commands import progress
from spec.configurations import CHIPS
from spec.paths import BUILD, HDL, ROOT
from tb.run import build, registry, runner, sources

TEMPLATES = HDL / "lockstep"
FOLDER = BUILD / "lockstep"
CHIP = CHIPS["a4"]
BLOCK = synth.SynthBlock(CHIP.name, "npu_top", CHIP.parameters)
RUNS = ("test_gpt2_block_token", "test_dependent_straight", "test_dependent_loop")
"""A block of GPT-2 on one token; 30 random programs, and 30 with loops."""
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
splitnets
opt_clean -purge
setundef -zero -init
rename {{top}} {{netlist}}
write_verilog -noattr {{folder}}/netlist.v
"""
"""One wire for each bit: a simulator would see loops in vectors where there are none."""
_PORT = re.compile(r"^  (input|output) (\[\d+:0\])? ?(\w+);$", re.M)
_LUT = re.compile(r"^(  assign (.+?) = \d+'h)([0-9a-f]+)( >> \{ .*\};)$", re.M)
_DONE = re.compile(r"^lockstep: (\d+) cycles, (\d+) outputs$", re.M)


@dataclass(frozen=True)
class NetlistPort:
    """A port of a netlist; `range` is Verilog's, "" for one bit."""

    name: str
    is_input: bool
    range: str


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
    return filled(
        "lockstep.sv.j2", top=top, netlist=module_of(top), ports=found, outputs=outputs
    )


def filled(template: str, **values: object) -> str:
    """Return a template of `tb/hdl/lockstep` with values."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,
    )
    return environment.get_template(template).render(**values)


def write_netlist(block: synth.SynthBlock, paths: Sequence[Path], folder: Path) -> Path:
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

    def make() -> dict[str, str]:
        yosys.run(script, export)
        return {"netlist": "netlist.v"}

    with progress.step(f"writing the netlist of {block.name}"):
        yosys.kept(export / "result.json", yosys.digest(script + CELLS, [mapped]), make)
    return export / "netlist.v"


@dataclass(frozen=True)
class LockstepConfiguration(build.Configuration):
    """The bench with a netlist beside the chip.

    Attributes:
        beside: the netlist, and the checker that has it.
    """

    beside: tuple[Path, ...] = ()

    takes: ClassVar[str] = "5 to 10 minutes"

    @property
    def folder(self) -> Path:
        """Where the model is built."""
        return FOLDER / (self.label or "model")

    @property
    def options(self) -> list[str]:
        """Registers and memories begin with zeros, those of the RTL as well."""
        return [*super().options, "--x-initial", "0"]

    @property
    def inputs(self) -> list[Path]:
        """Netlist and checker behind all others; of the netlist no warning is of use."""
        return [TEMPLATES / "netlist.vlt", *super().inputs, *self.beside]

    def repeat(self, test: str, seed: int) -> list[str]:
        """Return the words of the command that runs a test on such a model again."""
        return ["make", "lockstep", f"TESTCASE={test}", f"SEED={seed}"]


def prepared(netlist: str, label: str) -> LockstepConfiguration:
    """Return the model that has a netlist beside the chip, with the files that it is built from.

    Args:
        netlist: its text.
        label: of the model's folder.

    Raises:
        SynthesisError: the netlist has no outputs.
    """
    folder = FOLDER / f"{label}-hdl"
    folder.mkdir(parents=True, exist_ok=True)
    files = {"netlist.v": netlist, "lockstep.sv": checker(netlist, BLOCK.top)}
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    beside = tuple(folder / name for name in files)
    return LockstepConfiguration(chip=CHIP, label=label, beside=beside)


def planted(netlist: str) -> tuple[str, str]:
    """Plant a fault: the LUT whose output most others read says the opposite.

    Args:
        netlist: its text.

    Returns:
        The netlist with the fault, and the name of the wire that is wrong.

    Raises:
        SynthesisError: it has no LUT.
    """
    read = Counter(
        name.strip() for lut in _LUT.finditer(netlist) for name in lut[4][5:-3].split(",")
    )
    luts = [lut for lut in _LUT.finditer(netlist) if lut[2].strip() in read]
    if not luts:
        raise SynthesisError("the netlist has no LUT that another one reads")
    lut = max(luts, key=lambda found: read[found[2].strip()])
    bits = 1 << len(lut[4].split(","))
    wrong = f"{int(lut[3], 16) ^ ((1 << bits) - 1):x}"
    name = lut[2].strip().removeprefix("\\")
    return f"{netlist[: lut.start(3)]}{wrong}{netlist[lut.end(3) :]}", name


@dataclass(frozen=True)
class Comparison:
    """How a run beside the netlist ended.

    Attributes:
        result: of the test, which fails with the first difference.
        cycles: in which outputs were compared.
        outputs: that were compared.
    """

    result: runner.TestResult
    cycles: int
    outputs: int

    @property
    def same(self) -> bool:
        """Whether the test passed, and something was compared."""
        return self.result.passed and self.cycles > 0


def compare(configuration: LockstepConfiguration, name: str, seed: int = 1) -> Comparison:
    """Run a test by name on a built model; see what was compared.

    Raises:
        registry.UnknownTestError: no test is called so.
    """
    (test,) = registry.select([name], registry.discover())
    place = FOLDER / "runs" / f"{configuration.folder.name}-{name}-{seed}"
    job = runner.Job(test, configuration, seed, place=place)
    result = runner.run(job)
    log = (place / runner.LOG).read_text(encoding="utf-8", errors="replace")
    done = _DONE.search(log)
    cycles, outputs = (int(done[1]), int(done[2])) if done else (0, 0)
    return Comparison(result, cycles, outputs)


def netlist_of_chip() -> str:
    """Return the netlist of the chip.

    Raises:
        SynthesisError: yosys refused it, or is not there.
    """
    path = write_netlist(BLOCK, sources.rtl_sources(), FOLDER)
    return path.read_text(encoding="utf-8")
