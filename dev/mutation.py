# SPDX-License-Identifier: Apache-2.0
"""A campaign: mutants drawn over the hand-written RTL, and the tests of the chip that notice them.

The mutants are in a few models, of each of which a run has one mutant or none. A second campaign
takes from `build/mutation` what an earlier one has found out on the same sources.
"""

from __future__ import annotations

import hashlib
import json
import math
import shutil
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path

from dev.mutation_draw import MutationError
from dev.mutation_model import Design, MutantConfiguration, refused, write
from dev.mutation_runs import Bench, Sound
from dev.mutation_sites import Mutant
from dev.mutation_units import witnesses
from dev.mutation_verdict import EQUIVALENT, UNSEEN, Equivalent, Verdict
from dev.regression import tree
from spec.configurations import ChipParameters
from spec.paths import BUILD
from tb.run import build, parallel, registry

HOME = BUILD / "mutation"
"""Where the changed copies of `rtl/` are, and what campaigns have found out."""
RUNS = BUILD / "runs" / "mutation"
COUNT = 600
PER_MODEL = 150
"""Mutants in one model."""
PATIENCE_S = 60
"""Seconds, as tests take without a mutant, that are tried with one that nothing notices."""
SOURCES = tree.DESIGN


def sources_digest() -> str:
    """Return the digest of RTL and tests, 16 hexadecimal digits."""
    return tree.read(SOURCES).digest


@dataclass(frozen=True)
class Request:
    """What a campaign is to do.

    Attributes:
        mutants: in the order in which a seed draws them, as many as are wanted and more, which take
            the places of those that are no SystemVerilog.
        count: mutants that are wanted.
        chip: that they are in.
        seeds: of random tests; those behind the first are for the mutants that survive it.
        workers: runs side by side.
        digest: of the sources.
        patience: see `Bench`.
    """

    mutants: Sequence[Mutant]
    count: int
    chip: ChipParameters
    seeds: Sequence[int]
    workers: int
    digest: str
    patience: float = math.inf


@dataclass
class Store:
    """What has been found out on some sources, in a file that grows.

    Attributes:
        path: the file, a verdict a line.
    """

    path: Path
    _known: dict[str, Verdict] = field(default_factory=dict)

    def __post_init__(self) -> None:
        text = self.path.read_text(encoding="utf-8") if self.path.exists() else ""
        for line in text.splitlines(keepends=True):
            if line.endswith("\n"):  # not one that an interruption has cut
                verdict = Verdict(**json.loads(line))
                self._known[verdict.mutant] = verdict

    def get(self, mutant: Mutant) -> Verdict | None:
        """Return what is known of a mutant, None if it is nothing."""
        verdict = self._known.get(mutant.name)
        return verdict if verdict is not None and verdict.change == mutant.change else None

    def put(self, verdict: Verdict) -> None:
        """Keep a verdict."""
        self._known[verdict.mutant] = verdict
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            print(json.dumps(asdict(verdict)), file=file)


def legal(design: Design, request: Request) -> list[Mutant]:
    """Return the first mutants of a request that are SystemVerilog, as many as are wanted."""
    found = list(request.mutants[: request.count])
    left = list(request.mutants[request.count :])
    while True:
        copy = write(design, dict(enumerate(found, 1)), HOME / "legal", probed=False)
        wrong = refused(copy, build.Configuration(chip=request.chip).parameters)
        if not wrong:
            return found
        found = [mutant for number, mutant in enumerate(found, 1) if number not in wrong]
        missing = request.count - len(found)
        found, left = [*found, *left[:missing]], left[missing:]


