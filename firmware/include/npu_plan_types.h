/* SPDX-License-Identifier: Apache-2.0 */
/* Generated from npu/runtime/plan.schema.json; do not edit.
   `python -m npu.firmware.plan_types` writes it. */
#ifndef NPU_PLAN_TYPES_H
#define NPU_PLAN_TYPES_H

#include <stddef.h>
#include <stdint.h>

/* What stands for null in a number of 32 bits; of 64 bits it is all ones as well. */
#define NPU_PLAN_NONE 0xFFFFFFFFu

/* where the plan comes from */
struct npu_plan_origin {
  const char *file; /* its name, empty if there was none */
  const char *sha256; /* of the file */
  /* given: quantised there; random:N; or the number of samples and their SHA-256 */
  const char *calibration;
  const char *compiler; /* version of Tessera */
};

/* sizes of the chip that it is for */
struct npu_plan_chip {
  uint32_t array_dim; /* edge of the array */
  uint32_t sram_bytes; /* SRAM */
  uint32_t acc_rows; /* rows of accumulators */
  uint32_t norm_max; /* longest row of a norm */
  uint32_t narrow_formats; /* weights of fewer bits */
};

/* the packed file with stream, constants, programs and the graph */
struct npu_plan_image {
  uint32_t bytes; /* its size */
  const char *sha256; /* of all of it */
};

enum npu_plan_table_name {
  NPU_PLAN_TABLE_NAME_TOKENS,
  NPU_PLAN_TABLE_NAME_POSITIONS,
  NPU_PLAN_TABLE_NAME_ROPE,
  NPU_PLAN_TABLE_NAME_SINK
};

struct npu_plan_table {
  enum npu_plan_table_name name; /* what it holds */
  uint32_t bytes; /* its size */
};

/* start values of window and cache */
struct npu_plan_registers {
  uint32_t pos; /* register POS */
  uint32_t token; /* register TOKEN */
  uint32_t window; /* register WINDOW */
  uint32_t loop_left; /* register LOOPLEFT */
  uint32_t eos; /* register EOS */
  uint32_t kv_base; /* of the cache: offset in the arena, or address in SRAM */
  uint32_t kv_layer; /* register KVLAYER */
  uint32_t kv_head; /* register KVHEAD */
  uint32_t kv_voff; /* register KVVOFF */
  uint32_t kv_cap; /* register KVCAP */
  uint32_t kv_in_memory; /* 1 if the cache lies in memory, 0 in SRAM */
};

/* what the plan of a decoder is made from; null for a network of operations */
struct npu_plan_decoder {
  uint32_t rows; /* tokens of the prompt */
  uint32_t context; /* positions that there are */
  uint32_t vocab; /* token ids that there are */
  const struct npu_plan_table *tables; /* constants, in order, each at a multiple of 4096 */
  uint32_t tables_count;
  uint32_t cache_bytes; /* of keys and values in memory; 0 if they lie in SRAM */
  struct npu_plan_registers registers; /* start values of window and cache */
  const uint32_t *sram_bytes; /* of each program: generate; or generate, prefill and step */
  uint32_t sram_bytes_count;
};

/* memory of the tensors */
struct npu_plan_arena {
  uint32_t bytes; /* its size */
  uint32_t alignment; /* of its address */
};

enum npu_plan_element {
  NPU_PLAN_ELEMENT_INT8,
  NPU_PLAN_ELEMENT_UINT8,
  NPU_PLAN_ELEMENT_INT16,
  NPU_PLAN_ELEMENT_INT32,
  NPU_PLAN_ELEMENT_UINT32,
  NPU_PLAN_ELEMENT_FLOAT32,
  NPU_PLAN_ELEMENT_BOOL
};

struct npu_plan_tensor {
  const char *name; /* as in the graph */
  enum npu_plan_element element; /* type of an element */
  const uint64_t *shape; /* rows are what the last axis holds */
  uint32_t shape_count;
  float scale; /* real = scale * (integer - zero); null without */
  int32_t zero; /* the integer that stands for 0 */
  uint32_t offset; /* in the arena */
  uint32_t bytes; /* rows padded to whole words */
  uint64_t first; /* operation, in the order of the steps, from which on the place is taken */
  uint64_t last; /* operation up to which it is */
};

