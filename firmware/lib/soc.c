/* SPDX-License-Identifier: Apache-2.0 */
#include "soc.h"

#define EXTERNAL 0x800u /* machine external interrupt, in mie and mip */

int soc_interrupt_pending(void) {
  uint32_t pending;
  __asm__ volatile(".option push\n.option arch, +zicsr\ncsrr %0, mip\n.option pop"
                   : "=r"(pending)
                   :
                   : "memory");
  return (pending & EXTERNAL) != 0;
}

void soc_wait_interrupt(void) {
  __asm__ volatile(".option push\n.option arch, +zicsr\ncsrs mie, %0\n.option pop" ::"r"(EXTERNAL));
  while (!soc_interrupt_pending()) {
    __asm__ volatile("wfi" ::: "memory");
  }
}

_Noreturn void exit(int code) {
  soc_write(SOC_EXIT, (uint32_t)code);
  for (;;) {
  }
}
