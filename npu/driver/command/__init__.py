# SPDX-License-Identifier: Apache-2.0
"""Driver of the command port: operations by register, the descriptor ring, matrix products."""

from npu.driver.command.buffer import CommandBuffer, Completed
from npu.driver.command.completion import Completion, CompletionRing
from npu.driver.command.descriptor import Command, Descriptor, ProgramDescriptor, StagedStream
from npu.driver.command.operation import Gemm, Operation, Scalar, Vrelu
from npu.driver.command.port import CommandPort
from npu.driver.command.status import Counters, Status
from spec.regs import RingStatus

__all__ = [
    "Command",
    "CommandBuffer",
    "CommandPort",
    "Completed",
    "Completion",
    "CompletionRing",
    "Counters",
    "Descriptor",
    "Gemm",
    "Operation",
    "ProgramDescriptor",
    "RingStatus",
    "Scalar",
    "StagedStream",
    "Status",
    "Vrelu",
]
