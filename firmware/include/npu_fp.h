/* SPDX-License-Identifier: Apache-2.0 */
/* Generated from spec/isa/coprocessor.toml by `python -m spec.isa.generate`; do not edit. */
/*
 * An instruction is a function: NPU_VMAC(a, b, n) multiplies n bytes at a with n bytes at b.
 * Addresses may be odd. Those that touch memory tell the compiler so; NPU_FENCE() orders them
 * behind stores of a core that commits past a write buffer. What an instruction does:
 * docs/reference/coprocessor.md.
 */
#ifndef NPU_FP_H
#define NPU_FP_H

#include "npu.h"

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

/* facc += rs1 * rs2: exact product, one rounding to double */
NPU_INLINE void NPU_FMACC(float a, float b) {
  __asm__ volatile(".insn r 0x2b, 0, 0, x0, %0, %1" : : NPU_FLOAT_REGISTER(NPU_FLOAT_GIVEN(a)), NPU_FLOAT_REGISTER(NPU_FLOAT_GIVEN(b)));
}

/* facc += a[i] * b[i], term by term from i = 0: exact products, a rounding to double each */
NPU_INLINE void NPU_FVMAC(const void *a, const void *b, uint32_t n) {
  __asm__ volatile(".insn r 0x2b, 0, 1, %0, %1, %2" : : "r"(n), "r"(a), "r"(b) : "memory");
}

/* d[i] = exp(a[i]), correctly rounded */
NPU_INLINE void NPU_FVEXP(const void *a, void *d, uint32_t n) {
  __asm__ volatile(".insn r 0x2b, 0, 2, %0, %1, %2" : : "r"(n), "r"(a), "r"(d) : "memory");
}

/* rd = 1/sqrt(a[0]), correctly rounded */
NPU_INLINE float NPU_FVRSQRT(const void *a) {
  npu_float_t rd;
  __asm__ volatile(".insn r 0x2b, 0, 3, %0, %1, x0" : "=" NPU_FLOAT_REGISTER(rd) : "r"(a) : "memory");
  return NPU_FLOAT_TAKEN(rd);
}

/* d[i] = a[i] * s */
NPU_INLINE void NPU_FVMUL(const void *a, void *d, uint32_t n) {
  __asm__ volatile(".insn r 0x2b, 0, 4, %0, %1, %2" : : "r"(n), "r"(a), "r"(d) : "memory");
}

/* rd = sum of a[i] in double from +0, term by term, rounded to float32; +0 if n is 0 */
NPU_INLINE float NPU_FVREDUCE(const void *a, uint32_t n) {
  npu_float_t rd;
  __asm__ volatile(".insn r 0x2b, 0, 5, %0, %1, %2" : "=" NPU_FLOAT_REGISTER(rd) : "r"(a), "r"(n) : "memory");
  return NPU_FLOAT_TAKEN(rd);
}

/* rd = largest a[i]; NaN if any is NaN; +0 above -0; -inf if n is 0 */
NPU_INLINE float NPU_FVMAX(const void *a, uint32_t n) {
  npu_float_t rd;
  __asm__ volatile(".insn r 0x2b, 0, 6, %0, %1, %2" : "=" NPU_FLOAT_REGISTER(rd) : "r"(a), "r"(n) : "memory");
  return NPU_FLOAT_TAKEN(rd);
}

/* b[i] = a[i] + b[i] */
NPU_INLINE void NPU_FVADD(const void *a, void *b, uint32_t n) {
  __asm__ volatile(".insn r 0x2b, 0, 7, %0, %1, %2" : : "r"(n), "r"(a), "r"(b) : "memory");
}

/* b[i] = a[i] - b[i] */
NPU_INLINE void NPU_FVSUB(const void *a, void *b, uint32_t n) {
  __asm__ volatile(".insn r 0x2b, 0, 8, %0, %1, %2" : : "r"(n), "r"(a), "r"(b) : "memory");
}

/* d[i] = a[i], +0 for what is negative or -0 */
NPU_INLINE void NPU_FVRELU(const void *a, void *d, uint32_t n) {
  __asm__ volatile(".insn r 0x2b, 0, 9, %0, %1, %2" : : "r"(n), "r"(a), "r"(d) : "memory");
}

/* d[i] = gelu(a[i]), correctly rounded */
NPU_INLINE void NPU_FVGELU(const void *a, void *d, uint32_t n) {
  __asm__ volatile(".insn r 0x2b, 0, 10, %0, %1, %2" : : "r"(n), "r"(a), "r"(d) : "memory");
}

/* d[i] = a[i] / s */
NPU_INLINE void NPU_FVDIV(const void *a, void *d, uint32_t n) {
  __asm__ volatile(".insn r 0x2b, 0, 11, %0, %1, %2" : : "r"(n), "r"(a), "r"(d) : "memory");
}

/* d[i] = a[i] - s */
NPU_INLINE void NPU_FVSUB_SCALAR(const void *a, void *d, uint32_t n) {
  __asm__ volatile(".insn r 0x2b, 0, 12, %0, %1, %2" : : "r"(n), "r"(a), "r"(d) : "memory");
}

/* rd = 1/sqrt(rs1), correctly rounded */
NPU_INLINE float NPU_FRSQRT(float a) {
  npu_float_t rd;
  __asm__ volatile(".insn r 0x2b, 0, 19, %0, %1, x0" : "=" NPU_FLOAT_REGISTER(rd) : NPU_FLOAT_REGISTER(NPU_FLOAT_GIVEN(a)));
  return NPU_FLOAT_TAKEN(rd);
}

/* rd = rs1, +0 for what is negative or -0 */
NPU_INLINE float NPU_FRELU(float a) {
  npu_float_t rd;
  __asm__ volatile(".insn r 0x2b, 1, 0, %0, %1, x0" : "=" NPU_FLOAT_REGISTER(rd) : NPU_FLOAT_REGISTER(NPU_FLOAT_GIVEN(a)));
  return NPU_FLOAT_TAKEN(rd);
}

/* rd = gelu(rs1) = rs1 (1 + erf(rs1 / sqrt 2)) / 2, correctly rounded */
NPU_INLINE float NPU_FGELU(float a) {
  npu_float_t rd;
  __asm__ volatile(".insn r 0x2b, 4, 0, %0, %1, x0" : "=" NPU_FLOAT_REGISTER(rd) : NPU_FLOAT_REGISTER(NPU_FLOAT_GIVEN(a)));
  return NPU_FLOAT_TAKEN(rd);
}

/* rd = s; facc = +0 */
NPU_INLINE float NPU_FRSTACC(void) {
  npu_float_t rd;
  __asm__ volatile(".insn r 0x2b, 5, 0, %0, x0, x0" : "=" NPU_FLOAT_REGISTER(rd) : );
  return NPU_FLOAT_TAKEN(rd);
}

#endif
