# SPDX-License-Identifier: Apache-2.0
"""Bytecode of MLIR, read in a process of its own.

The reader of jaxlib trusts its input: a flipped bit can end the process (40 of 400 random flips
did). So a child reads the file, checks it and writes it anew; only what comes back is read here.
Run as a program: bytecode on the standard input, bytecode on the standard output.
"""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path
from typing import Any

from npu.graph.form import GraphError

_SECONDS = 300


def context() -> Any:  # noqa: ANN401
    """Return a context of MLIR that knows the dialects of what jax writes."""
    from jaxlib.mlir import ir
    from jaxlib.mlir._mlir_libs import _jax_mlir_ext
    from jaxlib.mlir.dialects import chlo, stablehlo

    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    made = ir.Context()
    made.append_dialect_registry(registry)
    made.load_all_available_dialects()
    stablehlo.register_dialect(made)
    chlo.register_dialect(made)
    return made


def parsed(data: bytes) -> Any:  # noqa: ANN401
    """Return the module of bytecode, portable or not. Raises what jaxlib raises."""
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import stablehlo

    made = context()
    if data[4:].lstrip(b"\r").startswith(b"StableHLO_v"):
        return stablehlo.deserialize_portable_artifact(made, data)
    return ir.Module.parse(data, made)


def checked(data: bytes, file: str) -> bytes:
    """Return bytecode as a child process wrote it after reading it.

    Raises:
        GraphError: the child could not read it, whatever way it ended.
    """
    allowed = "allowed bytecode of MLIR or portable bytecode of StableHLO"
    try:
        done = subprocess.run(
            [sys.executable, "-m", __name__],
            input=data,
            capture_output=True,
            timeout=_SECONDS,
            cwd=Path(__file__).parents[3],
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise GraphError(f"{file}: reading takes more than {_SECONDS} s; {allowed}") from None
    if done.returncode:
        text = done.stderr.decode(errors="replace").strip()
        reason = " ".join(text.splitlines()[-1:])[:300] if done.returncode == 1 else "damaged"
        if "quant" in text and "uniform" in text:
            reason = f"quantised types (!quant): {reason}"
        raise GraphError(f"{file}: bytecode cannot be read: {reason or 'damaged'}; {allowed}")
    return done.stdout


def main() -> int:
    """Read, check and write; the last line of the standard error says what is wrong."""
    try:
        module = parsed(sys.stdin.buffer.read())
        module.operation.verify()
        written = io.BytesIO()
        module.operation.write_bytecode(written)
    except Exception as error:
        sys.stderr.write("\n" + " ".join(str(error).split()) + "\n")
        return 1
    sys.stdout.buffer.write(written.getvalue())
    return 0


if __name__ == "__main__":
    sys.exit(main())
