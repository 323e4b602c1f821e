# SPDX-License-Identifier: Apache-2.0
"""The instruction-level model: any program on a memory image and an SRAM, bit for bit.

`Machine.run` fetches words from memory, folds prefixes, checks legality in the documented order,
executes with the references of `golden`, logs every SRAM write and reports races.
"""

from golden.machine.core import Machine
from golden.machine.state import (
    ChipConfig,
    Race,
    RunResult,
    SramWrite,
)
from spec.isa import ErrorReport
from spec.regs import StartState

__all__ = [
    "ChipConfig",
    "ErrorReport",
    "Machine",
    "Race",
    "RunResult",
    "SramWrite",
    "StartState",
]
