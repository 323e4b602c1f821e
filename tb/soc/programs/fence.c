/* SPDX-License-Identifier: Apache-2.0 */
/* Stores are in memory behind NPU_FENCE(), and what follows it at once is executed once. */
#include "npu_fp.h"
#include "print.h"

#define COUNT 16

static int32_t words[COUNT];

int main(void) {
  int32_t sum = 0;
  for (int32_t i = 0; i < COUNT; i++) {
    for (int32_t j = 0; j <= i; j++) {
      words[j] = i;
    }
    NPU_FENCE();
    NPU_MACC(1, 1);
    sum += NPU_VREDUCE(words, (uint32_t)i + 1);
  }
  print("%d times, sum %d\n", NPU_RSTACC(), sum);
  return 0;
}
