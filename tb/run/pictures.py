# SPDX-License-Identifier: Apache-2.0
"""Pictures of a bench run: the roofline of all benchmarks, and timelines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.text import Text

from npu.compiler.ideal import BYTES_PER_CYCLE, MACS_PER_CYCLE
from tb.bench import logs
from tb.run.timeline import ENGINES, Timeline

INTENSITY = (0.25, 4096.0)
"""Multiplications per byte that the roofline shows; work without a byte stands at the right end."""
BUS_COLOUR, MAC_COLOUR, FREE_COLOUR = "#1f6fb4", "#c2410c", "#6b21a8"

NAME_MOST = 40
"""Characters of a name."""

Box = tuple[float, float, float, float]


@dataclass(frozen=True)
class RooflinePoint:
    """A benchmark in the roofline.

    Attributes:
        name: its label, "" for none.
        macs: multiplications.
        bus_bytes: necessary bytes on the busier channel of the bus, 0 for none.
        cycles: what it took.
    """

    name: str
    macs: int
    bus_bytes: int
    cycles: int

    @property
    def place(self) -> tuple[float, float]:
        """Multiplications per byte (the right end for no byte) and per cycle."""
        right = INTENSITY[1] / 2.2
        x = self.macs / self.bus_bytes if self.bus_bytes else right
        return min(x, right), self.macs / self.cycles

    @property
    def colour(self) -> str:
        """By the roof above it."""
        if not self.bus_bytes:
            return FREE_COLOUR
        under_bus = self.macs * BYTES_PER_CYCLE < MACS_PER_CYCLE * self.bus_bytes
        return BUS_COLOUR if under_bus else MAC_COLOUR


def _save(figure: Figure, path: Path) -> None:
    figure.savefig(path, metadata={"Software": None})


def _around(spots: npt.NDArray[np.float64], size: float) -> list[Box]:
    """Return squares around spots, all in pixels."""
    return [(x - size, y - size, x + size, y + size) for x, y in spots.tolist()]


def _extent(text: Text) -> Box:
    x0, y0, x1, y1 = (float(edge) for edge in text.get_window_extent().extents)
    return x0, y0, x1, y1


def _free(boxes: Sequence[Box], others: Sequence[Box]) -> bool:
    return not any(
        x1 > a and x0 < c and y1 > b and y0 < d for x0, y0, x1, y1 in boxes for a, b, c, d in others
    )


def _shortened(name: str) -> str:
    return name if len(name) <= NAME_MOST else name[: NAME_MOST - 3] + "..."


def _label(axes: Axes, points: Sequence[RooflinePoint]) -> None:
    """Write each name, with a line to its point, where nothing hides anything else.

    What has no room stays a point without a name; long names, as other tools give them, are
    cut. The tables beside the picture have all of them.
    """
    intensity = np.geomspace(*INTENSITY, 400)
    roof = np.stack([intensity, _roof(intensity)], axis=1)
    places = axes.transData.transform([point.place for point in points])
    taken = _around(places, 7) + _around(axes.transData.transform(roof), 4)
    taken += [_extent(text) for text in axes.texts]
    names: list[Box] = []
    directions = np.radians([-35, -90, -20, -60, 0, -120, 180, -150, 145, 90, 35])
    tries = [(radius, angle) for radius in range(25, 270, 18) for angle in directions]
    pixels = axes.transData.inverted()
    for point, place in sorted(zip(points, places, strict=True), key=lambda pair: pair[0].place[1]):
        if not point.name:
            continue
        speed = point.place[1]
        for radius, angle in tries:
            end = place + radius * np.array([np.cos(angle), np.sin(angle)])
            right = bool(np.cos(angle) > -0.3)
            left, middle = pixels.transform(end)
            note = axes.text(
                left,
                middle,
                f"{_shortened(point.name)}  {speed:.{0 if speed >= 100 else 1}f}",
                ha="left" if right else "right",
                va="center",
                fontsize=8.5,
                color=point.colour,
            )
            x0, y0, x1, y1 = _extent(note)
            name = [(x0 - 3, y0 - 2, x1 + 3, y1 + 2)]
            leader = _around(place + np.linspace(0, 1, 24)[:, None] * (end - place), 1)
            inside = axes.bbox.contains(x0, y0) and axes.bbox.contains(x1, y1)
            if inside and _free(name, taken) and _free(leader, names):
                taken += name + leader
                names += name
                line = pixels.transform([place, end])
                axes.plot(line[:, 0], line[:, 1], color=point.colour, lw=0.6, zorder=1)
                break
            note.remove()


def _roof(intensity: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.minimum(MACS_PER_CYCLE, BYTES_PER_CYCLE * intensity)


def roofline(
    points: Sequence[RooflinePoint],
    conditions: str,
    path: Path,
    title: str = "Roofline of the benchmarks",
) -> None:
    """Draw the multiplications per cycle of each point under the roofs of bus and array."""
    figure = Figure(figsize=(9.6, 6.0), dpi=130, layout="constrained")
    axes = figure.subplots()
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    axes.set_xlim(*INTENSITY)
    axes.set_ylim(min(4.0, *(point.place[1] / 2 for point in points)), 420)
    corner = MACS_PER_CYCLE / BYTES_PER_CYCLE
    x = np.array([INTENSITY[0], corner, INTENSITY[1]])
    roof = _roof(x)
    axes.plot(x, roof, color="black", lw=1.6, zorder=2)
    axes.fill_between(x, roof, 420, color="#e5e7eb", zorder=0, lw=0)
    bus_text = axes.text(
        1.6,
        BYTES_PER_CYCLE * 1.6 * 1.12,
        f"bus: {BYTES_PER_CYCLE} bytes per cycle",
        rotation_mode="anchor",
        fontsize=9,
    )
    array_text = f"array: {MACS_PER_CYCLE} multiplications per cycle"
    axes.text(300, MACS_PER_CYCLE * 1.08, array_text, fontsize=9)
    axes.scatter(
        [point.place[0] for point in points],
        [point.place[1] for point in points],
        c=[point.colour for point in points],
        s=42,
        zorder=3,
        edgecolors="white",
        linewidths=0.8,
    )
    axes.set_xlabel("8-bit multiplications per necessary byte on the bus")
    axes.set_ylabel("8-bit multiplications per cycle")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.grid(visible=True, which="major", alpha=0.3, lw=0.6)
    axes.set_title(f"{title} ({conditions})", loc="left", fontsize=11)
    handles = [
        Line2D([], [], marker="o", ls="", color=BUS_COLOUR, label="under the roof of the bus"),
        Line2D([], [], marker="o", ls="", color=MAC_COLOUR, label="under the roof of the array"),
        Line2D(
            [],
            [],
            marker="o",
            ls="",
            color=FREE_COLOUR,
            label="needs no byte in the timed interval",
        ),
    ]
    axes.legend(handles=handles, loc="lower right", fontsize=8.5, framealpha=0.9)
    figure.draw_without_rendering()
    rise = np.subtract(*axes.transData.transform([(2, 32), (1, 16)]))
    bus_text.set_rotation(float(np.degrees(np.arctan2(rise[1], rise[0]))))
    _label(axes, points)
    _save(figure, path)


# Timelines

COLOURS = ("#60a5fa", "#3b82f6", "#f59e0b", "#a78bfa", "#34d399", "#f472b6")
"""By engine."""
WAIT_COLOURS = {
    "pipeline fills or drains": "#fde68a",
    "bus: read data": "#1e3a8a",
    "bus: write channel": "#1e40af",
    "bus: write response": "#64748b",
    "parameter stream": "#b91c1c",
    "SRAM read port": "#7c3aed",
    "SRAM write port": "#a21caf",
    "free accumulator bank": "#166534",
    "parameters of the tile before in use": "#4d7c0f",
}
HELD_COLOURS = {"barrier": "#9ca3af", "queue full": "#6b7280", "microcode": "#d1d5db"}
OTHER_HELD = "#4b5563"
BEAT_COLOURS = {"input and microcode": "#60a5fa", "stream": "#fca5a5", "written": "#111827"}
NAME_WIDTH, NUMBER_WIDTH = 0.075, 0.022
"""Shares of the picture's width that name and number of an instruction need."""
EDGE_WIDTH = 0.003
"""The same for a bar with a white edge, which would hide a narrower one."""


