/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The coprocessor's instructions in plain C, under the same names as in npu.h and npu_fp.h: what a program
 * costs without the coprocessor, and how it runs where there is none.
 *
 * Integers give the same results as the instructions, all of them. Floats are near: sums are in float, as one
 * would write them for a core without an FPU, and exp, GELU and the root are short approximations. With
 * NPU_SOFT_EXACT sums are in double and the functions those of libm, rounded: the instructions' results on
 * ordinary numbers. State is per file that includes this one.
 */
#ifndef NPU_SOFT_H
#define NPU_SOFT_H

#include "npu_exp.h"

#ifdef NPU_SOFT_EXACT
#include <math.h>
typedef double npu_sum_t;
#else
typedef float npu_sum_t;
#endif

#define NPU_FENCE() __asm__ volatile("" ::: "memory")

static int64_t npu_soft_acc;
static npu_sum_t npu_soft_facc;
static uint32_t npu_soft_vreg[4] __attribute__((unused));

/* ---- integers ---- */

NPU_INLINE void NPU_MACC(int32_t a, int32_t b) {
  npu_soft_acc = (int64_t)((uint64_t)npu_soft_acc + (uint64_t)((int64_t)a * b));
}

NPU_INLINE void NPU_VMAC(const void *a, const void *b, uint32_t n) {
  const int8_t *x = a, *y = b;
  int64_t high = 0;
  /* 2^16 products of bytes fit 32 bits. */
  while (n != 0) {
    uint32_t part = n < 0x10000u ? n : 0x10000u;
    int32_t sum = 0;
    for (uint32_t i = 0; i < part; i++) {
      sum += x[i] * y[i];
    }
    high += sum;
    x += part;
    y += part;
    n -= part;
  }
  npu_soft_acc += high;
}

NPU_INLINE int32_t NPU_RSTACC(void) {
  int32_t low = (int32_t)npu_soft_acc;
  npu_soft_acc = 0;
  return low;
}

NPU_INLINE int32_t NPU_RELU(int32_t a) {
  return a < 0 ? 0 : a;
}

NPU_INLINE int32_t NPU_QMUL(int32_t a, int32_t b) {
  return (int32_t)(((int64_t)a * b) >> 8);
}

NPU_INLINE int32_t NPU_CLAMP(int32_t a) {
  return a < -128 ? -128 : a > 127 ? 127 : a;
}

/* rint(32 gelu(x / 32)) for x = 0..127; gelu(-x) = gelu(x) - x. */
static const uint8_t npu_soft_gelu[128] __attribute__((unused)) = {
      0,   1,   1,   2,   2,   3,   3,   4,   5,   5,   6,   7,   8,   9,   9,  10,
     11,  12,  13,  14,  15,  16,  17,  18,  19,  20,  21,  22,  23,  24,  25,  26,
     27,  28,  29,  30,  31,  32,  34,  35,  36,  37,  38,  39,  40,  41,  43,  44,
     45,  46,  47,  48,  49,  50,  52,  53,  54,  55,  56,  57,  58,  59,  60,  61,
     63,  64,  65,  66,  67,  68,  69,  70,  71,  72,  73,  74,  75,  76,  77,  78,
     80,  81,  82,  83,  84,  85,  86,  87,  88,  89,  90,  91,  92,  93,  94,  95,
     96,  97,  98,  99, 100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 110, 111,
    112, 113, 114, 115, 116, 117, 118, 119, 120, 121, 122, 123, 124, 125, 126, 127,
};

NPU_INLINE int32_t NPU_GELU(int32_t a) {
  int8_t x = (int8_t)a;
  return x >= 0 ? npu_soft_gelu[x] : x == -128 ? 0 : npu_soft_gelu[-x] + x;
}

NPU_INLINE void NPU_VEXP(const void *a, void *d, uint32_t n) {
  const int32_t *x = a;
  int32_t *y = d;
  for (uint32_t i = 0; i < n; i++) {
    y[i] = npu_exp_word(x[i]);
  }
}

