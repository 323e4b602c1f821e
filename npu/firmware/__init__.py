# SPDX-License-Identifier: Apache-2.0
"""Programs for a RISC-V core beside the chip, and plans of models for them."""
