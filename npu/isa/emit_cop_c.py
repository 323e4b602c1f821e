# SPDX-License-Identifier: Apache-2.0
"""Writes the C headers of the coprocessor: an intrinsic for every instruction."""

from npu.isa.cop_source import CopIsa, CopSource
from npu.isa.emit_cop import ORIGIN

_RULES = """/*
 * An instruction is a function: NPU_VMAC(a, b, n) multiplies n bytes at a with n bytes at b.
 * Addresses may be odd. Those that touch memory tell the compiler so; NPU_FENCE() orders them
 * behind stores of a core that commits past a write buffer. What an instruction does:
 * docs/reference/coprocessor.md.
 */"""

_INTEGER_TOP = """#include <stdint.h>

#define NPU_INLINE static inline __attribute__((always_inline))

/* Stores before it are in memory when instructions behind it read memory. */
#define NPU_FENCE() __asm__ volatile("fence" ::: "memory")
"""

_FLOAT_TOP = """#include "npu.h"

/* A float operand is in an f register where the core has them, else in an x register. */
#if defined(__riscv_flen) && __riscv_flen >= 32
#define NPU_FLOAT_REGISTER "f"
#else
#define NPU_FLOAT_REGISTER "r"
#endif
"""

# (C type, name, constraint) of an operand, by what the register is.
_RS1 = {
    "value": ("int32_t", "a", '"r"'),
    "float": ("float", "a", "NPU_FLOAT_REGISTER"),
    "source": ("const void *", "a", '"r"'),
    "destination": ("void *", "d", '"r"'),
}
_RS2 = {
    "value": ("int32_t", "b", '"r"'),
    "float": ("float", "b", "NPU_FLOAT_REGISTER"),
    "source": ("const void *", "b", '"r"'),
    "destination": ("void *", "d", '"r"'),
    "both": ("void *", "b", '"r"'),
    "count": ("uint32_t", "n", '"r"'),
}


def _declare(kind: str, name: str) -> str:
    return f"{kind}{name}" if kind.endswith("*") else f"{kind} {name}"


def _immediate(item: CopSource, opcode: int) -> list[str]:
    """Return a macro: registers and offset are constants in the instruction word."""
    store = item.format == "S"
    form = f'".insn {item.format.lower()} 0x{opcode:02x}, {item.funct3}, '
    form += 'x" #vreg ", ' + ('" #offset "(%0)"' if store else '%0, " #offset')
    args = f'{form} : : "r"(address) : "memory"'
    shown = "vreg and offset are constants: numbers from 0 to 3, from -2048 to 2047"
    return [
        f"/* {item.does}; {shown}. */",
        f"#define NPU_{item.name}(vreg, address, offset) \\",
        f"  __asm__ volatile({args})",
    ]


def _function(item: CopSource, opcode: int) -> list[str]:
    operands = [_RS1[item.rs1]] if item.rs1 else []
    operands += [_RS2[item.rs2]] if item.rs2 else []
    places = {"rs1": "x0", "rs2": "x0"}
    result = {"result": "int32_t", "float": "float"}.get(item.rd, "void")
    counted = item.rd == "count"
    at = 0 if result == "void" and not counted else 1
    for place, used in (("rs1", item.rs1), ("rs2", item.rs2)):
        if used:
            places[place] = f"%{at}"
            at += 1
    inputs = [("uint32_t", "n", '"r"')] * counted + operands
    names = ", ".join(_declare(kind, name) for kind, name, _ in operands + inputs[: int(counted)])
    rd = "x0" if result == "void" and not counted else "%0"
    word = f".insn r 0x{opcode:02x}, {item.funct3}, {item.funct7 or 0}, {rd}, "
    word += f"{places['rs1']}, {places['rs2']}"
    wired = ", ".join(f"{constraint}({name})" for _, name, constraint in inputs)
    memory = ' : "memory"' if item.element else ""
    lines = [f"/* {item.does} */", f"NPU_INLINE {result} NPU_{item.name}({names or 'void'}) {{"]
    if result == "void":
        return [*lines, f'  __asm__ volatile("{word}" : : {wired}{memory});', "}"]
    constraint = "NPU_FLOAT_REGISTER" if item.rd == "float" else '"r"'
    equals = '"=" ' if item.rd == "float" else '"=r"'
    output = f"{equals}{constraint if item.rd == 'float' else ''}(rd)"
    return [
        *lines,
        f"  {result} rd;",
        f'  __asm__ volatile("{word}" : {output} : {wired}{memory});',
        "  return rd;",
        "}",
    ]


def header(isa: CopIsa, opcode: str) -> str:
    """Return the text of firmware/include/npu.h (opcode INT) or npu_fp.h (FLOAT)."""
    guard = "NPU_H" if opcode == "INT" else "NPU_FP_H"
    top = _INTEGER_TOP if opcode == "INT" else _FLOAT_TOP
    lines = ["/* SPDX-License-Identifier: Apache-2.0 */", f"/* {ORIGIN} */", _RULES]
    lines += [f"#ifndef {guard}", f"#define {guard}", "", top]
    for item in isa.instructions:
        if item.opcode == opcode:
            number = isa.opcodes[opcode]
            made = _function(item, number) if item.format == "R" else _immediate(item, number)
            lines += [*made, ""]
    return "\n".join([*lines, "#endif", ""])
