# SPDX-License-Identifier: Apache-2.0
"""Synthesises the blocks of the design with yosys and its slang front end; counts what they use.

A block is a module with its parameters. Yosys reads the files that the block needs, and refuses
what hardware cannot be: latches, combinational loops, several drivers, constructs that it would
leave out, cells that it cannot map. What passes is mapped to 6-input LUTs with carry chains,
flip-flops and multipliers of 27 x 18 bits. Memories stay memories and are counted in bits.
"""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

from dev import yosys
from dev.yosys import SynthesisError
from npu.tables import FitTable, as_text
from spec.paths import BUILD, ROOT
from tb.run import sources

FOLDER = BUILD / "synth"
REPORT = BUILD / "reports" / "synth.json"
PAGE = ROOT / "docs" / "synthesis.md"
BEGIN, END = "<!-- table: begin -->", "<!-- table: end -->"
SHARE = re.compile(r"^(<!-- share: ([a-z0-9-]+) -->\n).*\n", flags=re.M)
"""Where the page says how much of another block the cells of one are."""

MEMORY_WORDS = 8
MEMORY_WRITES = 4
"""Arrays of fewer words, or with more write ports, are registers; those without any are logic."""
DSP = "$__DSP"
CLOCK_GATE = "npu_clock_gate"
"""A module that is a cell of the technology: the only one that may hold a latch."""

MEMORIES = f"""memory_share -nosat
memory_collect
memory_map t:$mem_v2 r:SIZE<{MEMORY_WORDS} %i
memory_map t:$mem_v2 r:WR_PORTS>{MEMORY_WRITES} %i
opt_clean
opt -nodffe -nosdff
fsm
opt
wreduce
peepopt
opt_clean
memory_dff
memory_collect
"""
"""What is a memory, and what is registers."""

SCRIPT = f"""
read_slang --threads 1 --blackboxed-module {CLOCK_GATE} --top {{top}} {{parameters}} {{files}}
opt_clean
check -assert -nolatches
design -reset

read_slang --threads 1 --keep-hierarchy --blackboxed-module {CLOCK_GATE} \\
  --top {{top}} {{parameters}} {{files}}
hierarchy -check -top {{top}}
tee -q -o {{folder}}/read.json stat -json
opt_expr
opt_clean

{MEMORIES}
alumacc -macc-only
maccmap -unmap
opt_clean
techmap -map +/mul2dsp.v -D DSP_A_MAXWIDTH=27 -D DSP_B_MAXWIDTH=18 -D DSP_A_MINWIDTH=4 \\
  -D DSP_B_MINWIDTH=4 -D DSP_Y_MINWIDTH=9 -D DSP_SIGNEDONLY=1 -D DSP_NAME={DSP}
select a:mul2dsp
setattr -unset mul2dsp
opt_expr -fine
wreduce
select -clear
chtype -set $mul t:$__soft_mul
alumacc
memory_map t:$mem_v2 r:WR_PORTS=0 %i
opt -full

techmap -map +/techmap.v -D LUT_SIZE=6 -map +/xilinx/arith_map.v
opt -fast
dfflegalize -cell $_DFFE_?P?P_ 01 -cell $_SDFFE_?P?P_ 01
opt_expr -mux_undef
select t:* t:$_*DFF* %d
abc -script +strash;ifraig;if -luts 2:2,3,6:5
select -clear
opt_clean
tee -q -o {{folder}}/mapped.json stat -json
write_rtlil {{folder}}/mapped.il
select t:$mem_v2
write_json -selected {{folder}}/memories.json
"""
"""`mul2dsp`, `arith_map.v` and the costs of the LUTs are those of yosys' flow for UltraScale+.

ABC sees no flip-flops, because it would cut a module into one part for every enable."""

_FLIP_FLOP = re.compile(r"\$_S?DFFE?_\w+_")
_MAPPED = {"$lut", "CARRY4", DSP, "$mem_v2", "$scopeinfo", CLOCK_GATE}


@dataclass(frozen=True)
class SynthBlock:
    """A module and its parameters; `name` is how the reports call it."""

    name: str
    top: str
    parameters: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class BlockFigures:
    """What a block uses, with everything below it.

    Attributes:
        block: its name.
        top: its module.
        parameters: those given; the others have the values of the source.
        lut, ff, dsp: 6-input LUTs, flip-flops, multipliers of 27 x 18 bits.
        memory_bits: bits in memories.
        seconds: time that it took.
        modules: modules of the design in it.
    """

    block: str
    top: str
    parameters: dict[str, int]
    lut: int
    ff: int
    dsp: int
    memory_bits: int
    seconds: float
    modules: list[str]


