# SPDX-License-Identifier: Apache-2.0
"""Programs of firmware/examples print what golden says, with the instructions in plain C."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from golden.coprocessor import arrays
from golden.recipes import texts
from tests.python.driver.firmware_support import (
    FIRMWARE,
    compile_here,
    expected_text,
    float_model,
    int8_model,
    run_here,
)

PROGRAMS = ("bytelm_fp32", "bytelm_int8", "mnist", "newton", "recipes", "vectors")
WRAPPER = """\
#include "npu_soft.h"
void exact_fvexp(const uint32_t *x, uint32_t *y, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) y[i] = npu_exp_float(x[i]);
}
void vexp(const void *x, void *y, uint32_t n) { NPU_VEXP(x, y, n); }
void fvexp(const void *x, void *y, uint32_t n) { NPU_FVEXP(x, y, n); }
void fvgelu(const void *x, void *y, uint32_t n) { NPU_FVGELU(x, y, n); }
void vrsqrt(const int32_t *x, int32_t *y, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) y[i] = NPU_VRSQRT(x + i);
}
void frsqrt(const float *x, float *y, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) y[i] = NPU_FRSQRT(x[i]);
}
void gelu(const int32_t *x, int32_t *y, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) y[i] = NPU_GELU(x[i]);
}
"""


@pytest.mark.parametrize("program", PROGRAMS)
def test_text(program: str, tmp_path: Path) -> None:
    """Every line, hashes of all logits and results included."""
    assert run_here(compile_here(program, tmp_path)) == expected_text(program)


@pytest.mark.parametrize("program", ["bytelm_fp32", "bytelm_int8"])
def test_continued_text(program: str, tmp_path: Path) -> None:
    """A prompt as input is continued to the end of the context; a longer one is refused."""
    binary, prompt = compile_here(program, tmp_path), "The parser "
    if program == "bytelm_fp32":
        expected = texts.text_fp32(float_model(), prompt)
    else:
        expected = texts.text_int8(int8_model(), prompt)
    assert run_here(binary, prompt) == expected
    with pytest.raises(subprocess.CalledProcessError):
        run_here(binary, "x" * 33)


@pytest.fixture(scope="module")
def soft(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """Return the functions of npu_soft.h as a program without an FPU uses them."""
    folder = tmp_path_factory.mktemp("soft")
    (folder / "soft.c").write_text(WRAPPER, encoding="utf-8")
    command = ["gcc", "-O2", "-ffp-contract=off", "-shared", "-fPIC", f"-I{FIRMWARE / 'include'}"]
    subprocess.run([*command, str(folder / "soft.c"), "-o", str(folder / "soft.so")], check=True)
    return ctypes.CDLL(str(folder / "soft.so"))


def called(function: Callable[..., object], x: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return what a C function makes of an array."""
    y = np.zeros_like(x)
    function(
        ctypes.c_void_p(x.ctypes.data), ctypes.c_void_p(y.ctypes.data), ctypes.c_uint32(x.size)
    )
    return y


def test_soft_integers_are_exact(soft: ctypes.CDLL) -> None:
    """Exp of every input that is not constant, roots of powers of two and random ones, GELU."""
    x = np.arange(-772300, 681500, dtype=np.int32)
    assert np.array_equal(
        called(soft.vexp, x).view(np.uint32), arrays.exp_q16_16(x.view(np.uint32))
    )
    powers = 2 ** np.arange(31, dtype=np.int64)
    drawn = np.random.default_rng(1).integers(1, 2**31, 20000)
    x = np.concatenate(
        [[-(2**31), -1, 0], np.arange(1, 4097), powers - 1, powers, powers + 1, drawn]
    )
    x = x.astype(np.int32)
    expected = arrays.rsqrt_q16_16(x.view(np.uint32))
    assert np.array_equal(called(soft.vrsqrt, x).view(np.uint32), expected)
    x = np.arange(-300, 300, dtype=np.int32)
    assert np.array_equal(called(soft.gelu, x).view(np.uint32), arrays.gelu_int8(x.view(np.uint32)))


def test_exact_exp_of_floats(soft: ctypes.CDLL) -> None:
    """Bit by bit, at all exponents and at the ends: what a core with two sources has for FVEXP."""
    draw = np.random.default_rng(1)
    ends = np.array([0x2F800000, 0x42B17218, 0x42CFF1B5, 0x42AEAC50, 0x7F800000], dtype=np.int64)
    sizes = [draw.integers(0x2F000000, 0x43000000, 40000), draw.integers(0, 2**31, 4000)]
    sizes += [ends - 1, ends, ends + 1, np.array([0, 1])]
    x = np.concatenate(sizes).astype(np.uint32)
    x = np.concatenate([x, x | np.uint32(1 << 31)])
    assert np.array_equal(called(soft.exact_fvexp, x), arrays.exp_float32(x))


def test_soft_floats_are_near(soft: ctypes.CDLL) -> None:
    """The approximations that a core without an FPU is measured with are good ones."""
    x = np.linspace(-80, 80, 20001, dtype=np.float32)
    power = np.exp(x.astype(np.float64))
    assert np.abs(called(soft.fvexp, x) / power - 1).max() < 3e-7
    root = called(soft.frsqrt, power.astype(np.float32))
    assert np.abs(root * np.sqrt(power) - 1).max() < 3e-7
    exact = arrays.gelu_float32(x.view(np.uint32)).view(np.float32)
    assert np.abs(called(soft.fvgelu, x) - exact).max() < 8e-6
    near = np.abs(x) < 8
    assert np.abs(called(soft.fvgelu, x[near]) - exact[near]).max() < 1e-6
