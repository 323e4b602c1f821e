# SPDX-License-Identifier: Apache-2.0
"""A computer around the chip: a RISC-V core, memory and UART, which runs programs by itself."""
