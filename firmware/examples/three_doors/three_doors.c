/* SPDX-License-Identifier: Apache-2.0 */
/* The three ways into the chip in one program: instructions of the coprocessor, descriptors of the
   command port, and microcode. Each alone, then all side by side: a model writes, and between its
   tokens the other two repeat their work, whose results must be those of before. */
#include "npu.h"
#include "npu_descriptors.h"
#include "npu_plan.h"
#include "npu_regs.h"
#include "plan.h"
#include "print.h"
#include "ring.h"
#include "soc.h"

#define COUNT 64u
#define OPERATIONS 3u

static int8_t a[COUNT + 1] __attribute__((aligned(4))), b[COUNT + 1] __attribute__((aligned(4)));
static volatile uint32_t results[OPERATIONS][2];
static struct npu_ring ring;
static int32_t by_instruction;
static uint32_t by_descriptor;
static uint32_t rounds, wrong;

/* The dot product of a and b from the second element on, in one instruction. */
static int32_t instruction(void) {
  NPU_VMAC(a + 1, b + 1, COUNT);
  return NPU_RSTACC();
}

static uint32_t word(const int8_t *bytes) {
  return *(const uint32_t *)(const void *)bytes;
}

static int descriptors(void) {
  npu_ring_open(&ring);
  int full = 0;
  for (uint32_t i = 0; i < OPERATIONS; i++) {
    full |= npu_ring_add(&ring, NPU_CMD_OP_DOT4_S8, word(a + 4 * i), word(b + 4 * i), 1000 * i,
                         results[i]);
  }
  npu_ring_start(&ring);
  return full;
}

static uint32_t sum_of_results(void) {
  return results[0][0] + results[1][0] + results[2][0];
}

static uint32_t expected_of_descriptors(void) {
  uint32_t sum = 0;
  for (uint32_t i = 0; i < OPERATIONS; i++) {
    sum += 1000 * i;
    for (uint32_t j = 0; j < 4; j++) {
      sum += (uint32_t)(a[4 * i + j] * b[4 * i + j]);
    }
  }
  return sum;
}

/* Called while the model writes: what the ring did since the last token, and an instruction. */
static void token_and_more(const struct npu_job *job, uint32_t token) {
  npu_print_token(job, token);
  if (npu_ring_wait() != NPU_STATUS_DONE || sum_of_results() != by_descriptor) {
    wrong++;
  }
  for (uint32_t i = 0; i < OPERATIONS; i++) {
    results[i][0] = 0;
  }
  descriptors();
  if (instruction() != by_instruction) {
    wrong++;
  }
  rounds++;
}

int main(void) {
  int32_t expected = 0;
  for (uint32_t i = 0; i <= COUNT; i++) {
    a[i] = (int8_t)(17 * i + 3);
    b[i] = (int8_t)(29 * i - 5);
  }
  for (uint32_t i = 1; i <= COUNT; i++) {
    expected += a[i] * b[i];
  }
  by_instruction = instruction();
  print("instructions: a dot product of %u bytes is %d, expected %d\n", COUNT, (int)by_instruction,
        (int)expected);
  int full = descriptors();
  uint32_t status = npu_ring_wait();
  by_descriptor = sum_of_results();
  print("descriptors: %u operations, status %02x, %s, sum %u, expected %u\n", OPERATIONS, status,
        full ? "no room" : "all in the ring", by_descriptor, expected_of_descriptors());
  if (by_instruction != expected || by_descriptor != expected_of_descriptors()) {
    return 1;
  }
  print("microcode: ");
  print_bytes(npu_job.prompt, npu_job.prompt_bytes);
  descriptors();
  struct npu_result generated = npu_generate(&npu_job, token_and_more);
  (void)npu_ring_wait();
  print("\nside by side: %u rounds of both between %u tokens, %u wrong\n", rounds,
        generated.done, wrong);
  return npu_explain(&npu_plan, &generated) | (wrong != 0);
}
