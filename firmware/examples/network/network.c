/* SPDX-License-Identifier: Apache-2.0 */
/* A network runs: every launch of its plan, then each tensor that it leaves as bytes in hex. */
#include "npu_plan.h"
#include "plan.h"
#include "print.h"
#include "soc.h"

struct npu_result replayed;

int main(void) {
  replayed = npu_replay(&npu_plan, &npu_bases);
  if (replayed.outcome != NPU_RAN) {
    return npu_explain(&npu_plan, &replayed);
  }
  for (uint32_t i = 0; i < npu_plan.steps_count; i++) {
    const struct npu_plan_step *step = &npu_plan.steps[i];
    if (step->action != NPU_PLAN_ACTION_UNPACK) {
      continue;
    }
    const struct npu_plan_tensor *tensor = npu_tensor(&npu_plan, step->of_name);
    const uint8_t *bytes = (const uint8_t *)(npu_bases.arena + tensor->offset);
    print("%s ", step->of_name);
    for (uint32_t j = 0; j < tensor->bytes; j++) {
      uart_put("0123456789abcdef"[bytes[j] >> 4]);
      uart_put("0123456789abcdef"[bytes[j] & 15]);
    }
    print("\n");
  }
  return 0;
}
