/* SPDX-License-Identifier: Apache-2.0 */
#include "plan.h"

#include "npu_regs.h"
#include "print.h"
#include "soc.h"

#define SEQ(name) (NPU_SEQ_BASE + NPU_SEQ_##name)
#define CHIP(name) (NPU_CHIP_BASE + NPU_CHIP_##name)

/* The interrupt line alone does not tell: other parts of the chip have it too. */
static int has_ended(void) {
  return soc_interrupt_pending() &&
         (chip_read(CHIP(IRQ_STATUS)) & NPU_CHIP_IRQ_STATUS_SEQ_DONE_MASK) != 0;
}

static uint32_t array_of_chip(void) {
  return (chip_read(CHIP(CONFIG0)) & NPU_CHIP_CONFIG0_ARRAY_DIM_MASK) >>
         NPU_CHIP_CONFIG0_ARRAY_DIM_LSB;
}

struct npu_generated npu_generate(const struct npu_plan *plan,
                                  void (*on_token)(const struct npu_plan *plan, uint32_t token)) {
  struct npu_generated result = {.outcome = NPU_RAN};
  if (array_of_chip() != plan->array_dim) {
    result.outcome = NPU_OTHER_CHIP;
    return result;
  }
  for (uint32_t i = 0; i < plan->count; i++) {
    plan->tokens[i] = NPU_NO_TOKEN;
  }
  for (uint32_t i = 0; i < plan->write_count; i++) {
    chip_write(plan->writes[i].place, plan->writes[i].value);
  }
  uint32_t last = NPU_NO_TOKEN - 1;
  while (result.tokens < plan->count && last != plan->end) {
    uint32_t token = plan->tokens[result.tokens];
    if (token != NPU_NO_TOKEN) {
      on_token(plan, token);
      result.tokens++;
      last = token;
    } else if (has_ended() && plan->tokens[result.tokens] == NPU_NO_TOKEN) {
      break;
    }
  }
  while (!has_ended()) {
    soc_wait_interrupt();
  }
  chip_write(CHIP(IRQ_STATUS), NPU_CHIP_IRQ_STATUS_SEQ_DONE_MASK);
  result.cycles = chip_read(CHIP(CYCLES_LO));
  result.status = chip_read(SEQ(STATUS));
  result.error_instr = chip_read(SEQ(ERROR_INSTR));
  result.error_addr = chip_read(SEQ(ERROR_ADDR));
  if ((result.status & NPU_SEQ_STATUS_ERROR_MASK) != 0) {
    result.outcome = NPU_FAILED;
  } else if (result.tokens != plan->count && last != plan->end) {
    result.outcome = NPU_LOST_TOKEN;
  }
  return result;
}

void npu_print_token(const struct npu_plan *plan, uint32_t token) {
  if (token < plan->vocab) {
    uint32_t first = plan->text_at[token];
    print_bytes(plan->texts + first, plan->text_at[token + 1] - first);
  }
}

int npu_explain(const struct npu_plan *plan, const struct npu_generated *generated) {
  switch (generated->outcome) {
    case NPU_RAN:
      return 0;
    case NPU_OTHER_CHIP:
      print("plan: given one for an array of %u, allowed %u, the chip's\n", plan->array_dim,
            array_of_chip());
      break;
    case NPU_FAILED:
      print("chip: error %u of engine %u at instruction %u, address %08x\n",
            (generated->status & NPU_SEQ_STATUS_ERROR_CODE_MASK) >> NPU_SEQ_STATUS_ERROR_CODE_LSB,
            (generated->status & NPU_SEQ_STATUS_ERROR_ENGINE_MASK) >>
                NPU_SEQ_STATUS_ERROR_ENGINE_LSB,
            generated->error_instr, generated->error_addr);
      break;
    case NPU_LOST_TOKEN:
      print("chip: %u tokens are in memory, expected %u\n", generated->tokens, plan->count);
      break;
  }
  return 1;
}
