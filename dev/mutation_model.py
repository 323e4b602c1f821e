# SPDX-License-Identifier: Apache-2.0
"""One model with many mutants, of which a plusarg chooses one at run time.

As with the faults of `dev.fault_merge` the number of the mutant is `+fault=`, 0 for none, and the
original stays in place as one side of each choice. A choice also tells the bench when its two sides
differ, so that a run without a mutant finds out which of them could show in it at all.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyslang.driver import Driver

from dev import fault_merge
from dev.mutation_sites import Mutant, mutants_of
from dev.sv_source import Edit, SvSource, constant_functions
from spec.paths import HDL, RTL
from tb.run import build, sources

PROBE = HDL / "mutant_dpi.cpp"
"""What notes that the sides of a choice differ."""
_PROBED = """\
  import "DPI-C" context function void npu_mutant_differs(int unsigned number);

  function automatic bit takes(int unsigned number, bit differs);
    if (differs) npu_mutant_differs(number);
    return fault == number;
  endfunction
endpackage
"""
_PACKAGE = fault_merge.PACKAGE.replace("endpackage\n", _PROBED)
_CHOSEN = re.compile(r"npu_fault_pkg::fault == (\d+)\)")
_FOLLOWS = re.compile(rf"[=\s(]*{_CHOSEN.pattern}")


@dataclass(frozen=True)
class Design:
    """The hand-written RTL.

    Attributes:
        rtl: its folder.
        files: its files by their paths from there.
        mutants: all mutants of all files.
    """

    rtl: Path
    files: Mapping[str, SvSource]
    mutants: Sequence[Mutant]

    @classmethod
    def read(cls, rtl: Path = RTL) -> Design:
        """Read all files of a folder."""
        paths = sorted(rtl.rglob("*.sv"))
        files = {
            str(path.relative_to(rtl)): SvSource(path.read_text(encoding="utf-8")) for path in paths
        }
        constant = constant_functions(files.values())
        found = [each for file, one in files.items() for each in mutants_of(file, one, constant)]
        return cls(rtl, files, found)


@dataclass(frozen=True)
class MutantConfiguration(build.Configuration):
    """A model with mutants in it, and what notes where they differ."""

    @property
    def options(self) -> list[str]:
        """Those of every model, and the notes."""
        return [*super().options, str(PROBE)]


def _choice(number: int, mutant: Mutant, original: str, probed: bool) -> Edit:
    """Return the text around a mutant's place that makes it a choice."""
    # The sum has the compiler compare in 64 bits, with the sign that both sides have.
    differs = "1'b1" if mutant.is_drop else f"({mutant.mutated}) != (({original}) + 64'sd0)"
    takes = f"npu_fault_pkg::takes({number}, {differs})"
    chosen = takes if probed else f"(npu_fault_pkg::fault == {number})"
    if mutant.is_drop:
        return Edit(mutant.start, mutant.end, f"begin if (!{chosen}) begin ", " end end")
    return Edit(mutant.start, mutant.end, f"({chosen} ? ({mutant.mutated}) : (", "))")


def write(design: Design, mutants: Mapping[int, Mutant], folder: Path, probed: bool = True) -> Path:
    """Write the copy of the RTL that has all mutants in it; return it.

    Args:
        design: the original.
        mutants: by the number that chooses each.
        folder: where the copy is made; it is emptied.
        probed: whether runs can note where the sides of choices differ.
    """
    shutil.rmtree(folder, ignore_errors=True)
    copy = folder / "rtl"
    shutil.copytree(design.rtl, copy)
    names = "\n".join(f"// {number}: {each.name}" for number, each in mutants.items())
    package = _PACKAGE.replace("{names}", names)
    (copy / "npu_fault_pkg.sv").write_text(package, encoding="utf-8")
    edits: dict[str, list[Edit]] = {}
    for number, mutant in mutants.items():
        original = design.files[mutant.file].slice(mutant.start, mutant.end)
        edits.setdefault(mutant.file, []).append(_choice(number, mutant, original, probed))
    for file, some in edits.items():
        (copy / file).write_text(design.files[file].edited(some), encoding="utf-8")
    return copy


def refused(rtl: Path, parameters: Sequence[str]) -> set[int]:
    """Return the numbers of the mutants that are no SystemVerilog, as the compiler slang says.

    Args:
        rtl: what `write` has made, not probed: the compiler names the function that notes.
        parameters: of the chip, as slang's arguments.

    Raises:
        build.BuildError: something else is wrong.
    """
    driver = Driver()
    driver.addStandardArgs()
    words = ("slang", "--top", "npu_top", *parameters)
    files = sources.rtl_sources(rtl)
    assert driver.parseCommandLine(" ".join((*words, *map(str, files))))
    assert driver.processOptions() and driver.parseAllSources()
    compilation = driver.createCompilation()
    texts = {os.path.realpath(path): path.read_text(encoding="latin-1") for path in files}
    found = set()
    for each in compilation.getAllDiagnostics():
        if each.isError():
            name = compilation.sourceManager.getFullPath(each.location.buffer)
            text, at = texts[os.path.realpath(name)], each.location.offset
            here = _FOLLOWS.match(text, at)
            numbers = [here[1]] if here else _CHOSEN.findall(text, 0, at)
            if not numbers:
                raise build.BuildError(f"{name}: {each.code}")
            found.add(int(numbers[-1]))
    return found
