# SPDX-License-Identifier: Apache-2.0
"""The RISC-V coprocessor: what is offered to chip and model, and compared."""
