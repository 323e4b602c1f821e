# SPDX-License-Identifier: Apache-2.0
"""Damaged plans against everything that stands between a file and a chip, and what became of them.

A campaign tries each damage on the whole way: read, bound to addresses, loaded into a chip behind
a bus that records what is written. What is refused must say path, value and range before the first
write; what is taken all the same must have a name in `HARMLESS`.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Coroutine, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any
from unittest.mock import patch

import numpy as np

from golden.command.model import ModelBus
from golden.machine import ChipConfig
from npu.driver.chip import Chip
from npu.runtime import accesses, account, decoder, plan_checks
from npu.runtime.accesses import is_static
from npu.runtime.decoder import check_taken, decoder_plan
from npu.runtime.plan import Plan
from npu.runtime.plan_checks import check_plan
from npu.runtime.plan_files import IMAGE, PLAN, PlanFileError, files_of, plan_from
from npu.runtime.plan_record import record_of, section_of
from npu.runtime.prepare import Prepared, prepare
from npu.runtime.replay import DrivenChip
from npu.runtime.schema import EntryError, check_same
from spec.isa import legality
from spec.isa.instruction import Instruction
from spec.isa.operands import share_bytes, sram_operands, up
from spec.paths import REPORTS
from tests.python.command.command_support import RecordingBus
from tests.python.plans.campaign_reports import into_report
from tests.python.plans.plan_damage import (
    Files,
    damages,
    flipped,
    header_damages,
    prepared_damages,
    prepared_memory,
    resealed,
    stored_bits,
    table_damages,
    with_record,
)

HARMLESS: Mapping[str, str] = {
    "shares[].name": "a label in reports: what a share is follows from its place, size and format",
    "origin.file": "what a user reads, and nothing that runs follows from it",
    "origin.sha256": "as origin.file",
    "origin.calibration": "as origin.file",
    "origin.compiler": "as origin.file",
}
"""What may be another if all seals are made to fit, and why. Without that nothing may."""
MOST_HARMLESS = 0.01
"""Of all damages that are tried."""
REPORT = REPORTS / "plan_damage.json"
_REFUSAL = re.compile(r"\A(?:plan/(?:plan\.json|image\.bin): )?(?P<path>.+?): given .*, allowed .+")


@dataclass
class DamageTally:
    """What became of damages of one kind.

    Attributes:
        tried: how many.
        refused: by path without numbers.
        harmless: taken, by the name in `HARMLESS`.
    """

    tried: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    harmless: Counter[str] = field(default_factory=Counter)

    @property
    def share(self) -> float:
        """The harmless part of all."""
        return self.harmless.total() / max(1, self.tried)

    def record(self) -> dict[str, Any]:
        """Return it for the report."""
        return {
            "tried": self.tried,
            "refused": dict(self.refused.most_common()),
            "harmless": dict(self.harmless),
            "harmless_share": round(self.share, 6),
        }

    def __add__(self, other: DamageTally) -> DamageTally:
        tried = self.tried + other.tried
        return DamageTally(tried, self.refused + other.refused, self.harmless + other.harmless)

    def note(self, name: str, error: str | None) -> None:
        """Note what a damage has led to: an error, or nothing.

        Args:
            name: of what was damaged, as `HARMLESS` has it.
            error: the message, None if the plan was taken.
        """
        self.tried += 1
        if error is None:
            assert name in HARMLESS, f"{name} may be another, and nothing says why"
            self.harmless[name] += 1
            return
        found = _REFUSAL.match(error)
        assert found is not None, f"{name}: {error!r} does not say path, value and range"
        assert "\n" not in error, error
        self.refused[plain(found["path"])] += 1


def plain(path: str) -> str:
    """Return a path without the numbers in it."""
    return re.sub(r"\d+", "", path)


def chip_for(plan: Plan, prepared: Prepared) -> ModelBus:
    """Return a chip of the plan's sizes whose memory holds random bytes."""
    limits = plan.limits
    memory = np.random.default_rng(3).integers(0, 256, up(prepared.end), np.uint8)
    return ModelBus(memory, config=ChipConfig(limits.array_dim, limits.sram_bytes, limits.acc_rows))


