/* SPDX-License-Identifier: Apache-2.0 */
/* Never ends: asleep without anything that could wake the core, or at work. */
#include "print.h"
#include "soc.h"

__attribute__((noinline)) static void stuck(void) {
  for (;;) {
#ifdef ASLEEP
    __asm__ volatile("wfi");
#else
    __asm__ volatile("");
#endif
  }
}

int main(void) {
  print("here\n");
  stuck();
  return 0;
}
