# SPDX-License-Identifier: Apache-2.0
"""Several plans as one: what each takes from those before it, staged together, run in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from npu.driver.bus import access
from npu.driver.errors import DeviceError
from npu.graph.form import Array, GraphError, TensorType
from npu.graph.states import States
from npu.runtime.plan import Plan
from npu.runtime.prepare import Prepared, check_prepared, sizes_of
from npu.runtime.replay import By, DrivenChip, NetworkRun, Replay, ReplayError, check_chip
from npu.runtime.schema import EntryError, words


@dataclass(frozen=True)
class SequenceEntry:
    """A plan of a sequence.

    Attributes:
        name: unique in the sequence.
        prepared: the plan at its addresses.
        takes: where its inputs come from, by name: "entry.output" of one before it, or the name of
            an input of the sequence; an input that is not named is one of the sequence itself.
        by: how its segments start.
        states: what its runs leave to the next ones, which other entries may share; each run
            begins anew without.
    """

    name: str
    prepared: Prepared
    takes: Mapping[str, str] = field(default_factory=dict)
    by: By = "registers"
    states: States | None = None

    @property
    def plan(self) -> Plan:
        """What runs."""
        return self.prepared.plan


class SequenceError(DeviceError):
    """A plan of a sequence has failed; those before it have run, those behind it have not.

    Attributes:
        entry: its index.
        done: what the plans before it have left, in order.
    """

    def __init__(self, entry: int, name: str, text: str, done: Sequence[NetworkRun]) -> None:
        super().__init__(f"entries[{entry}], plan {name!r}: {text}")
        self.entry = entry
        self.done = tuple(done)


def check_sequence(entries: Sequence[SequenceEntry]) -> dict[str, TensorType]:
    """Check that plans can run one behind the other.

    Returns:
        Types of the inputs of the sequence, by name.

    Raises:
        EntryError: a name, a dependency or an address is wrong, or a prepared plan is damaged.
    """
    inputs: dict[str, TensorType] = {}
    made: dict[str, TensorType] = {}
    for number, one in enumerate(entries):
        path, graph = f"entries[{number}]", one.plan.graph
        earlier = [other.name for other in entries[:number]]
        if not one.name or "." in one.name or one.name in earlier:
            raise EntryError(f"{path}.name", one.name, "a name without a dot, once")
        try:
            check_prepared(one.prepared)
        except EntryError as error:
            raise EntryError(f"{path}.{error.path}", error.given, error.allowed) from None
        for name in one.takes:
            if name not in graph.arguments:
                raise EntryError(f"{path}.takes", name, f"inputs {', '.join(graph.arguments)}")
        for name in graph.arguments:
            source, kind = one.takes.get(name, name), graph.type(name)
            known = made if "." in source else inputs
            if "." in source and source not in made:
                allowed = ", ".join(made) or "nothing: no plan is before it"
                raise EntryError(f"{path}.takes.{name}", source, allowed)
            found = known.setdefault(source, kind)
            if found != kind:
                raise EntryError(f"{path}.takes.{name}", words(_say(found)), _say(kind))
        made |= {f"{one.name}.{name}": graph.type(name) for name in graph.results}
        _check_places(entries, number)
    return inputs


def _say(kind: TensorType) -> str:
    text = f"{kind.element}{list(kind.shape)}"
    if kind.quantisation is not None:
        text += f" of scale {kind.quantisation.scale:g}, zero {kind.quantisation.zero}"
    return text


def _check_places(entries: Sequence[SequenceEntry], number: int) -> None:
    """Refuse a plan that lies on another one, unless it is the same in the same place."""
    one = entries[number]
    for other_number, other in enumerate(entries[:number]):
        if other.plan is one.plan and other.prepared.bases == one.prepared.bases:
            continue
        for name, size in sizes_of(one.plan).items():
            base = one.prepared.bases.of(name)
            for other_name, other_size in sizes_of(other.plan).items():
                start = other.prepared.bases.of(other_name)
                if size and other_size and base < start + other_size and start < base + size:
                    raise EntryError(
                        f"entries[{number}].bases.{name}",
                        base,
                        f"a place beside entries[{other_number}].bases.{other_name}, at "
                        f"{start:#x} to {start + other_size - 1:#x}",
                    )


async def load_sequence(chip: DrivenChip, entries: Sequence[SequenceEntry]) -> None:
    """Check a sequence and put all of it into memory.

    Raises:
        EntryError: as `check_sequence`; nothing was written.
        RequestError: the chip has other sizes than a plan is for, or is busy; nothing was written.
    """
    check_sequence(entries)
    for one in entries:
        check_chip(one.plan, chip.chip)
    await chip.check_idle()
    for one in entries:
        chip.stage(one.prepared.memory)


async def run_sequence(
    chip: DrivenChip, entries: Sequence[SequenceEntry], inputs: Mapping[str, Array]
) -> list[NetworkRun]:
    """Run plans that `load_sequence` has put into memory, each within its own regions.

    Args:
        chip: where.
        entries: of the sequence.
        inputs: of the sequence, by name.

    Returns:
        What each has left, in order.

    Raises:
        GraphError: an input is missing, or there is one too many; nothing has run.
        RequestError: the chip is busy with something else.
        SequenceError: a plan failed; names it, its step and what the chip reports.
    """
    wanted = check_sequence(entries)
    if set(inputs) != set(wanted):
        allowed = ", ".join(f"{name!r}: {_say(kind)}" for name, kind in wanted.items())
        raise GraphError(f"inputs: given {', '.join(inputs) or 'none'}, allowed {allowed}")
    values = dict(inputs)
    done: list[NetworkRun] = []
    for number, one in enumerate(entries):
        given = {name: values[one.takes.get(name, name)] for name in one.plan.graph.arguments}
        try:
            await chip.check_idle()
            await access(chip.bus, one.prepared.protection)
            run = await Replay(one.prepared, chip, states=one.states).run(given, one.by)
        except (ReplayError, GraphError) as error:
            raise SequenceError(number, one.name, str(error), done) from error
        done.append(run)
        values |= {f"{one.name}.{name}": value for name, value in run.outputs.items()}
    return done
