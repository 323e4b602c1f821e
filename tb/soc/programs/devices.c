/* SPDX-License-Identifier: Apache-2.0 */
/* Memory by byte, half and word at every place; time; the chip's registers; its interrupt line. */
#include "npu_regs.h"
#include "print.h"
#include "soc.h"

static volatile uint8_t bytes[64];
static int failed;

static void expect(const char *what, uint32_t given, uint32_t wanted) {
  if (given != wanted) {
    print("%s: expected %08x, actual %08x\n", what, wanted, given);
    failed++;
  }
}

int main(void) {
  for (uint32_t i = 0; i < sizeof bytes; i++) {
    bytes[i] = (uint8_t)(7 * i + 1);
  }
  for (uint32_t i = 0; i < sizeof bytes; i++) {
    expect("byte", bytes[i], (uint8_t)(7 * i + 1));
  }
  for (uint32_t i = 0; i + 4 <= sizeof bytes; i++) {
    uint32_t word;
    __asm__ volatile("lw %0, 0(%1)" : "=r"(word) : "r"(&bytes[i]) : "memory");
    uint32_t wanted = 0;
    for (uint32_t j = 4; j-- > 0;) {
      wanted = wanted << 8 | (uint8_t)(7 * (i + j) + 1);
    }
    expect("word", word, wanted);
    __asm__ volatile("sh %0, 0(%1)" ::"r"(word ^ 0x55AAu), "r"(&bytes[i]) : "memory");
    __asm__ volatile("sh %0, 0(%1)" ::"r"(word), "r"(&bytes[i]) : "memory");
  }
  for (uint32_t i = 0; i < sizeof bytes; i++) {
    expect("byte", bytes[i], (uint8_t)(7 * i + 1));
  }
  expect("ID", chip_read(NPU_CHIP_BASE + NPU_CHIP_ID), NPU_CHIP_ID_VALUE);
  chip_write(NPU_SEQ_BASE + NPU_SEQ_BASE2, 0x89ABCDEFu);
  *(volatile uint8_t *)(SOC_CHIP + NPU_SEQ_BASE + NPU_SEQ_BASE2 + 1) = 0x42;
  expect("BASE2", chip_read(NPU_SEQ_BASE + NPU_SEQ_BASE2), 0x89AB42EFu);
  expect("interrupt", (uint32_t)soc_interrupt_pending(), 0);
  uint32_t first = soc_cycles();
  uint32_t passed = soc_cycles() - first;
  expect("time passes", passed > 0 && passed < 100, 1);
  expect("microseconds", soc_microseconds() - soc_cycles() / 100 <= 1, 1);
  print("%d failed\n", failed);
  return failed;
}
