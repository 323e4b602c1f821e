# SPDX-License-Identifier: Apache-2.0
"""The coprocessor of a RISC-V core, instruction by instruction.

Written from what the instructions mean: integers, `math`, and `mpmath` where a double does not
decide how a result rounds.

`Coprocessor` executes words on a memory and has the register window; `functions` and `arrays` are
its numbers alone.
"""

from golden.coprocessor.decode import RD, RS1, RS2, OfferAnswer
from golden.coprocessor.faults import CopFault, FaultCode, RefusedError, Uncertain
from golden.coprocessor.memory import ArrayMemory, CoprocessorMemory
from golden.coprocessor.model import CopResult, Coprocessor
from golden.coprocessor.state import CopState
from golden.coprocessor.work import CopInstruction

__all__ = [
    "RD",
    "RS1",
    "RS2",
    "ArrayMemory",
    "CopFault",
    "CopInstruction",
    "CopResult",
    "CopState",
    "Coprocessor",
    "CoprocessorMemory",
    "FaultCode",
    "OfferAnswer",
    "RefusedError",
    "Uncertain",
]
