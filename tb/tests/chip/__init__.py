# SPDX-License-Identifier: Apache-2.0
"""The chip as a whole: registers, refusals, memory, resets, timing."""
