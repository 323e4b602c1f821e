/* SPDX-License-Identifier: Apache-2.0 */
#include "trap.h"

#include "print.h"
#include "soc.h"

#define COP_STATUS 0x240u
#define COP_STATUS_FAULT 0x2u
#define COP_FAULT_INSTR 0x248u
#define COP_FAULT_ADDR 0x24Cu
#define COP_FAULT_INDEX 0x250u

void trap_print(const struct trap_frame *frame) {
  print("trap: mcause %u at %08x", frame->cause, frame->pc);
  if (frame->cause == TRAP_ILLEGAL && (frame->pc & 3) == 0) {
    print(", instruction %08x", soc_read(frame->pc));
  }
  print("\n");
  uint32_t status = chip_read(COP_STATUS);
  if ((status & COP_STATUS_FAULT) != 0) {
    print("coprocessor: fault %u, instruction %08x, address %08x, index %u\n", status >> 4 & 0xFu,
          chip_read(COP_FAULT_INSTR), chip_read(COP_FAULT_ADDR), chip_read(COP_FAULT_INDEX));
  }
}

__attribute__((weak)) void trap(struct trap_frame *frame) {
  trap_print(frame);
  exit(128 + (int)(frame->cause & 0x7Fu));
}
