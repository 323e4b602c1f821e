# SPDX-License-Identifier: Apache-2.0
"""The command port by register: one method per operation, scratchpad, status, counters.

Whatever the hardware would refuse raises RequestError before a register is written; what the
hardware reports raises CommandFailed. Every wait is for the interrupt.
"""

from __future__ import annotations

from collections.abc import Sequence

from npu.driver.bus import Bus, RegisterAccess, access
from npu.driver.command import scalars
from npu.driver.command.operation import (
    PAGE,
    SCRATCH_SIZES,
    Gemm,
    Operation,
    Scalar,
    Vrelu,
    check_operation,
)
from npu.driver.command.scalars import signed
from npu.driver.command.status import COUNTER_REGISTERS, Counters, Status
from npu.driver.errors import WORD, CommandFailed, RequestError, whole
from npu.driver.identity import identify
from spec.regs import (
    CHIP_BASE,
    CHIP_FIELDS,
    CMD_BASE,
    CMD_FIELDS,
    SEQ_BASE,
    ChipReg,
    CmdOp,
    CmdReg,
    SeqReg,
    StartState,
)

OF_A_DESCRIPTOR = {
    *(SeqReg.UCODE_BASE, SeqReg.UCODE_LEN, SeqReg.POS, SeqReg.TOKEN),
    *(SeqReg.DDR_BASE_ACT, SeqReg.DDR_BASE_OUT),
}
"""What a descriptor that launches a program brings itself."""
TILE_REGISTERS = (CmdReg.GEMM_CFG, CmdReg.GEMM_BASE, CmdReg.GEMM_STRIDE)


