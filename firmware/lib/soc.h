/* SPDX-License-Identifier: Apache-2.0 */
/* The computer around the chip: UART, exit, time, and the chip's registers. */
#ifndef SOC_H
#define SOC_H

#include <stdint.h>

#define SOC_UART 0x10000000u
#define SOC_EXIT 0x10000004u
#define SOC_MICROSECONDS 0x10000008u
#define SOC_CYCLES 0x1000000Cu
/* The coprocessor's window, where its first design had it; the same as SOC_CHIP + 0x200. */
#define SOC_COP 0x20000000u
#define SOC_CHIP 0x40000000u

static inline uint32_t soc_read(uint32_t address) {
  return *(volatile uint32_t *)address;
}

static inline void soc_write(uint32_t address, uint32_t value) {
  *(volatile uint32_t *)address = value;
}

/* Next byte of the input, -1 at its end. */
static inline int uart_get(void) {
  return (int)soc_read(SOC_UART);
}

static inline void uart_put(char byte) {
  soc_write(SOC_UART, (uint8_t)byte);
}

/* Time since the reset; both wrap around. The core's own counter stands still while it sleeps. */
static inline uint32_t soc_cycles(void) {
  return soc_read(SOC_CYCLES);
}

static inline uint32_t soc_microseconds(void) {
  return soc_read(SOC_MICROSECONDS);
}

/* Registers of the chip: the base of a window and an offset from npu_regs.h. */
static inline uint32_t chip_read(uint32_t place) {
  return soc_read(SOC_CHIP + place);
}

static inline void chip_write(uint32_t place, uint32_t value) {
  soc_write(SOC_CHIP + place, value);
}

/* Whether the chip's interrupt line is high. */
int soc_interrupt_pending(void);

/* Sleep until the chip's interrupt is pending. It is not taken: the program goes on behind. */
void soc_wait_interrupt(void);

/* End the run; the code is that of `npu soc`. */
_Noreturn void exit(int code);

#endif
