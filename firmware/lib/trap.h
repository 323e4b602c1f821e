/* SPDX-License-Identifier: Apache-2.0 */
/* What happens when an instruction is refused or an access fails. */
#ifndef TRAP_H
#define TRAP_H

#include <stdint.h>

#define TRAP_ILLEGAL 2u /* mcause of a refused instruction */

/* The registers at the trap; crt0.S knows the order. */
struct trap_frame {
  uint32_t x[32];
  uint32_t pc; /* of the instruction; the program goes on there */
  uint32_t cause; /* mcause */
};

/* Called for every trap; a program may have its own. This one says what happened, the
   coprocessor's fault included, and ends the run with code 128 + cause. */
void trap(struct trap_frame *frame);

/* Say what happened. */
void trap_print(const struct trap_frame *frame);

#endif
