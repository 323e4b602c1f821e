/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A byte-level transformer in FP32 (golden/recipes/bytelm_fp32.py defines it, bit for bit; model card:
 * weights/firmware/checkpoints/bytelm). With an input it continues that text until the context is full;
 * without one it prints, for each built-in prompt, the next byte and a hash of the logits. With ONE_TOKEN it
 * computes the token at position 16 once and prints its cycles.
 */
#include "bytelm_fp32_weights.h"
#include "npu_recipes.h"
#include "print.h"
#include "soc.h"

#include "../bytelm.h"

static float keys[LAYERS][CONTEXT][DIM];
/* Lane by lane, so that a lane of all positions is one operand. */
static float values[LAYERS][DIM][CONTEXT];
static float logits[VOCAB];

static void append_value(uint32_t layer, uint32_t position, const float *value) {
  for (uint32_t lane = 0; lane < DIM; lane++) {
    values[layer][lane][position] = value[lane];
  }
}

static void attention(uint32_t layer, uint32_t position, const float *query, float *context) {
  static float scores[CONTEXT];
  for (uint32_t head = 0; head < DIM; head += HEAD_DIM) {
    const float *key = &keys[layer][0][head];
    NPU_FENCE();
    for (uint32_t t = 0; t <= position; t++, key += DIM) {
      NPU_FVMAC(query + head, key, HEAD_DIM);
      scores[t] = NPU_FRSTACC();
    }
    npu_softmax_fp32(scores, position + 1);
    for (uint32_t lane = head; lane < head + HEAD_DIM; lane++) {
      NPU_FVMAC(scores, values[layer][lane], position + 1);
      context[lane] = NPU_FRSTACC();
    }
  }
}

/* x = y + x, with y a layer's output. */
static void add_layer(const struct npu_linear_fp32 *layer, const float *in, uint32_t size, float *x) {
  static float y[DIM];
  npu_linear_fp32(layer, in, size, y, DIM);
  NPU_FVADD(y, x, DIM);
}

/* Index of the first logit with the value of the largest. */
static uint32_t arg_max(void) {
  NPU_FENCE();
  float top = NPU_FVMAX(logits, VOCAB);
  uint32_t bits, i = 0;
  __builtin_memcpy(&bits, &top, 4);
  while (i < VOCAB - 1 && ((const volatile uint32_t *)logits)[i] != bits) {
    i++;
  }
  return i;
}

/* Take in one token. Without `last` nobody asks for the logits: the last layer only keeps key and value. */
static uint32_t step(uint32_t token, uint32_t position, int last) {
  static float x[DIM], h[DIM], query[DIM], value[DIM], context[DIM], hidden[FFN];
  __builtin_memcpy(x, bytelm_wte[token], sizeof(x));
  NPU_FENCE();
  NPU_FVADD(bytelm_wpe[position], x, DIM);
  for (uint32_t at = 0; at < LAYERS; at++) {
    const struct bytelm_layer *layer = &bytelm_layers[at];
    npu_rmsnorm_fp32(x, h, DIM, 1.0f / DIM, EPSILON);
    npu_linear_fp32(&layer->k, h, DIM, keys[at][position], DIM);
    npu_linear_fp32(&layer->v, h, DIM, value, DIM);
    append_value(at, position, value);
    if (at == LAYERS - 1 && !last) {
      return 0;
    }
    npu_linear_fp32(&layer->q, h, DIM, query, DIM);
    attention(at, position, query, context);
    add_layer(&layer->o, context, DIM, x);
    npu_rmsnorm_fp32(x, h, DIM, 1.0f / DIM, EPSILON);
    npu_linear_fp32(&layer->up, h, DIM, hidden, FFN);
    NPU_FVGELU(hidden, hidden, FFN);
    add_layer(&layer->down, hidden, FFN, x);
  }
  npu_rmsnorm_fp32(x, h, DIM, 1.0f / DIM, EPSILON);
  npu_products_fp32(bytelm_head[0], h, DIM, logits, VOCAB);
  return arg_max();
}

static void fill_cache(uint32_t positions) {
  for (uint32_t layer = 0; layer < LAYERS; layer++) {
    for (uint32_t t = 0; t < positions; t++) {
      __builtin_memcpy(keys[layer][t], bytelm_wte['a' + t], sizeof(keys[layer][t]));
      append_value(layer, t, bytelm_wte['A' + t]);
    }
  }
}

int main(void) {
  npu_set_limit(0);
  return bytelm_main((const uint32_t *)(const void *)logits, step, fill_cache);
}