def _bars(
    axes: Axes,
    row: float,
    spans: Sequence[tuple[int, int]],
    height: float,
    colour: str,
    edge: str = "none",
) -> None:
    low, high = row - height / 2, row + height / 2
    corners = [[(a, low), (a, high), (b, high), (b, low)] for a, b in spans]
    axes.add_collection(PolyCollection(corners, fc=colour, ec=edge, lw=0.5))


def _engines(axes: Axes, timeline: Timeline) -> None:
    for row, engine in enumerate(ENGINES):
        for part in timeline.slices[engine]:
            share = (part.end - part.start) / timeline.cycles
            edge = "white" if share > EDGE_WIDTH else COLOURS[row]
            _bars(axes, row, [(part.start, part.end)], 0.72, COLOURS[row], edge)
            waits: dict[str, list[tuple[int, int]]] = {}
            for wait in part.waits:
                waits.setdefault(wait.reason, []).append((wait.start, wait.end))
            for reason, spans in waits.items():
                _bars(axes, row + 0.21, spans, 0.3, WAIT_COLOURS[reason])
            if share > NUMBER_WIDTH:
                name = part.name if share > NAME_WIDTH else f"#{part.instr}"
                middle = (part.start + part.end) / 2
                axes.text(middle, row - 0.13, name, ha="center", va="center", fontsize=7)
    row = len(ENGINES)
    for wait, _ in timeline.held:
        colour = HELD_COLOURS.get(wait.reason, OTHER_HELD)
        _bars(axes, row, [(wait.start, wait.end)], 0.5, colour, "white")
    axes.set_yticks(range(row + 1), [*ENGINES, "sequencer"])
    axes.set_ylim(row + 0.6, -0.6)
    axes.set_xlim(0, timeline.cycles)
    axes.grid(visible=True, axis="x", alpha=0.3, lw=0.6)
    axes.set_axisbelow(True)


