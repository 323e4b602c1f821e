# SPDX-License-Identifier: Apache-2.0
"""`npu estimate`: what a model would take of chip and computer, by its config.json alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Console
from rich.markup import escape

from npu.commands.load_model import shape_text, text_room
from npu.compiler.estimate import Estimate, estimate
from npu.compiler.ideal import BYTES_PER_CYCLE
from npu.compiler.model_plan import MEMORY_BYTES
from npu.tables import FitTable, pairs
from spec.isa.operands import Limits
from weights.dimensions import Dimensions, load_dimensions
from weights.formats.recipe import WeightRecipe
from weights.import_cost import ImportCost, import_cost

CLOCK_MHZ = 100.0
"""Of the chip, where none is given."""
SIMULATED_HZ = 130_000
"""Cycles a second on the RTL: `npu bench tiny_decode_gpt2_loop`, one core of a server."""
GB = 1_000_000_000
MINUTE, HOUR = 60, 3600


@dataclass(frozen=True)
class EstimateReport:
    """What there is to say of a model.

    Attributes:
        name: as it was asked for.
        dimensions: of it.
        found: what it takes of the chip.
        cost: what its import takes.
        clock: of the chip, in MHz.
    """

    name: str
    dimensions: Dimensions
    found: Estimate
    cost: ImportCost
    clock: float

    @property
    def verdict(self) -> str:
        """Say whether it would run, and if not, why, and what would."""
        found, refusal = self.found, self.dimensions.refusal
        known = f"{refusal}; estimated as {self.dimensions}" if refusal else ""
        if found.fits:
            return known or "accepted"
        why = found.refusal or (
            f"{found.asked.memory:,} bytes with {found.asked.weights} and a context of "
            f"{found.context:,}, allowed {MEMORY_BYTES:,}"
        )
        ways = " or ".join(self.ways)
        would = f"would fit with {ways}" if ways else "no format or context would fit"
        return f"{known + '; ' if known else ''}does not fit: {why}; {would}"

    @property
    def ways(self) -> tuple[str, ...]:
        """The options of the command with each of which it would fit."""
        found, ways = self.found, []
        if found.helps is not None:
            ways.append(f"--weights {found.helps.weights}")
        if found.asked.longest:
            ways.append(f"--context {found.asked.longest}")
        shorter = max(found.formats.values(), key=lambda one: (one.longest, one.stream))
        if not ways and shorter.longest:
            ways.append(f"--weights {shorter.weights} --context {shorter.longest}")
        return tuple(ways)

    def to_json(self) -> dict[str, Any]:
        """Return everything: sizes in bytes, cycles, tokens (of an encoder, passes) a second."""
        found = self.found
        return {
            "model": self.name,
            "accepted": found.fits and not self.dimensions.refusal,
            "verdict": self.verdict,
            "refusal": self.dimensions.refusal or None,
            "encoder": self.dimensions.encoder,
            "fits": found.fits,
            "fits_with": [] if found.fits else list(self.ways),
            "shape": asdict(self.dimensions.shape),
            "memory_bytes": MEMORY_BYTES,
            "clock_mhz": self.clock,
            "simulated_hz": SIMULATED_HZ,
            "import": asdict(self.cost),
            "contexts": [asdict(one) for one in found.contexts],
            "formats": [
                asdict(one) | self._speeds(one.cycles_last) for one in found.formats.values()
            ],
        }

    def _speeds(self, cycles: int) -> dict[str, float]:
        return {"per_second": self.clock * 1e6 / cycles, "simulated": SIMULATED_HZ / cycles}

    def show(self, console: Console) -> None:
        """Print tables and verdict."""
        table = pairs()
        for row in self._rows():
            table.add_row(*map(escape, row))
        console.print(table)
        console.print(self._contexts())
        console.print(self._formats())

    def _rows(self) -> Iterator[tuple[str, str]]:
        shape, cost = self.dimensions.shape, self.cost
        yield "model", f"{shape_text(shape)}{', gated' if shape.gated else ''}"
        yield "", text_room(shape)
        yield "verdict", self.verdict
        yield (
            "import",
            f"{cost.parameters:,} parameters, about {cost.bytes / GB:.1f} GB of memory and "
            f"{_time(cost.seconds)} of processor time",
        )

    def _contexts(self) -> FitTable:
        found, encoder = self.found, self.dimensions.encoder
        table = FitTable(title=f"Contexts, {found.asked.weights}")
        for head in ("positions", "tables", "K/V cache", "in", "memory", "of 4 GiB", "cycles"):
            table.figure(head)
        for one in found.contexts:
            table.add_row(
                f"{one.context:,}",
                f"{one.tables:,}",
                f"{one.cache:,}",
                "" if encoder else "memory" if one.in_memory else "SRAM",
                f"{one.memory:,}",
                f"{one.memory / MEMORY_BYTES:.1%}",
                f"{one.cycles_last:,}",
            )
        return table

    def _formats(self) -> FitTable:
        found, unit = self.found, "passes" if self.dimensions.encoder else "tokens"
        table = FitTable(title=f"Formats, {found.context:,} positions, {unit} a second")
        table.text("weights")
        speed = f"at {self.clock:g} MHz"
        for head in ("stream", "memory", "cycles", speed, "simulated", "longest"):
            table.figure(head)
        alike: dict[int, list[str]] = {}
        for one in found.formats.values():
            alike.setdefault(one.stream, []).append(one.weights)
        for names in alike.values():
            one = found.formats[names[0]]
            speeds = self._speeds(one.cycles_last)
            table.add_row(
                ", ".join(names),
                f"{one.stream:,}",
                f"{one.memory:,}",
                f"{one.cycles_last:,}",
                _figure(speeds["per_second"]),
                _figure(speeds["simulated"]),
                f"{one.longest:,}" if one.longest else "none",
            )
        what = "a pass" if self.dimensions.encoder else "the last token"
        table.caption = (
            f"cycles of {what} at the limit of the bus, {BYTES_PER_CYCLE} bytes each, latency of "
            f"memory hidden; simulated at {SIMULATED_HZ // 1000} kcycles/s; longest: positions "
            "that fit"
        )
        return table


def _figure(number: float) -> str:
    """Return three digits of a number, or all before the point."""
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def _time(seconds: float) -> str:
    if seconds < 2 * MINUTE:
        return f"{seconds:.0f} s"
    return f"{seconds / MINUTE:.0f} min" if seconds < 2 * HOUR else f"{seconds / HOUR:.1f} h"


def report(
    name: str, limits: Limits, weights: WeightRecipe, context: int | None, clock: float
) -> EstimateReport:
    """Return what there is to say of a model.

    Args:
        name: a folder, config.json itself, the name of a shipped model, or a hub id.
        limits: the chip.
        weights: formats that the verdict is about.
        context: positions, None for those of the model.
        clock: of the chip, in MHz.

    Raises:
        CheckpointError: no model, a mixture of experts, or dimensions that cannot be.
        CompileError: the chip has no such formats.
    """
    dimensions = load_dimensions(name, context)
    found = estimate(dimensions.shape, limits, weights, encoder=dimensions.encoder)
    cost = import_cost(dimensions.shape, tied=dimensions.tied, weights=weights)
    return EstimateReport(name, dimensions, found, cost, clock)
