# SPDX-License-Identifier: Apache-2.0
"""Figures of the networks and of the design: quality by model and format, synthesis by block."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dev import synth
from dev.report.source import Record, Source, read_json

QUALITY_COMMAND, SYNTH_COMMAND = "make quality", "make synth"


@dataclass(frozen=True, slots=True)
class ModelQuality:
    """An integer network against float32 on held-out text.

    Attributes:
        model, family: its names.
        tokens: predictions that the figures are of.
        float_bits, integer_bits: bits per byte.
        loss: relative increase.
        max_loss: its bar.
        agreement, min_agreement: share of equal most likely bytes, and its bar.
        passed: whether both bars are met.
    """

    model: str
    family: str
    tokens: int
    float_bits: float
    integer_bits: float
    loss: float
    max_loss: float
    agreement: float
    min_agreement: float
    passed: bool


@dataclass(frozen=True, slots=True)
class FormatQuality:
    """Narrow weights against int8.

    Attributes:
        model, recipe: what was measured.
        int8_bits, bits: bits per byte.
        loss: relative increase.
        max_loss: its bar, None for none.
        weight_bits: bits of the stream per weight.
        bus_cycles: of a step, for the bytes alone.
        passed: whether the bar is met.
    """

    model: str
    recipe: str
    int8_bits: float
    bits: float
    loss: float
    max_loss: float | None
    weight_bits: float
    bus_cycles: int
    passed: bool


@dataclass(frozen=True, slots=True)
class Quality:
    """All that `make quality` has measured."""

    models: tuple[ModelQuality, ...]
    formats: tuple[FormatQuality, ...]

    @property
    def missed(self) -> tuple[str, ...]:
        """What is worse than its bar."""
        return (
            *(one.model for one in self.models if not one.passed),
            *(f"{one.model} {one.recipe}" for one in self.formats if not one.passed),
        )


@dataclass(frozen=True, slots=True)
class Block:
    """What a block of the design uses: LUTs, flip-flops, multipliers, bits of memory."""

    name: str
    top: str
    parameters: str
    lut: int
    ff: int
    dsp: int
    memory_bits: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Synthesis:
    """All blocks, and what is said of those that may be so large at most.

    Attributes:
        blocks: in the order of the report.
        shares: a sentence for each block that is held against another.
        larger: names of blocks with more cells than they may have.
    """

    blocks: tuple[Block, ...]
    shares: tuple[str, ...]
    larger: tuple[str, ...]


def read_quality(folder: Path) -> Source[Quality]:
    """Read quality.json of a folder of reports."""
    return read_json(folder / "quality.json", QUALITY_COMMAND, _quality)


def read_synthesis(folder: Path) -> Source[Synthesis]:
    """Read synth.json of a folder of reports."""
    return read_json(folder / "synth.json", SYNTH_COMMAND, _synthesis)


def _quality(record: Record) -> Quality:
    models = tuple(
        ModelQuality(
            model=one.text("model"),
            family=one.text("family"),
            tokens=one.whole("tokens"),
            float_bits=one.number("float_bits"),
            integer_bits=one.number("integer_bits"),
            loss=one.number("loss"),
            max_loss=one.number("max_loss"),
            agreement=one.number("agreement"),
            min_agreement=one.number("min_agreement"),
            passed=one.truth("passed"),
        )
        for one in record.at("models").entries()
    )
    formats = tuple(
        FormatQuality(
            model=one.text("model"),
            recipe=one.text("recipe"),
            int8_bits=one.number("int8_bits"),
            bits=one.number("bits"),
            loss=one.number("loss"),
            max_loss=one.number("max_loss") if one.has("max_loss") else None,
            weight_bits=one.number("weight_bits"),
            bus_cycles=one.whole("bus_cycles"),
            passed=one.truth("passed"),
        )
        for one in record.at("formats").entries()
    )
    return Quality(models, formats)


def _synthesis(record: Record) -> Synthesis:
    blocks = tuple(
        Block(
            name=one.text("block"),
            top=one.text("top"),
            parameters=", ".join(
                f"{name} {value.content}" for name, value in one.at("parameters").items()
            ),
            lut=one.whole("lut"),
            ff=one.whole("ff"),
            dsp=one.whole("dsp"),
            memory_bits=one.whole("memory_bits"),
            seconds=one.number("seconds"),
        )
        for one in record.entries()
    )
    cells: dict[str, Mapping[str, int]] = {
        one.name: {"lut": one.lut, "ff": one.ff, "dsp": one.dsp} for one in blocks
    }
    shares = tuple(
        synth.share_text(block, cells).replace("`", "")
        for block, share in synth.SHARES.items()
        if {block, share.of} <= cells.keys() and all(cells[share.of][kind] for kind in synth.KINDS)
    )
    return Synthesis(blocks, shares, tuple(synth.too_large(cells)))