def _legend(figure: Figure, timeline: Timeline) -> None:
    parts = [part for engine in ENGINES for part in timeline.slices[engine]]
    reasons = dict.fromkeys(wait.reason for part in parts for wait in part.waits)
    held = dict.fromkeys(wait.reason for wait, _ in timeline.held)
    entries = [(f"waits: {name}", WAIT_COLOURS[name]) for name in reasons]
    entries += [(f"sequencer waits: {name}", HELD_COLOURS.get(name, OTHER_HELD)) for name in held]
    entries += [(f"bus: {name}", colour) for name, colour in BEAT_COLOURS.items()]
    handles = [Patch(fc=colour, label=name) for name, colour in entries]
    figure.legend(handles=handles, loc="outside lower center", ncols=5, fontsize=7.5, frameon=False)


def timeline_picture(timeline: Timeline, conditions: str, path: Path) -> None:
    """Draw what every engine does and waits for, the words in the stream's FIFO, and the bus."""
    figure = Figure(figsize=(12.5, 6.6), dpi=130, layout="constrained")
    top, fifo, bus = figure.subplots(3, 1, sharex=True, height_ratios=(5.2, 1.2, 1.2))
    _engines(top, timeline)
    top.set_title(
        f"{timeline.name}: {timeline.cycles:,} cycles from start to interrupt ({conditions})",
        loc="left",
        fontsize=11,
    )
    cycle = timeline.sample_cycle - logs.WINDOW / 2
    fifo.fill_between(cycle, timeline.samples["fifo"], step="mid", color="#fca5a5", lw=0)
    fifo.set_ylabel("stream FIFO\n16-byte words", fontsize=8)
    fifo.set_ylim(0, 2150)
    share = {key: timeline.samples[key] / logs.WINDOW for key in ("read", "stream", "write")}
    for name, key in zip(BEAT_COLOURS, ("read", "stream"), strict=False):
        bus.fill_between(cycle, share[key], step="mid", color=BEAT_COLOURS[name], lw=0)
    bus.plot(cycle, share["write"], drawstyle="steps-mid", color=BEAT_COLOURS["written"], lw=1)
    bus.set_ylabel("bus\nbeats per cycle", fontsize=8)
    bus.set_ylim(0, 1.1)
    bus.set_xlabel("cycle")
    for axes in (fifo, bus):
        axes.grid(visible=True, alpha=0.3, lw=0.6)
        axes.tick_params(labelsize=8)
    _legend(figure, timeline)
    _save(figure, path)
