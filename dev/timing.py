# SPDX-License-Identifier: Apache-2.0
"""Levels of logic of the blocks of `make synth`, and of whole chips, against bars.

A block alone hides what goes through several of them: a request that asks, is granted and moves
what another engine does in the same cycle. So chips are measured too, flattened, as all of it is.
"""

from __future__ import annotations

import json
import re
import time
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dev import netlist, synth, yosys
from dev.yosys import SynthesisError
from spec.paths import BUILD, ROOT

FOLDER = BUILD / "timing"
REPORT = BUILD / "reports" / "timing.json"
BARS = Path(__file__).with_name("timing_bars.toml")
MARGIN = 0.02
"""A figure may be so much above its bar."""
DEEPEST = 10
"""How many paths of a block are kept."""

SMALLEST = synth.SynthBlock(
    "top-a8-min",
    "npu_top",
    {"ArrayDim": 8, "SramKiB": 128, "EnableCmd": 0, "EnableCop": 0, "NarrowFormats": 0},
)
"""The smallest chip that is of use: no command port, no coprocessor, weights of 8 bits."""
TOPS = (SMALLEST, synth.SynthBlock("top-a16", "npu_top", {"ArrayDim": 16}))
"""Chips that only this command measures; `top-a4` of `make synth` is the third."""
PARTS = (
    synth.SynthBlock("row-a16", "npu_pe_row", {"ArrayDim": 16, "Index": 15}),
    synth.SynthBlock("smx-sum", "npu_smx_sum"),
    synth.SynthBlock("post-a8", "npu_gemm_post", {"Lanes": 4}),
    synth.SynthBlock("post-a4", "npu_gemm_post", {"Lanes": 1}),
)
"""Parts of blocks: two to compare others with in gates, and post-processing of smaller arrays."""
BLOCKS = (*TOPS, *synth.BLOCKS, *PARTS)
WHOLE = tuple(block.name for block in BLOCKS if block.top == "npu_top")
NOT_IN_GATES = {"array-a16": "`row-a16` is a row of it", "cop": "its parts are there"}
NOT_ON_ECP5 = {
    "expand-a16": "its long paths end at ports",
    "array-a16": "more multipliers than the device has",
}
"""Blocks that `dev.gates` and `dev.ecp5` leave out, beside whole chips, and why."""
IN_GATES = tuple(block.name for block in BLOCKS if block.name not in (*WHOLE, *NOT_IN_GATES))
ON_ECP5 = tuple(block.name for block in BLOCKS if block.name not in (*WHOLE, *NOT_ON_ECP5))

SCRIPT = """
read_rtlil {mapped}
flatten
opt_clean
tee -q -o {folder}/ltp.txt ltp -noff
setattr -unset src -unset hdlname
write_json {folder}/flat.json
"""


@dataclass(frozen=True)
class BlockTiming:
    """What a block uses, and its deepest paths.

    Attributes:
        block, top, parameters, lut, ff, dsp, memory_bits: as `make synth` says.
        levels: of the deepest path.
        lut_levels: of the deepest one that runs through nothing but LUTs, as yosys counts.
        circles: steps that were left out because they close one: see `netlist`.
        seconds: time that all of it took.
        paths: the deepest, deepest first.
        lut_paths: of those through nothing but LUTs.
    """

    block: str
    top: str
    parameters: dict[str, int]
    lut: int
    ff: int
    dsp: int
    memory_bits: int
    levels: int
    lut_levels: int
    circles: int
    seconds: float
    paths: tuple[netlist.Path, ...]
    lut_paths: tuple[netlist.Path, ...]


FIGURES = ("levels", "lut_levels", "lut", "ff", "dsp")
"""Those with bars."""


def measure(
    block: synth.SynthBlock, paths: Sequence[Path], folder: Path = FOLDER
) -> tuple[BlockTiming, bool]:
    """Synthesise `block` from those of `paths` that it needs, and look for its deepest paths.

    Returns:
        The figures, and whether they are those of an earlier run with the same inputs.

    Raises:
        SynthesisError: the block was refused, or yosys finds other levels than `netlist`.
    """
    used, _ = synth.synthesise(block, paths)
    begin = time.monotonic()
    own = synth.place(block, folder)
    mapped = synth.place(block) / "mapped.il"
    text = SCRIPT.format(mapped=mapped.relative_to(ROOT), folder=own.relative_to(ROOT))
    code = Path(netlist.__file__).read_text(encoding="utf-8")

    def make() -> dict[str, Any]:
        found = _levels(block, text, own)
        return found | {"seconds": round(used.seconds + time.monotonic() - begin, 1)}

    found, kept = yosys.kept(own / "result.json", yosys.digest(text + code, [mapped]), make)
    figures = asdict(used) | dict(found)
    del figures["modules"]
    return from_record(figures), kept


