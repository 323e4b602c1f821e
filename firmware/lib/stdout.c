/* SPDX-License-Identifier: Apache-2.0 */
/* printf and getchar of picolibc on the UART. Without that library there is print.h alone. */
#if __has_include(<picolibc.h>)
#include <stdio.h>

#include "soc.h"

static int put(char byte, FILE *file) {
  (void)file;
  uart_put(byte);
  return (unsigned char)byte;
}

static int get(FILE *file) {
  (void)file;
  int byte = uart_get();
  return byte < 0 ? _FDEV_EOF : byte;
}

static FILE uart = FDEV_SETUP_STREAM(put, get, NULL, _FDEV_SETUP_RW);
FILE *const stdin = &uart;
FILE *const stdout = &uart;
FILE *const stderr = &uart;
#endif
