# SPDX-License-Identifier: Apache-2.0
"""What the compiler raises."""


class CompileError(ValueError):
    """A model that does not fit the chip, or a request that makes no sense."""
