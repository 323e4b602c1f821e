/* SPDX-License-Identifier: Apache-2.0 */
/* Every instruction of the coprocessor on a few operands, corners among them; what comes out is
   printed, in hexadecimal where it is a float. The same text on every machine. */
#include "npu.h"
#include "npu_fp.h"
#include "npu_regs.h"
#include "print.h"
#include "soc.h"
#include "trap.h"

#define COUNT 21u
#define COP_LIMIT 0x254u

static int8_t bytes_a[64], bytes_b[64];
static int32_t words[COUNT + 1], results[COUNT + 1];
static uint32_t floats_a[COUNT], floats_b[COUNT];
static int8_t place[4 * COUNT + 16];
static volatile uint32_t traps;

void trap(struct trap_frame *frame) {
  if (frame->cause != TRAP_ILLEGAL) {
    trap_print(frame);
    exit(1);
  }
  traps++;
  frame->pc += 4;
}

static uint32_t bits_of(float value) {
  union {
    float value;
    uint32_t bits;
  } both = {.value = value};
  return both.bits;
}

static float float_of(uint32_t bits) {
  union {
    uint32_t bits;
    float value;
  } both = {.bits = bits};
  return both.value;
}

/* 1, 2, ... without a library */
static uint32_t next_random(void) {
  static uint32_t state = 0x2545F491u;
  state ^= state << 13;
  state ^= state >> 17;
  state ^= state << 5;
  return state;
}

static void show(const char *name, const void *from, uint32_t count) {
  const uint8_t *bytes = from; /* anywhere in memory */
  print("%s", name);
  for (uint32_t i = 0; i < count; i++) {
    uint32_t word = 0;
    for (uint32_t j = 4; j-- > 0;) {
      word = word << 8 | bytes[4 * i + j];
    }
    print(" %08x", word);
  }
  print("\n");
}

static void fill(void) {
  for (uint32_t i = 0; i < 64; i++) {
    bytes_a[i] = (int8_t)next_random();
    bytes_b[i] = (int8_t)next_random();
  }
  for (uint32_t i = 0; i < COUNT; i++) {
    words[i] = (int32_t)next_random() >> (i % 12);
    /* Magnitudes around one */
    floats_a[i] = (next_random() & 0x81FFFFFFu) + 0x3E000000u;
    floats_b[i] = (next_random() & 0x81FFFFFFu) + 0x3E000000u;
  }
}

static void integers(void) {
  static const int32_t corners[] = {0, 1, -1, 127, 128, -128, -129, 0x7FFFFFFF, -0x7FFFFFFF - 1};
  for (uint32_t i = 0; i < sizeof corners / sizeof corners[0]; i++) {
    int32_t a = corners[i];
    print("scalar %08x: RELU %08x CLAMP %08x GELU %08x QMUL %08x %08x\n", (uint32_t)a,
          (uint32_t)NPU_RELU(a), (uint32_t)NPU_CLAMP(a), (uint32_t)NPU_GELU(a),
          (uint32_t)NPU_QMUL(a, a), (uint32_t)NPU_QMUL(a, -3));
    NPU_MACC(a, a);
    NPU_MACC(a, 5);
  }
  print("acc %08x%08x\n", chip_read(0x204), chip_read(0x200));
  uint32_t sum = (uint32_t)NPU_RSTACC();
  print("RSTACC %08x, again %08x\n", sum, (uint32_t)NPU_RSTACC());

  for (uint32_t n = 0; n <= 60; n += 15) {
    NPU_VMAC(bytes_a + n % 3, bytes_b + n % 4, n);
  }
  print("VMAC %08x\n", (uint32_t)NPU_RSTACC());

  NPU_MACC(40000, 1);
  NPU_VMUL(bytes_a + 1, place + 3, 29);
  show("VMUL", place, 9);
  print("acc stays %08x\n", (uint32_t)NPU_RSTACC());

  static const int32_t exponents[] = {0,      65536,   -65536, 681391, 681392, -772243,
                                      -772244, -700000, 1,      -1,     45426};
  NPU_VEXP(exponents, place + 1, sizeof exponents / sizeof exponents[0]);
  show("VEXP", place + 1, sizeof exponents / sizeof exponents[0]);

  print("VREDUCE %08x, of nothing %08x\n", (uint32_t)NPU_VREDUCE(words, COUNT),
        (uint32_t)NPU_VREDUCE(words, 0));
  print("VMAX %08x, of nothing %08x\n", (uint32_t)NPU_VMAX(words, COUNT),
        (uint32_t)NPU_VMAX(words, 0));
  static const int32_t squares[] = {0, -1, 1, 2, 65536, 0x7FFFFFFF, 262144};
  for (uint32_t i = 0; i < sizeof squares / sizeof squares[0]; i++) {
    print("VRSQRT %08x\n", (uint32_t)NPU_VRSQRT(&squares[i]));
  }

  NPU_LDVEC(1, bytes_a, 0);
  NPU_LDVEC(2, bytes_a + 8, -3);
  NPU_STVEC(1, place + 9, 2);
  NPU_STVEC(2, place + 9, -9);
  show("vreg", place, 5);
}

