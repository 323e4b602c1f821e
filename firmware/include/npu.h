/* SPDX-License-Identifier: Apache-2.0 */
/* Generated from spec/isa/coprocessor.toml by `python -m spec.isa.generate`; do not edit. */
/*
 * An instruction is a function: NPU_VMAC(a, b, n) multiplies n bytes at a with n bytes at b.
 * Addresses may be odd. Those that touch memory tell the compiler so; NPU_FENCE() orders them
 * behind stores of a core that commits past a write buffer. What an instruction does:
 * docs/reference/coprocessor.md.
 */
#ifndef NPU_H
#define NPU_H

#include <stdint.h>

#define NPU_INLINE static inline __attribute__((always_inline))

/* Stores before it are in memory when instructions behind it read memory. A core that needs more
   for it defines it first. */
#ifndef NPU_FENCE
#define NPU_FENCE() __asm__ volatile("fence" ::: "memory")
#endif

/* acc += rs1 * rs2, signed 32 bits each; acc wraps at 64 bits */
NPU_INLINE void NPU_MACC(int32_t a, int32_t b) {
  __asm__ volatile(".insn r 0x0b, 0, 0, x0, %0, %1" : : "r"(a), "r"(b));
}

/* acc += sum of a[i] * b[i], signed bytes */
NPU_INLINE void NPU_VMAC(const void *a, const void *b, uint32_t n) {
  __asm__ volatile(".insn r 0x0b, 0, 1, %0, %1, %2" : : "r"(n), "r"(a), "r"(b) : "memory");
}

/* d[i] = exp(a[i]) in Q16.16, correctly rounded; 0x7FFFFFFF from 681392, 0 below -772243 */
NPU_INLINE void NPU_VEXP(const void *a, void *d, uint32_t n) {
  __asm__ volatile(".insn r 0x0b, 0, 2, %0, %1, %2" : : "r"(n), "r"(a), "r"(d) : "memory");
}

/* rd = 1/sqrt(a[0]) in Q16.16, correctly rounded; 0x7FFFFFFF unless a[0] > 0 */
NPU_INLINE int32_t NPU_VRSQRT(const void *a) {
  int32_t rd;
  __asm__ volatile(".insn r 0x0b, 0, 3, %0, %1, x0" : "=r"(rd) : "r"(a) : "memory");
  return rd;
}

/* d[i] = floor(a[i] * s32(acc) / 65536), saturated to a signed byte; acc stays */
NPU_INLINE void NPU_VMUL(const void *a, void *d, uint32_t n) {
  __asm__ volatile(".insn r 0x0b, 0, 4, %0, %1, %2" : : "r"(n), "r"(a), "r"(d) : "memory");
}

/* rd = sum of a[i] mod 2^32; 0 if n is 0 */
NPU_INLINE int32_t NPU_VREDUCE(const void *a, uint32_t n) {
  int32_t rd;
  __asm__ volatile(".insn r 0x0b, 0, 5, %0, %1, %2" : "=r"(rd) : "r"(a), "r"(n) : "memory");
  return rd;
}

/* rd = largest a[i], signed; 0x80000000 if n is 0 */
NPU_INLINE int32_t NPU_VMAX(const void *a, uint32_t n) {
  int32_t rd;
  __asm__ volatile(".insn r 0x0b, 0, 6, %0, %1, %2" : "=r"(rd) : "r"(a), "r"(n) : "memory");
  return rd;
}

/* rd = max(rs1, 0), signed */
NPU_INLINE int32_t NPU_RELU(int32_t a) {
  int32_t rd;
  __asm__ volatile(".insn r 0x0b, 1, 0, %0, %1, x0" : "=r"(rd) : "r"(a));
  return rd;
}

/* rd = floor(rs1 * rs2 / 256) mod 2^32, signed 64-bit product */
NPU_INLINE int32_t NPU_QMUL(int32_t a, int32_t b) {
  int32_t rd;
  __asm__ volatile(".insn r 0x0b, 2, 0, %0, %1, %2" : "=r"(rd) : "r"(a), "r"(b));
  return rd;
}

/* rd = rs1 saturated to a signed byte */
NPU_INLINE int32_t NPU_CLAMP(int32_t a) {
  int32_t rd;
  __asm__ volatile(".insn r 0x0b, 3, 0, %0, %1, x0" : "=r"(rd) : "r"(a));
  return rd;
}

/* rd = rint(32 gelu(x / 32)) saturated to a signed byte, x the lowest byte of rs1, signed */
NPU_INLINE int32_t NPU_GELU(int32_t a) {
  int32_t rd;
  __asm__ volatile(".insn r 0x0b, 4, 0, %0, %1, x0" : "=r"(rd) : "r"(a));
  return rd;
}

/* rd = low word of acc; acc = 0 */
NPU_INLINE int32_t NPU_RSTACC(void) {
  int32_t rd;
  __asm__ volatile(".insn r 0x0b, 5, 0, %0, x0, x0" : "=r"(rd) : );
  return rd;
}

/* vreg[rd mod 4] = the 4 bytes at rs1 + imm; vreg and offset are constants: numbers from 0 to 3, from -2048 to 2047. */
#define NPU_LDVEC(vreg, address, offset) \
  __asm__ volatile(".insn i 0x0b, 6, x" #vreg ", %0, " #offset : : "r"(address) : "memory")

/* the 4 bytes at rs1 + imm = vreg[rs2 mod 4]; vreg and offset are constants: numbers from 0 to 3, from -2048 to 2047. */
#define NPU_STVEC(vreg, address, offset) \
  __asm__ volatile(".insn s 0x0b, 7, x" #vreg ", " #offset "(%0)" : : "r"(address) : "memory")

#endif
