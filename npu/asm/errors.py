# SPDX-License-Identifier: Apache-2.0
"""The one error of the assembler."""


class AsmError(ValueError):
    """A mistake in a program text: `filename:line:column: message`."""

    def __init__(self, filename: str, line: int, column: int, message: str) -> None:
        """Keep the place and the message."""
        super().__init__(f"{filename}:{line}:{column}: {message}")
        self.filename = filename
        self.line = line
        self.column = column
        self.message = message


class OperandError(ValueError):
    """A mistake whose place in the text the caller knows; `column` counts from 0 in the operand."""

    def __init__(self, message: str, column: int = 0) -> None:
        """Keep the place and the message."""
        super().__init__(message)
        self.column = column
