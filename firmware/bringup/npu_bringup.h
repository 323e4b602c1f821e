/* SPDX-License-Identifier: Apache-2.0 */
/* First contact with the chip, register by register, on whatever system: what the system has to give
   is a bus. docs/integration.md */
#ifndef NPU_BRINGUP_H
#define NPU_BRINGUP_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The way to a chip and its memory. */
struct npu_bus {
  void *context; /* the functions' first argument */
  uint32_t (*read)(void *context, uint32_t place); /* a register, by its place in the chip */
  void (*write)(void *context, uint32_t place, uint32_t value);
  void (*wait)(void *context); /* until the chip's interrupt is high */
  volatile uint8_t *memory; /* its bytes, as the program sees them */
  uint32_t address; /* of the first, as the chip sees it; a multiple of 4096 */
  uint32_t size; /* bytes, a multiple of 4096, at least NPU_BRINGUP_BYTES */
};

#define NPU_BRINGUP_BYTES 0x3000u

/* Check which chip it is, permit it this memory only, run a program (load, RELU, store), acknowledge
   its interrupt and compare the result. Return NULL, or what is wrong. */
const char *npu_bringup(const struct npu_bus *bus);

#ifdef __cplusplus
}
#endif

#endif
