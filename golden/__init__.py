# SPDX-License-Identifier: Apache-2.0
"""Bit-exact numpy references, written from the specification.

One module per operation (`gemm`, `requantize`, `softmax`, `layernorm`, `rope`, `gelu`, `vec`), the
instruction-level model `machine`, the command port and the whole chip as its host sees it
(`command`), the coprocessor of a RISC-V core (`coprocessor`), and whole networks (`decoder`, with a
K/V cache `session`). The package imports numpy, mpmath, the standard library, `spec` and the types
of `weights`.
"""
