/* SPDX-License-Identifier: Apache-2.0 */
/* Generated from npu/isa/coprocessor.toml by `python -m npu.isa.generate`; do not edit. */
/*
 * An instruction is a function: NPU_VMAC(a, b, n) multiplies n bytes at a with n bytes at b.
 * Addresses may be odd. Those that touch memory tell the compiler so; NPU_FENCE() orders them
 * behind stores of a core that commits past a write buffer. What an instruction does:
 * docs/reference/coprocessor.md.
 */
#ifndef NPU_FP_H
#define NPU_FP_H

#include "npu.h"

/* A float operand is in an f register where the core has them, else in an x register. */
#if defined(__riscv_flen) && __riscv_flen >= 32
#define NPU_FLOAT_REGISTER "f"
#else
#define NPU_FLOAT_REGISTER "r"
#endif

/* facc += rs1 * rs2: exact product, one rounding to double */
NPU_INLINE void NPU_FMACC(float a, float b) {
  __asm__ volatile(".insn r 0x2b, 0, 0, x0, %0, %1" : : NPU_FLOAT_REGISTER(a), NPU_FLOAT_REGISTER(b));
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
  float rd;
  __asm__ volatile(".insn r 0x2b, 0, 3, %0, %1, x0" : "=" NPU_FLOAT_REGISTER(rd) : "r"(a) : "memory");
  return rd;
}

/* d[i] = a[i] * s */
NPU_INLINE void NPU_FVMUL(const void *a, void *d, uint32_t n) {
  __asm__ volatile(".insn r 0x2b, 0, 4, %0, %1, %2" : : "r"(n), "r"(a), "r"(d) : "memory");
}

/* rd = sum of a[i] in double from +0, term by term, rounded to float32; +0 if n is 0 */
NPU_INLINE float NPU_FVREDUCE(const void *a, uint32_t n) {
  float rd;
  __asm__ volatile(".insn r 0x2b, 0, 5, %0, %1, %2" : "=" NPU_FLOAT_REGISTER(rd) : "r"(a), "r"(n) : "memory");
  return rd;
}

/* rd = largest a[i]; NaN if any is NaN; +0 above -0; -inf if n is 0 */
NPU_INLINE float NPU_FVMAX(const void *a, uint32_t n) {
  float rd;
  __asm__ volatile(".insn r 0x2b, 0, 6, %0, %1, %2" : "=" NPU_FLOAT_REGISTER(rd) : "r"(a), "r"(n) : "memory");
  return rd;
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
  float rd;
  __asm__ volatile(".insn r 0x2b, 0, 19, %0, %1, x0" : "=" NPU_FLOAT_REGISTER(rd) : NPU_FLOAT_REGISTER(a));
  return rd;
}

/* rd = rs1, +0 for what is negative or -0 */
NPU_INLINE float NPU_FRELU(float a) {
  float rd;
  __asm__ volatile(".insn r 0x2b, 1, 0, %0, %1, x0" : "=" NPU_FLOAT_REGISTER(rd) : NPU_FLOAT_REGISTER(a));
  return rd;
}

/* rd = gelu(rs1) = rs1 (1 + erf(rs1 / sqrt 2)) / 2, correctly rounded */
NPU_INLINE float NPU_FGELU(float a) {
  float rd;
  __asm__ volatile(".insn r 0x2b, 4, 0, %0, %1, x0" : "=" NPU_FLOAT_REGISTER(rd) : NPU_FLOAT_REGISTER(a));
  return rd;
}

/* rd = s; facc = +0 */
NPU_INLINE float NPU_FRSTACC(void) {
  float rd;
  __asm__ volatile(".insn r 0x2b, 5, 0, %0, x0, x0" : "=" NPU_FLOAT_REGISTER(rd) : );
  return rd;
}

#endif