@dataclass
class Campaign:
    """One run of `run`.

    Attributes:
        design: the RTL.
        request: what is to be done.
        say: is told of every step and of every verdict as it comes.
        tests: of the chip.
        unfit: tests that fail without a mutant, with their messages.
    """

    design: Design
    request: Request
    say: Callable[[str], None]
    tests: Sequence[registry.BenchTest]
    unfit: dict[str, str] = field(default_factory=dict)

    def store(self) -> Store:
        """Return what is known already."""
        request = self.request
        tests = sorted(test.name for test in self.tests)
        words = [request.digest, request.chip.name, str(request.patience), *tests]
        name = _digest([*words, *map(str, request.seeds)])
        return Store(HOME / f"verdicts-{name}.jsonl")

    def run(self, equivalents: Iterable[Equivalent]) -> list[Verdict]:
        """Judge all mutants; return the verdicts in their order.

        Raises:
            build.BuildError: a model cannot be built.
            MutationError: no test passes without a mutant.
        """
        mutants = legal(self.design, self.request)
        store = self.store()
        shown = self._shown_equivalent(mutants, list(equivalents))
        known = {
            **{each.name: verdict for each in mutants if (verdict := store.get(each))},
            **shown,
        }
        self.say(
            f"{len(mutants)} mutants: {len(shown)} shown equivalent, "
            f"{len(known.keys() - shown.keys())} known from before"
        )
        tried = [mutant for mutant in mutants if mutant.name not in shown]
        for first in range(0, len(tried), PER_MODEL):
            chunk = tried[first : first + PER_MODEL]
            left = {
                number: mutant for number, mutant in enumerate(chunk, 1) if mutant.name not in known
            }
            if left:
                self._judge(chunk, left, store, known, len(mutants))
        return [known[mutant.name] for mutant in mutants]

    def _shown_equivalent(
        self, mutants: Iterable[Mutant], equivalents: Sequence[Equivalent]
    ) -> dict[str, Verdict]:
        found = {}
        for mutant in mutants:
            line = self.design.files[mutant.file].line(mutant.line)
            for each in equivalents:
                if each.is_of(mutant, line):
                    place = (mutant.name, mutant.file, mutant.line, mutant.operator, mutant.change)
                    reason = f"{each.by}: {each.reason}"
                    found[mutant.name] = Verdict(*place, EQUIVALENT, reason=reason)
        return found

    def _judge(
        self,
        chunk: Sequence[Mutant],
        left: dict[int, Mutant],
        store: Store,
        known: dict[str, Verdict],
        total: int,
    ) -> None:
        """Build the model of some mutants and judge those of them that are left."""
        name = _digest([self.store().path.stem, *(f"{each.name} {each.change}" for each in chunk)])
        rtl = write(self.design, dict(enumerate(chunk, 1)), HOME / name)
        model = MutantConfiguration(chip=self.request.chip, rtl=rtl, label=f"mutants-{name}")
        self.say(f"a model with {len(chunk)} mutants ({len(left)} of them left)")
        build.build(model)
        settled: dict[int, Verdict] = {}
        for seed in self.request.seeds:
            bench = Bench(model, RUNS / name, seed, self.request.workers, self.request.patience)
            self._run_sound(bench, HOME / name / f"sound-{seed}.json")
            todo = {n: m for n, m in left.items() if n not in settled or settled[n].survives}
            last = seed == self.request.seeds[-1]

            def one(number: int, bench: Bench = bench) -> tuple[int, Verdict]:
                return number, bench.try_mutant(number, left[number], self.tests)

            def take(pair: tuple[int, Verdict], last: bool = last) -> None:
                number, verdict = pair
                settled[number] = _sum(settled.get(number), verdict)
                if last or not verdict.survives:
                    store.put(settled[number])
                    known[verdict.mutant] = settled[number]
                    self.say(f"[{len(known)}/{total}] {settled[number]}")

            tasks = [partial(one, number) for number in todo]
            parallel.as_they_end(tasks, self.request.workers, take)
        self._ask_units(
            {n: left[n] for n, each in settled.items() if each.survives}, rtl, store, known
        )
        shutil.rmtree(model.folder, ignore_errors=True)
        shutil.rmtree(RUNS / name, ignore_errors=True)

    def _ask_units(
        self,
        survivors: dict[int, Mutant],
        rtl: Path,
        store: Store,
        known: dict[str, Verdict],
    ) -> None:
        """Note which tests of single blocks notice a survivor, of those that have a bench."""
        if not survivors:
            return
        self.say(f"the benches of blocks with {len(survivors)} survivors")
        seed, workers = self.request.seeds[0], self.request.workers
        for number, second in witnesses(survivors, rtl, RUNS / "units", seed, workers).items():
            mutant = survivors[number]
            if second:
                known[mutant.name] = replace(known[mutant.name], second=second)
                store.put(known[mutant.name])
                self.say(f"     {mutant.name} is noticed by {second}")

    def _run_sound(self, bench: Bench, kept: Path) -> None:
        """Run the tests without a mutant, or take what they did from a file."""
        if kept.exists():
            data = json.loads(kept.read_text(encoding="utf-8"))
            bench.sound = {
                name: Sound(seconds, frozenset(shows)) for name, (seconds, shows) in data.items()
            }
            return
        started = time.monotonic()
        bench.run_sound(self.tests, self.say)
        self.unfit |= bench.unfit
        for name, message in sorted(bench.unfit.items()):
            self.say(f"     not used, for it fails without a mutant: {name}: {message[:100]}")
        if not bench.sound:
            raise MutationError("no test passes without a mutant")
        self.say(f"     {len(bench.sound)} tests pass in {time.monotonic() - started:.0f} s")
        data = {name: (each.seconds, sorted(each.shows)) for name, each in bench.sound.items()}
        kept.write_text(json.dumps(data), encoding="utf-8")


def on_others(
    campaign: Campaign, verdicts: Sequence[Verdict], chips: Iterable[ChipParameters]
) -> list[Verdict]:
    """Judge on other chips what shows in no test on one: it may have no such part.

    Args:
        campaign: that has ended.
        verdicts: that it has found.
        chips: tried one after the other, each with its tests.
    """
    request = campaign.request
    mutants = {mutant.name: mutant for mutant in request.mutants}
    found = {verdict.mutant: verdict for verdict in verdicts}
    for chip in chips:
        left = [mutants[name] for name, each in found.items() if each.fate == UNSEEN]
        tests = [
            test for test in registry.select(chip.tests, registry.discover()) if test.fits(chip)
        ]
        if not left or chip == request.chip or not tests:
            continue
        campaign.say(f"{len(left)} mutants that show nowhere, on {chip.name}")
        there = replace(request, mutants=left, count=len(left), chip=chip)
        second = Campaign(campaign.design, there, campaign.say, tests)
        found |= {verdict.mutant: verdict for verdict in second.run([])}
        campaign.unfit |= second.unfit
    return [*found.values()]


def _sum(before: Verdict | None, now: Verdict) -> Verdict:
    """Return a verdict of several seeds: what one of them shows has been seen."""
    if before is None:
        return now
    shows, ran = before.shows + now.shows, before.ran + now.ran
    fate = before.fate if now.fate == UNSEEN else now.fate
    seconds = round(before.seconds + now.seconds, 1)
    return Verdict(**{**asdict(now), "fate": fate, "shows": shows, "ran": ran, "seconds": seconds})


def _digest(words: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(words).encode()).hexdigest()[:12]
