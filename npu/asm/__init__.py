# SPDX-License-Identifier: Apache-2.0
"""Assembler and disassembler of microcode programs."""

from npu.asm.assembler import assemble
from npu.asm.disassembler import disassemble
from npu.asm.errors import AsmError
from npu.asm.program import Program

__all__ = ["AsmError", "Program", "assemble", "disassemble"]
