/* SPDX-License-Identifier: Apache-2.0 */
/* The first words of the machine; it repeats what comes in. */
#include "print.h"
#include "soc.h"

int main(void) {
  print("hello from address %x\n", (unsigned)(uintptr_t)main);
  for (int byte = uart_get(); byte >= 0; byte = uart_get()) {
    uart_put((char)byte);
  }
  return 0;
}
