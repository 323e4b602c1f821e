/* SPDX-License-Identifier: Apache-2.0 */
/* On a core that hands over two registers: each instruction that reads three is refused, and traps. */
#include "npu_fp.h"
#include "print.h"
#include "trap.h"

/* None is on its way when the trap flushes (npu_cva6.h). */
#define APART() __asm__ volatile(".rept 8; nop; .endr" ::: "memory")
#define TRY(name)                          \
  do {                                     \
    uint32_t before = refused;             \
    name(words, words, 4);                 \
    APART();                               \
    if (refused == before) {               \
      print("accepted: %s\n", #name);      \
    }                                      \
  } while (0)

static volatile uint32_t refused;
static uint32_t words[4];

void trap(struct trap_frame *frame) {
  if (frame->cause == TRAP_ILLEGAL) {
    refused++;
  } else {
    trap_print(frame);
  }
  frame->pc += 4;
}

int main(void) {
  TRY(NPU_VMAC);
  TRY(NPU_VEXP);
  TRY(NPU_VMUL);
  TRY(NPU_FVMAC);
  TRY(NPU_FVEXP);
  TRY(NPU_FVMUL);
  TRY(NPU_FVADD);
  TRY(NPU_FVSUB);
  TRY(NPU_FVRELU);
  TRY(NPU_FVGELU);
  TRY(NPU_FVDIV);
  TRY(NPU_FVSUB_SCALAR);
  print("%u refused\n", refused);
  NPU_MACC(3, 4);
  print("MACC %d\n", NPU_RSTACC());
  return 0;
}
