# SPDX-License-Identifier: Apache-2.0
"""Static checks: two SystemVerilog front ends, style, types, import rules, generated files."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from npu.isa.operands import ARRAY_DIMS
from tb import sources, verilator
from tb.build import Configuration
from tb.paths import GENERATED, HDL, ROOT, RTL

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

MAY_IMPORT: dict[str, set[str]] = {
    "npu.isa": {"npu.isa"},
    "npu.regs": {"npu.regs"},
    "npu.asm": {"npu.asm", "npu.isa"},
    "npu.compiler": {"npu.compiler", "npu.asm", "npu.isa", "weights"},
    "npu.driver": {"npu.driver", "npu.compiler", "npu.isa", "npu.regs"},
    "weights": {"weights"},
    "golden": {"golden", "npu.isa", "npu.regs", "weights"},
    "tb": {"tb", "golden", "npu", "weights"},
}
"""Which of our packages a package may import; tests may import all of them."""
OURS = {"golden", "npu", "tb", "weights"}


def _matches(module: str, prefix: str) -> bool:
    return module == prefix or module.startswith(prefix + ".")


def _imports(path: Path) -> Iterable[tuple[int, str]]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), filename=str(path))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.lineno, node.module
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def import_findings(root: Path = ROOT) -> list[str]:
    """Return the imports that break the rules, as `file:line: text`."""
    findings = []
    for path in sorted(path for package in OURS for path in (root / package).rglob("*.py")):
        module = ".".join(path.relative_to(root).with_suffix("").parts)
        owner = next((name for name in MAY_IMPORT if _matches(module, name)), None)
        if owner is None:
            continue
        for line, imported in _imports(path):
            ours = imported.split(".")[0] in OURS
            if not ours or (imported in OURS and len(imported.split(".")) == 1):
                continue
            if not any(_matches(imported, allowed) for allowed in MAY_IMPORT[owner]):
                text = f"{owner} may not import {imported}"
                findings.append(f"{path.relative_to(root)}:{line}: {text}")
    return sorted(set(findings))


def slang_findings(configuration: Configuration) -> list[str]:
    """Return what slang has to say about `npu_top`, elaboration and analysis."""
    import pyslang
    from pyslang.driver import Driver

    driver = Driver()
    driver.addStandardArgs()
    words = ["slang", "--top", "npu_top", *configuration.parameters, "-Wextra"]
    command = " ".join([*words, *map(str, sources.rtl_sources())])
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
        and not (
            "[-Wunused-" in line and "npu_cmd_pkg.sv" in line and not configuration.scratch_bytes
        )
    ]


def _hdl() -> list[str]:
    return [str(path) for folder in (RTL, HDL) for path in sorted(folder.rglob("*.sv"))]


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
    arguments += [*configuration.parameters, *map(str, files)]
    return _command(arguments, tool.environment)


def _script(name: str) -> str:
    return str(Path(sys.executable).parent / name)


def checks() -> list[tuple[str, Callable[[], list[str]]]]:
    """Return the checks by name; each returns its findings."""
    python = sys.executable
    found: list[tuple[str, Callable[[], list[str]]]] = []
    for size in ARRAY_DIMS:
        chip = Configuration(array_dim=size)
        name = f"ArrayDim {size}, command port {chip.scratch_bytes or 'absent'}"
        found.append((f"verilator -Wall, {name}", partial(_verilator, chip)))
        found.append((f"slang, {name}", partial(slang_findings, chip)))
    rules = f"--rules_config={ROOT / 'rtl' / 'verible.rules'}"
    formatter = [_script("verible-verilog-format"), "--verify", "--inplace", *VERIBLE_FORMAT]
    found += [
        ("verible lint", lambda: _command([_script("verible-verilog-lint"), rules, *_hdl()])),
        ("verible format", lambda: _command([*formatter, *_hdl()])),
        ("ruff", lambda: _command([_script("ruff"), "check", "."])),
        ("ruff format", lambda: _command([_script("ruff"), "format", "--check", "."])),
        ("mypy", lambda: _command([_script("mypy")])),
        ("import rules", import_findings),
        ("generated: ISA", lambda: _command([python, "-m", "npu.isa.generate", "--check"])),
        ("generated: registers", lambda: _command([python, "-m", "npu.regs.generate", "--check"])),
        ("generated: command port", lambda: _command([python, "-m", "tb.command_page", "--check"])),
    ]
    return found


def run() -> int:
    """Run all checks and print a line for each; return the exit status."""
    failed = 0
    for name, check in checks():
        findings = check()
        print(f"{'FAIL' if findings else 'ok  '} {name}", flush=True)
        for line in findings:
            print(f"     {line}")
        failed += bool(findings)
    return 1 if failed else 0


def format_sources() -> int:
    """Format SystemVerilog and Python in place; return the exit status."""
    findings = _command([_script("verible-verilog-format"), "--inplace", *VERIBLE_FORMAT, *_hdl()])
    findings += _command([_script("ruff"), "format", "."])
    print("\n".join(findings) or "formatted")
    return 1 if findings else 0
