# SPDX-License-Identifier: Apache-2.0
"""Programs of firmware/examples without the coprocessor, on the machine that runs the tests."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

from golden.recipes import texts
from tests.python.graph.sources import ROOT
from weights.firmware.bytelm import load_bytelm, program_form
from weights.firmware.bytelm_int8 import load_scales, quantise
from weights.firmware.digits import load_digits
from weights.firmware.export import DIGITS, write_headers
from weights.firmware.models import ByteLm, ByteLmInt8
from weights.firmware.prompts import PROMPTS

FIRMWARE = ROOT / "firmware"
OPTIONS = ("-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-ffp-contract=off")
SOFTWARE = ("-DNPU_SOFTWARE", "-DNPU_SOFT_EXACT")
PRINT_H = """\
#pragma once
#include <stdint.h>
#include <stdio.h>
#define print printf
static inline void print_bytes(const char *bytes, uint32_t size) { fwrite(bytes, 1, size, stdout); }
"""
SOC_H = """\
#pragma once
#include <stdint.h>
#include <stdio.h>
static inline void uart_put(char byte) { putchar((unsigned char)byte); }
static inline int uart_get(void) { int byte = getchar(); return byte == EOF ? -1 : byte; }
static inline uint32_t soc_cycles(void) { return 0; }
"""


@cache
def float_model() -> ByteLm:
    """Return the shipped transformer in the form of its FP32 program."""
    return program_form(load_bytelm())


@cache
def int8_model() -> ByteLmInt8:
    """Return the shipped transformer in integers."""
    return quantise(load_bytelm(), load_scales())


def expected_text(program: str, prompts: int = len(PROMPTS)) -> str:
    """Return what a program prints without an input, a transformer for its first `prompts`."""
    match program:
        case "bytelm_fp32":
            return texts.prompts_fp32(float_model(), PROMPTS[:prompts])
        case "bytelm_int8":
            return texts.prompts_int8(int8_model(), PROMPTS[:prompts])
        case "mnist":
            return texts.mnist(load_digits(), DIGITS)
        case _:
            text: str = getattr(texts, program)()
            return text


def compile_here(program: str, folder: Path) -> Path:
    """Compile a program for this machine, with the instructions in plain C; return the file."""
    write_headers(folder)
    (folder / "print.h").write_text(PRINT_H, encoding="utf-8")
    (folder / "soc.h").write_text(SOC_H, encoding="utf-8")
    source = FIRMWARE / "examples" / program / f"{program}.c"
    binary = folder / program
    command = ["gcc", *OPTIONS, *SOFTWARE, f"-I{folder}", f"-I{FIRMWARE / 'include'}"]
    subprocess.run([*command, str(source), "-o", str(binary), "-lm"], check=True)
    return binary


def run_here(binary: Path, text: str = "") -> str:
    """Run a program on an input and return what it prints, bytes as latin-1."""
    done = subprocess.run([binary], input=text.encode(), stdout=subprocess.PIPE, check=True)
    return done.stdout.decode("latin-1")
