/* SPDX-License-Identifier: Apache-2.0 */
#include "ring.h"

#include "npu_descriptors.h"
#include "npu_regs.h"
#include "soc.h"

#define CMD(name) (NPU_CMD_BASE + NPU_CMD_##name)
#define DONE_OR_ERROR (NPU_CMD_CTRL_STATUS_DONE_MASK | NPU_CMD_CTRL_STATUS_ERROR_MASK)

void npu_ring_open(struct npu_ring *ring) {
  ring->head = 0;
  chip_write(CMD(DESC_BASE), (uint32_t)(uintptr_t)ring->entries);
  chip_write(CMD(DESC_HEAD), 0);
  chip_write(CMD(DESC_TAIL), 0);
}

uint32_t npu_ring_room(const struct npu_ring *ring) {
  uint32_t pending = (ring->head - chip_read(CMD(DESC_TAIL))) % NPU_RING_ENTRIES;
  return NPU_RING_ENTRIES - 1 - pending;
}

static int add(struct npu_ring *ring, const uint32_t words[8]) {
  if (npu_ring_room(ring) < 2) {
    return -1;
  }
  for (uint32_t i = 0; i < 8; i++) {
    ring->entries[(ring->head + i / 4) % NPU_RING_ENTRIES][i % 4] = words[i];
  }
  ring->head = (ring->head + 2) % NPU_RING_ENTRIES;
  return 0;
}

int npu_ring_add(struct npu_ring *ring, uint32_t operation, uint32_t a, uint32_t b, uint32_t acc,
                 volatile uint32_t *target) {
  const uint32_t words[8] = {operation << NPU_ENTRY_OPCODE_LSB | NPU_ENTRY_EXTENDED_MASK |
                                 NPU_ENTRY_WRITEBACK_MASK | NPU_ENTRY_OWNER_MASK,
                             a, b, acc, (uint32_t)(uintptr_t)target};
  return add(ring, words);
}

int npu_ring_add_program(struct npu_ring *ring, const struct npu_ring_program *program) {
  const uint32_t words[8] = {
      NPU_ENTRY_EXTENDED_MASK | NPU_ENTRY_LAUNCH_MASK | NPU_ENTRY_OWNER_MASK,
      program->token,
      program->base0,
      program->base1,
      program->ucode_base,
      program->ucode_len,
      program->pos};
  return add(ring, words);
}

void npu_ring_start(const struct npu_ring *ring) {
  chip_write(CMD(DESC_HEAD), ring->head);
  chip_write(CMD(CMD_PARAM), NPU_CMD_CMD_PARAM_DESCRIPTOR_MASK);
  chip_write(CMD(CTRL_STATUS), NPU_CMD_CTRL_STATUS_START_MASK);
}

int npu_ring_done(void) {
  return (chip_read(CMD(CTRL_STATUS)) & DONE_OR_ERROR) != 0;
}

uint32_t npu_ring_wait(void) {
  while (!npu_ring_done()) {
  }
  uint32_t status = chip_read(CMD(DESC_STATUS)) & 0xFFu;
  chip_write(CMD(CTRL_STATUS), NPU_CMD_CTRL_STATUS_CLEAR_MASK);
  return status;
}
