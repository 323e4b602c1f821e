# SPDX-License-Identifier: Apache-2.0
"""Compiles the model of the datapath and calls it."""

from __future__ import annotations

import ctypes
import fcntl
import subprocess
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from spec.paths import BUILD, GENERATED, ROOT

FUNCTIONS = ("exp_float32", "exp_q16_16", "gelu_float32", "rsqrt_float32", "rsqrt_q16_16")
"""In the order of the model; `golden.coprocessor.functions` has the same names."""
SOURCES = ROOT / "tb" / "cop_datapath"
LIBRARY = BUILD / "cop_datapath" / "libcop_datapath.so"
MOST = 4096
"""Inputs of a list in a summary."""

Words = npt.NDArray[np.uint32]


class DatapathError(RuntimeError):
    """The compiler refuses the model, or it says what cannot be."""


class Summary(ctypes.Structure):
    """What a part of a sweep has found; see sweep.cpp."""

    _fields_ = (
        ("reached", ctypes.c_uint64),
        ("closest", ctypes.c_uint64),
        ("closest_input", ctypes.c_uint64),
        ("wrong", ctypes.c_uint64),
        ("undecided", ctypes.c_uint64),
        ("near", ctypes.c_uint64),
        ("wrong_inputs", ctypes.c_uint32 * MOST),
        ("undecided_inputs", ctypes.c_uint32 * MOST),
        ("near_inputs", ctypes.c_uint32 * MOST),
    )


def compile_library(tables: Path, target: Path) -> None:
    """Compile the model with the tables of a folder, by default `build/gen`.

    Raises:
        DatapathError: with the compiler's message.
    """
    made = target.with_suffix(".new")
    command = ["g++", "-O2", "-std=c++17", "-shared", "-fPIC", f"-I{tables}"]
    command += [str(SOURCES / "sweep.cpp"), "-o", str(made)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode:
        raise DatapathError(f"g++ refuses {SOURCES}:\n{run.stderr.strip()[-3000:]}")
    made.replace(target)


def load(path: Path) -> ctypes.CDLL:
    """Return a compiled model.

    Raises:
        DatapathError: its summaries are not those of this module.
    """
    loaded = ctypes.CDLL(str(path))
    loaded.cop_summary_bytes.restype = ctypes.c_uint64
    if loaded.cop_summary_bytes() != ctypes.sizeof(Summary):
        raise DatapathError("Summary of model.py is not that of sweep.cpp")
    return loaded


@cache
def library() -> ctypes.CDLL:
    """Return the model; compiles it if its sources are newer."""
    inputs = [SOURCES / "sweep.cpp", SOURCES / "datapath.h", GENERATED / "npu_cop_tables.h"]
    LIBRARY.parent.mkdir(parents=True, exist_ok=True)
    with (LIBRARY.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        newest = max(path.stat().st_mtime for path in inputs)
        if not LIBRARY.exists() or LIBRARY.stat().st_mtime < newest:
            compile_library(GENERATED, LIBRARY)
    return load(LIBRARY)


def compute(function: str, x: Words) -> tuple[Words, npt.NDArray[np.uint64]]:
    """Return results (n,) and values before they are rounded (n,) of inputs (n,)."""
    x = np.ascontiguousarray(x, np.uint32)
    bits, raw = np.empty(x.size, np.uint32), np.empty(x.size, np.uint64)
    library().cop_compute(
        FUNCTIONS.index(function),
        ctypes.c_uint64(x.size),
        *(array.ctypes.data_as(ctypes.c_void_p) for array in (x, bits, raw)),
    )
    return bits, raw


def sweep(function: str, first: int, step: int, count: int) -> Summary:
    """Compare `count` inputs from `first` on, `step` apart, with the C library."""
    summary = Summary()
    library().cop_sweep(
        FUNCTIONS.index(function),
        *(ctypes.c_uint64(number) for number in (first, step, count)),
        ctypes.byref(summary),
    )
    return summary
