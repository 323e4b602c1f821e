/* SPDX-License-Identifier: Apache-2.0 */
/* A model writes: one start of the chip, each token printed as it appears in memory. */
#include "npu_plan.h"
#include "plan.h"
#include "print.h"

struct npu_result generated;

int main(void) {
  print_bytes(npu_job.prompt, npu_job.prompt_bytes);
  generated = npu_generate(&npu_job, npu_print_token);
  print("\n");
  return npu_explain(&npu_plan, &generated);
}