/* rint(2^24 / sqrt(x)) = floor((floor(2^25 / sqrt(x)) + 1) / 2), the inner root digit by digit. */
NPU_SLOW int32_t NPU_VRSQRT(const void *a) {
  int32_t x = *(const int32_t *)a;
  if (x <= 0) {
    return INT32_MAX;
  }
  uint64_t rest = (1ull << 50) / (uint32_t)x, root = 0;
  for (uint64_t bit = 1ull << 50; bit != 0; bit >>= 2) {
    if (rest >= root + bit) {
      rest -= root + bit;
      root = (root >> 1) + bit;
    } else {
      root >>= 1;
    }
  }
  return (int32_t)((root + 1) >> 1);
}

NPU_INLINE void NPU_VMUL(const void *a, void *d, uint32_t n) {
  const int8_t *x = a;
  int8_t *y = d;
  int32_t scale = (int32_t)npu_soft_acc;
  for (uint32_t i = 0; i < n; i++) {
    int64_t scaled = ((int64_t)x[i] * scale) >> 16;
    y[i] = (int8_t)(scaled < -128 ? -128 : scaled > 127 ? 127 : scaled);
  }
}

NPU_INLINE int32_t NPU_VREDUCE(const void *a, uint32_t n) {
  const uint32_t *x = a;
  uint32_t sum = 0;
  for (uint32_t i = 0; i < n; i++) {
    sum += x[i];
  }
  return (int32_t)sum;
}

NPU_INLINE int32_t NPU_VMAX(const void *a, uint32_t n) {
  const int32_t *x = a;
  int32_t top = INT32_MIN;
  for (uint32_t i = 0; i < n; i++) {
    top = x[i] > top ? x[i] : top;
  }
  return top;
}

#define NPU_LDVEC(vreg, address, offset) \
  __builtin_memcpy(&npu_soft_vreg[(vreg) & 3], (const char *)(address) + (offset), 4)
#define NPU_STVEC(vreg, address, offset) \
  __builtin_memcpy((char *)(address) + (offset), &npu_soft_vreg[(vreg) & 3], 4)

/* ---- floats ---- */

#ifdef NPU_SOFT_EXACT
NPU_SLOW float npu_soft_expf(float x) {
  return (float)exp((double)x);
}

NPU_SLOW float NPU_FGELU(float x) {
  return (float)((double)x * erfc((double)x / -sqrt(2.0)) * 0.5);
}

NPU_SLOW float NPU_FRSQRT(float x) {
  return x == 0.0f ? INFINITY : (float)(1.0 / sqrt((double)x));
}
#else
NPU_INLINE float npu_soft_float(uint32_t bits) {
  float x;
  __builtin_memcpy(&x, &bits, 4);
  return x;
}

/* exp(x) within some 2^-22 of it: 2^n by the exponent, the rest by a series; no subnormal results. */
NPU_SLOW float npu_soft_expf(float x) {
  if (x > 88.72283f) {
    return npu_soft_float(0x7f800000);
  }
  if (x < -87.33654f) {
    return 0.0f;
  }
  int32_t n = (int32_t)(x * 1.44269504f + (x < 0.0f ? -0.5f : 0.5f));
  float r = (x - (float)n * 0.693359375f) + (float)n * 2.12194440e-4f;
  float p = 1.3888889e-3f;
  p = p * r + 8.3333333e-3f;
  p = p * r + 4.1666667e-2f;
  p = p * r + 1.6666667e-1f;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  if (n > 127) {
    p = p * 2.0f;
    n = 127;
  }
  return p * npu_soft_float((uint32_t)(n + 127) << 23);
}

/* GELU by formula 7.1.26 of Abramowitz and Stegun for erf: within 2e-7 |x|. */
NPU_SLOW float NPU_FGELU(float x) {
  float z = (x < 0.0f ? -x : x) * 0.70710678f;
  float t = 1.0f / (1.0f + 0.3275911f * z);
  float p = 1.061405429f;
  p = p * t - 1.453152027f;
  p = p * t + 1.421413741f;
  p = p * t - 0.284496736f;
  p = p * t + 0.254829592f;
  float tail = 0.5f * p * t * npu_soft_expf(-z * z);
  return x * (x < 0.0f ? tail : 1.0f - tail);
}