enum npu_plan_area {
  NPU_PLAN_AREA_ARENA,
  NPU_PLAN_AREA_CONSTANTS
};

struct npu_plan_base {
  uint32_t register_; /* number of BASE */
  enum npu_plan_area area; /* into what it points */
  uint32_t offset; /* from its beginning */
};

struct npu_plan_operation {
  const char *name; /* as in the graph */
  uint32_t word; /* its first one; null without instructions */
  uint64_t words; /* up to the next operation */
};

/* of its instructions, as the chip's counters count; null with loops */
struct npu_plan_cost {
  uint64_t instructions; /* that are dispatched */
  uint64_t words; /* of microcode */
  uint64_t macs; /* multiplications of 8 by 8 bits */
  uint64_t tiles; /* of B that the array takes in */
  uint64_t load_bytes; /* loaded */
  uint64_t store_bytes; /* stored */
  uint64_t stream_bytes; /* taken from the stream */
  uint64_t vector_bytes; /* that the engines beside the array read */
};

struct npu_plan_segment {
  const char *section; /* of the image */
  uint32_t words; /* of 16 bytes */
  uint32_t sram_bytes; /* from address 0 on */
  uint32_t stream_bytes; /* of the stream, from its beginning on, that it reads from */
  const struct npu_plan_base *bases; /* what base registers hold */
  uint32_t bases_count;
  struct npu_plan_registers registers; /* start values of other registers */
  const struct npu_plan_operation *operations; /* of the graph, in order */
  uint32_t operations_count;
  const char *const *reads; /* tensors that it takes from the arena */
  uint32_t reads_count;
  const char *const *writes; /* tensors that it leaves there */
  uint32_t writes_count;
  /* of its instructions, as the chip's counters count; null with loops */
  const struct npu_plan_cost *cost;
  uint64_t cycles; /* the least that it takes by the model of the report; null with loops */
};

enum npu_plan_action {
  NPU_PLAN_ACTION_LAUNCH,
  NPU_PLAN_ACTION_HOST,
  NPU_PLAN_ACTION_PORT,
  NPU_PLAN_ACTION_PACK,
  NPU_PLAN_ACTION_UNPACK
};

struct npu_plan_step {
  /* launch a segment, evaluate an operation on the host or by the command port, pack a tensor into
     the arena or unpack it from there */
  enum npu_plan_action action;
  uint32_t of; /* number of the segment, or name of the operation or tensor */
  const char *of_name;
  const char *const *reads; /* tensors */
  uint32_t reads_count;
  const char *const *writes; /* tensors */
  uint32_t writes_count;
};

/* segments that go into the descriptor ring together */
struct npu_plan_batch {
  const uint64_t *of;
  uint32_t of_count;
};

enum npu_plan_kept {
  NPU_PLAN_KEPT_HOST
};

struct npu_plan_state {
  const char *input; /* of the graph, that holds what the run before has left */
  const char *output; /* of the graph, what a run leaves */
  uint64_t bytes; /* its size */
  enum npu_plan_kept kept; /* who has it between two runs */
};

/* A plan, as plan.json has it. */
struct npu_plan {
  uint32_t format; /* version of this schema */
  struct npu_plan_origin origin; /* where the plan comes from */
  struct npu_plan_chip chip; /* sizes of the chip that it is for */
  struct npu_plan_image image; /* the packed file with stream, constants, programs and the graph */
  /* what the plan of a decoder is made from; null for a network of operations */
  const struct npu_plan_decoder *decoder;
  struct npu_plan_arena arena; /* memory of the tensors */
  const struct npu_plan_tensor *tensors; /* what lies in the arena, by offset */
  uint32_t tensors_count;
  const struct npu_plan_segment *segments; /* programs */
  uint32_t segments_count;
  const struct npu_plan_step *steps; /* what happens, in order */
  uint32_t steps_count;
  const struct npu_plan_batch *batches; /* segments that go into the descriptor ring together */
  uint32_t batches_count;
  /* tensors that live from run to run, whose first values the graph has; absent if there is none */
  const struct npu_plan_state *states;
  uint32_t states_count;
};

/* Where the parts of a plan lie in memory: addresses, multiples of 64. */
struct npu_bases {
  uint32_t stream;
  uint32_t constants;
  uint32_t programs;
  uint32_t arena;
  uint32_t ring;
};

#endif