def from_record(figures: Mapping[str, Any]) -> BlockTiming:
    """Return the figures of a record of the report."""
    read = {name: tuple(map(_path, figures[name])) for name in ("paths", "lut_paths")}
    return BlockTiming(**{**figures, **read})


def _path(record: Mapping[str, Any]) -> netlist.Path:
    stages = tuple(netlist.Stage(**stage) for stage in record["stages"])
    return netlist.Path(**{**record, "stages": stages})


def _levels(block: synth.SynthBlock, text: str, own: Path) -> dict[str, Any]:
    try:
        yosys.run(text, own)
    except SynthesisError as error:
        raise SynthesisError(f"{block.name} ({block.top}): {error}") from None
    flat = own / "flat.json"
    found = netlist.Netlist(json.loads(flat.read_bytes()), block.top)
    flat.unlink()  # hundreds of megabytes of a chip
    counted = re.search(r"\(length=(\d+)\)", (own / "ltp.txt").read_text(encoding="utf-8"))
    luts = found.levels(netlist.LUTS)
    if counted is None or int(counted[1]) != luts:
        says = "none" if counted is None else counted[1]
        raise SynthesisError(f"{block.name}: {luts} levels of LUTs, ltp of yosys says {says}")
    return {
        "levels": found.levels(),
        "lut_levels": luts,
        "circles": found.circles(),
        "paths": [asdict(path) for path in found.paths(DEEPEST)],
        "lut_paths": [asdict(path) for path in found.paths(DEEPEST, netlist.LUTS)],
    }


# -------------------------------------------------------------------------------------------------
# Bars
# -------------------------------------------------------------------------------------------------
def bars(path: Path = BARS) -> dict[str, dict[str, int]]:
    """Return the bars of every block that has some, by figure."""
    return tomllib.loads(path.read_text(encoding="utf-8"))


def worse(results: Sequence[BlockTiming], allowed: Mapping[str, Mapping[str, int]]) -> list[str]:
    """Return a line for each figure that is more than `MARGIN` above its bar: block, path, both."""
    found = []
    for timing in results:
        for name in FIGURES:
            figure, bar = getattr(timing, name), allowed.get(timing.block, {}).get(name)
            if bar is not None and figure > bar * (1 + MARGIN):
                where = ""
                if name in ("levels", "lut_levels"):
                    where = f": {path_text((timing.paths, timing.lut_paths)[name != 'levels'][0])}"
                found.append(f"{timing.block}: {name} {figure:,}, bar {bar:,}{where}")
    return found


def path_text(path: netlist.Path) -> str:
    """Return a path in a line: where it begins, levels by instance, where it ends."""
    around, words = path.words()
    return f"{around}: " * bool(around) + " -> ".join(words)


def lowered(
    results: Sequence[BlockTiming],
    known: Mapping[str, Mapping[str, int]],
    raised: Sequence[str] = (),
) -> dict[str, dict[str, int]]:
    """Return the bars after a run: lower where figures are lower, raised for blocks in `raised`."""
    found = {name: dict(bar) for name, bar in known.items()}
    for timing in results:
        figures = {name: getattr(timing, name) for name in FIGURES}
        if timing.block in known and timing.block not in raised:
            bar = known[timing.block]
            figures = {name: min(bar.get(name, one), one) for name, one in figures.items()}
        found[timing.block] = figures
    return {block.name: found[block.name] for block in BLOCKS if block.name in found}


def write_bars(found: Mapping[str, Mapping[str, int]], path: Path = BARS) -> None:
    """Write the bars."""
    lines = [
        "# SPDX-License-Identifier: Apache-2.0",
        f"# Bars of `make timing`, which allows {MARGIN:.0%} more. Written by `npu timing --page`,",
        "# which lowers them by itself and raises those of the blocks that --raise names.",
    ]
    for block, figures in found.items():
        lines += ["", f"[{block}]", *(f"{name} = {figures[name]}" for name in FIGURES)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
