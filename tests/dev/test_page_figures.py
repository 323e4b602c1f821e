# SPDX-License-Identifier: Apache-2.0
"""Figures in sentences of README and docs/ are those of what they count, names of tests exist."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable

import pytest

from dev import integration_page, proofs, synth
from npu.cli.command_line import COMMANDS, home_of
from spec.isa.cop_generated import CopOp
from spec.paths import DOCS, ROOT
from spec.regs import source
from spec.regs.generated import CmdOp
from tb.run import units
from tb.run.registry import discover
from tessera.operators import OPERATORS
from tests.python.importers.tflite_integers import OPERATORS as INT8
from weights.importer import load_checkpoint
from weights.shipped import shipped

PAGES = sorted({ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS.rglob("*.md")})
WORDS = dict(
    enumerate(["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"])
) | {16: "sixteen"}


def parameters(name: str) -> int:
    """Return how many numbers a shipped model consists of."""
    return sum(tensor.size for tensor in load_checkpoint(shipped()[name]).tensors.values())


def of_mux(name: str) -> int:
    """Return a constant of the AXI multiplexer."""
    return integration_page.constant(name, "mem_port/npu_axi_mux.sv")


def patience() -> int:
    """Return the cycles that the chip waits for its memory behind a reset."""
    (chip,) = (window for window in source.load_all() if window.key == "chip")
    (field,) = next(each.fields for each in chip.registers if each.name == "MEM_TIMEOUT")
    return field.reset or 0


FIGURES: list[tuple[str, str, Callable[[], int]]] = [
    ("README.md", r"1\.0\): (\w+) instructions", lambda: len(CopOp)),
    ("docs/index.md", r"RISC-V coprocessor: (\w+) instructions", lambda: len(CopOp)),
    ("docs/index.md", r"command port: (\w+) operations", lambda: len(CmdOp)),
    ("docs/rtl/command-port.md", r"(\w+) commands on registers", lambda: len(CmdOp)),
    ("docs/index.md", r"\[(\w+) operators of transformers", lambda: len(OPERATORS)),
    ("docs/graphs.md", r"models of (\w+) operators\s+of TFLite", lambda: len(INT8)),
    ("docs/synthesis.md", r"it plants (\w+) such faults", lambda: len(synth.PLANTED)),
    ("docs/synthesis.md", r"(\w+) planted faults \(rounding", lambda: len(proofs.PLANTED)),
    ("docs/computer.md", r"A GPT-2 of ([\d,]+) parameters", lambda: parameters("gpt2-tiny")),
    ("docs/integration.md", r"At most (\w+) read bursts", lambda: of_mux("MaxOutstanding")),
    ("docs/integration.md", r"read bursts and (\w+) write", lambda: of_mux("MaxOutstanding")),
    ("docs/integration.md", r"not there\) may last MEM_TIMEOUT cycles, ([\d,]+)", patience),
    ("README.md", r"LLaMA of ([\d,]+) parameters", lambda: parameters("llama-tiny")),
]


@pytest.mark.parametrize(("page", "sentence", "count"), FIGURES)
def test_a_figure_is_what_it_counts(page: str, sentence: str, count: Callable[[], int]) -> None:
    """In digits or as a word."""
    (found,) = re.findall(sentence, (ROOT / page).read_text(encoding="utf-8"))
    number = count()
    assert found.lower() in (f"{number:,}", WORDS.get(number))


def test_tests_that_pages_name_exist() -> None:
    """What stands behind TESTCASE= and BLOCK= can be run."""
    tests = (*discover(), *units.tests_of())
    known = {"TESTCASE": {name for one in tests for name in (one.name, one.group)}}
    known["BLOCK"] = {*units.blocks()}
    seen = 0
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for kind, given in re.findall(r"\b(TESTCASE|BLOCK)=([\w,]+)", text):
            names = set(given.split(",")) - {"name", "test_mine"}
            seen += len(names)
            assert names <= known[kind], (page, names - known[kind])
    assert seen > 20


def parsers() -> dict[str, argparse.ArgumentParser]:
    """Return the parser of every command of `npu`."""
    found: dict[str, argparse.ArgumentParser] = {}

    def add(name: str, function: Callable[[argparse.Namespace], int]) -> argparse.ArgumentParser:
        return found.setdefault(name, argparse.ArgumentParser())

    for home in dict.fromkeys(map(home_of, COMMANDS)):
        home.add_commands(add)
    return found


def test_options_that_pages_name_exist() -> None:
    """What stands behind `npu COMMAND` is a command of that name, with these options."""
    known, seen = parsers(), 0
    call = re.compile(r"(^    |^    \$ |`|^)npu ([a-z-]+)([^`\n|#]*)", re.M)
    for page in PAGES:
        for lead, command, rest in call.findall(page.read_text(encoding="utf-8")):
            if command not in known:
                assert not lead, (page, command)  # a line of prose may begin with "npu says"
                continue
            options = set(re.findall(r"(?<=\s)--[a-z-]+", rest))
            seen += len(options)
            assert options <= set(known[command]._option_string_actions), (page, command, options)
    assert seen > 40
