/* SPDX-License-Identifier: Apache-2.0 */
/* What both forms of the byte-level transformer do with their network: prompts, text, time. */
#ifndef BYTELM_H
#define BYTELM_H

/* Takes in a token at a position; if it is the last, leaves the logits and returns the next token. */
typedef uint32_t (*bytelm_step)(uint32_t token, uint32_t position, int last);

/* FNV-1a over words instead of bytes. */
static inline uint32_t bytelm_hash(const uint32_t *words, uint32_t count) {
  uint32_t hash = 2166136261u;
  for (uint32_t i = 0; i < count; i++) {
    hash = (hash ^ words[i]) * 16777619u;
  }
  return hash;
}

static inline uint32_t bytelm_prompt(const char *text, uint32_t size, bytelm_step step) {
  uint32_t next = 0;
  for (uint32_t position = 0; position < size; position++) {
    next = step((uint8_t)text[position], position, position + 1 == size);
  }
  return next;
}

/* Continue a text until the context is full. */
static inline void bytelm_text(const char *prompt, uint32_t size, bytelm_step step) {
  print_bytes(prompt, size);
  uint32_t next = bytelm_prompt(prompt, size, step);
  for (uint32_t position = size; position < CONTEXT; position++) {
    uart_put((char)next);
    next = step(next, position, 1);
  }
  print("%c\n", (char)next);
}

#ifndef PROMPT_COUNT
#define PROMPT_COUNT PROMPTS
#endif

/* The next byte of each of the first PROMPT_COUNT built-in prompts, with a hash of all logits. */
static inline void bytelm_prompts(const uint32_t *logits, bytelm_step step) {
  for (uint32_t i = 0; i < PROMPT_COUNT; i++) {
    const char *prompt = bytelm_prompt_text[i];
    uint32_t size = 0;
    while (prompt[size] != '\0') {
      size++;
    }
    uint32_t next = bytelm_prompt(prompt, size, step);
    print("%2u next %02x logits %08x  %s\n", (unsigned)i, (unsigned)next,
          (unsigned)bytelm_hash(logits, VOCAB), prompt);
  }
}

/* The time of a token at position 16; the cache before it holds rows of the token table. */
static inline void bytelm_one_token(const uint32_t *logits, bytelm_step step, void (*fill)(uint32_t)) {
  fill(16);
  uint32_t start = soc_cycles();
  uint32_t next = step('e', 16, 1);
  uint32_t cycles = soc_cycles() - start;
  print("next %02x logits %08x\ncycles %u\n", (unsigned)next, (unsigned)bytelm_hash(logits, VOCAB),
        (unsigned)cycles);
}

static inline int bytelm_main(const uint32_t *logits, bytelm_step step, void (*fill)(uint32_t)) {
#ifdef ONE_TOKEN
  bytelm_one_token(logits, step, fill);
#else
  static char input[CONTEXT];
  uint32_t size = 0;
  int byte = uart_get();
  for (; byte >= 0 && size < CONTEXT; byte = uart_get()) {
    input[size++] = (char)byte;
  }
  (void)fill;
  if (byte >= 0) {
    print("bytelm: the prompt is longer than the context of %d bytes\n", CONTEXT);
    return 1;
  }
  if (size != 0) {
    bytelm_text(input, size, step);
  } else {
    bytelm_prompts(logits, step);
  }
#endif
  return 0;
}

#endif
