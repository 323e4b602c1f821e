/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Newton's method with the coprocessor's floats, on a core that may have none: the root of his own example,
 * x^3 - 2x - 5, and reciprocal square roots against FRSQRT. Every step is FMACC into the double accumulator
 * and one rounding by FRSTACC; the quotient is an FVDIV of one element.
 */
#ifdef NPU_SOFTWARE
#include "npu_soft.h"
#else
#include "npu_fp.h"
#endif
#include "print.h"

static uint32_t bits_of(float x) {
  uint32_t bits;
  __builtin_memcpy(&bits, &x, 4);
  return bits;
}

/* Digits of a number from 2^-24 to below 2^24, cut behind the sixth. */
static void print_float(float x) {
  uint32_t bits = bits_of(x), shift = 150 - (bits >> 23 & 255);
  uint64_t fixed = (uint64_t)((bits & 0x7fffff) | 0x800000) << 24 >> shift;
  uint32_t fraction = (uint32_t)(((fixed & 0xffffff) * 1000000) >> 24);
  print("%s%u.%06u (%08x)", bits >> 31 ? "-" : "", (unsigned)(fixed >> 24), (unsigned)fraction, (unsigned)bits);
}

static float product(float a, float b) {
  NPU_FMACC(a, b);
  return NPU_FRSTACC();
}

static float quotient(float a, float b) {
  NPU_FMACC(b, 1.0f);
  NPU_FENCE();
  NPU_FVDIV(&a, &a, 1);
  (void)NPU_FRSTACC();
  return a;
}

/* x - f(x) / f'(x) for f = x^3 - 2x - 5. */
static float cubic_step(float x) {
  float square = product(x, x);
  NPU_FMACC(square, x);
  NPU_FMACC(x, -2.0f);
  NPU_FMACC(5.0f, -1.0f);
  float value = NPU_FRSTACC();
  NPU_FMACC(square, 3.0f);
  NPU_FMACC(2.0f, -1.0f);
  float change = quotient(value, NPU_FRSTACC());
  NPU_FMACC(x, 1.0f);
  NPU_FMACC(change, -1.0f);
  return NPU_FRSTACC();
}

/* y (3 - a y^2) / 2, whose fixed point is 1 / sqrt(a). */
static float root_step(float a, float y) {
  float near_one = product(a, product(y, y));
  NPU_FMACC(3.0f, 0.5f);
  NPU_FMACC(near_one, -0.5f);
  return product(y, NPU_FRSTACC());
}

int main(void) {
  float x = 2.0f;
  print("x^3 - 2x - 5 = 0\n");
  for (int i = 0; i < 5; i++) {
    x = cubic_step(x);
    print_float(x);
    print("\n");
  }
  static const float numbers[] = {2.0f, 3.0f, 0.5f, 10.0f};
  for (int i = 0; i < 4; i++) {
    float a = numbers[i], y = 0.5f;
    for (int turn = 0; turn < 8; turn++) {
      y = root_step(a, y);
    }
    print("1/sqrt of ");
    print_float(a);
    print(": ");
    print_float(y);
    print(", FRSQRT ");
    print_float(NPU_FRSQRT(a));
    print("\n");
  }
  return 0;
}
