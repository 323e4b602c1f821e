# SPDX-License-Identifier: Apache-2.0
"""Proofs for all inputs, by the SAT solver of yosys: the chip's arithmetic is the plain one.

A module of `tb/hdl/proofs` puts functions of the design beside the same formulas written down
plainly; what it says is true where its outputs are 1 for all inputs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from dev import synth, yosys
from dev.yosys import SynthesisError
from spec.isa import VecOp
from spec.paths import HDL, ROOT
from tb.run import sources

TOP = "npu_arithmetic_proof"
FOLDER = synth.FOLDER / "proofs"
OUTPUTS = (
    "round_shift_o",
    "round_saturate_o",
    "total_o",
    "product_o",
    "add_o",
    "multiply_o[0]",
    "multiply_o[1]",
    "recip_o",
    "probability_o",
    "norm_output_o",
    *(f"exact_o[{operation}]" for operation in range(len(VecOp))),
)

SCRIPT = """
read_slang --threads 1 --top {top} {files}
prep -top {top} -flatten
memory_map
opt -full
wreduce
opt -full
{proofs}
"""
"""A `case` of constants is a memory to yosys, of which the solver knows nothing."""

PLANTED = {
    "rounding truncates": (
        "npu_fixed_pkg.sv",
        "return x.bits[16:1] + 16'(x.bits[0]);",
        "return x.bits[16:1];",
        "round_saturate_o",
    ),
    "rounding after saturation": (
        "npu_fixed_pkg.sv",
        "if (x.bits[16:1] == most) return most;",
        "",
        "round_saturate_o",
    ),
    "a sum one bit too short": ("npu_fixed_pkg.sv", "SumBits = 41", "SumBits = 40", "total_o"),
    "a bit below its nibble": (
        "npu_recip.sv",
        "7'(padded[4*n+:10] >> nibbles[n].place)",
        "7'(padded[4*n+:9] >> nibbles[n].place)",
        "recip_o",
    ),
    "a probability of one": (
        "npu_rows_pkg.sv",
        "if (twice[9] || twice[8:1] == 8'd255) return 8'd255;",
        "if (twice[9]) return 8'd255;",
        "probability_o",
    ),
    "a norm that wraps far away": (
        "npu_rows_pkg.sv",
        "near &= is_16 || y[17:9] == {9{halves[37]}};",
        "",
        "norm_output_o",
    ),
    "bounds in the wrong order": (
        "npu_vec_pkg.sv",
        "? mode.below :",
        "? mode.least :",
        f"exact_o[{VecOp.CLAMP}]",
    ),
}
"""Faults that must be refuted: file, text, what takes its place, and the output that finds it."""


def _files() -> list[Path]:
    return sources.closure(TOP, [*sources.rtl_sources(), *sorted((HDL / "proofs").glob("*.sv"))])


def _prove(files: Sequence[Path], outputs: Iterable[str], folder: Path) -> None:
    text = SCRIPT.format(
        top=TOP,
        files=" ".join(str(path.relative_to(ROOT)) for path in files),
        proofs="\n".join(f"sat -verify -prove {output} 1" for output in outputs),
    )
    yosys.run(text, folder)


def _plant(name: str, files: Sequence[Path]) -> None:
    file, before, after, output = PLANTED[name]
    folder = FOLDER / "planted"
    folder.mkdir(parents=True, exist_ok=True)
    path = next(path for path in files if path.name == file)
    text = path.read_text(encoding="utf-8")
    if before not in text:
        raise SynthesisError(f"planted {name}: {file} lacks {before!r}")
    changed = folder / file
    changed.write_text(text.replace(before, after), encoding="utf-8")
    try:
        _prove([changed if p == path else p for p in files], [output], folder)
    except SynthesisError as error:
        if "proof did fail" not in str(error):
            raise
    else:
        raise SynthesisError(f"planted {name}: not refuted")


def check() -> None:
    """Prove every output, and see each planted fault refuted.

    Raises:
        SynthesisError: a proof failed (the log has the inputs), or a planted fault was proved.
    """
    files = _files()
    try:
        _prove(files, OUTPUTS, FOLDER)
    except SynthesisError as error:
        log = FOLDER / "log.txt"
        tried = re.findall(r"Import proof-constraint: (.*) =", log.read_text(encoding="utf-8"))
        last = tried[-1] if tried else "not begun"
        raise SynthesisError(f"{TOP}: {last}: {error}\nlog: {log.relative_to(ROOT)}") from None
    for name in PLANTED:
        _plant(name, files)
