# SPDX-License-Identifier: Apache-2.0
"""The command port, register by register: operations, descriptor ring, completion records.

`PortModel` is the port alone, `ModelBus` the whole chip as a host sees it. Written from the
reference pages of the command port and of the host registers.
"""

from golden.command.memory import FaultyMemory, GuardedRange, PortMemory
from golden.command.model import CYCLE_ADDRESSES, ModelBus, NoInterruptError
from golden.command.port import PortModel
from golden.command.ring import EndlessWaitError, Launch, ProgramEnd
from golden.command.state import CYCLE_REGISTERS

__all__ = [
    "CYCLE_ADDRESSES",
    "CYCLE_REGISTERS",
    "EndlessWaitError",
    "FaultyMemory",
    "GuardedRange",
    "Launch",
    "ModelBus",
    "NoInterruptError",
    "PortMemory",
    "PortModel",
    "ProgramEnd",
]
