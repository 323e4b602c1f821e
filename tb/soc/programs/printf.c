/* SPDX-License-Identifier: Apache-2.0 */
/* The C library on the UART: numbers out, and what comes in, in capitals. */
#include <ctype.h>
#include <stdio.h>

int main(void) {
  int byte;
  printf("%5.3f %e %08lx %s\n", 3.14159, -1e30, 0xC0FFEEul, "text");
  while ((byte = getchar()) != EOF) putchar(toupper(byte));
  fprintf(stderr, "%d\n", feof(stdin) != 0);
  return 0;
}
