# SPDX-License-Identifier: Apache-2.0
"""The report of an error: what STATUS, ERROR_INSTR and ERROR_ADDR say."""

from __future__ import annotations

from dataclasses import dataclass

from spec.isa.generated import Engine, ErrorCode


@dataclass(frozen=True, slots=True)
class ErrorReport:
    """The sticky first error.

    Attributes:
        code: what happened.
        engine: who reports it; refused instructions report Engine.SEQ.
        instr: index of the instruction word in the program, prefix words counted.
        address: start byte address of an SRAM operand, memory byte address, or SET value; else 0.
    """

    code: ErrorCode
    engine: Engine
    instr: int
    address: int = 0

    @property
    def text(self) -> str:
        """The error in one line."""
        return (
            f"{self.code.name} by engine {self.engine.name.lower()} at instruction {self.instr}, "
            f"address {self.address:#x}"
        )
