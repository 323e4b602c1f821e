/* SPDX-License-Identifier: Apache-2.0 */
/* What compilers call by themselves, for programs without a C library. */
#include <stddef.h>

__attribute__((weak)) void *memcpy(void *to, const void *from, size_t size) {
  unsigned char *target = to;
  const unsigned char *source = from;
  for (size_t i = 0; i < size; i++) {
    *(volatile unsigned char *)&target[i] = source[i];
  }
  return to;
}

__attribute__((weak)) void *memset(void *to, int value, size_t size) {
  unsigned char *target = to;
  for (size_t i = 0; i < size; i++) {
    *(volatile unsigned char *)&target[i] = (unsigned char)value;
  }
  return to;
}