class CommandPort:
    """The command port of a chip. Made by `connect`.

    Attributes:
        bus: the way to the chip.
        scratch_bytes: size of the scratchpad.
        ring_runs: a CommandBuffer has started the ring and not seen its end.
    """

    def __init__(self, bus: Bus, scratch_bytes: int) -> None:
        self.bus = bus
        self.scratch_bytes = scratch_bytes
        self.ring_runs = False

    @classmethod
    async def connect(cls, bus: Bus) -> CommandPort:
        """Return the port of a chip, and make it the only source of the interrupt line.

        Raises:
            RequestError: the chip is another one, its register map has another version, or it
                has no command port.
        """
        await identify(bus)
        config = await bus.read32(CMD_BASE + CmdReg.CMD_CONFIG)
        size = CMD_FIELDS["CMD_CONFIG_SCRATCH_BYTES"].get(config)
        if size not in SCRATCH_SIZES:
            given = f"{size}" if size else "0: the chip has no command port"
            raise RequestError(
                "CMD_CONFIG.SCRATCH_BYTES", given, ", ".join(map(str, SCRATCH_SIZES))
            )
        await bus.write32(CHIP_BASE + ChipReg.IRQ_ENABLE, CHIP_FIELDS["IRQ_ENABLE_CMD"].mask)
        return cls(bus, size)

    async def read(self, register: CmdReg) -> int:
        """Return a register."""
        return await self.bus.read32(CMD_BASE + register)

    async def write(self, register: CmdReg, value: int) -> None:
        """Write a register."""
        await self.bus.write32(CMD_BASE + register, value)

    def check_idle(self) -> None:
        """Raise RequestError while a CommandBuffer has the port."""
        if self.ring_runs:
            raise RequestError("command port", "a start or write while the ring runs", "when idle")

    async def finish(self) -> int:
        """Wait until the port is done; return CTRL_STATUS."""
        while True:
            await self.bus.wait_interrupt()
            status = await self.read(CmdReg.CTRL_STATUS)
            if CMD_FIELDS["CTRL_STATUS_DONE"].get(status):
                return status

    async def start(self) -> None:
        """Write START."""
        await self.write(CmdReg.CTRL_STATUS, CMD_FIELDS["CTRL_STATUS_START"].mask)

    async def write_tile(self, words: tuple[int, int, int]) -> None:
        """Write GEMM_CFG, GEMM_BASE and GEMM_STRIDE."""
        for register, word in zip(TILE_REGISTERS, words, strict=True):
            await self.write(register, word)

    async def execute(self, operation: Operation) -> int | None:
        """Run one operation by register.

        Returns:
            RESULT and RESULT_HI as one number of 64 bits; None for a tile, whose result lies in
            the scratchpad.

        Raises:
            RequestError: the hardware would refuse it, or the ring runs.
            CommandFailed: the hardware reports an error.
        """
        check_operation(operation, self.scratch_bytes)
        self.check_idle()
        await self.write(CmdReg.OPCODE, operation.op)
        ternary = False
        if isinstance(operation, Scalar):
            ternary = operation.ternary
            for register, word in (
                (CmdReg.OP_A, operation.a),
                (CmdReg.OP_B, operation.b),
                (CmdReg.ACC, operation.acc),
            ):
                await self.write(register, word)
        else:
            await self.write_tile(operation.words())
        await self.write(CmdReg.CMD_PARAM, CMD_FIELDS["CMD_PARAM_TERNARY"].put(ternary))
        await self.start()
        if CMD_FIELDS["CTRL_STATUS_ERROR"].get(await self.finish()):
            raise CommandFailed(f"{operation.op.name} by register ended with an error: {operation}")
        if not isinstance(operation, Scalar):
            return None
        low = await self.read(CmdReg.RESULT)
        return low | await self.read(CmdReg.RESULT_HI) << 32

    async def _word(self, operation: Scalar) -> int:
        """Run a scalar operation; return RESULT."""
        return (await self._double(operation)) & WORD

    async def _double(self, operation: Scalar) -> int:
        result = await self.execute(operation)
        assert result is not None
        return result

    async def add(self, a: int, b: int) -> int:
        """Return A + B modulo 2^32."""
        return await self._word(scalars.add(a, b))

    async def sub(self, a: int, b: int) -> int:
        """Return A - B modulo 2^32."""
        return await self._word(scalars.sub(a, b))

    async def mul_lo(self, a: int, b: int) -> int:
        """Return the 64-bit product of two words without sign."""
        return await self._double(scalars.mul_lo(a, b))

    async def max_u32(self, a: int, b: int) -> int:
        """Return the larger of two words without sign."""
        return await self._word(scalars.max_u32(a, b))

    async def min_u32(self, a: int, b: int) -> int:
        """Return the smaller of two words without sign."""
        return await self._word(scalars.min_u32(a, b))

    async def mac_s16(self, a: int, b: int, acc: int = 0) -> int:
        """Return A * B + acc, signed, of signed 16-bit numbers."""
        return signed(await self._word(scalars.mac_s16(a, b, acc)))

    async def dot4_s8(self, a: Sequence[int], b: Sequence[int], acc: int = 0) -> int:
        """Return the sum of four products of signed bytes + acc, signed."""
        return signed(await self._word(scalars.dot4_s8(a, b, acc)))

    async def dot8_s4(self, a: Sequence[int], b: Sequence[int], acc: int = 0) -> int:
        """Return the sum of eight products of signed nibbles + acc, signed."""
        return signed(await self._word(scalars.dot8_s4(a, b, acc)))

    async def dot16_s2(
        self, a: Sequence[int], b: Sequence[int], acc: int = 0, *, ternary: bool = False
    ) -> int:
        """Return the sum of sixteen products of -2..1, or ternary lanes, + acc, signed."""
        return signed(await self._word(scalars.dot16_s2(a, b, acc, ternary=ternary)))

    async def dot4_fp8(self, a: Sequence[int], b: Sequence[int], acc: int = 0) -> int:
        """Return the sum of four products of FP8 codes + acc, signed, in Q8.8."""
        return signed(await self._word(scalars.dot4_fp8(a, b, acc)))

    async def sdot4(self, a: Sequence[int], positions: Sequence[int], b: Sequence[int]) -> int:
        """Return the sum of four products of 2:4 sparse nibbles, signed."""
        return signed(await self._word(scalars.sdot4(a, positions, b)))

    async def relu4_s8(self, a: Sequence[int]) -> tuple[int, ...]:
        """Return four signed bytes, negative ones replaced by 0."""
        return scalars.unpack_s8(await self._word(scalars.relu4_s8(a)))

    async def exp2_neg(self, a: int) -> int:
        """Return 2 to the power of min(a, 0) in Q0.8, of a signed byte."""
        return await self._word(scalars.exp2_neg(a))

    async def gemm_s8(
        self,
        shape: tuple[int, int, int],
        bases: tuple[int, int, int] | None = None,
        strides: tuple[int, int, int] | None = None,
    ) -> Gemm:
        """Multiply a tile of signed bytes in the scratchpad; see `Gemm`.

        Args:
            shape: M, N, K.
            bases: of A, B and C; without them as in `Gemm.packed`.
            strides: of A, B and C, likewise.

        Returns:
            the tile, which says where C lies.
        """
        return await self._gemm(CmdOp.GEMM_S8, shape, bases, strides)

    async def gemm_s4(
        self,
        shape: tuple[int, int, int],
        bases: tuple[int, int, int] | None = None,
        strides: tuple[int, int, int] | None = None,
    ) -> Gemm:
        """Multiply a tile of signed nibbles in the scratchpad; arguments as `gemm_s8`."""
        return await self._gemm(CmdOp.GEMM_S4, shape, bases, strides)

    async def _gemm(
        self,
        op: CmdOp,
        shape: tuple[int, int, int],
        bases: tuple[int, int, int] | None,
        strides: tuple[int, int, int] | None,
    ) -> Gemm:
        name = op.name.lower()
        for field, given in (("shape", shape), ("bases", bases), ("strides", strides)):
            if given is not None and len(given) != 3:
                raise RequestError(f"{name}.{field}", f"{len(given)} numbers", "3")
        for field, value in zip("mnk", shape, strict=True):
            whole(f"{op.name}.{field}", value, 1, WORD)
        default = Gemm.packed(op, *shape)
        bases = (default.a, default.b, default.c) if bases is None else bases
        if strides is None:
            strides = default.stride_a, default.stride_b, default.stride_c
        tile = Gemm(op, *shape, *bases, *strides)
        await self.execute(tile)
        return tile

    async def vrelu_s8(self, length: int, source: int, destination: int) -> None:
        """Copy bytes within the scratchpad, negative ones become 0."""
        await self.execute(Vrelu(length, source, destination))

    async def read_scratch(self, offset: int, size: int) -> bytes:
        """Return bytes of the scratchpad; offset and size are multiples of 4."""
        self._check_scratch("read_scratch", offset, size)
        data = b""
        for i in range(0, size, 4):
            register = await self._turn_to(offset + i, first=i == 0)
            data += (await self.bus.read32(register)).to_bytes(4, "little")
        return data

    async def write_scratch(self, offset: int, data: bytes) -> None:
        """Put bytes into the scratchpad; offset and length are multiples of 4."""
        self._check_scratch("write_scratch", offset, len(data))
        self.check_idle()
        for i in range(0, len(data), 4):
            register = await self._turn_to(offset + i, first=i == 0)
            await self.bus.write32(register, int.from_bytes(data[i : i + 4], "little"))

    def _check_scratch(self, name: str, offset: int, size: int) -> None:
        whole(f"{name}.offset", offset, 0, self.scratch_bytes, 4)
        whole(f"{name}.size", size, 0, self.scratch_bytes - offset, 4)

    async def _turn_to(self, place: int, *, first: bool) -> int:
        """Show the page of a byte of the scratchpad; return the address of its word."""
        if self.scratch_bytes > PAGE and (first or place % PAGE == 0):
            await self.write(CmdReg.SCRATCH_PAGE, place // PAGE)
        return CMD_BASE + CmdReg.SCRATCH0 + place % PAGE

    async def status(self) -> Status:
        """Return CTRL_STATUS and DESC_STATUS."""
        control = await self.read(CmdReg.CTRL_STATUS)
        return Status.of(control, await self.read(CmdReg.DESC_STATUS))

    async def clear(self) -> None:
        """Clear DONE, ERROR, the status of the ring and its counters; the interrupt falls."""
        await self.write(CmdReg.CTRL_STATUS, CMD_FIELDS["CTRL_STATUS_CLEAR"].mask)

    async def counters(self) -> Counters:
        """Return all counters."""
        values = {name: await self.read(place) for name, place in COUNTER_REGISTERS.items()}
        return Counters(**values)

    async def clear_counters(self) -> None:
        """Clear the PERF_* counters."""
        await self.write(CmdReg.PERF_ERRORS, CMD_FIELDS["PERF_ERRORS_CLEAR"].mask)

    async def count_throttle(self) -> None:
        """Add 1 to PERF_THERMAL_THROTTLE."""
        await self.write(CmdReg.PERF_THERMAL_THROTTLE, 1)

    async def set_timeout(self, cycles: int) -> None:
        """Bound each wait of the ring for the memory, in cycles; 0 waits for ever."""
        most = (1 << CMD_FIELDS["DESC_TIMEOUT_CYCLES"].width) - 1
        await self.write(CmdReg.DESC_TIMEOUT, whole("set_timeout.cycles", cycles, 0, most))

    async def prepare(self, start: StartState) -> None:
        """Write the sequencer's registers that programs launched by descriptors share.

        A descriptor brings program, POS, TOKEN, BASE0 and BASE1; all else is as written here.
        """
        self.check_idle()
        shared = [one for one in start.writes() if one[0] not in OF_A_DESCRIPTOR]
        await access(
            self.bus, [RegisterAccess(SEQ_BASE + register, value) for register, value in shared]
        )
