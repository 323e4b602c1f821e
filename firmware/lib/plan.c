/* SPDX-License-Identifier: Apache-2.0 */
#include "plan.h"

#include "npu_regs.h"
#include "print.h"
#include "soc.h"

#define SEQ(name) (NPU_SEQ_BASE + NPU_SEQ_##name)
#define CHIP(name) (NPU_CHIP_BASE + NPU_CHIP_##name)
#define FIELD(word, name) (((word) & NPU_CHIP_##name##_MASK) >> NPU_CHIP_##name##_LSB)

#define START(register, member) chip_write(SEQ(register), start.member);

enum { BASES = 8, WORD = 16, ALIGNMENT = 64 };

static const uint32_t base_registers[BASES] = {
    SEQ(DDR_BASE_ACT), SEQ(DDR_BASE_OUT), SEQ(BASE2), SEQ(BASE3),
    SEQ(BASE4),        SEQ(BASE5),        SEQ(BASE6), SEQ(BASE7),
};

/* The interrupt line alone does not tell: other parts of the chip have it too. */
static int has_ended(void) {
  return soc_interrupt_pending() &&
         (chip_read(CHIP(IRQ_STATUS)) & NPU_CHIP_IRQ_STATUS_SEQ_DONE_MASK) != 0;
}

/* What a plan and a chip say of a size. */
struct size {
  const char *name;
  uint32_t planned;
  uint32_t found;
};

/* Return the first size in which the chip is not the plan's, without a name if there is none. */
static struct size other_size(const struct npu_plan *plan) {
  const struct npu_plan_chip *chip = &plan->chip;
  uint32_t config0 = chip_read(CHIP(CONFIG0));
  uint32_t config1 = chip_read(CHIP(CONFIG1));
  uint32_t config2 = chip_read(CHIP(CONFIG2));
  const struct size sizes[] = {
      {"array_dim", chip->array_dim, FIELD(config0, CONFIG0_ARRAY_DIM)},
      {"sram_bytes", chip->sram_bytes, 1024 * FIELD(config0, CONFIG0_SRAM_KIB)},
      {"acc_rows", chip->acc_rows, FIELD(config1, CONFIG1_ACC_ROWS)},
      {"norm_max", chip->norm_max, FIELD(config2, CONFIG2_NORM_MAX)},
      {"narrow_formats", chip->narrow_formats, FIELD(config2, CONFIG2_NARROW_FORMATS)},
  };
  enum { SIZES = sizeof sizes / sizeof sizes[0] };
  _Static_assert(SIZES == sizeof *chip / sizeof(uint32_t), "a size of the plan is not compared");
  for (uint32_t i = 0; i < SIZES; i++) {
    if (sizes[i].planned != sizes[i].found) {
      return sizes[i];
    }
  }
  return (struct size){.name = NULL};
}

/* Return whether the entries of a segment are such that nothing outside of tables is read for it. */
static int can_start(const struct npu_plan *plan, const struct npu_bases *bases,
                     uint32_t segment) {
  if (segment >= plan->segments_count || plan->segments[segment].words == 0) {
    return 0;
  }
  const struct npu_plan_segment *one = &plan->segments[segment];
  for (uint32_t i = 0; i < one->bases_count; i++) {
    const struct npu_plan_base *base = &one->bases[i];
    int in_arena = base->area == NPU_PLAN_AREA_ARENA;
    if (base->register_ >= BASES || (!in_arena && base->area != NPU_PLAN_AREA_CONSTANTS) ||
        (in_arena && base->offset > plan->arena.bytes)) {
      return 0;
    }
  }
  uint32_t addresses = bases->stream | bases->constants | bases->programs | bases->arena;
  return addresses % ALIGNMENT == 0;
}