SMALL = {"ArrayDim": 4, "SramKiB": 32, "AccRows": 32, "FifoKiB": 4, "NormMax": 1024}
# What is built small aside, a block has the parameters of an instance in the default chip.
BLOCKS: tuple[SynthBlock, ...] = (
    SynthBlock("top-a4", "npu_top", SMALL),
    SynthBlock("gemm-a4", "npu_gemm", {"ArrayDim": 4}),
    SynthBlock("gemm-a4-int8", "npu_gemm", {"ArrayDim": 4, "NarrowFormats": 0}),
    SynthBlock("array-a16", "npu_systolic_array", {"ArrayDim": 16}),
    SynthBlock("expand-a16", "npu_gemm_expand", {"Edge": 16}),
    SynthBlock("post-a16", "npu_gemm_post", {"Lanes": 16}),
    SynthBlock("host", "npu_host"),
    SynthBlock("seq", "npu_seq"),
    SynthBlock("mem-port", "npu_mem_port", {"RdEngines": 0o706, "WrEngines": 1}),
    SynthBlock("axi-mux", "npu_axi_mux"),
    SynthBlock("cmd", "npu_cmd"),
    SynthBlock("stream", "npu_streamer"),
    SynthBlock("dma-load", "npu_dma_load"),
    SynthBlock("dma-store", "npu_dma_store"),
    SynthBlock("sram", "npu_sram"),
    SynthBlock("softmax", "npu_softmax"),
    SynthBlock("norm", "npu_nrm"),
    SynthBlock("vector", "npu_vec"),
    SynthBlock("cop", "npu_cop"),
    SynthBlock("cop-issue", "npu_cop_issue"),
    SynthBlock("cop-int", "npu_cop_int"),
    SynthBlock("cop-vector", "npu_cop_vector"),
    SynthBlock("cop-walk", "npu_cop_walk"),
    SynthBlock("cop-reader", "npu_cop_reader"),
    SynthBlock("cop-pieces", "npu_cop_pieces"),
    SynthBlock("cop-writer", "npu_cop_writer"),
    SynthBlock("cop-mem", "npu_cop_mem"),
    SynthBlock("cop-window", "npu_cop_window"),
    SynthBlock("cop-float", "npu_cop_float"),
    SynthBlock("cop-lane", "npu_cop_lane"),
    SynthBlock("cop-facc", "npu_cop_facc"),
    SynthBlock("cop-root", "npu_cop_root"),
    SynthBlock("cop-divide", "npu_cop_divide"),
    SynthBlock("cop-func", "npu_cop_func"),
)
"""In the order of their reports; the top holds every module of `rtl/`."""


@dataclass(frozen=True)
class Portion:
    """How many cells a block may have, as a share of those of another one.

    Attributes:
        of: the other block.
        most: 1 for as many.
    """

    of: str
    most: float


SHARES = {"expand-a16": Portion("array-a16", 0.25)}


# -------------------------------------------------------------------------------------------------
# Sources
# -------------------------------------------------------------------------------------------------
def uncovered(modules: Iterable[str], paths: Iterable[Path]) -> list[Path]:
    """Return those of `paths` that hold a module, none of them in `modules`."""
    known = set(modules)
    missing = []
    for path in paths:
        text = path.read_text(encoding="utf-8")
        names = set(re.findall(r"^\s*module\s+(?:automatic\s+)?(\w+)", text, re.MULTILINE))
        if names and not names & known:
            missing.append(path)
    return missing


# -------------------------------------------------------------------------------------------------
# Results
# -------------------------------------------------------------------------------------------------
def instances(modules: Mapping[str, Any], top: str) -> Counter[str]:
    """Return how often each module of a `stat -json` is in `top`, which is there once."""
    count: Counter[str] = Counter()
    left = [("\\" + top, 1)]
    while left:
        module, times = left.pop()
        count[module] += times
        for cell, number in modules[module]["num_cells_by_type"].items():
            below = next((name for name in (cell, "\\" + cell) if name in modules), None)
            if below is not None:
                left.append((below, times * number))
    return count


def cells(stat: Mapping[str, Any], top: str) -> Counter[str]:
    """Return the cells in `top` and below by type, from what `stat -json` wrote."""
    modules = stat["modules"]
    count: Counter[str] = Counter()
    for module, times in instances(modules, top).items():
        for cell, number in modules[module]["num_cells_by_type"].items():
            if cell not in modules and "\\" + cell not in modules:
                count[cell] += times * number
    return count


