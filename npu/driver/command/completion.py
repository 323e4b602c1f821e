# SPDX-License-Identifier: Apache-2.0
"""The completion ring: one record in memory per finished descriptor."""

from __future__ import annotations

from dataclasses import dataclass

from npu.driver.command.port import CommandPort
from npu.driver.errors import WORD, CommandFailed, whole
from spec.isa import Engine, ErrorCode
from spec.regs import CMD_FIELDS, DESC_RECORD, SEQ_FIELDS, CmdOp, CmdReg, RingStatus

RECORD = DESC_RECORD.size
"""Bytes of a record."""
INDICES = 1 << 16
"""CQ_HEAD and CQ_TAIL run modulo this."""


@dataclass(frozen=True, slots=True)
class Completion:
    """How a descriptor ended.

    Attributes:
        code: DESC_STATUS[7:0] as if the ring had ended with it; 0x02 is success.
        index: ring index of its first entry.
        tag: of the descriptor, 0 without extension.
        operation: what it ran, None for a program.
        result: RESULT and RESULT_HI of a completed scalar operation, else 0.
        tokens: OUTCNT of a program.
        error, engine: of a program that failed.
        cycles: from taking the entry to its end.
    """

    code: int
    index: int
    tag: int
    operation: CmdOp | None
    result: int
    tokens: int
    error: ErrorCode
    engine: Engine
    cycles: int

    @property
    def completed(self) -> bool:
        """Whether it ended without an error."""
        return self.code == RingStatus.DONE

    @classmethod
    def of(cls, record: bytes) -> Completion:
        """Decode 16 bytes."""
        found = DESC_RECORD.unpack(record)
        low, high, program = found["result"], found["result_hi"], bool(found["launch"])
        # A program's error lies where STATUS has it.
        error = SEQ_FIELDS["STATUS_ERROR_CODE"].get(high) if program else 0
        engine = SEQ_FIELDS["STATUS_ERROR_ENGINE"].get(high) if program else 0
        return cls(
            code=found["code"],
            index=found["index"],
            tag=found["tag"],
            operation=None if program else CmdOp(found["opcode"]),
            result=0 if program else low | high << 32,
            tokens=low if program else 0,
            error=ErrorCode(error),
            engine=Engine(engine),
            cycles=found["cycles"],
        )


class CompletionRing:
    """Records in a ring of memory. Made by `enable`.

    Attributes:
        port: the command port.
        base: address of the ring, a multiple of 16.
        log2_size: the ring holds 2^log2_size records.
    """

    def __init__(self, port: CommandPort, base: int, log2_size: int) -> None:
        self.port = port
        self.base = base
        self.log2_size = log2_size
        self._tail = 0

    @classmethod
    async def enable(cls, port: CommandPort, base: int, log2_size: int) -> CompletionRing:
        """Clear the ring's memory and switch it on; arguments as the attributes.

        Raises:
            RequestError: an argument is outside its range, or the descriptor ring runs.
        """
        most = (1 << CMD_FIELDS["CQ_CTRL_LOG2_SIZE"].width) - 1
        size = RECORD << whole("CompletionRing.log2_size", log2_size, 0, most)
        whole("CompletionRing.base", base, 0, WORD + 1 - size, RECORD)
        port.check_idle()
        ring = cls(port, base, log2_size)
        await ring.disable()
        # An old record must not look like one of the first lap.
        port.bus.write_memory(base, bytes(size))
        await port.write(CmdReg.CQ_TAIL, 0)
        await port.write(CmdReg.CQ_BASE, base)
        await port.write(
            CmdReg.CQ_CTRL,
            CMD_FIELDS["CQ_CTRL_ENABLE"].mask | CMD_FIELDS["CQ_CTRL_LOG2_SIZE"].put(log2_size),
        )
        return ring

    async def disable(self) -> None:
        """Switch the ring off."""
        self.port.check_idle()
        await self.port.write(CmdReg.CQ_CTRL, 0)

    @property
    def size(self) -> int:
        """Records that the ring holds."""
        return 1 << self.log2_size

    async def take(self, *, by_phase: bool = False) -> list[Completion]:
        """Return the records that have come, oldest first, and give their places back.

        Args:
            by_phase: look at the phase bits in memory instead of reading CQ_HEAD.

        Raises:
            CommandFailed: CQ_HEAD is not where the ring can be.
        """
        if by_phase:
            count = 0
            while count < self.size and self._is_new(self._tail + count):
                count += 1
        else:
            head = await self.port.read(CmdReg.CQ_HEAD)
            count = (head - self._tail) % INDICES
            if count > self.size:
                raise CommandFailed(f"CQ_HEAD is {head}, more than {self.size} behind {self._tail}")
        records = [Completion.of(self._record(self._tail + i)) for i in range(count)]
        if count:
            self._tail = (self._tail + count) % INDICES
            await self.port.write(CmdReg.CQ_TAIL, self._tail)
        return records

    def _record(self, index: int) -> bytes:
        place = self.base + RECORD * (index % self.size)
        return self.port.bus.read_memory(place, RECORD)

    def _is_new(self, index: int) -> bool:
        """Return whether the record of an index is there; the first lap has phase 1."""
        phase = DESC_RECORD.unpack(self._record(index))["phase"]
        return phase != (index % INDICES >> self.log2_size) & 1
