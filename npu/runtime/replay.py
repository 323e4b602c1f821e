# SPDX-License-Identifier: Apache-2.0
"""Runs prepared plans: steps of the host here, segments on a chip, by registers or by the ring."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias, get_args, runtime_checkable

from npu.driver.bus import Bus, RegisterAccess, access
from npu.driver.chip import Chip, Finish
from npu.driver.command.port import CommandPort
from npu.driver.command.product import Product, Submit
from npu.driver.command.status import meaning
from npu.driver.counters import ChipCounters
from npu.driver.errors import BusError, CommandFailed, DeviceError, ProgramFailed, RequestError
from npu.graph.evaluate import run as run_on_host
from npu.graph.form import Array, Graph, Operation
from npu.graph.inputs import check_inputs
from npu.graph.states import States
from npu.runtime.decoder import PROMPT, check_ids
from npu.runtime.plan import Action, Plan, PlanStep
from npu.runtime.port_steps import multiply
from npu.runtime.prepare import Prepared, PreparedBatch, check_prepared, sizes_of
from npu.runtime.tensor_rows import from_rows, tensor_bytes, to_rows
from spec.regs import CMD_BASE, CMD_FIELDS, CmdReg, RingStatus, StartState

By = Literal["registers", "ring"]
"""How segments start: one by one by registers, or in batches by the descriptor ring."""


Host: TypeAlias = Callable[[Graph, Operation, Sequence[Array | None]], Sequence[Array]]
"""What an operation of a graph makes of its inputs."""


class ReplayError(DeviceError):
    """A step of a plan failed on the chip; says which, and what the chip reports.

    Attributes:
        step: its index.
        path: of what failed, such as `segments[2]`.
    """

    def __init__(self, step: int, path: str, text: str) -> None:
        super().__init__(f"steps[{step}], {path}: {text}")
        self.step = step
        self.path = path


@dataclass(frozen=True)
class NetworkRun:
    """What a run has left.

    Attributes:
        outputs: of the graph, by name, without those that the next run takes.
        tensors: all that crossed between host and chip, by name in the order of the steps, outputs
            included; if asked for also what segments leave for others and what the host makes.
        counters: of each segment that was started by registers, in order; as of the end of each.
        products: what the command port has done, by the name of the operation; what it takes and
            gives crosses as well.
    """

    outputs: Mapping[str, Array]
    tensors: Mapping[str, Array]
    counters: tuple[ChipCounters, ...]
    products: Mapping[str, Product] = field(default_factory=dict)


class ReplayChip(Protocol):
    """What a run needs of a chip."""

    def stage(self, pieces: Iterable[tuple[int, bytes]]) -> None:
        """Put pieces of (address, bytes) into memory."""

    async def execute(self, state: StartState) -> Finish:
        """Run a program that must end without an error."""

    def read(self, address: int, size: int) -> bytes:
        """Return bytes of memory."""


@runtime_checkable
class RingChip(ReplayChip, Protocol):
    """A chip with a command port."""

    async def multiply(
        self, op: Operation, values: Sequence[Array | None], by: By, arena: tuple[int, int]
    ) -> Product:
        """Multiply matrices, by register or by descriptors in an arena."""

    async def batch(self, batch: PreparedBatch) -> None:
        """Run a batch that must end without an error."""


@dataclass(frozen=True)
class DrivenChip:
    """A chip behind the driver."""

    chip: Chip

    @property
    def bus(self) -> Bus:
        """The way to it."""
        return self.chip.bus

    async def load(self, prepared: Prepared) -> None:
        """Make a chip ready for a plan: regions, programs, parameters.

        Raises:
            EntryError: the prepared plan is not what its plan gives; nothing was written.
            RequestError: the chip has other sizes than the plan is for, or it is busy; nothing
                was written.
        """
        check_prepared(prepared)
        check_chip(prepared.plan, self.chip)
        await self.check_idle()
        await access(self.bus, prepared.protection)
        self.stage(prepared.memory)

    async def check_idle(self) -> None:
        """Raise RequestError while a program, an operation or the ring runs."""
        if (await self.chip.state())["BUSY"]:
            raise RequestError("chip", "a running program", "an idle chip")
        status = await self.bus.read32(CMD_BASE + CmdReg.CTRL_STATUS)
        if CMD_FIELDS["CTRL_STATUS_BUSY"].get(status):
            raise RequestError("command port", "a running ring", "an idle command port")

    def stage(self, pieces: Iterable[tuple[int, bytes]]) -> None:
        """Put pieces of (address, bytes) into memory."""
        self.chip.stage(pieces)

    async def execute(self, state: StartState) -> Finish:
        """Run a program that must end without an error, on a chip that does nothing else."""
        await self.check_idle()
        return await self.chip.execute(state)

    async def batch(self, batch: PreparedBatch) -> None:
        """Run a batch that must end without an error; an error is cleared."""
        config = await self.bus.read32(CMD_BASE + CmdReg.CMD_CONFIG)
        if not CMD_FIELDS["CMD_CONFIG_SCRATCH_BYTES"].get(config):
            raise RequestError("by", "'ring'", "registers, on a chip without a command port")
        await self.check_idle()
        await access(self.bus, batch.preamble)
        self.stage([(batch.address, batch.image)])
        await access(self.bus, batch.submission)
        done = batch.completion
        while True:
            await self.bus.wait_interrupt()
            status = await self.bus.read32(done.register)
            if status & done.done:
                break
        if status & done.error:
            ring = await self.bus.read32(CMD_BASE + CmdReg.DESC_STATUS)
            code = ring & 0xFF
            # A program that failed before this batch is still reported by the sequencer.
            report = await self.chip.report() if code == RingStatus.OPERATION else None
            await self._clear()
            entry = CMD_FIELDS["DESC_STATUS_INDEX"].get(ring)
            at = min(entry // 2, len(batch.launches) - 1)
            text = f"ring entry {entry}: {meaning(code)}" if report is None else report.text
            raise BatchFailed(batch.launches[at], text)
        await self._clear()

    async def multiply(
        self, op: Operation, values: Sequence[Array | None], by: By, arena: tuple[int, int]
    ) -> Product:
        """Multiply matrices, by register or by descriptors in an arena."""
        await self.check_idle()
        port = await CommandPort.connect(self.bus)
        submit: Submit = "descriptor" if by == "ring" else "register"
        try:
            return await multiply(port, op, values, submit, arena)
        finally:
            # Programs share the interrupt line, which is high until then.
            await port.clear()

    async def _clear(self) -> None:
        """Let the interrupt fall."""
        mask = CMD_FIELDS["CTRL_STATUS_CLEAR"].mask
        await access(self.bus, [RegisterAccess(CMD_BASE + CmdReg.CTRL_STATUS, mask)])

    def read(self, address: int, size: int) -> bytes:
        """Return bytes of memory."""
        return self.bus.read_memory(address, size)


class BatchFailed(DeviceError):  # noqa: N818  the request was fine, carrying it out was not
    """A launch of a batch ended with an error.

    Attributes:
        segment: that was launched.
    """

    def __init__(self, segment: int, text: str) -> None:
        super().__init__(text)
        self.segment = segment


def check_chip(plan: Plan, chip: Chip) -> None:
    """Raise RequestError unless a chip has the sizes that a plan is for."""
    wanted, found = plan.limits, chip.info.limits
    for name in ("array_dim", "sram_bytes", "acc_rows", "norm_max", "narrow_formats"):
        given, has = getattr(wanted, name), getattr(found, name)
        if given != has:
            raise RequestError(f"chip.{name}", f"a plan for {given}", f"{has}, that of the chip")


class Replay:
    """A prepared plan on a chip that is ready for it.

    Attributes:
        prepared: the plan at its addresses.
        chip: where it runs.
        host: evaluates an operation of the host.
        states: what a run leaves to the next, which the host keeps.
    """

    def __init__(
        self,
        prepared: Prepared,
        chip: ReplayChip,
        host: Host = run_on_host,
        states: States | None = None,
    ) -> None:
        """Take a chip that `DrivenChip.load` has made ready; states begin anew unless given."""
        self.prepared = prepared
        self.chip = chip
        self.host = host
        self.plan = prepared.plan
        self.states = States(self.plan.graph) if states is None else states

    async def run(
        self, inputs: Mapping[str, Array], by: By = "registers", *, inner: bool = False
    ) -> NetworkRun:
        """Run the plan once; states are as before if it fails.

        Args:
            inputs: those of the graph that are no state's, by name, in its shapes and types.
            by: how segments start.
            inner: keep what segments that are started by registers leave for others, and what the
                host makes, too.

        Raises:
            GraphError: an input is wrong, or an operation of the host cannot be evaluated.
            PromptError: the input of a decoder holds what is no token id.
            RequestError: the chip is busy with something else, or cannot do what `by` says.
            ReplayError: a segment ended with an error. The chip is idle, and the next run works.
        """
        if by not in get_args(By):
            raise RequestError("by", repr(by), ", ".join(get_args(By)))
        ring = self.chip if isinstance(self.chip, RingChip) else None
        needs_port = any(step.action is Action.PORT for step in self.plan.steps)
        if ring is None and (by == "ring" or needs_port):
            raise RequestError("by", repr(by), "programs by registers, without a command port")
        graph = self.plan.graph
        given = check_inputs(graph, inputs)
        values = {**self.plan.host_constants, **given, **self.states.values}
        if self.plan.decoder is not None:
            check_ids(self.plan.decoder, values[PROMPT].tolist())
        crossed: dict[str, Array] = {}
        counters: list[ChipCounters] = []
        products: dict[str, Product] = {}
        begun: set[int] = set()
        for number, step in enumerate(self.plan.steps):
            match step.action:
                case Action.PACK:
                    self._pack(str(step.of), values)
                    crossed[str(step.of)] = values[str(step.of)]
                case Action.UNPACK:
                    crossed[str(step.of)] = values[str(step.of)] = self._unpack(str(step.of))
                case Action.LAUNCH if by == "registers":
                    counters.append(await self._launch(number, step.segment))
                    if inner:
                        crossed |= {name: self._unpack(name) for name in step.writes}
                case Action.LAUNCH:
                    batch = self.prepared.batch_of(step.segment)
                    if ring is not None and batch.launches[0] not in begun:
                        begun.update(batch.launches)
                        await self._batch(ring, number, batch)
                case Action.PORT if ring is not None:
                    name = str(step.of)
                    products[name] = await self._on_port(ring, number, name, values, by)
                    values[step.writes[0]] = products[name].values
                    crossed |= {each: values[each] for each in (*step.reads, *step.writes)}
                case _:
                    made = self._on_host(step, values)
                    values |= made
                    crossed |= made if inner else {}
        self.states.advance(values)
        outputs = {name: values[name] for name in graph.results}
        return NetworkRun(outputs, crossed, tuple(counters), products)

    def _pack(self, name: str, values: Mapping[str, Array]) -> None:
        rows = to_rows(values[name], self.plan.graph.type(name))
        self.chip.stage([(self.prepared.address(name), rows)])

    def _unpack(self, name: str) -> Array:
        kind = self.plan.graph.type(name)
        return from_rows(self.chip.read(self.prepared.address(name), tensor_bytes(kind)), kind)

    async def _launch(self, step: int, number: int) -> ChipCounters:
        try:
            return (await self.chip.execute(self.prepared.starts[number])).counters
        except (ProgramFailed, BusError) as error:
            raise ReplayError(step, f"segments[{number}]", str(error)) from error

    @staticmethod
    async def _batch(chip: RingChip, step: int, batch: PreparedBatch) -> None:
        try:
            await chip.batch(batch)
        except BatchFailed as error:
            at = step + batch.launches.index(error.segment)
            raise ReplayError(at, f"segments[{error.segment}]", str(error)) from error
        except (CommandFailed, BusError) as error:
            raise ReplayError(step, f"segments[{batch.launches[0]}]", str(error)) from error

    async def _on_port(
        self, chip: RingChip, step: int, name: str, values: Mapping[str, Array], by: By
    ) -> Product:
        one = self.plan.operation(name)
        given = [values[each] if each else None for each in one.inputs]
        arena = self.prepared.bases.ring, sizes_of(self.plan)["ring"]
        try:
            return await chip.multiply(one, given, by, arena)
        except (CommandFailed, BusError) as error:
            raise ReplayError(step, f"operation {name!r}", str(error)) from error

    def _on_host(self, step: PlanStep, values: Mapping[str, Array]) -> dict[str, Array]:
        one = self.plan.operation(str(step.of))
        given = [values[name] if name else None for name in one.inputs]
        found = self.host(self.plan.graph, one, given)
        return dict(zip(one.outputs, found, strict=True))
