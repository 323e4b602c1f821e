/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The layers of small networks as sequences of coprocessor instructions. golden/recipes/layers.py defines
 * them; results are equal to it bit for bit. Arrays longer than LIMIT bytes per operand (reset 256) need
 * npu_set_limit first. With NPU_SOFTWARE the same C computes without the coprocessor (npu_soft.h).
 *
 * No float is computed by the core itself, which may have no FPU: additions are FVADD, or FMACC into facc.
 */
#ifndef NPU_RECIPES_H
#define NPU_RECIPES_H

#include <stdint.h>

#ifdef NPU_SOFTWARE
#include "npu_soft.h"
#else
#include "npu_fp.h"
#endif

#define NPU_RECIPE static __attribute__((unused))

/* A row of a quantised layer: what is added to its sum, and QMUL's factor. */
struct npu_row {
  int32_t bias;
  int32_t factor;
};

/* Weights (out, in), row by row, and what follows the sums of each row. */
struct npu_linear_int8 {
  const int8_t *weight;
  const struct npu_row *row;
};

struct npu_linear_fp32 {
  const float *weight;
  const float *bias;
};

/* Longest operand of an instruction in bytes; 0 is 1 MiB. */
NPU_RECIPE void npu_set_limit(uint32_t bytes) {
#ifdef NPU_SOFTWARE
  (void)bytes;
#else
  *(volatile uint32_t *)0x20000054u = bytes;
#endif
}

/* ---- FP32 ---- */

/* y = weight . x without a bias. */
NPU_RECIPE void npu_products_fp32(const float *weight, const float *x, uint32_t in, float *y,
                                  uint32_t out) {
  NPU_FENCE();
  for (float *end = y + out; y != end; y++, weight += in) {
    NPU_FVMAC(weight, x, in);
    *y = NPU_FRSTACC();
  }
}

/* y = weight . x + bias; y may not be x. */
NPU_RECIPE void npu_linear_fp32(const struct npu_linear_fp32 *layer, const float *x, uint32_t in, float *y,
                                uint32_t out) {
  npu_products_fp32(layer->weight, x, in, y, out);
  NPU_FENCE();
  NPU_FVADD(layer->bias, y, out);
}

/* exp(x - max x) in place; returns the sum. */
NPU_RECIPE float npu_numerators_fp32(float *x, uint32_t n) {
  NPU_FENCE();
  NPU_FMACC(NPU_FVMAX(x, n), 1.0f);
  NPU_FVSUB_SCALAR(x, x, n);
  (void)NPU_FRSTACC();
  NPU_FVEXP(x, x, n);
  return NPU_FVREDUCE(x, n);
}

/* Softmax in place, each element divided by the sum. */
NPU_RECIPE void npu_softmax_fp32(float *x, uint32_t n) {
  NPU_FMACC(npu_numerators_fp32(x, n), 1.0f);
  NPU_FVDIV(x, x, n);
  (void)NPU_FRSTACC();
}

/* Softmax in place, each element multiplied by the reciprocal of the sum: one more rounding, one division. */
NPU_RECIPE void npu_softmax_reciprocal_fp32(float *x, uint32_t n) {
  float reciprocal = 1.0f;
  NPU_FMACC(npu_numerators_fp32(x, n), 1.0f);
  NPU_FENCE();
  NPU_FVDIV(&reciprocal, &reciprocal, 1);
  (void)NPU_FRSTACC();
  NPU_FMACC(reciprocal, 1.0f);
  NPU_FVMUL(x, x, n);
  (void)NPU_FRSTACC();
}

/* y = x / sqrt(mean(x^2) + epsilon); share is 1/n, n a power of two. */
NPU_RECIPE void npu_rmsnorm_fp32(const float *x, float *y, uint32_t n, float share, float epsilon) {
  NPU_FENCE();
  NPU_FVMAC(x, x, n);
  NPU_FMACC(NPU_FRSTACC(), share);
  NPU_FMACC(epsilon, 1.0f);
  NPU_FMACC(NPU_FRSQRT(NPU_FRSTACC()), 1.0f);
  NPU_FVMUL(x, y, n);
  (void)NPU_FRSTACC();
}

/* y *= gain, element by element. */
NPU_RECIPE void npu_gain_fp32(const float *gain, float *y, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) {
    NPU_FMACC(y[i], gain[i]);
    y[i] = NPU_FRSTACC();
  }
}

/* ---- quantised ---- */

