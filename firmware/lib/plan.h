/* SPDX-License-Identifier: Apache-2.0 */
/* Plans and what starts them. `npu compile --plan` writes one as C (npu_plan.h, with a
   `static const struct npu_plan npu_plan` and where its parts lie) beside the image.

   Checked here before anything starts: the sizes of the chip, that each step names a segment, each
   base a register and a place in its area, that addresses are aligned, and that the tokens of a job
   fit their tensor. Trusted, as the code that the header is compiled into is: that the image is the
   plan's, what the programs in it do, and that the parts lie in memory and beside one another. The
   host has checked these when it read the plan (npu/runtime); what programs may touch is for the
   regions of the chip to say. */
#ifndef PLAN_H
#define PLAN_H

#include <stdint.h>

#include "npu_plan_types.h"

/* What lies where a token has not been written yet. */
#define NPU_NO_TOKEN 0xFFFFFFFFu

enum npu_outcome {
  NPU_RAN,
  NPU_OTHER_CHIP, /* a size of the chip is not the plan's; nothing was started */
  NPU_BAD_PLAN, /* an entry that no plan has; nothing was started */
  NPU_NEEDS_HOST, /* a step is for a host, or for the command port; nothing was started */
  NPU_FAILED, /* the chip reports an error */
  NPU_LOST_TOKEN /* the chip reports success, and a token is missing */
};

struct npu_result {
  enum npu_outcome outcome;
  uint32_t done; /* tokens that there are, or steps that have ended */
  uint32_t cycles; /* of the chip, by its own counter: of all that it has done */
  uint32_t status; /* registers of the sequencer; with NPU_FAILED what went wrong */
  uint32_t error_instr;
  uint32_t error_addr;
};

/* Start a segment at addresses; LOOPLEFT and EOS are those of a decoder. Does not wait. */
void npu_launch(const struct npu_plan *plan, const struct npu_bases *bases, uint32_t segment,
                uint32_t loop_left, uint32_t eos);

/* Run all steps. Inputs lie in the arena, where outputs are behind it. */
struct npu_result npu_replay(const struct npu_plan *plan, const struct npu_bases *bases);

/* Return a tensor of the arena, NULL if there is none of this name. */
const struct npu_plan_tensor *npu_tensor(const struct npu_plan *plan, const char *name);

/* A decoder with a prompt in its arena, and the texts of its tokens. */
struct npu_job {
  const struct npu_plan *plan;
  const struct npu_bases *bases;
  uint32_t count; /* tokens at most */
  uint32_t end; /* token that ends the text before; NPU_NO_TOKEN for none */
  const char *prompt; /* its text */
  uint32_t prompt_bytes;
  const uint32_t *text_at; /* text of token i: from texts + text_at[i] to texts + text_at[i + 1] */
  const char *texts;
};

/* Start the chip and call on_token for each token as it appears in memory; returns when the program
   has ended. OUTCNT would be too early: it counts a token before the word is in memory. */
struct npu_result npu_generate(const struct npu_job *job,
                               void (*on_token)(const struct npu_job *job, uint32_t token));

/* Print the text of a token on the UART. */
void npu_print_token(const struct npu_job *job, uint32_t token);

/* Print in a line why there is no result, if so; return 0, or the exit code for it. */
int npu_explain(const struct npu_plan *plan, const struct npu_result *result);

#endif
