# SPDX-License-Identifier: Apache-2.0
"""`npu inspect`: says what a checkpoint, a packed file or a program is; the content decides."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.markup import escape

from npu.asm import assemble, disassemble
from npu.commands import compiled_files, files, program_files
from npu.commands.files import FileError
from npu.commands.load_model import (
    cache_text,
    is_encoder_model,
    network_of,
    opened,
    planned,
    window_text,
)
from npu.commands.progress import step
from npu.compiler import CompiledModel, CompileError, Pack, compile_model, unpack
from npu.compiler.errors import MemoryFullError
from npu.image import MAGIC
from npu.planner.decoder_file import is_decoder
from npu.runtime.plan_files import holds_plan
from npu.tables import FitTable, pairs
from spec.isa.instruction import Instruction
from spec.isa.operands import Limits
from weights import encoder_importer, importer
from weights.calibrate import SCALES_FILE, cache_path
from weights.checkpoint import Checkpoint
from weights.encoders import ENCODERS
from weights.formats.recipe import WeightRecipe
from weights.quantize import quantize_loaded
from weights.signal_encoder import SignalShape
from weights.stored.gguf_header import is_gguf

_LAYER = re.compile(r"h\.(\d+)\.(.+)")


def show(
    what: str,
    limits: Limits,
    weights: WeightRecipe,
    listing: bool,
    console: Console,
    context: int | None = None,
) -> None:
    """Print what a file, folder or hub id is.

    Args:
        what: its name.
        limits: the chip whose rules are applied.
        weights: formats that a checkpoint's weights are to have.
        listing: also print the instructions of a program.
        console: where to.
        context: positions of a checkpoint, None for all that it has.

    Raises:
        FileError, PackError, AsmError, CheckpointError, ScalesError: it is none of these, or a
            damaged one.
        MemoryFullError: a checkpoint that no memory of the chip holds.
    """
    path = Path(what)
    if holds_plan(path):
        raise FileError(f"{what}: given the folder of a plan, allowed is npu explain {what}")
    if not path.is_file() or is_decoder(path) or is_gguf(path):
        _show_checkpoint(what, limits, weights, console, context)
        return
    if context is not None:
        raise FileError("--context: given with a file, allowed with a checkpoint")
    data = files.read_bytes(path)
    if data.startswith(MAGIC):
        _show_packed(unpack(data, filename=what), data, what, console)
        return
    text = files.text_of(data)
    words = program_files.words_of(data)
    if text is not None:
        words = assemble(text, filename=what, limits=limits).instructions
    if words is None:
        raise FileError(
            f"{what}: given a file of {len(data):,} bytes, allowed are a packed file, a program "
            "(text, or words of 16 bytes with known opcodes), the folder of a checkpoint, a GGUF "
            "file, a hub id"
        )
    _show_program(words, what, limits, listing, console)


def _say(console: Console, text: str) -> None:
    """Print text as it is, with the terminal's own line breaks."""
    console.print(text, highlight=False, markup=False, soft_wrap=True)


def _show_program(
    words: list[Instruction], name: str, limits: Limits, listing: bool, console: Console
) -> None:
    _say(console, f"{name}: a program")
    console.print(program_files.table(program_files.contents(words, limits)))
    if listing:
        text = disassemble(words, limits=limits, indices=True)
        _say(console, text.rstrip("\n"))


def _show_packed(pack: Pack, data: bytes, name: str, console: Console) -> None:
    if "shape" not in pack.info:
        _say(console, f"{name}: a packed file without a model, {len(data):,} bytes")
        console.print(_sections(pack))
        return
    model = CompiledModel.load(data, filename=name)
    _say(console, f"{name}: a compiled model, {len(data):,} bytes")
    table = compiled_files.model_table(model)
    table.add_row(*compiled_files.program_row("decode", model.decode(), model.room))
    console.print(table)
    console.print(compiled_files.parts_table(model))
    console.print(compiled_files.weights_table(model))


def _sections(pack: Pack) -> FitTable:
    table = FitTable()
    table.name("part")
    table.figure("bytes")
    for share in pack.shares:
        table.add_row(escape(f"share {share.name}"), f"{share.bytes:,}")
    for name, section in pack.sections.items():
        table.add_row(escape(f"section {name}"), f"{len(section):,}")
    return table


