/* SPDX-License-Identifier: Apache-2.0 */
#include "soc.h"

#define EXTERNAL "0x800" /* machine external interrupt, in mie and mip */

void soc_wait_interrupt(void) {
  uint32_t pending;
  __asm__ volatile(
      ".option push\n.option arch, +zicsr\n"
      "li %0, " EXTERNAL "\ncsrs mie, %0\n"
      "1: csrr %0, mip\nandi %0, %0, -2048\nbnez %0, 2f\nwfi\nj 1b\n2:\n"
      ".option pop"
      : "=&r"(pending)
      :
      : "memory");
}

_Noreturn void exit(int code) {
  soc_write(SOC_EXIT, (uint32_t)code);
  for (;;) {
  }
}
