/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Digits of 28 x 28 pixels by a perceptron in bytes (golden/recipes/digits.py defines it; what it was trained
 * on: weights/firmware/checkpoints/digits). A row of 784 bytes is longer than one instruction may be: LIMIT
 * stays at its reset value, and the row is as many VMACs as it takes.
 */
#include "digits_weights.h"
#include "npu_recipes.h"
#include "print.h"

#define LIMIT 256

static int32_t row(const struct npu_linear_int8 *layer, uint32_t at, const int8_t *x, uint32_t in) {
  const int8_t *weight = layer->weight + at * in;
  for (uint32_t done = 0; done < in; done += LIMIT) {
    NPU_VMAC(weight + done, x + done, in - done < LIMIT ? in - done : LIMIT);
  }
  return NPU_QMUL(NPU_RSTACC() + layer->row[at].bias, layer->row[at].factor);
}

static uint32_t recognise(const int8_t *image, int32_t *logits) {
  static int8_t hidden[HIDDEN];
  uint32_t best = 0;
  NPU_FENCE();
  for (uint32_t i = 0; i < HIDDEN; i++) {
    hidden[i] = (int8_t)NPU_RELU(NPU_CLAMP(row(&digits_hidden, i, image, PIXELS) >> OUTPUT_SHIFT));
  }
  NPU_FENCE();
  for (uint32_t i = 0; i < CLASSES; i++) {
    logits[i] = row(&digits_output, i, hidden, HIDDEN);
    best = logits[i] > logits[best] ? i : best;
  }
  return best;
}

int main(void) {
  uint32_t right = 0;
  npu_set_limit(LIMIT);
  for (uint32_t i = 0; i < IMAGES; i++) {
    int32_t logits[CLASSES];
    uint32_t digit = recognise(digits_images[i], logits);
    print("picture %2u of a %u is a %u, logit %d\n", (unsigned)i, (unsigned)digits_labels[i], (unsigned)digit,
          (int)logits[digit]);
    right += digit == digits_labels[i];
  }
  print("%u of %u right\n", (unsigned)right, (unsigned)IMAGES);
  return 0;
}
