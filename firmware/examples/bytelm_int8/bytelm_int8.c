/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A byte-level transformer in integers (golden/recipes/bytelm_int8.py defines it; model card:
 * weights/firmware/checkpoints/bytelm). With an input it continues that text until the context is full;
 * without one it prints, for each built-in prompt, the next byte and a hash of the logits. With ONE_TOKEN it
 * computes the token at position 16 once and prints its cycles.
 */
#include "bytelm_int8_weights.h"
#include "npu_recipes.h"
#include "print.h"
#include "soc.h"

#include "../bytelm.h"

static int8_t keys[LAYERS][CONTEXT][DIM];
/* Lane by lane, so that a lane of all positions is one operand. */
static int8_t values[LAYERS][DIM][CONTEXT];
/* Of each lane, 128 times the sum over the positions so far: what probabilities less 128 leave out. */
static int32_t value_sums[LAYERS][DIM];
static int32_t logits[VOCAB];

static void append_value(uint32_t layer, uint32_t position, const int8_t *value) {
  for (uint32_t lane = 0; lane < DIM; lane++) {
    values[layer][lane][position] = value[lane];
    value_sums[layer][lane] = (position == 0 ? 0 : value_sums[layer][lane]) + 128 * value[lane];
  }
}

static void attention(uint32_t layer, uint32_t position, const int8_t *query, int8_t *context) {
  static int32_t scores[CONTEXT];
  static int8_t weights[CONTEXT];
  int32_t score_factor = bytelm_layers[layer].score_factor;
  for (uint32_t head = 0; head < DIM; head += HEAD_DIM) {
    const int8_t *key = &keys[layer][0][head];
    NPU_FENCE();
    for (uint32_t t = 0; t <= position; t++, key += DIM) {
      NPU_VMAC(query + head, key, HEAD_DIM);
      scores[t] = NPU_QMUL(NPU_RSTACC(), score_factor);
    }
    npu_softmax_int8(scores, weights, position + 1);
    NPU_FENCE();
    for (uint32_t lane = head; lane < head + HEAD_DIM; lane++) {
      NPU_VMAC(weights, values[layer][lane], position + 1);
      context[lane] = (int8_t)((257 * (NPU_RSTACC() + value_sums[layer][lane]) + 32768) >> 16);
    }
  }
}

/* Take in one token. Without `last` nobody asks for the logits: the last layer only keeps key and value. */
static uint32_t step(uint32_t token, uint32_t position, int last) {
  static int32_t x[DIM];
  static int8_t h[DIM], query[DIM], value[DIM], context[DIM], hidden[FFN];
  for (uint32_t i = 0; i < DIM; i++) {
    x[i] = bytelm_wte[token][i] * WTE_FACTOR + bytelm_wpe[position][i] * WPE_FACTOR;
  }
  for (uint32_t at = 0; at < LAYERS; at++) {
    const struct bytelm_layer *layer = &bytelm_layers[at];
    npu_rmsnorm_int8(x, h, LOG2_DIM, EPSILON, layer->norm1_steps);
    npu_linear_int8(&layer->k, h, DIM, keys[at][position], DIM, OUTPUT_SHIFT);
    npu_linear_int8(&layer->v, h, DIM, value, DIM, OUTPUT_SHIFT);
    append_value(at, position, value);
    if (at == LAYERS - 1 && !last) {
      return 0;
    }
    npu_linear_int8(&layer->q, h, DIM, query, DIM, OUTPUT_SHIFT);
    attention(at, position, query, context);
    npu_linear_add_int8(&layer->o, context, DIM, x, DIM, ADD_SHIFT);
    npu_rmsnorm_int8(x, h, LOG2_DIM, EPSILON, layer->norm2_steps);
    npu_linear_gelu_int8(&layer->up, h, DIM, hidden, FFN, OUTPUT_SHIFT);
    npu_linear_add_int8(&layer->down, hidden, FFN, x, DIM, ADD_SHIFT);
  }
  npu_rmsnorm_int8(x, h, LOG2_DIM, EPSILON, NORM_STEPS);
  NPU_FENCE();
  uint32_t best = 0;
  int32_t top = INT32_MIN;
  for (uint32_t i = 0; i < VOCAB; i++) {
    int32_t logit = npu_row_int8(bytelm_head.weight + i * DIM, h, DIM, &bytelm_head.row[i]);
    logits[i] = logit;
    if (logit > top) {
      top = logit;
      best = i;
    }
  }
  return best;
}

static void fill_cache(uint32_t positions) {
  for (uint32_t layer = 0; layer < LAYERS; layer++) {
    for (uint32_t t = 0; t < positions; t++) {
      for (uint32_t lane = 0; lane < DIM; lane++) {
        keys[layer][t][lane] = bytelm_wte['a' + t][lane];
      }
      append_value(layer, t, bytelm_wte['A' + t]);
    }
  }
}

int main(void) {
  npu_set_limit(0);
  return bytelm_main((const uint32_t *)logits, step, fill_cache);
}
