# SPDX-License-Identifier: Apache-2.0
"""Writes the C headers of the coprocessor: an intrinsic for every instruction."""

from spec.isa.cop_source import CopIsa, CopSource
from spec.isa.emit_cop import ORIGIN

_RULES = """/*
 * An instruction is a function: NPU_VMAC(a, b, n) multiplies n bytes at a with n bytes at b.
 * Addresses may be odd. Those that touch memory tell the compiler so; NPU_FENCE() orders them
 * behind stores of a core that commits past a write buffer. What an instruction does:
 * docs/reference/coprocessor.md.
 */"""

_INTEGER_TOP = """#include <stdint.h>

#define NPU_INLINE static inline __attribute__((always_inline))

/* Stores before it are in memory when instructions behind it read memory. A core that needs more
   for it defines it first. */
#ifndef NPU_FENCE
#define NPU_FENCE() __asm__ volatile("fence" ::: "memory")
#endif
"""

_FLOAT_TOP = """#include "npu.h"

/*
 * Where float operands are: in f registers with NPU_FLOATS_IN_F, for a core that hands them to the
 * port (x_issue_float_o says which), in x registers with NPU_FLOATS_IN_X. Unless one of them is
 * defined: in f registers where the compiler has them. npu_floats_agree() tells whether the core
 * does the same.
 */
#if defined(NPU_FLOATS_IN_F) && defined(NPU_FLOATS_IN_X)
#error "npu_fp.h: given NPU_FLOATS_IN_F and NPU_FLOATS_IN_X, allowed is one of them"
#endif
#if defined(NPU_FLOATS_IN_F) && !defined(__riscv_flen)
#error "npu_fp.h: given NPU_FLOATS_IN_F, allowed with f registers only (-march=rv32imf)"
#endif
#if !defined(NPU_FLOATS_IN_F) && !defined(NPU_FLOATS_IN_X) && defined(__riscv_flen)
#define NPU_FLOATS_IN_F
#endif

#ifdef NPU_FLOATS_IN_F
#define NPU_FLOAT_REGISTER "f"
typedef float npu_float_t;
#define NPU_FLOAT_GIVEN(value) (value)
#define NPU_FLOAT_TAKEN(value) (value)
#else
#define NPU_FLOAT_REGISTER "r"
typedef uint32_t npu_float_t;
#define NPU_FLOAT_GIVEN(value) (((union { float is; uint32_t bits; }){.is = (value)}).bits)
#define NPU_FLOAT_TAKEN(value) (((union { uint32_t bits; float is; }){.bits = (value)}).is)
#endif

/* 1 if the core hands over the registers that are named above: FRELU of 10 goes to 11. */
NPU_INLINE int npu_floats_agree(void) {
#ifdef NPU_FLOATS_IN_F
  register npu_float_t given __asm__("fa0") = 1.0f, taken __asm__("fa1") = 0.0f;
  __asm__ volatile("li a0, 0; .insn r 0x2b, 1, 0, x11, x10, x0"
                   : "+f"(taken) : "f"(given) : "a0", "a1");
  return taken == 1.0f;
#else
  register npu_float_t given __asm__("a0") = 0x3f800000u, taken __asm__("a1") = 0;
#ifdef __riscv_flen
  __asm__ volatile("fmv.w.x fa0, x0; .insn r 0x2b, 1, 0, x11, x10, x0"
                   : "+r"(taken) : "r"(given) : "fa0", "fa1");
#else
  __asm__ volatile(".insn r 0x2b, 1, 0, x11, x10, x0" : "+r"(taken) : "r"(given));
#endif
  return taken == 0x3f800000u;
#endif
}
"""

FLOAT = "NPU_FLOAT_REGISTER"
# (C type, name, constraint) of an operand, by what the register is.
_RS1 = {
    "value": ("int32_t", "a", '"r"'),
    "float": ("float", "a", FLOAT),
    "source": ("const void *", "a", '"r"'),
    "destination": ("void *", "d", '"r"'),
}
_RS2 = {
    "value": ("int32_t", "b", '"r"'),
    "float": ("float", "b", FLOAT),
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
    wired = ", ".join(
        f"{constraint}({f'NPU_FLOAT_GIVEN({name})' if constraint == FLOAT else name})"
        for _, name, constraint in inputs
    )
    memory = ' : "memory"' if item.element else ""
    lines = [f"/* {item.does} */", f"NPU_INLINE {result} NPU_{item.name}({names or 'void'}) {{"]
    if result == "void":
        return [*lines, f'  __asm__ volatile("{word}" : : {wired}{memory});', "}"]
    floating = item.rd == "float"
    output = f'"=" {FLOAT}(rd)' if floating else '"=r"(rd)'
    return [
        *lines,
        f"  {'npu_float_t' if floating else result} rd;",
        f'  __asm__ volatile("{word}" : {output} : {wired}{memory});',
        f"  return {'NPU_FLOAT_TAKEN(rd)' if floating else 'rd'};",
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
