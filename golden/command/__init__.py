# SPDX-License-Identifier: Apache-2.0
"""The command port, register by register: operations, descriptor ring, completion records.

`CommandPort` is the port alone, `ModelBus` the whole chip as a host sees it. Written from the
reference pages of the command port and of the host registers.
"""

from golden.command.memory import FaultyMemory, Memory, Region
from golden.command.model import CYCLE_ADDRESSES, ModelBus, NoInterruptError
from golden.command.port import CommandPort
from golden.command.ring import EndlessWaitError, Launch, ProgramEnd
from golden.command.state import CYCLE_REGISTERS

__all__ = [
    "CYCLE_ADDRESSES",
    "CYCLE_REGISTERS",
    "CommandPort",
    "EndlessWaitError",
    "FaultyMemory",
    "Launch",
    "Memory",
    "ModelBus",
    "NoInterruptError",
    "ProgramEnd",
    "Region",
]
