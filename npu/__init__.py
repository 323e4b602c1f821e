# SPDX-License-Identifier: Apache-2.0
"""What a host links: instruction set, registers, assembler and compiler; no simulator."""
