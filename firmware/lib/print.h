/* SPDX-License-Identifier: Apache-2.0 */
/* Text on the UART without a C library. */
#ifndef PRINT_H
#define PRINT_H

#include <stdint.h>

/* %d, %u, %x with a width and leading zeros if wanted, %c, %s, %%; l is skipped. No attribute that
   names the format: uint32_t is unsigned for one compiler, unsigned long for another. */
void print(const char *format, ...);

/* Bytes as they are. */
void print_bytes(const char *bytes, uint32_t size);

#endif
