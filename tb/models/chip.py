# SPDX-License-Identifier: Apache-2.0
"""The chips that the driver can run on here: the RTL in the simulator, and the model of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt

from golden.machine import ChipConfig, ErrorReport, Machine, StartState
from npu.driver.launch import Launch, Outcome
from npu.regs.generated import SeqReg
from tb.host import Finish, Host
from tb.memory import Memory


def start_state(launch: Launch) -> StartState:
    """Return how the model starts the same program."""
    return StartState(**asdict(launch))


def error_text(error: ErrorReport | None) -> str | None:
    """Return an error in one line, None for none."""
    if error is None:
        return None
    return (
        f"{error.code.name} by engine {error.engine.name.lower()} at instruction {error.instr}, "
        f"address {error.address:#x}"
    )


@dataclass
class RtlChip:
    """The RTL, through its register port and the memory that it shares with Python.

    Attributes:
        host: the host on the register port.
        memory: the memory behind the chip.
        limit: cycles after which a program is given up.
        on_finish: told how each program ended.
    """

    host: Host
    memory: Memory
    limit: int
    on_finish: Callable[[Finish], None] | None = None

    def write_memory(self, address: int, data: bytes) -> None:
        """Put bytes into memory."""
        self.memory.stage(address, data)

    def read_memory(self, address: int, size: int) -> bytes:
        """Return bytes of memory."""
        return self.memory.read(address, size)

    async def run(self, launch: Launch) -> Outcome:
        """Start a program and sleep until its interrupt."""
        finish = await self.host.run_program(start_state(launch), self.limit)
        if self.on_finish is not None:
            self.on_finish(finish)
        tokens = await self.host.read_seq(SeqReg.OUTCNT)
        return Outcome(error_text(finish.error), finish.counters.cycles, tokens)


@dataclass
class ModelChip:
    """The instruction-level model on a memory of its own; its programs take no time.

    Attributes:
        config: the chip's sizes.
        memory: (bytes,) uint8.
        sram: (bytes,) uint8.
    """

    config: ChipConfig
    memory: npt.NDArray[np.uint8]
    sram: npt.NDArray[np.uint8]

    def write_memory(self, address: int, data: bytes) -> None:
        """Put bytes into memory."""
        self.memory[address : address + len(data)] = np.frombuffer(data, np.uint8)

    def read_memory(self, address: int, size: int) -> bytes:
        """Return bytes of memory."""
        return self.memory[address : address + size].tobytes()

    async def run(self, launch: Launch) -> Outcome:
        """Execute a program.

        Raises:
            ValueError: the program has races, so that its result on a chip is open.
        """
        result = Machine(self.config, self.memory, self.sram).run(start_state(launch))
        if result.races:
            raise ValueError(f"{len(result.races)} races, first: {result.races[0]}")
        return Outcome(error_text(result.error), 0, result.out_count)
