# SPDX-License-Identifier: Apache-2.0
"""The coprocessor of a RISC-V core, instruction by instruction.

Written from what the instructions mean: integers, `math`, and `mpmath` where a double does not
decide how a result rounds.

`Coprocessor` executes words on a memory and has the register window; `functions` and `arrays` are
its numbers alone.
"""

from golden.coprocessor.decode import RD, RS1, RS2, Offer
from golden.coprocessor.faults import Fault, FaultCode, RefusedError, Uncertain
from golden.coprocessor.memory import ArrayMemory, CoprocessorMemory
from golden.coprocessor.model import Coprocessor, Result
from golden.coprocessor.state import State
from golden.coprocessor.work import Instruction

__all__ = [
    "RD",
    "RS1",
    "RS2",
    "ArrayMemory",
    "Coprocessor",
    "CoprocessorMemory",
    "Fault",
    "FaultCode",
    "Instruction",
    "Offer",
    "RefusedError",
    "Result",
    "State",
    "Uncertain",
]