class Campaign:
    """A plan, its files, and a chip that they must not reach damaged."""

    def __init__(self, plan: Plan) -> None:
        self.files = files_of(plan)
        self.plan = plan_from(self.files)
        self.prepared = prepare(self.plan)
        self.bus = RecordingBus(chip_for(plan, self.prepared))
        self._loop = asyncio.new_event_loop()
        self.chip = DrivenChip(self.wait(Chip.connect(self.bus)))
        self.wait(self.chip.load(self.prepared))
        self.bus.log.clear()

    def close(self) -> None:
        """End it."""
        self._loop.close()

    def wait(self, what: Coroutine[Any, Any, Any]) -> Any:  # noqa: ANN401
        """Return what a coroutine returns."""
        return self._loop.run_until_complete(what)

    def load(self, prepared: Prepared) -> str | None:
        """Return why a prepared plan is refused, None if the chip was made ready for it."""
        try:
            self.wait(self.chip.load(prepared))
        except ValueError as error:
            assert not self.bus.changes, f"written before {error}"
            return str(error)
        self.bus.log.clear()
        return None

    def read(self, files: Files) -> str | None:
        """Return why files are refused, None if the chip was made ready for their plan."""
        try:
            plan = plan_from(files)
        except PlanFileError as error:
            return str(error)
        return self.load(prepare(plan))

    # ---------------------------------------------------------------------------------------------
    # Without new seals
    # ---------------------------------------------------------------------------------------------
    def stored(self, step: int = 1) -> DamageTally:
        """Try every bit, or every `step`th, of the image as it is stored."""
        tally = DamageTally()
        for name, bits in stored_bits(self.files):
            for bit in bits[::step]:
                image = flipped(self.files[IMAGE], bit)
                tally.note(name, self.read({**self.files, IMAGE: image}))
        return tally

    def bound(self, step: int = 1) -> DamageTally:
        """Try every bit of all numbers of the prepared plan, or every `step`th of them."""
        tally = DamageTally()
        for number, (path, changed) in enumerate(prepared_damages(self.prepared)):
            if number % step == 0:
                error = self.load(changed)
                assert (error or "").startswith(path), f"{path}: {error}"
                tally.note(path, error)
        return tally

    def loaded(self, step: int = 1) -> DamageTally:
        """Try every bit, or every `step`th, of programs in prepared memory."""
        tally = DamageTally()
        programs = {start.ucode_base for start in self.prepared.starts}
        for piece, (address, _) in enumerate(self.prepared.memory):
            if address in programs:
                for path, changed in prepared_memory(self.prepared, piece, step):
                    error = self.load(changed)
                    assert (error or "").startswith(f"{path}: given"), f"{path}: {error}"
                    tally.note(path, error)
        return tally

    def entries(self, step: int = 1) -> DamageTally:
        """Try every change of every entry of plan.json, or every `step`th."""
        tally = DamageTally()
        for number, damage in enumerate(damages(json.loads(self.files[PLAN]))):
            if number % step == 0:
                name = f"plan.json {damage.path}"
                tally.note(name, self.read(with_record(self.files, damage.record)))
        return tally

    # ---------------------------------------------------------------------------------------------
    # With seals that fit
    # ---------------------------------------------------------------------------------------------
    def header(self, step: int = 1) -> DamageTally:
        """Try every bit, or every `step`th, of the header, its checksum and hash made to fit."""
        tally = DamageTally()
        for number, (name, files) in enumerate(header_damages(self.files)):
            if number % step == 0:
                tally.note(name, self.read(files))
        return tally

    def table(self, step: int = 1) -> DamageTally:
        """Try changes of every entry of the image's table, all that covers it made to fit."""
        tally = DamageTally()
        for number, (damage, files) in enumerate(table_damages(self.files)):
            if number % step == 0:
                tally.note(plain(damage.path), self.read(files))
        return tally

    def programs(self, step: int = 1) -> tuple[DamageTally, list[Other]]:
        """Try every bit, or every `step`th, of all programs, everything made to fit.

        Returns:
            What became of them, and those that are legal: other programs, not damaged ones.
        """
        tally, others = DamageTally(), []
        with remembered():
            for number, segment in enumerate(self.plan.segments):
                for bit in range(0, 8 * len(segment.image), step):
                    other = Other(number, bit)
                    error = self.meaning(other)
                    if error is None:
                        others.append(other)
                        tally.tried += 1
                    else:
                        tally.note(f"segment {number}, bit {bit}", error)
        return tally, others

    def meaning(self, other: Other) -> str | None:
        """Return why a program is refused whatever its seals say, None if it is legal.

        It is what `plan_from` does behind the seals, without writing and reading the same files
        again; `through_files` says what it does with them.
        """
        images = [one.image for one in self.plan.segments]
        images[other.segment] = flipped(images[other.segment], other.bit)
        plan = self.plan
        try:
            if plan.decoder is None:
                pairs = zip(plan.segments, images, strict=True)
                segments = (
                    one if one.image is image else replace(one, image=image) for one, image in pairs
                )
                changed = replace(plan, segments=tuple(segments))
                check_plan(changed)
            else:
                parts = (plan.limits, plan.stream, plan.shares, plan.constants, plan.origin)
                changed = decoder_plan(plan.decoder, plan.graph.name, images, *parts)
                check_taken(changed)
            check_same(record_of(plan), record_of(changed))
        except EntryError as error:
            return str(error)
        return None

    def through_files(self, other: Other) -> str | None:
        """Return the same from files whose sizes, checksums and hashes fit."""
        section = section_of(other.segment)
        image = flipped(self.plan.segments[other.segment].image, other.bit)
        error = self.read(resealed(self.files, section, image))
        return None if error is None else error.removeprefix("plan/plan.json: ")

    def replayed(self, others: Iterable[Other]) -> Counter[str]:
        """Run legal programs in the place of those that they were; return how they have ended.

        Nothing outside the arena may have changed, and the chip must run the right ones behind.
        """
        ends: Counter[str] = Counter()
        for other in others:
            ends[self._replayed(other)] += 1
        return ends

    def _replayed(self, other: Other) -> str:
        model, prepared = self.bus.chip, self.prepared
        assert isinstance(model, ModelBus)
        start = prepared.starts[other.segment]
        self.wait(self.chip.load(prepared))
        image = self.plan.segments[other.segment].image
        first, size = prepared.bases.arena, self.plan.arena
        # Any bytes are tensors of a network; a prompt holds token ids, such as 0.
        arena = model.read_memory(first, size) if self.plan.decoder is None else bytes(size)
        model.write_memory(first, arena)
        expected = self._left_by(other.segment)
        model.write_memory(first, arena)
        model.write_memory(start.ucode_base, flipped(image, other.bit))
        before = self._outside()
        error = self.wait(self.chip.chip.run(start)).error
        assert self._outside() == before, f"{other} writes outside the arena"
        model.write_memory(start.ucode_base, image)
        model.write_memory(first, arena)
        assert self._left_by(other.segment) == expected, f"{other} leaves another chip"
        self.bus.log.clear()
        return "done" if error is None else error.code.name

    def _left_by(self, segment: int) -> bytes:
        """Return the arena behind a program that must end without an error."""
        self.wait(self.chip.execute(self.prepared.starts[segment]))
        return self.bus.read_memory(self.prepared.bases.arena, self.plan.arena)

    def _outside(self) -> bytes:
        first = self.prepared.bases.arena
        end = first + self.plan.arena
        model = self.bus.chip
        return model.read_memory(0, first) + model.read_memory(end, self.prepared.end - end)