static void floats(void) {
  static const uint32_t corners[] = {0x00000000, 0x80000000, 0x3F800000, 0xBF800000, 0x7F800000,
                                     0xFF800000, 0x7FC12345, 0x00000001, 0x80000003, 0x42B17218,
                                     0xC2CFF1B5, 0xC165B275, 0x41800000, 0x7F7FFFFF, 0x00800000,
                                     0xC0A00000};
  uint32_t count = sizeof corners / sizeof corners[0];
  for (uint32_t i = 0; i < count; i++) {
    float a = float_of(corners[i]);
    print("float %08x: FRELU %08x FGELU %08x FRSQRT %08x FVRSQRT %08x\n", corners[i],
          bits_of(NPU_FRELU(a)), bits_of(NPU_FGELU(a)), bits_of(NPU_FRSQRT(a)),
          bits_of(NPU_FVRSQRT(&corners[i])));
  }
  NPU_FVEXP(corners, place + 2, count);
  show("FVEXP", place + 2, count);
  NPU_FVGELU(corners, place + 3, count);
  show("FVGELU", place + 3, count);
  NPU_FVRELU(corners, place + 1, count);
  show("FVRELU", place + 1, count);

  for (uint32_t i = 0; i < COUNT; i++) {
    NPU_FMACC(float_of(floats_a[i]), float_of(floats_b[i]));
  }
  print("facc %08x%08x\n", chip_read(0x21C), chip_read(0x218));
  uint32_t sum = bits_of(NPU_FRSTACC());
  print("FRSTACC %08x, again %08x\n", sum, bits_of(NPU_FRSTACC()));
  NPU_FVMAC(floats_a, floats_b, COUNT);
  print("FVMAC %08x\n", bits_of(NPU_FRSTACC()));
  print("FVREDUCE %08x, of nothing %08x\n", bits_of(NPU_FVREDUCE(floats_a, COUNT)),
        bits_of(NPU_FVREDUCE(floats_a, 0)));
  print("FVMAX %08x, of nothing %08x\n", bits_of(NPU_FVMAX(floats_a, COUNT)),
        bits_of(NPU_FVMAX(floats_a, 0)));

  NPU_FMACC(float_of(0x40490FDB), float_of(0x3F000001));
  NPU_FVMUL(floats_a, results, COUNT);
  show("FVMUL", results, COUNT);
  NPU_FVSUB_SCALAR(floats_a, results, COUNT);
  show("FVSUB_SCALAR", results, COUNT);
  NPU_FVDIV(floats_a, results, COUNT);
  show("FVDIV", results, COUNT);
  (void)NPU_FRSTACC();
  for (uint32_t i = 0; i < COUNT; i++) {
    results[i] = (int32_t)floats_b[i];
  }
  NPU_FVADD(floats_a, results, COUNT);
  show("FVADD", results, COUNT);
  NPU_FVSUB(floats_a, results, COUNT);
  show("FVSUB", results, COUNT);
}

/* A fault is sticky: what follows is refused until it is cleared. */
static void faults(void) {
  NPU_MACC(3, 4);
  chip_write(COP_LIMIT, 16);
  NPU_VMAC(bytes_a, bytes_b, 17);
  print("refused before %u", traps);
  NPU_MACC(5, 6);
  print(", after %u\n", traps);
  /* Without the register fields, which are the compiler's choice */
  print("STATUS %02x, INSTR %08x, ADDR %08x, INDEX %u\n", chip_read(0x240) & 0xFEu,
        chip_read(0x248) & 0xFE00707Fu, chip_read(0x24C), chip_read(0x250));
  chip_write(0x244, 3);
  chip_write(COP_LIMIT, 256);
  print("acc %08x\n", (uint32_t)NPU_RSTACC());
  print("the alias reads %08x\n", soc_read(SOC_COP + 0x54));
}

int main(void) {
  if (!npu_floats_agree()) {
    print("npu_fp.h: the core hands over other registers than those of the floats; define "
          "NPU_FLOATS_IN_F or NPU_FLOATS_IN_X\n");
    return 2;
  }
  fill();
  integers();
  floats();
  faults();
  return 0;
}
