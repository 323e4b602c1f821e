# SPDX-License-Identifier: Apache-2.0
"""Compiled models as files: what `npu compile` writes, and what there is in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.markup import escape

from npu.commands import files
from npu.commands.load_model import cache_text, shape_text, text_room
from npu.commands.network_folder import write_plan
from npu.compiler import CompiledModel, CompiledProgram, Piece, pieces
from npu.compiler.ideal import BYTES_PER_CYCLE
from npu.compiler.stream_account import traffic, weight_bits, weight_counts
from npu.planner.decoder_plan import plan_of_decoder
from npu.tables import FitTable, pairs
from weights.loss import Loss

PROGRAM_SUFFIX = ".npu"
PLAN_SUFFIX = ".plan"
KIB = 1024
KINDS = {"proj": "o"}
"""Names of tensors that are others in a recipe of weight formats."""


@dataclass(frozen=True)
class Written:
    """A compiled model on disk.

    Attributes:
        model: what was written.
        path, size: the packed file and its bytes.
        programs: name, program and file of each program text.
        plan: the folder of a plan, None for none.
    """

    model: CompiledModel
    path: Path
    size: int
    programs: tuple[tuple[str, CompiledProgram, Path], ...]
    plan: Path | None = None


def write(model: CompiledModel, path: Path, rows: int | None) -> Written:
    """Write the packed file and, beside it, the texts of its programs and a plan.

    Args:
        model: what to write.
        path: of the packed file.
        rows: of the prompt of a program that generates, and of the plan; None for none.

    Raises:
        FileError: a file cannot be written.
        CompileError: a prompt of so many rows fits nowhere.
    """
    programs = [("decode", model.decode())]
    folder = None
    if rows is not None:
        programs.append((f"generate-{rows}", model.generate(rows)))
        folder = path.with_suffix(PLAN_SUFFIX)
        write_plan(plan_of_decoder(model, rows, logits=True, name=path.stem), folder)
    contents = model.pieces()
    files.write(path, *contents)
    written = []
    for name, program in programs:
        place = path.with_name(f"{path.stem}.{name}{PROGRAM_SUFFIX}")
        files.write(place, program.text)
        written.append((name, program, place))
    return Written(model, path, sum(map(len, contents)), tuple(written), folder)


def part_of(share: str) -> str:
    """Return the part of a model that a share belongs to: "layer 3", "norm" or "head"."""
    names = share.split(".")
    return f"layer {names[1]}" if names[0] == "h" else names[0]


def by_part(parts: Sequence[Piece]) -> dict[str, tuple[int, int]]:
    """Return (bytes, necessary bytes) of each part of a model, in order."""
    sums: dict[str, tuple[int, int]] = {}
    for piece in parts:
        size, necessary = sums.get(part_of(piece.share), (0, 0))
        sums[part_of(piece.share)] = (size + piece.bytes, necessary + piece.necessary)
    return sums


def _ratio(size: int, necessary: int) -> str:
    return f"{size:,} bytes, {size / necessary:.4f} times the {necessary:,} necessary ones"


def _rows(model: CompiledModel) -> Iterator[tuple[str, str]]:
    shape, limits = model.shape, model.limits
    yield "model", shape_text(shape)
    yield "", text_room(shape)
    chip = f"array {limits.array_dim} x {limits.array_dim}, SRAM {limits.sram_bytes // KIB} KiB"
    yield "chip", f"{chip}, tile edge {limits.edge}"
    parts = pieces(model.decode())
    yield (
        "stream",
        _ratio(sum(piece.bytes for piece in parts), sum(piece.necessary for piece in parts)),
    )
    for name, data in model.sections.items():
        yield f"table {name}", f"{len(data):,} bytes"
    yield "K/V cache", cache_text(model.cache)


def model_table(model: CompiledModel) -> FitTable:
    """Return what a compiled model needs."""
    result = pairs()
    for row in _rows(model):
        result.add_row(*row)
    return result


def program_row(name: str, program: CompiledProgram, room: int) -> tuple[str, str]:
    """Return the row of a program in a table."""
    words = f"{len(program.program.instructions):,} words"
    return name, f"{words}, SRAM {program.sram_bytes:,} of {room:,} bytes"


def written_table(written: Written, loss: Loss) -> FitTable:
    """Return what `npu compile` has made, and what the integers lose over float32."""
    result = model_table(written.model)
    result.add_row("integers", str(loss))
    for name, program, _ in written.programs:
        result.add_row(*program_row(name, program, written.model.room))
    result.add_section()
    result.add_row("written", escape(f"{written.path}, {written.size:,} bytes"))
    for _, _, path in written.programs:
        result.add_row("", escape(str(path)))
    if written.plan is not None:
        result.add_row("", escape(str(written.plan)))
    return result


def bus_cycles(model: CompiledModel) -> int:
    """Return the cycles of the bus that a token at position 0 takes, 16 bytes in each."""
    program = model.decode()
    padding = sum(piece.bytes - piece.necessary for piece in pieces(program))
    needed = traffic(model, program)
    return -(-max(needed.read + padding, needed.write) // BYTES_PER_CYCLE)


def weights_table(model: CompiledModel) -> FitTable:
    """Return format and bits of the weights by kind of tensor, and what a token costs."""
    program = model.decode()
    found: dict[str, dict[str, int]] = {}
    shares = {share.name: share for share in program.shares}
    cells = weight_counts(program)
    for piece in pieces(program):
        if piece.what == "weights":
            kind, share = piece.share.rpartition(".")[2].partition("[")[0], shares[piece.share]
            name = f"{KINDS.get(kind, kind)} {share.format or 'int8'}{share.group}"
            sums = found.setdefault(name, {"bytes": 0, "weights": 0})
            sums["bytes"] += piece.bytes
            sums["weights"] += cells[piece.share]
    result = FitTable(title="Weights")
    for head in ("tensor", "format"):
        result.text(head)
    for head in ("weights", "bytes", "bits a weight"):
        result.figure(head)
    for name, sums in found.items():
        bits = 8 * sums["bytes"] / sums["weights"]
        result.add_row(*name.split(), f"{sums['weights']:,}", f"{sums['bytes']:,}", f"{bits:.2f}")
    every = {key: sum(sums[key] for sums in found.values()) for key in ("weights", "bytes")}
    result.add_section()
    sizes = f"{every['weights']:,}", f"{every['bytes']:,}", f"{weight_bits(program):.2f}"
    result.add_row("all", "", *sizes)
    result.caption = f"{bus_cycles(model):,} cycles of the bus a token, at position 0"
    return result


def parts_table(model: CompiledModel) -> FitTable:
    """Return the stream's bytes by part of the model."""
    result = FitTable(title="Stream")
    result.name("part")
    for head in ("bytes", "necessary", "ratio"):
        result.figure(head)
    for name, (size, necessary) in by_part(pieces(model.decode())).items():
        result.add_row(escape(name), f"{size:,}", f"{necessary:,}", f"{size / necessary:.4f}")
    return result