/* Programs lie one behind the other, each at a multiple of 64. */
static uint32_t program_of(const struct npu_plan *plan, const struct npu_bases *bases,
                           uint32_t segment) {
  uint32_t at = bases->programs;
  for (uint32_t i = 0; i < segment; i++) {
    at += (WORD * plan->segments[i].words + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  }
  return at;
}

void npu_launch(const struct npu_plan *plan, const struct npu_bases *bases, uint32_t segment,
                uint32_t loop_left, uint32_t eos) {
  const struct npu_plan_segment *one = &plan->segments[segment];
  struct npu_plan_registers start = one->registers;
  start.loop_left = loop_left;
  start.eos = eos;
  start.kv_base += start.kv_in_memory ? bases->arena : 0;
  uint32_t values[BASES] = {0};
  for (uint32_t i = 0; i < one->bases_count; i++) {
    const struct npu_plan_base *base = &one->bases[i];
    uint32_t area = base->area == NPU_PLAN_AREA_ARENA ? bases->arena : bases->constants;
    values[base->register_] = area + base->offset;
  }
  for (uint32_t i = 0; i < BASES; i++) {
    chip_write(base_registers[i], values[i]);
  }
  chip_write(SEQ(UCODE_BASE), program_of(plan, bases, segment));
  chip_write(SEQ(UCODE_LEN), one->words);
  chip_write(SEQ(DDR_BASE_WGT), bases->stream);
  chip_write(SEQ(STREAM_LEN), one->stream_bytes);
  NPU_START_VALUES(START)
  chip_write(CHIP(IRQ_STATUS), NPU_CHIP_IRQ_STATUS_SEQ_DONE_MASK);
  chip_write(CHIP(IRQ_ENABLE),
             NPU_CHIP_IRQ_ENABLE_SEQ_DONE_MASK | NPU_CHIP_IRQ_ENABLE_CMD_MASK);
  chip_write(SEQ(CTRL), NPU_SEQ_CTRL_START_MASK);
}

/* Wait for the end of a program, and add what the chip says of it. */
static void finish(struct npu_result *result) {
  while (!has_ended()) {
    soc_wait_interrupt();
  }
  chip_write(CHIP(IRQ_STATUS), NPU_CHIP_IRQ_STATUS_SEQ_DONE_MASK);
  result->cycles += chip_read(CHIP(CYCLES_LO));
  result->status = chip_read(SEQ(STATUS));
  result->error_instr = chip_read(SEQ(ERROR_INSTR));
  result->error_addr = chip_read(SEQ(ERROR_ADDR));
  if ((result->status & NPU_SEQ_STATUS_ERROR_MASK) != 0) {
    result->outcome = NPU_FAILED;
  }
}

struct npu_result npu_replay(const struct npu_plan *plan, const struct npu_bases *bases) {
  struct npu_result result = {.outcome = NPU_RAN};
  if (other_size(plan).name != NULL) {
    result.outcome = NPU_OTHER_CHIP;
  }
  for (uint32_t i = 0; i < plan->steps_count && result.outcome == NPU_RAN; i++) {
    enum npu_plan_action action = plan->steps[i].action;
    if (action == NPU_PLAN_ACTION_HOST || action == NPU_PLAN_ACTION_PORT) {
      result.outcome = NPU_NEEDS_HOST;
      result.done = i;
    }
    if (action == NPU_PLAN_ACTION_LAUNCH && !can_start(plan, bases, plan->steps[i].of)) {
      result.outcome = NPU_BAD_PLAN;
      result.done = i;
    }
  }
  /* What a host packs and unpacks lies in the arena already. */
  for (uint32_t i = 0; i < plan->steps_count && result.outcome == NPU_RAN; i++) {
    if (plan->steps[i].action == NPU_PLAN_ACTION_LAUNCH) {
      uint32_t segment = plan->steps[i].of;
      uint32_t turns = plan->segments[segment].registers.loop_left;
      npu_launch(plan, bases, segment, turns, NPU_NO_TOKEN);
      finish(&result);
    }
    if (result.outcome == NPU_RAN) {
      result.done = i + 1;
    }
  }
  return result;
}

const struct npu_plan_tensor *npu_tensor(const struct npu_plan *plan, const char *name) {
  for (uint32_t i = 0; i < plan->tensors_count; i++) {
    const char *a = plan->tensors[i].name;
    const char *b = name;
    while (*a != '\0' && *a == *b) {
      a++;
      b++;
    }
    if (*a == *b) {
      return &plan->tensors[i];
    }
  }
  return NULL;
}

struct npu_result npu_generate(const struct npu_job *job,
                               void (*on_token)(const struct npu_job *job, uint32_t token)) {
  struct npu_result result = {.outcome = NPU_RAN};
  const struct npu_plan_tensor *place = npu_tensor(job->plan, "tokens");
  if (other_size(job->plan).name != NULL) {
    result.outcome = NPU_OTHER_CHIP;
    return result;
  }
  if (job->plan->decoder == NULL || place == NULL || job->count == 0 ||
      job->count > place->bytes / sizeof(uint32_t) || !can_start(job->plan, job->bases, 0)) {
    result.outcome = NPU_BAD_PLAN;
    return result;
  }
  volatile uint32_t *tokens = (volatile uint32_t *)(job->bases->arena + place->offset);
  for (uint32_t i = 0; i < job->count; i++) {
    tokens[i] = NPU_NO_TOKEN;
  }
  npu_launch(job->plan, job->bases, 0, job->count - 1, job->end);
  uint32_t last = NPU_NO_TOKEN - 1;
  while (result.done < job->count && last != job->end) {
    uint32_t token = tokens[result.done];
    if (token != NPU_NO_TOKEN) {
      on_token(job, token);
      result.done++;
      last = token;
    } else if (has_ended() && tokens[result.done] == NPU_NO_TOKEN) {
      break;
    }
  }
  finish(&result);
  if (result.outcome == NPU_RAN && result.done != job->count && last != job->end) {
    result.outcome = NPU_LOST_TOKEN;
  }
  return result;
}

void npu_print_token(const struct npu_job *job, uint32_t token) {
  if (token < job->plan->decoder->vocab) {
    uint32_t first = job->text_at[token];
    print_bytes(job->texts + first, job->text_at[token + 1] - first);
  }
}

int npu_explain(const struct npu_plan *plan, const struct npu_result *result) {
  switch (result->outcome) {
    case NPU_RAN:
      return 0;
    case NPU_OTHER_CHIP: {
      struct size size = other_size(plan);
      print("chip.%s: given a plan for %u, allowed %u, that of the chip\n", size.name,
            size.planned, size.found);
      break;
    }
    case NPU_BAD_PLAN:
      print("plan: steps[%u]: given a segment, base, address or tensor that no plan has\n",
            result->done);
      break;
    case NPU_NEEDS_HOST:
      print("plan: steps[%u]: given an operation of a host or of the command port, allowed programs "
            "of the chip\n",
            result->done);
      break;
    case NPU_FAILED:
      print("chip: error %u of engine %u at instruction %u, address %08x\n",
            (result->status & NPU_SEQ_STATUS_ERROR_CODE_MASK) >> NPU_SEQ_STATUS_ERROR_CODE_LSB,
            (result->status & NPU_SEQ_STATUS_ERROR_ENGINE_MASK) >> NPU_SEQ_STATUS_ERROR_ENGINE_LSB,
            result->error_instr, result->error_addr);
      break;
    case NPU_LOST_TOKEN:
      print("chip: %u tokens are in memory, expected more\n", result->done);
      break;
  }
  return 1;
}