def memory_bits(netlist: Mapping[str, Any], count: Mapping[str, int]) -> int:
    """Return the bits of the memories of a JSON netlist; `count` says how often each module is."""
    return sum(
        count["\\" + module]
        * int(cell["parameters"]["SIZE"], 2)
        * int(cell["parameters"]["WIDTH"], 2)
        for module, body in netlist["modules"].items()
        for cell in body["cells"].values()
        if cell["type"] == "$mem_v2"
    )


def unmapped(count: Mapping[str, int]) -> list[str]:
    """Return the types of cells that are none of the target's."""
    return sorted(cell for cell in count if cell not in _MAPPED and not _FLIP_FLOP.fullmatch(cell))


# -------------------------------------------------------------------------------------------------
# Running
# -------------------------------------------------------------------------------------------------
def words(block: SynthBlock, files: Sequence[Path], folder: Path) -> dict[str, str]:
    """Return what a script says of `block`; paths are relative to the root of the tree."""
    return {
        "top": block.top,
        "parameters": " ".join(f"-G {name}={value}" for name, value in block.parameters.items()),
        "files": " ".join(str(path.relative_to(ROOT)) for path in files),
        "folder": str(folder.relative_to(ROOT)),
    }


def script(block: SynthBlock, files: Sequence[Path], folder: Path) -> str:
    """Return the script that synthesises `block`."""
    return SCRIPT.format(**words(block, files, folder))


def synthesise(
    block: SynthBlock, paths: Sequence[Path], folder: Path = FOLDER
) -> tuple[BlockFigures, bool]:
    """Synthesise `block` from those of `paths` that it needs.

    Returns:
        The figures, and whether they are those of an earlier run with the same inputs.

    Raises:
        SynthesisError: the block was refused; the message names the block and the cells.
    """
    own = place(block, folder)
    files = sources.closure(block.top, paths)
    text = script(block, files, own)
    key = yosys.digest(text, files)

    def make() -> dict[str, Any]:
        return asdict(_measure(block, text, own))

    figures, kept = yosys.kept(own / "result.json", key, make)
    return BlockFigures(**figures), kept


def place(block: SynthBlock, folder: Path = FOLDER) -> Path:
    """Return the folder of a block: log, figures, `mapped.il`, the netlist with its hierarchy."""
    return folder / re.sub(r"\W+", "_", block.name)


def _measure(block: SynthBlock, text: str, own: Path) -> BlockFigures:
    begin = time.monotonic()
    try:
        yosys.run(text, own)
        mapped = json.loads((own / "mapped.json").read_text(encoding="utf-8"))
        read = json.loads((own / "read.json").read_text(encoding="utf-8"))
        memories = json.loads((own / "memories.json").read_text(encoding="utf-8"))
        count = cells(mapped, block.top)
        strange = unmapped(count)
        if strange:
            raise SynthesisError(f"cells that cannot be mapped: {', '.join(strange)}")
    except SynthesisError as error:
        log = (own / "log.txt").relative_to(ROOT)
        raise SynthesisError(f"{block.name} ({block.top}): {error}\nlog: {log}") from None
    return BlockFigures(
        block=block.name,
        top=block.top,
        parameters=dict(block.parameters),
        lut=count["$lut"],
        ff=sum(number for cell, number in count.items() if _FLIP_FLOP.fullmatch(cell)),
        dsp=count[DSP],
        memory_bits=memory_bits(memories, instances(mapped["modules"], block.top)),
        seconds=round(time.monotonic() - begin, 1),
        modules=sorted(
            {name.lstrip("\\").split("$")[0] for name in read["modules"]} | {CLOCK_GATE} & {*count}
        ),
    )


PLANTED = {
    "latch": (
        "input logic a_i, b_i, output logic q_o",
        "always_latch if (a_i) q_o = b_i;",
        "is a latch",
    ),
    "incomplete": (
        "input logic a_i, b_i, output logic q_o",
        "always_comb if (a_i) q_o = b_i;",
        "found logic loop",
    ),
    "loop": (
        "input logic a_i, output logic q_o",
        "logic w; assign w = a_i ^ q_o; assign q_o = w & a_i;",
        "found logic loop",
    ),
    "drivers": (
        "input logic a_i, b_i, output logic q_o",
        "wire w; assign w = a_i; assign w = b_i; assign q_o = w;",
        "conflicting drivers",
    ),
    "wait": (
        "input logic a_i, output logic q_o",
        "always @* begin wait (a_i); q_o = a_i; end",
        "will not be synthesized",
    ),
}
"""Faults that must be refused: ports, body, and words of the refusal."""


