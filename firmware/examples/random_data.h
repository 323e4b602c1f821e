/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers to compute with, the same on every host: no float is made by arithmetic. */
#ifndef RANDOM_DATA_H
#define RANDOM_DATA_H

#include <stdint.h>

#include "print.h"

/* Marsaglia's xorshift of 32 bits. */
static inline uint32_t random_word(void) {
  static uint32_t state = 1;
  state ^= state << 13;
  state ^= state >> 17;
  state ^= state << 5;
  return state;
}

static inline void random_bytes(int8_t *x, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) {
    x[i] = (int8_t)(random_word() >> 24);
  }
}

/* Signed integers of so many bits. */
static inline void random_words(int32_t *x, uint32_t n, uint32_t bits) {
  for (uint32_t i = 0; i < n; i++) {
    x[i] = (int32_t)random_word() >> (32 - bits);
  }
}

/* Floats of either sign from 1/8 to below 4. */
static inline void random_floats(float *x, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) {
    uint32_t word = random_word(), bits = (word & 0x807fffffu) | ((124 + (word >> 23 & 255) % 5) << 23);
    __builtin_memcpy(&x[i], &bits, 4);
  }
}

static inline uint32_t word_of(float x) {
  uint32_t bits;
  __builtin_memcpy(&bits, &x, 4);
  return bits;
}

/* A name and FNV-1a over the bytes of an array. */
static inline void print_hash(const char *name, const void *data, uint32_t bytes) {
  uint32_t hash = 2166136261u;
  for (uint32_t i = 0; i < bytes; i++) {
    hash = (hash ^ ((const uint8_t *)data)[i]) * 16777619u;
  }
  print("%s hash %08x\n", name, (unsigned)hash);
}

static inline void print_word(const char *name, uint32_t word) {
  print("%s %08x\n", name, (unsigned)word);
}

#endif
