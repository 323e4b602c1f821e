/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The twelve instructions that read three registers, under the same names, on a core that hands over two
 * (X_NUM_RS = 2), which refuses them: loops on instructions with two, and where there are none, in plain C.
 * Results are the same, for floats on ordinary numbers. FVMUL, FVDIV and FVSUB_SCALAR leave facc rounded to
 * float32; what a later FVMAC adds begins there.
 *
 * Include it in place of npu.h and npu_fp.h, or have the compiler do so (-include) and leave the program as it
 * is.
 */
#ifndef NPU_TWO_SOURCES_H
#define NPU_TWO_SOURCES_H

#ifndef __ASSEMBLER__ /* -include reaches start-up code too */

#include "npu_exp.h"
#include "npu_fp.h"

/* The core stores here what the instruction would: NPU_FENCE() lets instructions behind it read it. */
#define NPU_TWO_MAP(name, from, to, of)                          \
  NPU_INLINE void name(const void *a, void *d, uint32_t n) {     \
    const from *x = a;                                           \
    to *y = d;                                                   \
    for (uint32_t i = 0; i < n; i++) {                           \
      y[i] = of;                                                 \
    }                                                            \
    NPU_FENCE();                                                 \
  }

/* The same, with facc as a factor s, which stays. */
#define NPU_TWO_SCALED(name, of)                                 \
  NPU_INLINE void name(const void *a, void *d, uint32_t n) {     \
    const float *x = a;                                          \
    float *y = d, s = NPU_FRSTACC();                             \
    for (uint32_t i = 0; i < n; i++) {                           \
      y[i] = of;                                                 \
    }                                                            \
    NPU_FMACC(s, 1.0f);                                          \
    NPU_FENCE();                                                 \
  }

NPU_INLINE void npu_two_vmac(const void *a, const void *b, uint32_t n) {
  const int8_t *x = a, *y = b;
  for (uint32_t i = 0; i < n; i++) {
    NPU_MACC(x[i], y[i]);
  }
}

NPU_INLINE void npu_two_fvmac(const void *a, const void *b, uint32_t n) {
  const float *x = a, *y = b;
  for (uint32_t i = 0; i < n; i++) {
    NPU_FMACC(x[i], y[i]);
  }
}

/* What acc keeps is its low word with its sign: nothing reads more of it. */
NPU_INLINE void npu_two_vmul(const void *a, void *d, uint32_t n) {
  const int8_t *x = a;
  int8_t *y = d;
  int32_t s = NPU_RSTACC();
  for (uint32_t i = 0; i < n; i++) {
    int64_t scaled = ((int64_t)x[i] * s) >> 16;
    y[i] = (int8_t)(scaled < -128 ? -128 : scaled > 127 ? 127 : scaled);
  }
  NPU_MACC(s, 1);
  NPU_FENCE();
}

NPU_TWO_MAP(npu_two_vexp, int32_t, int32_t, npu_exp_word(x[i]))
NPU_TWO_MAP(npu_two_fvexp, uint32_t, uint32_t, npu_exp_float(x[i]))
NPU_TWO_MAP(npu_two_fvrelu, float, float, NPU_FRELU(x[i]))
NPU_TWO_MAP(npu_two_fvgelu, float, float, NPU_FGELU(x[i]))
NPU_TWO_MAP(npu_two_fvadd, float, float, x[i] + y[i])
NPU_TWO_MAP(npu_two_fvsub, float, float, x[i] - y[i])
NPU_TWO_SCALED(npu_two_fvmul, x[i] * s)
NPU_TWO_SCALED(npu_two_fvdiv, x[i] / s)
NPU_TWO_SCALED(npu_two_fvsub_scalar, x[i] - s)

#define NPU_VMAC npu_two_vmac
#define NPU_VEXP npu_two_vexp
#define NPU_VMUL npu_two_vmul
#define NPU_FVMAC npu_two_fvmac
#define NPU_FVEXP npu_two_fvexp
#define NPU_FVMUL npu_two_fvmul
#define NPU_FVADD npu_two_fvadd
#define NPU_FVSUB npu_two_fvsub
#define NPU_FVRELU npu_two_fvrelu
#define NPU_FVGELU npu_two_fvgelu
#define NPU_FVDIV npu_two_fvdiv
#define NPU_FVSUB_SCALAR npu_two_fvsub_scalar

#endif

#endif
