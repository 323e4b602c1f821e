# SPDX-License-Identifier: Apache-2.0
"""The port of a RISC-V core."""