/* QMUL(weight row . x + bias, factor): the result of a row before its shift. */
NPU_INLINE int32_t npu_row_int8(const int8_t *weight, const int8_t *x, uint32_t in,
                                const struct npu_row *row) {
  NPU_VMAC(weight, x, in);
  return NPU_QMUL(NPU_RSTACC() + row->bias, row->factor);
}

/* y = bytes of (weight . x + bias) * factor >> (8 + shift). */
NPU_RECIPE void npu_linear_int8(const struct npu_linear_int8 *layer, const int8_t *x, uint32_t in, int8_t *y,
                                uint32_t out, uint32_t shift) {
  const int8_t *weight = layer->weight;
  const struct npu_row *row = layer->row;
  NPU_FENCE();
  for (int8_t *end = y + out; y != end; y++, weight += in, row++) {
    *y = (int8_t)NPU_CLAMP(npu_row_int8(weight, x, in, row) >> shift);
  }
}

/* The same through GELU's table, for results in units of 1/32. */
NPU_RECIPE void npu_linear_gelu_int8(const struct npu_linear_int8 *layer, const int8_t *x, uint32_t in,
                                     int8_t *y, uint32_t out, uint32_t shift) {
  const int8_t *weight = layer->weight;
  const struct npu_row *row = layer->row;
  NPU_FENCE();
  for (int8_t *end = y + out; y != end; y++, weight += in, row++) {
    *y = (int8_t)NPU_GELU(NPU_CLAMP(npu_row_int8(weight, x, in, row) >> shift));
  }
}

/* y += (weight . x + bias) * factor >> (8 + shift), a residual stream of 32 bits. */
NPU_RECIPE void npu_linear_add_int8(const struct npu_linear_int8 *layer, const int8_t *x, uint32_t in,
                                    int32_t *y, uint32_t out, uint32_t shift) {
  const int8_t *weight = layer->weight;
  const struct npu_row *row = layer->row;
  NPU_FENCE();
  for (int32_t *end = y + out; y != end; y++, weight += in, row++) {
    *y += npu_row_int8(weight, x, in, row) >> shift;
  }
}

/*
 * Probabilities of Q16.16 scores in units of 1/255, less 128, so that VMAC can multiply by them. The scores
 * become numerators. Rounding errors do not add up: a probability is the growth of the rounded running sum,
 * so all of a row give 255 (254 where the reciprocal was cut by much); n from 1 to 255.
 */
NPU_RECIPE void npu_softmax_int8(int32_t *scores, int8_t *less_128, uint32_t n) {
  NPU_FENCE();
  int32_t top = NPU_VMAX(scores, n);
  for (uint32_t i = 0; i < n; i++) {
    scores[i] -= top;
  }
  NPU_FENCE();
  NPU_VEXP(scores, scores, n);
  uint32_t reciprocal = (255u << 24) / (uint32_t)NPU_VREDUCE(scores, n);
  uint32_t running = 1u << 23, before = 0;
  for (uint32_t i = 0; i < n; i++) {
    running += (uint32_t)scores[i] * reciprocal;
    uint32_t whole = running >> 24;
    less_128[i] = (int8_t)(whole - before - 128);
    before = whole;
  }
}

/*
 * y = bytes of the RMSNorm of a residual stream, `steps` to the unit; n is 2^log2_n, epsilon is Q16.16 in
 * squares of the stream's unit. The stream is first brought to bytes by a shift of its own.
 */
NPU_RECIPE void npu_rmsnorm_int8(const int32_t *x, int8_t *y, uint32_t log2_n, uint32_t epsilon,
                                 int32_t steps) {
  uint32_t n = 1u << log2_n, bits = 0, shift = 0;
  for (uint32_t i = 0; i < n; i++) {
    bits |= (uint32_t)(x[i] ^ (x[i] >> 31));
  }
  while ((bits >> shift) > 127) {
    shift++;
  }
  int32_t half = (int32_t)((1u << shift) >> 1);
  for (uint32_t i = 0; i < n; i++) {
    int32_t small = (x[i] + half) >> shift;
    y[i] = (int8_t)(small > 127 ? 127 : small);
  }
  NPU_FENCE();
  NPU_VMAC(y, y, n);
  int32_t mean = (int32_t)(((uint32_t)NPU_RSTACC() << (16 - log2_n)) + (epsilon >> (2 * shift)));
  NPU_FENCE();
  NPU_MACC(NPU_VRSQRT(&mean), steps);
  NPU_VMUL(y, y, n);
  (void)NPU_RSTACC();
}

#endif