/* 1 / sqrt(x) of positive x: a guess from the exponent, three steps of Newton's. */
NPU_SLOW float NPU_FRSQRT(float x) {
  uint32_t bits;
  __builtin_memcpy(&bits, &x, 4);
  float y = npu_soft_float(0x5f3759df - (bits >> 1)), half = 0.5f * x;
  for (int i = 0; i < 3; i++) {
    y = y * (1.5f - half * y * y);
  }
  return y;
}
#endif

NPU_INLINE void NPU_FMACC(float a, float b) {
  npu_soft_facc += (npu_sum_t)a * b;
}

NPU_INLINE void NPU_FVMAC(const void *a, const void *b, uint32_t n) {
  const float *x = a, *y = b;
  npu_sum_t sum = npu_soft_facc;
  for (uint32_t i = 0; i < n; i++) {
    sum += (npu_sum_t)x[i] * y[i];
  }
  npu_soft_facc = sum;
}

NPU_INLINE float NPU_FRSTACC(void) {
  float sum = (float)npu_soft_facc;
  npu_soft_facc = 0;
  return sum;
}

NPU_INLINE void NPU_FVEXP(const void *a, void *d, uint32_t n) {
  const float *x = a;
  float *y = d;
  for (uint32_t i = 0; i < n; i++) {
    y[i] = npu_soft_expf(x[i]);
  }
}

NPU_INLINE float NPU_FVRSQRT(const void *a) {
  return NPU_FRSQRT(*(const float *)a);
}

NPU_INLINE void NPU_FVMUL(const void *a, void *d, uint32_t n) {
  const float *x = a;
  float *y = d, s = (float)npu_soft_facc;
  for (uint32_t i = 0; i < n; i++) {
    y[i] = x[i] * s;
  }
}

NPU_INLINE void NPU_FVDIV(const void *a, void *d, uint32_t n) {
  const float *x = a;
  float *y = d, s = (float)npu_soft_facc;
  for (uint32_t i = 0; i < n; i++) {
    y[i] = x[i] / s;
  }
}

NPU_INLINE void NPU_FVSUB_SCALAR(const void *a, void *d, uint32_t n) {
  const float *x = a;
  float *y = d, s = (float)npu_soft_facc;
  for (uint32_t i = 0; i < n; i++) {
    y[i] = x[i] - s;
  }
}

NPU_INLINE float NPU_FVREDUCE(const void *a, uint32_t n) {
  const float *x = a;
  npu_sum_t sum = 0;
  for (uint32_t i = 0; i < n; i++) {
    sum += x[i];
  }
  return (float)sum;
}

NPU_INLINE float NPU_FVMAX(const void *a, uint32_t n) {
  const float *x = a;
  float top = -__builtin_inff();
  for (uint32_t i = 0; i < n; i++) {
    top = x[i] > top ? x[i] : top;
  }
  return top;
}

NPU_INLINE void NPU_FVADD(const void *a, void *b, uint32_t n) {
  const float *x = a;
  float *y = b;
  for (uint32_t i = 0; i < n; i++) {
    y[i] = x[i] + y[i];
  }
}

NPU_INLINE void NPU_FVSUB(const void *a, void *b, uint32_t n) {
  const float *x = a;
  float *y = b;
  for (uint32_t i = 0; i < n; i++) {
    y[i] = x[i] - y[i];
  }
}

NPU_INLINE float NPU_FRELU(float a) {
  return a > 0.0f ? a : 0.0f;
}

NPU_INLINE void NPU_FVRELU(const void *a, void *d, uint32_t n) {
  const float *x = a;
  float *y = d;
  for (uint32_t i = 0; i < n; i++) {
    y[i] = NPU_FRELU(x[i]);
  }
}

NPU_INLINE void NPU_FVGELU(const void *a, void *d, uint32_t n) {
  const float *x = a;
  float *y = d;
  for (uint32_t i = 0; i < n; i++) {
    y[i] = NPU_FGELU(x[i]);
  }
}

#endif
