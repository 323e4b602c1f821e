/* SPDX-License-Identifier: Apache-2.0 */
/* What cannot be executed or accessed traps; the handler sees where, and the program goes on. */
#include "trap.h"

#include "print.h"
#include "soc.h"

static uint32_t traps;

void trap(struct trap_frame *frame) {
  traps++;
  print("mcause %u\n", frame->cause);
  frame->pc += 4;
  if (traps == 6) {
    exit(6);
  }
}

int main(void) {
  uint32_t kept = 0x12345678u;
  __asm__ volatile(".insn r 0x0b, 0, 127, %0, %0, %0" : "+r"(kept)); /* no such instruction */
  __asm__ volatile(".insn r 0x2b, 7, 0, %0, %0, %0" : "+r"(kept));
  __asm__ volatile(".insn r 0x5b, 0, 0, %0, %0, %0" : "+r"(kept)); /* custom-2 */
  __asm__ volatile(".4byte 0");
  __asm__ volatile("ecall");
  print("%08x after %u traps\n", kept, traps);
  soc_read(0x70000000u); /* nothing answers there: an NMI, which comes later */
  for (;;) {
  }
}