COUNTED = (
    "input logic clk_i, input logic [1:0] write_i, input logic [3:0] row_i,\n"
    "input logic [15:0] data_i, output logic [15:0] read_o, product_o, output logic [7:0] old_o",
    "logic [1:0][7:0] mem_q[16]; logic [7:0] chain_q[9];\n"
    "always_ff @(posedge clk_i) begin\n"
    "  for (int b = 0; b < 2; b++) if (write_i[b]) mem_q[row_i][b] <= data_i[8*b+:8];\n"
    "  read_o <= mem_q[row_i];\n"
    "  chain_q[0] <= data_i[7:0];\n"
    "  for (int i = 1; i < 9; i++) chain_q[i] <= chain_q[i-1];\n"
    "end\n"
    "assign old_o = chain_q[8]; assign product_o = data_i[7:0] * data_i[15:8];",
)
"""Ports and body of a module whose figures are known: one memory that is written in parts, with its
output register, a chain of registers that looks like a memory, one product."""


def _plant(name: str, ports: str, body: str, folder: Path) -> BlockFigures:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.sv"
    path.write_text(f"module planted_{name} ({ports});\n{body}\nendmodule\n", encoding="utf-8")
    return synthesise(SynthBlock(name, f"planted_{name}"), [path], folder)[0]


def check_planted(folder: Path = FOLDER) -> None:
    """Plant each fault in a module of its own and see it refused; count a module that is known.

    Raises:
        SynthesisError: a fault was not refused, or not for its own reason; a count is off.
    """
    own = folder / "planted"
    counted = _plant("counted", *COUNTED, own)
    figures = (counted.ff, counted.dsp, counted.memory_bits)
    if figures != (9 * 8, 1, 16 * 16):
        raise SynthesisError(f"planted counted: FF, DSP, memory bits are {figures}")
    for name, (ports, body, words) in PLANTED.items():
        try:
            _plant(name, ports, body, own)
        except SynthesisError as error:
            if words not in str(error):
                raise SynthesisError(
                    f"planted {name}: refused for another reason:\n{error}"
                ) from None
        else:
            raise SynthesisError(f"planted {name}: not refused")


class Measured(Protocol):
    """Figures that took time."""

    @property
    def seconds(self) -> float:
        """Of it."""


Figures = TypeVar("Figures", bound=Measured)


def run(
    blocks: Sequence[SynthBlock],
    jobs: int,
    on_line: Callable[[str], None],
    measure: Callable[[SynthBlock, Sequence[Path]], tuple[Figures, bool]],
) -> tuple[list[Figures], list[str]]:
    """Measure `blocks`, `jobs` at a time; return figures in their order, and what was refused.

    Args:
        blocks: what to measure.
        jobs: how many at a time.
        on_line: is called with a line about each block as soon as it is through.
        measure: takes a block and all sources, as `synthesise` does.
    """
    paths = sources.rtl_sources()
    refused: list[str] = []
    done = 0

    def one(block: SynthBlock) -> Figures | None:
        nonlocal done
        try:
            figures, kept = measure(block, paths)
        except SynthesisError as error:
            refused.append(str(error))
            done += 1
            on_line(f"[{done}/{len(blocks)}] FAIL {error}")
            return None
        done += 1
        took = "unchanged" if kept else f"{figures.seconds:.0f} s"
        on_line(f"[{done}/{len(blocks)}] ok   {block.name} ({block.top}, {took})")
        return figures

    with ThreadPoolExecutor(jobs) as pool:
        results = list(pool.map(one, blocks))
    return [figures for figures in results if figures is not None], refused


def chosen(names: Sequence[str], blocks: Sequence[SynthBlock]) -> tuple[SynthBlock, ...]:
    """Return the blocks of these names, in their order; all of them without names.

    Raises:
        SynthesisError: there is no block of a name.
    """
    unknown = sorted(set(names) - {block.name for block in blocks})
    if unknown:
        allowed = ", ".join(repr(block.name) for block in blocks)
        raise SynthesisError(f"given {unknown[0]!r}, allowed {allowed}")
    return tuple(block for block in blocks if not names or block.name in names)