@dataclass(frozen=True, slots=True)
class Other:
    """A program with one bit changed.

    Attributes:
        segment: whose it is.
        bit: of its image.
    """

    segment: int
    bit: int


@contextmanager
def remembered() -> Iterator[None]:
    """Ask the rules of instructions once for each word: nearly all words are as before."""
    with ExitStack() as stack:
        for module, name, rule in (
            (plan_checks, "illegal", legality.check),
            (plan_checks, "is_static", is_static),
            (decoder, "illegal", legality.check),
            (accesses, "share_bytes", share_bytes),
            (accesses, "sram_operands", sram_operands),
            (account, "_cost", account._cost),
            (Instruction, "decode", Instruction.decode),
        ):
            stack.enter_context(patch.object(module, name, lru_cache(1 << 16)(rule)))
        yield


@dataclass(frozen=True)
class Steps:
    """How many damages are tried: every one, or every so many of them.

    Attributes:
        entries, stored, bound, loaded, header, table, programs: of the kinds of a campaign.
        compared: programs that also go through files.
        replayed: legal programs that are run.
    """

    entries: int = 1
    stored: int = 1
    bound: int = 1
    loaded: int = 1
    header: int = 1
    table: int = 1
    programs: int = 1
    compared: int = 60
    replayed: int = 60


def campaign(name: str, plan: Plan, steps: Steps, seed: int) -> dict[str, Any]:
    """Try all kinds of damages on a plan; return the record for the report.

    Args:
        name: of the plan in messages.
        plan: what is damaged.
        steps: how many.
        seed: of the choice of programs that go through files, or are run.
    """
    one = Campaign(plan)
    unsealed = {
        "entries": one.entries(steps.entries),
        "stored": one.stored(steps.stored),
        "bound": one.bound(steps.bound),
        "loaded": one.loaded(steps.loaded),
    }
    sealed = {"header": one.header(steps.header), "table": one.table(steps.table)}
    programs, others = one.programs(steps.programs)
    assert not any(tally.harmless for tally in unsealed.values())
    random = np.random.default_rng(seed)
    bits = [(i, 8 * len(each.image)) for i, each in enumerate(one.plan.segments)]
    drawn = [
        Other(i, int(random.integers(bits[i][1])))
        for i in random.integers(len(bits), size=steps.compared)
    ]
    legal = [others[i] for i in random.integers(len(others), size=steps.replayed)]
    for other in [*drawn, *legal[: steps.compared]]:
        way = f"{name}, seed {seed}: Campaign(plan).through_files({other})"
        assert one.through_files(other) == one.meaning(other), way
    ends = one.replayed(legal)
    one.close()
    whole = sum([*unsealed.values(), *sealed.values(), programs], DamageTally())
    assert whole.share <= MOST_HARMLESS
    return {
        "unsealed": {kind: tally.record() for kind, tally in unsealed.items()},
        "sealed": {kind: tally.record() for kind, tally in sealed.items()},
        "programs": programs.record()
        | {"other_programs": len(others), "seed": seed, "replayed": dict(ends)},
        "tried": whole.tried,
        "harmless_share": round(whole.share, 6),
    }


def report(name: str, record: Mapping[str, Any]) -> None:
    """Put the record of a plan into the report, beside those of others that come at once."""
    into_report(REPORT, {"harmless": dict(HARMLESS)}, "plans", {name: record})
