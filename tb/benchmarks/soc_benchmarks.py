# SPDX-License-Identifier: Apache-2.0
"""The benchmarks of the machine: what a core needs with the chip beside it, and without."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from golden.recipes import texts
from npu.firmware import compile as firmware
from npu.firmware.plan import IMAGE, ROOM
from spec.paths import ROOT
from tb.run.machine import MachineConfiguration
from tb.soc import given_program, program_run
from tb.soc.elf_file import Elf
from tb.soc.program_run import Ran
from weights.firmware.bytelm import load_bytelm, program_form
from weights.firmware.bytelm_int8 import load_scales, quantise

PROGRAMS = ROOT / "tb" / "soc" / "programs"
TURNS = 1000
"""Turns of the loop in macc_loop.c."""
MODEL, PROMPT, TOKENS = "weights/checkpoints/gpt2-tiny", "The parser accepts", 32
GENERATED_CYCLES = 8
"""Offset of `cycles` in struct npu_generated."""


class SocBenchError(RuntimeError):
    """A program printed or ended with something else than it must."""


@dataclass(frozen=True)
class SocFigures:
    """What a benchmark of the machine measured.

    Attributes:
        cycles, ideal_cycles, ratio: as in bench.json.
        ran: the program that the cycles are of.
    """

    cycles: int
    ideal_cycles: int
    ratio: float
    ran: Ran


@dataclass(frozen=True)
class SocBenchmark:
    """One benchmark of the machine.

    Attributes:
        name: as in bench.json.
        parameters: its shape, for bench.json.
        bound: what `ideal_cycles` are of.
        measure: runs it.
        long: whether the smoke tier leaves it out.
    """

    name: str
    parameters: dict[str, Any]
    bound: str
    measure: Callable[[MachineConfiguration], SocFigures]
    long: bool = False


def _run(
    configuration: MachineConfiguration, path: Path, name: str, image: bytes = b"", end: int = 0
) -> Ran:
    elf = Elf.load(path, IMAGE if image else ROOM)
    ran = program_run.run_program(
        configuration, elf, name=f"bench-{name}", image=image, memory_end=end
    )
    if ran.code != 0 or ran.entries != 0:
        raise SocBenchError(
            f"{name}: exit code {ran.code}, {ran.entries} entries into Python, expected 0 and 0: "
            f"{ran.output.decode(errors='replace')}"
        )
    return ran


def _word(ran: Ran, symbol: str, offset: int = 0) -> int:
    address, _ = ran.elf.symbol(symbol)
    return int(ran.memory.array(address + offset, (1,), "<u4")[0])


def _macc_loop(configuration: MachineConfiguration) -> SocFigures:
    """Cycles of the loop; ideal is one a turn."""
    path = firmware.compile_sources([PROGRAMS / "macc_loop.c"], "macc_loop")
    ran = _run(configuration, path, "soc_macc_loop")
    cycles = _word(ran, "cycles")
    return SocFigures(cycles, TURNS, cycles / TURNS, ran)


def _generate(configuration: MachineConfiguration) -> SocFigures:
    """Start write to the last byte of text; ideal is what the chip counts itself."""
    plan = given_program.plan_of(str(ROOT / MODEL), PROMPT, TOKENS)
    program = given_program.compiled("generate", plan, place="bench-generate")
    ran = _run(configuration, program.path, "soc_generate", program.image, program.end)
    if not ran.output.endswith(b"\n") or _word(ran, "generated", 4) != TOKENS:
        raise SocBenchError(f"soc_generate: {ran.output!r}, expected {TOKENS} tokens and a newline")
    cycles, own = ran.times[-2] - ran.start_cycle, _word(ran, "generated", GENERATED_CYCLES)
    return SocFigures(cycles, own, cycles / own, ran)


def _bytelm(kind: str, configuration: MachineConfiguration) -> SocFigures:
    """Cycles of a token with the coprocessor; the other figure is those of the same C without it.

    What it prints is golden's, without the coprocessor only that of integers: floats without it are
    summed in float.
    """
    cycles: list[int] = []
    for defines in (("ONE_TOKEN",), ("ONE_TOKEN", "NPU_SOFTWARE")):
        name = "-".join(["bench", "bytelm", kind, *defines]).lower()
        output = program_run.FOLDER / f"{name}.elf"
        path = firmware.compile_program(f"bytelm_{kind}", defines=defines, output=output)
        ran = _run(configuration, path, name)
        first, _, last = ran.output.decode().partition("\n")
        if (kind == "int8" or not cycles) and first + "\n" != _token(kind):
            raise SocBenchError(f"soc_{name}: {first!r}, expected {_token(kind)!r}")
        cycles.append(int(last.split()[1]))
        if len(cycles) == 1:
            with_it = ran
    return SocFigures(cycles[0], cycles[1], cycles[1] / cycles[0], with_it)


def _token(kind: str) -> str:
    """Return golden's text of a token."""
    if kind == "int8":
        return texts.one_token_int8(quantise(load_bytelm(), load_scales()))
    return texts.one_token_fp32(program_form(load_bytelm()))


SOC_CASES = {
    case.name: case
    for case in (
        SocBenchmark("soc_macc_loop", {"turns": TURNS}, "one cycle a turn", _macc_loop),
        SocBenchmark("soc_generate", {"tokens": TOKENS, "latency": 40}, "chip alone", _generate),
        *(
            SocBenchmark(
                f"soc_bytelm_{kind}",
                {"position": texts.POSITION, "latency": 40},
                "C without coprocessor",
                partial(_bytelm, kind),
                long=kind == "fp32",
            )
            for kind in ("int8", "fp32")
        ),
    )
}


def entry(case: SocBenchmark, figures: SocFigures) -> dict[str, Any]:
    """Return the record of bench.json."""
    ran = figures.ran
    return {
        "name": case.name,
        "parameters": case.parameters,
        "cycles": figures.cycles,
        "ideal_cycles": figures.ideal_cycles,
        "bound": case.bound,
        "ratio": round(figures.ratio, 6),
        "bytes_read": 0,
        "bytes_written": 0,
        "macs": 0,
        "sim_kcycles_per_s": round(ran.cycles / max(ran.seconds, 1e-9) / 1000, 1),
        "python_callbacks": ran.entries,
    }
