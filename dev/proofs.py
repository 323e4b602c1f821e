# SPDX-License-Identifier: Apache-2.0
"""Proofs for all inputs, by yosys: arithmetic is the plain one, a result comes from a register.

A module of `tb/hdl/proofs` puts functions of the design beside the same formulas written down
plainly; what it says is true where its outputs are 1 for all inputs, which the SAT solver shows.
That nothing reaches an output within a cycle is seen from what is in front of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
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

REGISTERED = ("npu_cop", "x_result_o")
"""A module, and its output that depends on no input within a cycle: rule 39 of the port."""
REGISTERED_SCRIPT = """
read_slang --threads 1 --top {top} {files}
prep -top {top} -flatten
select -assert-none o:{output} %ci*:-$dff,$dffe,$sdff,$sdffe,$sdffce,$mem_v2 i:* %i
"""
REGISTERED_PLANTED = (
    "npu_cop_issue.sv",
    "assign x_result_o = result_q;",
    "always_comb begin\n    x_result_o = result_q;\n"
    "    x_result_o.data |= x_req_i.operands.rs[0] & {32{x_req_i.operands.valid}};\n  end",
)
"""A result that has its operand in it at once."""


def _files() -> list[Path]:
    return sources.closure(TOP, [*sources.rtl_sources(), *sorted((HDL / "proofs").glob("*.sv"))])


def _prove(files: Sequence[Path], folder: Path, outputs: Iterable[str]) -> None:
    text = SCRIPT.format(
        top=TOP,
        files=" ".join(str(path.relative_to(ROOT)) for path in files),
        proofs="\n".join(f"sat -verify -prove {output} 1" for output in outputs),
    )
    yosys.run(text, folder)


def _prove_registered(files: Sequence[Path], folder: Path) -> None:
    top, output = REGISTERED
    names = " ".join(str(path.relative_to(ROOT)) for path in files)
    yosys.run(REGISTERED_SCRIPT.format(top=top, output=output, files=names), folder)


def _plant(
    name: str,
    fault: tuple[str, str, str],
    files: Sequence[Path],
    prove: Callable[[Sequence[Path], Path], None],
    refuted: str,
) -> None:
    file, before, after = fault
    folder = FOLDER / "planted"
    folder.mkdir(parents=True, exist_ok=True)
    path = next(path for path in files if path.name == file)
    text = path.read_text(encoding="utf-8")
    if before not in text:
        raise SynthesisError(f"planted {name}: {file} lacks {before!r}")
    changed = folder / file
    changed.write_text(text.replace(before, after), encoding="utf-8")
    try:
        prove([changed if p == path else p for p in files], folder)
    except SynthesisError as error:
        if refuted not in str(error):
            raise
    else:
        raise SynthesisError(f"planted {name}: not refuted")


def check() -> None:
    """Prove every output, and see each planted fault refuted.

    Raises:
        SynthesisError: a proof failed (the log has the inputs), or a planted fault was proved.
    """
    registered = sources.closure(REGISTERED[0], sources.rtl_sources())
    _prove_registered(registered, FOLDER / "registered")
    _plant(
        "a result within the cycle",
        REGISTERED_PLANTED,
        registered,
        _prove_registered,
        "selection is not empty",
    )
    files = _files()
    try:
        _prove(files, FOLDER, OUTPUTS)
    except SynthesisError as error:
        log = FOLDER / "log.txt"
        tried = re.findall(r"Import proof-constraint: (.*) =", log.read_text(encoding="utf-8"))
        last = tried[-1] if tried else "not begun"
        raise SynthesisError(f"{TOP}: {last}: {error}\nlog: {log.relative_to(ROOT)}") from None
    for name, (file, before, after, output) in PLANTED.items():
        fault = (file, before, after)
        _plant(name, fault, files, partial(_prove, outputs=[output]), "proof did fail")
