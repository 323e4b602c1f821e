/* SPDX-License-Identifier: Apache-2.0 */
/* Start at address 0, as after a reset: stack, trap vector, zeroed data, main, exit. */

  .section .init, "ax"
  .globl _start
_start:
  .option push
  .option norelax
  la gp, __global_pointer$
  .option pop
  la sp, __stack_top
  .option push
  .option arch, +zicsr
  la t0, trap_vector
  csrw mtvec, t0
#ifdef NPU_START
  NPU_START /* what a core needs first */
#endif
#ifdef __riscv_flen
  li t0, 0x2000 /* mstatus.FS: float registers are on, and initial */
  csrs mstatus, t0
#endif
  .option pop
  la t0, __bss_start
  la t1, __bss_end
1:
  bgeu t0, t1, 2f
  sw zero, 0(t0)
  addi t0, t0, 4
  j 1b
2:
  call main
  call exit

/* Exceptions and interrupts go to the first entry, errors of the data bus (NMI) to entry 15. */
  .balign 128
trap_vector:
  .rept 16
  .option push
  .option norvc
  j trap_entry
  .option pop
  .endr

/* Saves all integer registers where trap.h says, calls trap(), and goes on where that says. */
  .globl trap_entry
trap_entry:
  .option arch, +zicsr
  addi sp, sp, -144
  sw x1, 4(sp)
  sw x3, 12(sp)
  sw x4, 16(sp)
  sw x5, 20(sp)
  sw x6, 24(sp)
  sw x7, 28(sp)
  sw x8, 32(sp)
  sw x9, 36(sp)
  sw x10, 40(sp)
  sw x11, 44(sp)
  sw x12, 48(sp)
  sw x13, 52(sp)
  sw x14, 56(sp)
  sw x15, 60(sp)
  sw x16, 64(sp)
  sw x17, 68(sp)
  sw x18, 72(sp)
  sw x19, 76(sp)
  sw x20, 80(sp)
  sw x21, 84(sp)
  sw x22, 88(sp)
  sw x23, 92(sp)
  sw x24, 96(sp)
  sw x25, 100(sp)
  sw x26, 104(sp)
  sw x27, 108(sp)
  sw x28, 112(sp)
  sw x29, 116(sp)
  sw x30, 120(sp)
  sw x31, 124(sp)
  sw zero, 0(sp)
  addi t0, sp, 144
  sw t0, 8(sp)
  csrr t0, mepc
  sw t0, 128(sp)
  csrr t0, mcause
  sw t0, 132(sp)
  mv a0, sp
  call trap
  lw t0, 128(sp)
  csrw mepc, t0
  lw x1, 4(sp)
  lw x3, 12(sp)
  lw x4, 16(sp)
  lw x5, 20(sp)
  lw x6, 24(sp)
  lw x7, 28(sp)
  lw x8, 32(sp)
  lw x9, 36(sp)
  lw x10, 40(sp)
  lw x11, 44(sp)
  lw x12, 48(sp)
  lw x13, 52(sp)
  lw x14, 56(sp)
  lw x15, 60(sp)
  lw x16, 64(sp)
  lw x17, 68(sp)
  lw x18, 72(sp)
  lw x19, 76(sp)
  lw x20, 80(sp)
  lw x21, 84(sp)
  lw x22, 88(sp)
  lw x23, 92(sp)
  lw x24, 96(sp)
  lw x25, 100(sp)
  lw x26, 104(sp)
  lw x27, 108(sp)
  lw x28, 112(sp)
  lw x29, 116(sp)
  lw x30, 120(sp)
  lw x31, 124(sp)
  addi sp, sp, 144
  mret
