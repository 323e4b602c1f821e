/* SPDX-License-Identifier: Apache-2.0 */
/* exp as the coprocessor has it, correctly rounded, in integers alone. */
#ifndef NPU_EXP_H
#define NPU_EXP_H

#include <stdint.h>

#define NPU_INLINE static inline __attribute__((always_inline))
#define NPU_SLOW static __attribute__((noinline, unused))

/* High word of a product of two unsigned fractions of 64 bits. */
NPU_INLINE uint64_t npu_exp_high(uint64_t a, uint64_t b) {
  uint64_t a0 = (uint32_t)a, a1 = a >> 32, b0 = (uint32_t)b, b1 = b >> 32;
  uint64_t middle = a1 * b0 + ((a0 * b0) >> 32);
  uint64_t other = a0 * b1 + (uint32_t)middle;
  return a1 * b1 + (middle >> 32) + (other >> 32);
}

/*
 * 2^t in Q4.60 for 0 <= t < 1 in Q0.64, to some 2^-58: two groups of 4 bits by tables, the rest by a series.
 */
NPU_SLOW uint64_t npu_exp_power(uint64_t t) {
  static const uint64_t coarse[16] = { /* 2^(i/16) in Q1.63 */
      0x8000000000000000, 0x85aac367cc487b15, 0x8b95c1e3ea8bd6e7, 0x91c3d373ab11c336,
      0x9837f0518db8a96f, 0x9ef5326091a111ae, 0xa5fed6a9b15138ea, 0xad583eea42a14ac6,
      0xb504f333f9de6484, 0xbd08a39f580c36bf, 0xc5672a115506dadd, 0xce248c151f8480e4,
      0xd744fccad69d6af4, 0xe0ccdeec2a94e111, 0xeac0c6e7dd24392f, 0xf5257d152486cc2c};
  static const uint64_t fine[16] = { /* 2^(i/256) in Q1.63 */
      0x8000000000000000, 0x8058d7d2d5e5f6b1, 0x80b1ed4fd999ab6c, 0x810b40a1d81406d4,
      0x8164d1f3bc030773, 0x81bea1708dde6056, 0x8218af4373fc25ec, 0x8272fb97b2a5894c,
      0x82cd8698ac2ba1d7, 0x83285071e0fc4547, 0x8383594eefb6ee37, 0x83dea15b9541b132,
      0x843a28c3acde4046, 0x8495efb3303efd30, 0x84f1f656379c1a29, 0x854e3cd8f9c8c95d};
  static const uint64_t series[4] = {/* 1/5!, 1/4!, 1/3!, 1/2! in Q2.62 */
      0x0088888888888889, 0x02aaaaaaaaaaaaab, 0x0aaaaaaaaaaaaaab, 0x2000000000000000};
  uint64_t u = npu_exp_high(t & 0xffffffffffffffull, 0xb17217f7d1cf79acull);
  uint64_t p = series[0];
  for (int i = 1; i < 4; i++) {
    p = npu_exp_high(u, p) + series[i];
  }
  p = npu_exp_high(u, p) + (1ull << 62);
  p = npu_exp_high(u, p) + (1ull << 62);
  p = npu_exp_high(coarse[t >> 60], p);
  return npu_exp_high(fine[(t >> 56) & 15], p);
}

/* exp(x) in Q16.16: 2^t of the whole part of t = x log2(e) by shifting. Exact in the last bit for every x. */
NPU_SLOW int32_t npu_exp_word(int32_t x) {
  if (x >= 681392) {
    return INT32_MAX;
  }
  if (x < -772243) {
    return 0;
  }
  int64_t t = x * 0x171547652b8ll + ((x * 0x2fe1777dll) >> 32); /* Q7.56 */
  int32_t whole = (int32_t)(t >> 56);
  uint64_t p = npu_exp_power((uint64_t)t << 8);
  return (int32_t)(((p >> (43 - whole)) + 1) >> 1); /* the result has 16 fraction bits */
}

/* The bits of exp(x) for those of x, exact in the last one for every x. */
NPU_SLOW uint32_t npu_exp_float(uint32_t x) {
  uint32_t size = x & 0x7fffffffu, negative = x >> 31;
  if (size > 0x7f800000u) {
    return 0x7fc00000u; /* NaN */
  }
  if (size < 0x2f800000u) {
    return 0x3f800000u; /* nearer to 1 than 2^-31 */
  }
  if (!negative && size >= 0x42b17218u) {
    return 0x7f800000u; /* infinity */
  }
  if (negative && size >= 0x42cff1b5u) {
    return 0;
  }
  /* |x| in Q7.57, log2(e) in Q1.127: t in Q8.120, whole and the 64 bits below */
  uint64_t fixed = (uint64_t)((size & 0x7fffffu) | 0x800000u) << ((size >> 23) - 93);
  uint64_t low = fixed * 0xb8aa3b295c17f0bbull;
  uint64_t rest = low + npu_exp_high(fixed, 0xbe87fed0691d3e88ull);
  uint64_t high = npu_exp_high(fixed, 0xb8aa3b295c17f0bbull) + (rest < low);
  int32_t whole = (int32_t)(high >> 56);
  uint64_t t = high << 8 | rest >> 56;
  if (negative) {
    whole = -1 - whole;
    t = ~t;
  }
  /* 24 bits of the 61, or as many as a subnormal has */
  int32_t base = whole < -126 ? -126 : whole;
  uint64_t p = npu_exp_power(t) >> (36 + base - whole);
  return ((uint32_t)(base + 126) << 23) + (uint32_t)((p + 1) >> 1);
}

#endif
