/* SPDX-License-Identifier: Apache-2.0 */
/* A model and a prompt in memory, ready to run, and its launcher. `npu compile --plan` writes the
   plan as C (npu_plan.h, with a `static const struct npu_plan npu_plan`) beside the image. */
#ifndef PLAN_H
#define PLAN_H

#include <stdint.h>

/* What lies where a token has not been written yet. */
#define NPU_NO_TOKEN 0xFFFFFFFFu

struct npu_write {
  uint32_t place; /* window and offset of a register */
  uint32_t value;
};

struct npu_plan {
  uint32_t array_dim; /* of the chip that it is for */
  const struct npu_write *writes; /* in this order; the last one starts the chip */
  uint32_t write_count;
  volatile uint32_t *tokens; /* where they appear, one after the other */
  uint32_t count; /* at most */
  uint32_t end; /* token that ends the text before; NPU_NO_TOKEN for none */
  const char *prompt; /* its text */
  uint32_t prompt_bytes;
  const uint32_t *text_at; /* text of token i: from texts + text_at[i] to texts + text_at[i + 1] */
  const char *texts;
  uint32_t vocab;
};

enum npu_outcome {
  NPU_RAN,
  NPU_OTHER_CHIP, /* it has another array */
  NPU_FAILED, /* the chip reports an error */
  NPU_LOST_TOKEN /* the chip reports success, and a token is missing */
};

struct npu_generated {
  enum npu_outcome outcome;
  uint32_t tokens; /* that there are */
  uint32_t cycles; /* of the chip, by its own counter */
  uint32_t status; /* registers of the sequencer; with NPU_FAILED what went wrong */
  uint32_t error_instr;
  uint32_t error_addr;
};

/* Start the chip and call on_token for each token as it appears in memory; returns when the program
   has ended. OUTCNT would be too early: it counts a token before the word is in memory. */
struct npu_generated npu_generate(const struct npu_plan *plan,
                                  void (*on_token)(const struct npu_plan *plan, uint32_t token));

/* Print the text of a token on the UART. */
void npu_print_token(const struct npu_plan *plan, uint32_t token);

/* Print in a line why there is no text, if so; return 0, or the exit code for it. */
int npu_explain(const struct npu_plan *plan, const struct npu_generated *generated);

#endif
