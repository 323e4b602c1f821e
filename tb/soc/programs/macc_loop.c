/* SPDX-License-Identifier: Apache-2.0 */
/* A loop of MACC, addi and bne: cycles of a turn, and the sum. */
#include "npu.h"
#include "print.h"
#include "soc.h"

#define TURNS 1000

uint32_t cycles; /* of all turns */

int main(void) {
  uint32_t left = TURNS, first, last;
  (void)NPU_RSTACC();
  __asm__ volatile(
      ".option push\n.option norvc\n.balign 4\n"
      "lw %1, 0(%4)\n"
      "1: .insn r 0x0b, 0, 0, x0, %0, %3\n"
      "addi %0, %0, -1\n"
      "bne %0, x0, 1b\n"
      "lw %2, 0(%4)\n.option pop"
      : "+r"(left), "=&r"(first), "=&r"(last)
      : "r"(3), "r"(SOC_CYCLES));
  cycles = last - first;
  print("%d\n", (int)NPU_RSTACC());
  return 0;
}
