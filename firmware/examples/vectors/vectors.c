/* SPDX-License-Identifier: Apache-2.0 */
/* Every vector instruction on arrays, bytes at odd addresses: a line each, with the result or its hash. */
#ifdef NPU_SOFTWARE
#include "npu_soft.h"
#else
#include "npu_fp.h"
#endif
#include "print.h"

#include "../random_data.h"

#define N 37

static int8_t bytes_a[N + 3], bytes_b[N + 3], bytes_d[N + 3];
static int32_t words[N], words_d[N];
static float a[N], b[N], d[N];

static void integers(void) {
  random_bytes(bytes_a, N + 3);
  random_bytes(bytes_b, N + 3);
  NPU_FENCE();
  NPU_VMAC(bytes_a + 1, bytes_b + 3, N);
  print_word("VMAC", (uint32_t)NPU_RSTACC());
  NPU_MACC(98765, 1);
  NPU_VMUL(bytes_a + 3, bytes_d + 1, N);
  (void)NPU_RSTACC();
  print_hash("VMUL", bytes_d + 1, N);
  NPU_LDVEC(2, bytes_a, 5);
  NPU_STVEC(2, bytes_b, 7);
  print_hash("LDVEC, STVEC", bytes_b, N + 3);
  random_words(words, N, 20);
  NPU_FENCE();
  print_word("VREDUCE", (uint32_t)NPU_VREDUCE(words, N));
  print_word("VMAX", (uint32_t)NPU_VMAX(words, N));
  NPU_VEXP(words, words_d, N);
  print_hash("VEXP", words_d, sizeof(words_d));
  print_word("VRSQRT", (uint32_t)NPU_VRSQRT(words_d));
}

static void floats(void) {
  random_floats(a, N);
  random_floats(b, N);
  NPU_FENCE();
  NPU_FVMAC(a, b, N);
  print_word("FVMAC", word_of(NPU_FRSTACC()));
  print_word("FVREDUCE", word_of(NPU_FVREDUCE(a, N)));
  print_word("FVMAX", word_of(NPU_FVMAX(a, N)));
  NPU_FVEXP(a, d, N);
  print_hash("FVEXP", d, sizeof(d));
  print_word("FVRSQRT", word_of(NPU_FVRSQRT(d)));
  NPU_FVGELU(a, d, N);
  print_hash("FVGELU", d, sizeof(d));
  NPU_FVRELU(a, d, N);
  print_hash("FVRELU", d, sizeof(d));
  NPU_FMACC(a[0], b[0]);
  NPU_FVMUL(a, d, N);
  print_hash("FVMUL", d, sizeof(d));
  NPU_FVDIV(a, d, N);
  print_hash("FVDIV", d, sizeof(d));
  NPU_FVSUB_SCALAR(a, d, N);
  print_hash("FVSUB_SCALAR", d, sizeof(d));
  (void)NPU_FRSTACC();
  NPU_FVADD(a, b, N);
  print_hash("FVADD", b, sizeof(b));
  NPU_FVSUB(a, b, N);
  print_hash("FVSUB", b, sizeof(b));
}

int main(void) {
  integers();
  floats();
  return 0;
}