# -------------------------------------------------------------------------------------------------
# Reports
# -------------------------------------------------------------------------------------------------
KINDS = ("lut", "ff", "dsp")
"""Of cells."""
HEADS = ("LUT", "FF", "DSP", "memory bits", "seconds")


def _row(figures: Mapping[str, Any]) -> tuple[str, ...]:
    given = ", ".join(f"{name} {value}" for name, value in figures["parameters"].items())
    return (
        figures["block"],
        f"{figures['top']} {given}".strip(),
        *(f"{figures[name]:,}" for name in ("lut", "ff", "dsp", "memory_bits")),
        f"{figures['seconds']:.0f}",
    )


def save(results: Sequence[BlockFigures], path: Path = REPORT) -> None:
    """Write the figures as a JSON list."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps([asdict(figures) for figures in results], indent=2) + "\n")


def render(results: Sequence[Mapping[str, Any]]) -> str:
    """Return the table as text."""
    table = FitTable(title="What the blocks use")
    table.name("block")
    table.text("module and parameters")
    for head in HEADS:
        table.figure(head)
    for figures in results:
        table.add_row(*_row(figures))
    return as_text(table, 120)


def share_text(block: str, figures: Mapping[str, Mapping[str, int]]) -> str:
    """Return how much of the other block of `SHARES` the cells of one are, and what is allowed.

    Cells are LUTs, flip-flops and multipliers together.

    Args:
        block: its name.
        figures: of both, by name; `lut`, `ff` and `dsp` are read.
    """
    share = SHARES[block]
    own, other = (figures[name] for name in (block, share.of))
    kinds = ", ".join(f"{kind.upper()} {own[kind] / other[kind]:.1%}" for kind in KINDS)
    return (
        f"`{block}` has {_cells(own) / _cells(other):.1%} of the cells of `{share.of}` ({kinds}); "
        f"allowed are {share.most:.0%}."
    )


def _cells(figures: Mapping[str, int]) -> int:
    return sum(figures[kind] for kind in KINDS)


def too_large(figures: Mapping[str, Mapping[str, int]]) -> list[str]:
    """Return the blocks of `SHARES` that have more cells than they may; both must be there."""
    return [
        block
        for block, share in SHARES.items()
        if block in figures
        and share.of in figures
        and _cells(figures[block]) > share.most * _cells(figures[share.of])
    ]


def write_page(results: Sequence[Mapping[str, Any]], page: Path = PAGE) -> None:
    """Replace the rows of `results` in the table between the marks of `page`; others stay.

    The lines about shares are written anew from all rows. Rows are in the order of `BLOCKS`, behind
    them those that are not of `BLOCKS`, if given.

    Raises:
        SynthesisError: the page lacks a mark.
    """
    text = page.read_text(encoding="utf-8")
    before, begin, rest = text.partition(BEGIN)
    table, end, after = rest.partition(END)
    if not begin or not end:
        raise SynthesisError(f"{page.name} lacks {BEGIN} or {END}")
    lines = ["| block | module and parameters | " + " | ".join(HEADS[:-1]) + " |"]
    lines += ["|---|---|" + "---:|" * (len(HEADS) - 1)]
    blocks = {block.name for block in BLOCKS}
    rows = {name: row for name, row in _page_rows(table).items() if name in blocks}
    for figures in results:
        rows[figures["block"]] = "| " + " | ".join(_row(figures)[:-1]) + " |"
    order = [block.name for block in BLOCKS if block.name in rows]
    lines += [rows[name] for name in order + [name for name in rows if name not in blocks]]
    text = before + BEGIN + "\n" + "\n".join(lines) + "\n" + END + after
    figures = page_figures(text)
    text = SHARE.sub(lambda match: f"{match[1]}{share_text(match[2], figures)}\n", text)
    page.write_text(text, encoding="utf-8")


def _page_rows(text: str) -> dict[str, str]:
    """Return the rows of the table in a page by block."""
    return {name: row for row, name in re.findall(r"^(\| ([a-z0-9-]+) \| npu_.*)$", text, re.M)}


def page_figures(text: str) -> dict[str, dict[str, int]]:
    """Return LUT, FF and DSP of each row of the table in a page, by block."""
    figures = {}
    for name, row in _page_rows(text).items():
        cells = row.strip("|").split("|")[2 : 2 + len(KINDS)]
        numbers = (int(cell.replace(",", "")) for cell in cells)
        figures[name] = dict(zip(KINDS, numbers, strict=True))
    return figures
