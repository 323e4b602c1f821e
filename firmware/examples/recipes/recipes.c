/* SPDX-License-Identifier: Apache-2.0 */
/* The layers of npu_recipes.h on random data, quantised and FP32: a line each, with a hash of the result. */
#include "npu_recipes.h"
#include "print.h"

#include "../random_data.h"

#define IN 64
#define OUT 24
#define KEYS 17

static void fp32(void) {
  static float weight[OUT * IN], bias[OUT], x[IN], gain[IN], y[IN], scores[KEYS], again[KEYS];
  const struct npu_linear_fp32 layer = {weight, bias};
  random_floats(weight, OUT * IN);
  random_floats(bias, OUT);
  random_floats(x, IN);
  random_floats(gain, IN);
  random_floats(scores, KEYS);
  __builtin_memcpy(again, scores, sizeof(scores));
  npu_linear_fp32(&layer, x, IN, y, OUT);
  print_hash("linear FP32", y, OUT * sizeof(float));
  npu_softmax_fp32(scores, KEYS);
  print_hash("softmax FP32", scores, sizeof(scores));
  npu_softmax_reciprocal_fp32(again, KEYS);
  print_hash("softmax FP32 by reciprocal", again, sizeof(again));
  npu_rmsnorm_fp32(x, y, IN, 1.0f / IN, 1e-5f);
  print_hash("RMSNorm FP32", y, sizeof(y));
  npu_gain_fp32(gain, y, IN);
  print_hash("RMSNorm FP32 with gains", y, sizeof(y));
}

static void quantised(void) {
  static int8_t weight[OUT * IN], x[IN], y[IN];
  static int32_t stream[IN], scores[KEYS];
  static struct npu_row row[OUT];
  const struct npu_linear_int8 layer = {weight, row};
  random_bytes(weight, OUT * IN);
  random_bytes(x, IN);
  for (uint32_t i = 0; i < OUT; i++) {
    row[i].bias = (int32_t)random_word() >> 20;
    row[i].factor = (int32_t)(random_word() >> 19);
  }
  random_words(stream, IN, 18);
  random_words(scores, KEYS, 19);
  npu_linear_int8(&layer, x, IN, y, OUT, 14);
  print_hash("linear INT8", y, OUT);
  npu_linear_gelu_int8(&layer, x, IN, y, OUT, 14);
  print_hash("linear INT8 with GELU", y, OUT);
  npu_linear_add_int8(&layer, x, IN, stream, OUT, 6);
  print_hash("linear INT8 added", stream, sizeof(stream));
  npu_softmax_int8(scores, y, KEYS);
  print_hash("softmax INT8", y, KEYS);
  npu_rmsnorm_int8(stream, y, 6, 1 << 16, 28);
  print_hash("RMSNorm INT8", y, IN);
}

int main(void) {
  npu_set_limit(0);
  fp32();
  quantised();
  return 0;
}
