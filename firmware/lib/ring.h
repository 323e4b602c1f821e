/* SPDX-License-Identifier: Apache-2.0 */
/* The descriptor ring of the command port: operations of npu_regs.h (NPU_CMD_OP_...), and microcode
   programs, in a queue that the chip works off by itself. docs/reference/command-port.md */
#ifndef RING_H
#define RING_H

#include <stdint.h>

#define NPU_RING_ENTRIES 8u

struct npu_ring {
  volatile uint32_t entries[NPU_RING_ENTRIES][4]; /* at a multiple of 16 */
  uint32_t head; /* entry that is filled next */
} __attribute__((aligned(16)));

/* A program for npu_ring_add_program; what it does not name is in the registers. */
struct npu_ring_program {
  uint32_t token;
  uint32_t base0;
  uint32_t base1;
  uint32_t ucode_base; /* a multiple of 16 */
  uint32_t ucode_len; /* words of 16 bytes */
  uint32_t pos;
};

/* Empty the ring and tell the idle port where it lies. */
void npu_ring_open(struct npu_ring *ring);

/* Entries that can be added before some are worked off. */
uint32_t npu_ring_room(const struct npu_ring *ring);

/* Append a scalar operation on two entries; RESULT and RESULT_HI go to target[0] and target[1].
   Return 0, or -1 without room. */
int npu_ring_add(struct npu_ring *ring, uint32_t operation, uint32_t a, uint32_t b, uint32_t acc,
                 volatile uint32_t *target);

/* Append the launch of a program on two entries; -1 without room. */
int npu_ring_add_program(struct npu_ring *ring, const struct npu_ring_program *program);

/* Let the port work off what has been added, also while it runs. */
void npu_ring_start(const struct npu_ring *ring);

/* Whether the port has worked off all, or has stopped at an error. */
int npu_ring_done(void);

/* Wait for that; return bits 7:0 of DESC_STATUS, NPU_STATUS_DONE after success, and clear it. */
uint32_t npu_ring_wait(void);

#endif
