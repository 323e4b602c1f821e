# SPDX-License-Identifier: Apache-2.0
"""Bit-exact numpy references, written from the specification.

One module per operation (`gemm`, `requantize`, `softmax`, `layernorm`, `gelu`, `vec`), the
instruction-level model `machine`, and whole networks (`gpt2`). The package imports numpy, the
standard library, `npu.isa` and the types of `weights`.
"""
