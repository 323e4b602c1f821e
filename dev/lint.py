# SPDX-License-Identifier: Apache-2.0
"""Static checks: two SystemVerilog front ends, style, wiring, types, imports, generated files."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from dev import lint_contracts, lint_docs, lint_modes, wiring
from dev.fpga import boards
from spec.configurations import CHIPS
from spec.paths import FPGA, GENERATED, HDL, ROOT, RTL
from tb.run import machine, sources, verilator
from tb.run.build import Configuration

VERIBLE_FORMAT = (
    "--column_limit=100",
    "--indentation_spaces=2",
    "--formal_parameters_indentation=indent",
    "--named_parameter_indentation=indent",
    "--named_port_indentation=indent",
    "--port_declarations_indentation=indent",
)
SLANG_WAIVED = {
    "case-redundant-default": "house style: a unique case has a default as well",
    "case-enum-explicit": "what a case does not name is its default",
    "case-type": "opcodes are looked up in fields that need not hold a known one",
    "sign-conversion": "lanes are signed, words and ports are not",
    "sign-compare": "a number of loop or generate against an unsigned index",
    "arith-op-mismatch": "sums modulo 2^n, where signedness makes no difference",
    "empty-output-connection": "outputs that an instance does not need are left open by name",
    "useless-cast": "widths that follow from parameters",
}
"""Warnings of slang that are not reported, with the reason."""

GENERATORS = {
    "ISA": "spec.isa.generate",
    "registers": "spec.regs.generate",
    "command port": "dev.command_page",
    "sizes of blocks": "dev.rtl_sizes",
    "proofs": "dev.formal_page",
    "test plan": "dev.test_plan",
    "weight formats": "dev.formats_page",
    "operations of graphs": "dev.graphs_page",
    "operators of the library": "dev.operators_page",
    "plans in C": "npu.firmware.plan_types",
    "timing diagrams": "dev.diagrams",
    "ports on the page of integration": "dev.integration_page",
}
"""Modules that write what is generated, by what that is."""


def slang_findings(
    configuration: Configuration, top: str = "npu_top", files: Sequence[Path] = ()
) -> list[str]:
    """Return what slang has to say about a top, elaboration and analysis.

    Args:
        configuration: of the chip.
        top: `npu_top`, or another one that has no parameters of a configuration.
        files: its sources, those of the chip if there are none.
    """
    import pyslang
    from pyslang.driver import Driver

    driver = Driver()
    driver.addStandardArgs()
    parameters = [] if files else configuration.parameters
    words = ["slang", "--top", top, *parameters, "-Wextra"]
    command = " ".join([*words, *map(str, files or sources.rtl_sources())])
    if not (driver.parseCommandLine(command) and driver.processOptions()):
        return ["slang does not understand its command line"]
    if not driver.parseAllSources():
        return ["slang cannot read the sources"]
    compilation = driver.createCompilation()
    analysis = driver.runAnalysis(compilation)
    report = "".join(
        pyslang.DiagnosticEngine.reportAll(compilation.sourceManager, diagnostics)
        for diagnostics in (compilation.getAllDiagnostics(), analysis.getDiagnostics())
    )
    waived = tuple(f"[-W{name}]" for name in SLANG_WAIVED)
    chip = configuration.chip
    return [
        line
        for line in report.splitlines()
        if (": warning:" in line or ": error:" in line)
        and not line.endswith(waived)
        # Generated packages declare more than the design uses; their blocks have unnamed loops.
        and not (
            any(text in line for text in ("[-Wunused-", "[-Wunnamed-generate]"))
            and f"{GENERATED.relative_to(ROOT)}/" in line
        )
        # A chip without command port does not use its types.
        and not ("[-Wunused-" in line and "npu_cmd_pkg.sv" in line and not chip.scratch_bytes)
        # Nor does one without coprocessor have its units.
        and not ("[-Wunused-" in line and "rtl/cop/npu_cop_" in line and not chip.cop_sources)
        # What stands for a PLL uses few of its pins and parameters.
        and not ("[-Wunused-" in line and "fpga/EHXPLLL.sv" in line)
        # Nor one without narrow formats the arithmetic of their side bytes.
        and not ("[-Wunused-" in line and "npu_gemm_pkg.sv" in line and not chip.narrow_formats)
    ]


def _hdl() -> list[str]:
    return [str(path) for folder in (RTL, FPGA, HDL) for path in sorted(folder.rglob("*.sv"))]


def _command(arguments: list[str], environment: dict[str, str] | None = None) -> list[str]:
    run = subprocess.run(
        arguments,
        cwd=ROOT,
        env={**os.environ, **(environment or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return run.stdout.strip().splitlines()[-60:] or ["failed"] if run.returncode else []


def _verilator(configuration: Configuration) -> list[str]:
    tool = verilator.find()
    files = [*sources.waivers(), *sources.rtl_sources()]
    arguments = [*tool.command, "--lint-only", "-Wall", "--top-module", "npu_top"]
    arguments += [*configuration.parameters, *configuration.options, *map(str, files)]
    return _command(arguments, tool.environment)


def _verilator_of_board() -> list[str]:
    tool = verilator.find()
    files = [*boards.waivers(), *boards.board_sources()]
    arguments = [*tool.command, "--lint-only", "-Wall", "--top-module", boards.TOP]
    return _command([*arguments, *map(str, files)], tool.environment)


def _bench(configuration: Configuration) -> list[str]:
    """Elaborate the chip in its bench: binds name signals of the design."""
    tool = verilator.find()
    arguments = [*tool.command, "--lint-only", "--timing", "--assert", "-Wno-lint"]
    arguments += ["-Wno-style", "-Wwarn-IMPLICIT", "--top-module", configuration.top]
    arguments += [
        *configuration.parameters,
        *configuration.options,
        *map(str, configuration.inputs),
    ]
    return _command(arguments, tool.environment)


def _script(name: str) -> str:
    return str(Path(sys.executable).parent / name)


def checks() -> list[tuple[str, Callable[[], list[str]]]]:
    """Return the checks by name; each returns its findings."""
    python = sys.executable
    found: list[tuple[str, Callable[[], list[str]]]] = []
    for chip in CHIPS.values():
        configuration = Configuration(chip=chip)
        found.append((f"verilator -Wall, {chip.name}", partial(_verilator, configuration)))
        found.append((f"slang, {chip.name}", partial(slang_findings, configuration)))
    board = partial(slang_findings, Configuration(chip=boards.CHIP), boards.TOP)
    found.append(("verilator -Wall, board", _verilator_of_board))
    found.append(("slang, board", lambda: board(boards.board_sources())))
    found.append(("bench of the chip", partial(_bench, Configuration())))
    for model in machine.models():
        found.append((f"machine of {model.core} and chip", partial(_bench, model)))
    rules = f"--rules_config={ROOT / 'rtl' / 'verible.rules'}"
    formatter = [_script("verible-verilog-format"), "--verify", "--inplace", *VERIBLE_FORMAT]
    found += [
        ("verible lint", lambda: _command([_script("verible-verilog-lint"), rules, *_hdl()])),
        ("verible format", lambda: _command([*formatter, *_hdl()])),
        ("wiring", wiring.findings),
        ("ruff", lambda: _command([_script("ruff"), "check", "."])),
        ("ruff format", lambda: _command([_script("ruff"), "format", "--check", "."])),
        ("mypy", lambda: _command([_script("mypy")])),
        ("import rules", lambda: _command([_script("lint-imports"), "--no-cache"])),
        ("contracts", lint_contracts.findings),
        ("modes by name", lint_modes.findings),
        ("pages", lint_docs.findings),
        *(
            (f"generated: {what}", partial(_command, [python, "-m", module, "--check"]))
            for what, module in GENERATORS.items()
        ),
    ]
    return found


def run() -> int:
    """Run all checks side by side and print a line for each; return the exit status."""
    failed = 0
    named = checks()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = pool.map(lambda one: one[1](), named)
        for (name, _), findings in zip(named, found, strict=True):
            failed += _told(name, findings)
    return 1 if failed else 0


def _told(name: str, findings: list[str]) -> bool:
    """Print the line of a check, and its findings; return whether there are any."""
    print(f"{'FAIL' if findings else 'ok  '} {name}", flush=True)
    for line in findings:
        print(f"     {line}")
    return bool(findings)


def format_sources() -> int:
    """Format SystemVerilog and Python in place; return the exit status."""
    findings = _command([_script("verible-verilog-format"), "--inplace", *VERIBLE_FORMAT, *_hdl()])
    findings += _command([_script("ruff"), "format", "."])
    print("\n".join(findings) or "formatted")
    return 1 if findings else 0