def _show_checkpoint(
    name: str,
    limits: Limits,
    weights: WeightRecipe,
    console: Console,
    context: int | None,
) -> None:
    if is_encoder_model(name):
        _show_encoder(name, console, context)
        return
    with step(f"reading {name}"):
        shape, read = opened(name, context)
        try:
            cache = planned(shape, limits, "auto", weights).cache
            fits = f"fits the chip; K/V cache {cache_text(cache)}"
        except MemoryFullError:
            raise  # nobody waits for tensors that have no place
        except CompileError as error:
            fits = f"does not fit the chip: {error}"
        checkpoint = read()
        others = {} if is_decoder(Path(name)) else importer.left_out(name)
    _say(console, f"{name}: a checkpoint")
    table = pairs()
    for row in _dimensions(checkpoint):
        table.add_row(*row)
    _add_left_out(table, others)
    console.print(table)
    console.print(_tensors(checkpoint))
    _say(console, fits)
    folder = checkpoint.folder
    beside = folder is not None and (folder / SCALES_FILE).is_file()
    if not beside and not cache_path(checkpoint).is_file():
        _say(console, "activation scales: not measured yet; npu compile measures and keeps them")
        return
    with step("quantising"):
        model = quantize_loaded(checkpoint, weights)
    console.print(_scales(model.scales))
    with step("compiling the model for the chip"):
        compiled = compile_model(model, limits)
    console.print(compiled_files.weights_table(compiled))


def _show_encoder(name: str, console: Console, context: int | None) -> None:
    with step(f"reading {name}"):
        checkpoint, others = network_of(name, context), encoder_importer.left_out(name)
    architecture = ENCODERS[checkpoint.shape.family]
    _say(console, f"{name}: a checkpoint")
    table = pairs()
    for row in _dimensions(checkpoint):
        table.add_row(*row)
    _add_left_out(table, others)
    console.print(table)
    console.print(_tensors(checkpoint))
    _say(console, architecture.uses)


def _add_left_out(table: FitTable, others: dict[str, int]) -> None:
    """Name the parts of a folder that are not used, and how many tensors each has."""
    if others:
        texts = (f"{escape(part)} ({count})" for part, count in others.items())
        table.add_row("left out", f"tensors of {', '.join(texts)}")


def _dimensions(checkpoint: Checkpoint) -> Iterator[tuple[str, str]]:
    shape = checkpoint.shape
    yield "architecture", f"{shape.family}, {shape.norm}, {shape.activation}"
    yield "layers", f"{shape.layers}"
    yield "hidden", f"{shape.hidden}"
    yield "heads", f"{shape.heads} of {shape.head_dim}, {shape.kv_heads} of K and V"
    yield "feed-forward", f"{shape.ffn}{', gated' if shape.gated else ''}"
    if isinstance(shape, SignalShape):
        patches = f", patches of {shape.patch} x {shape.patch}" if shape.patch else ""
        yield "input", " x ".join(map(str, shape.signal)) + patches
    else:
        tied = shape.tied and checkpoint.shape.family not in ENCODERS
        yield "vocabulary", f"{shape.vocab:,}{', head tied to it' if tied else ''}"
    seen = window_text(shape)
    yield "context", f"{shape.context:,}{f', each sees {seen}' if seen else ''}"
    tables = range(max(len(shape.rotations), 1)) if shape.rope else ()
    rotations = "; ".join(shape.rotation(number).text(shape.head_dim) for number in tables)
    yield "positions", f"rotary, {rotations}" if shape.rope else "learned"
    yield "parameters", f"{checkpoint.parameters:,}"


def _merged(name: str) -> str:
    """Return the name of a tensor with its layer left open."""
    match = _LAYER.fullmatch(name)
    return f"h.*.{match[2]}" if match else name


def _tensors(checkpoint: Checkpoint) -> FitTable:
    groups: dict[str, list[float]] = {}
    sizes: dict[str, tuple[int, ...]] = {}
    for name, tensor in checkpoint.tensors.items():  # once: each is read now
        groups.setdefault(_merged(name), []).append(float(np.abs(tensor).max()))
        sizes[_merged(name)] = tensor.shape
    table = FitTable(title="Tensors")
    table.name("name")
    for head in ("count", "shape", "parameters", "largest"):
        table.figure(head)
    for name, largest in groups.items():
        size, total = sizes[name], len(largest) * math.prod(sizes[name])
        shown = " x ".join(map(str, size))
        table.add_row(name, f"{len(largest)}", shown, f"{total:,}", f"{max(largest):.3g}")
    return table


def _scales(scales: dict[str, float]) -> FitTable:
    groups: dict[str, list[float]] = {}
    for name, scale in scales.items():
        groups.setdefault(_merged(name), []).append(scale)
    table = FitTable(title="Real value of one unit")
    table.name("tensor")
    for head in ("least", "largest"):
        table.figure(head)
    for name, values in groups.items():
        table.add_row(name, f"{min(values):.3g}", f"{max(values):.3g}")
    return table
