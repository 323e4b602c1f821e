# SPDX-License-Identifier: Apache-2.0
"""The prompts that the transformer's programs run on without an input: short, to be simulated."""

PROMPTS = (
    "T", "Re", "def", "The", "for", "in ", "str", "th", "If ", "a", "ret", "o", "is", "cl", "=",
    "Th", "0x", "q", "the o", "Return t",
)  # fmt: skip
