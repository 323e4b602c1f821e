# SPDX-License-Identifier: Apache-2.0
"""What the compiler raises."""


class CompileError(ValueError):
    """A model that does not fit the chip, or a request that makes no sense."""


class MemoryFullError(CompileError):
    """A model that the chip's address space is too small for."""
