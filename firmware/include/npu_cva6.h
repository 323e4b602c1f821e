/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What programs on CVA6 are compiled with: -include npu_cva6.h, which start-up code sees as well.
 *
 * The core hands over two registers. Its cache of data is off: the chip writes memory too. And it sends an
 * instruction to the port, committed, as soon as it is issued, although an older one may still flush it: then
 * it is executed twice. After a fence, a write to a CSR or anything that traps, eight others must therefore
 * stand before the next instruction of the coprocessor: as many as the core has under way. Interrupts may come
 * only while there is none.
 */
#ifndef NPU_CVA6_H
#define NPU_CVA6_H

#define NPU_START csrw 0x701, zero /* dcache */
#define NPU_FENCE() __asm__ volatile("fence; .rept 8; nop; .endr" ::: "memory")

#include "npu_two_sources.h"

#endif
