# SPDX-License-Identifier: Apache-2.0
"""The coprocessor of a RISC-V core, instruction by instruction.

Written from what the instructions mean: integers, `math`, and `mpmath` where a double does not
decide how a result rounds.
"""
