/* SPDX-License-Identifier: Apache-2.0 */
/* The bring-up on a hosted system: registers and memory are mapped from files, such as /dev/mem or
   those of a UIO driver.

     npu_bringup_mapped FILE OFFSET FILE OFFSET ADDRESS BYTES

   of the registers, then of the memory; ADDRESS is where the chip sees it. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "npu_bringup.h"
#include "npu_regs.h"

#define REGISTERS 0x1000u /* bytes */

static uint32_t read_register(void *context, uint32_t place) {
  return ((volatile uint32_t *)context)[place / 4u];
}

static void write_register(void *context, uint32_t place, uint32_t value) {
  ((volatile uint32_t *)context)[place / 4u] = value;
}

/* Looks again and again; a driver would sleep until the interrupt. */
static void wait_end(void *context) {
  while (!(read_register(context, NPU_CHIP_BASE + NPU_CHIP_IRQ_STATUS) &
           NPU_CHIP_IRQ_STATUS_SEQ_DONE_MASK)) {
  }
}

static void *mapped(const char *name, const char *offset, size_t size) {
  const int file = open(name, O_RDWR | O_SYNC);
  void *place = MAP_FAILED;
  if (file >= 0) {
    place = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file,
                 (off_t)strtoull(offset, NULL, 0));
  }
  if (place == MAP_FAILED) {
    perror(name);
    exit(2);
  }
  return place;
}

int main(int count, char **words) {
  if (count != 7) {
    fprintf(stderr, "usage: %s FILE OFFSET FILE OFFSET ADDRESS BYTES\n", words[0]);
    return 2;
  }
  struct npu_bus bus = {.read = read_register, .write = write_register, .wait = wait_end};
  bus.address = (uint32_t)strtoul(words[5], NULL, 0);
  bus.size = (uint32_t)strtoul(words[6], NULL, 0);
  if (bus.size < NPU_BRINGUP_BYTES || (bus.size | bus.address) % 4096u != 0) {
    fprintf(stderr, "BYTES: given %s, allowed multiples of 4096 from %u\n", words[6],
            NPU_BRINGUP_BYTES);
    return 2;
  }
  bus.context = mapped(words[1], words[2], REGISTERS);
  bus.memory = mapped(words[3], words[4], bus.size);
  const char *wrong = npu_bringup(&bus);
  puts(wrong != NULL ? wrong : "npu: bring-up passed");
  return wrong != NULL;
}
