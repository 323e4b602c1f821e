/* SPDX-License-Identifier: Apache-2.0 */
#include "npu_bringup.h"

#include "npu_regs.h"
#include "npu_smoke_program.h"

/* Where things lie, from the first byte of the memory on. */
#define PROGRAM 0x0000u
#define SOURCE 0x1000u
#define TARGET 0x2000u

static uint8_t value(uint32_t index) {
  return (uint8_t)(37u * index + 11u);
}

static void stage(const struct npu_bus *bus) {
  for (uint32_t i = 0; i < sizeof npu_smoke_program; i++) {
    bus->memory[PROGRAM + i] = npu_smoke_program[i];
  }
  for (uint32_t i = 0; i < NPU_SMOKE_BYTES; i++) {
    bus->memory[SOURCE + i] = value(i);
    bus->memory[TARGET + i] = 0xEE;
  }
}

const char *npu_bringup(const struct npu_bus *bus) {
#define READ(window, name) bus->read(bus->context, NPU_##window##_BASE + NPU_##window##_##name)
#define WRITE(window, name, value) \
  bus->write(bus->context, NPU_##window##_BASE + NPU_##window##_##name, value)

  /* Which chip it is. */
  if (READ(CHIP, ID) != NPU_CHIP_ID_VALUE) {
    return "ID: no chip answers";
  }
  if ((READ(CHIP, VERSION) & NPU_CHIP_VERSION_REG_MAP_MASK) != NPU_CHIP_VERSION_REG_MAP_VALUE) {
    return "VERSION.REG_MAP: the header is of another version of the chip";
  }
  /* What it may touch; the other regions are closed after a reset. */
  WRITE(CHIP, REGION0_BASE, bus->address);
  WRITE(CHIP, REGION0_LIMIT, bus->address + bus->size - 0x1000u);
  /* The program, what it reads, and where it begins. */
  stage(bus);
  __sync_synchronize(); /* memory is written before the start */
  WRITE(SEQ, UCODE_BASE, bus->address + PROGRAM);
  WRITE(SEQ, UCODE_LEN, (uint32_t)(sizeof npu_smoke_program / 16u));
  WRITE(SEQ, STREAM_LEN, 0u);
  WRITE(SEQ, DDR_BASE_ACT, bus->address + SOURCE);
  WRITE(SEQ, DDR_BASE_OUT, bus->address + TARGET);
  WRITE(CHIP, IRQ_STATUS, NPU_CHIP_IRQ_STATUS_SEQ_DONE_MASK);
  WRITE(CHIP, IRQ_ENABLE, NPU_CHIP_IRQ_ENABLE_SEQ_DONE_MASK);
  if ((READ(SEQ, STATUS) & NPU_SEQ_STATUS_BUSY_MASK) != 0) {
    return "STATUS.BUSY: a program runs already";
  }
  WRITE(SEQ, CTRL, NPU_SEQ_CTRL_START_MASK);
  /* Its end. */
  bus->wait(bus->context);
  WRITE(CHIP, IRQ_STATUS, NPU_CHIP_IRQ_STATUS_SEQ_DONE_MASK);
  const uint32_t status = READ(SEQ, STATUS);
  if ((status & NPU_SEQ_STATUS_ERROR_MASK) != 0) {
    return "STATUS.ERROR: the program failed; ERROR_INSTR and ERROR_ADDR say where";
  }
  if ((status & NPU_SEQ_STATUS_DONE_MASK) == 0) {
    return "STATUS.DONE: an interrupt without the program's end";
  }
  for (uint32_t i = 0; i < NPU_SMOKE_BYTES; i++) {
    const uint8_t expected = value(i) >= 128 ? 0 : value(i);
    if (bus->memory[TARGET + i] != expected) {
      return "memory: the result is wrong";
    }
  }
  return NULL;
}
