/* SPDX-License-Identifier: Apache-2.0 */
/* Stores are in memory behind NPU_FENCE(), what follows it at once is executed once, and a load behind an
   instruction sees what that has stored. */
#include "npu_fp.h"
#include "print.h"

#define COUNT 16

static int32_t words[COUNT];
static volatile int32_t copy;

int main(void) {
  int32_t sum = 0, stale = 0;
  for (int32_t i = 0; i < COUNT; i++) {
    for (int32_t j = 0; j <= i; j++) {
      words[j] = i;
    }
    NPU_FENCE();
    NPU_MACC(1, 1);
    NPU_LDVEC(1, words, 0);
    NPU_STVEC(1, &copy, 0);
    stale += copy != i;
    sum += NPU_VREDUCE(words, (uint32_t)i + 1);
  }
  print("%d times, sum %d, stale %d\n", NPU_RSTACC(), sum, stale);
  return 0;
}
