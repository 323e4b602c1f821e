# SPDX-License-Identifier: Apache-2.0
"""One GPT-2 block at position 0, without a cache: fused, or one instruction per operation.

Both forms give the same bits. A block is a network (`npu.compiler.block_graph`) whose input and
output, (S, H) int16 row by row, lie in its arena behind BASE0.
"""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from npu.asm.program import Program
from npu.compiler.block_graph import INPUT, OUTPUT, block_graph
from npu.compiler.errors import CompileError
from npu.compiler.network import CompiledNetwork, Segment, compile_network
from npu.compiler.shape import Shape, check_limits, check_model, ctx_pitch, lane, qkv_pitch
from npu.compiler.tensor_map import TensorRef
from npu.image import StreamShare, pack
from spec.isa.generated import Opcode
from spec.isa.instruction import Instruction
from spec.isa.operands import DYNAMIC, WORD, Limits, Operand, Prefix, sram_operands
from weights.model import QuantizedModel

SHARES = {"resid1": "proj", "act": "up", "resid2": "down"}
"""Names of layers whose operation has the name of what it makes."""
MAKERS = (Opcode.GEMM, Opcode.LAYERNORM, Opcode.VEC, Opcode.GELU)
"""What writes the tensors of a block, an instruction for some rows."""


@dataclass(frozen=True)
class CompiledBlock:
    """A program with its stream and the map of its tensors.

    Attributes:
        program: ends with END.
        text: the program as text; it assembles to the same words.
        stream: the parameter stream, a multiple of 64 bytes.
        shares: the stream's pieces in order.
        tensors: where each tensor is written.
        sram_bytes: bytes of SRAM that the program uses, from address 0.
        arena: bytes of memory behind BASE0.
        input_offset, output_offset: of input and output there; they may share a place.
        input_bytes, output_bytes: their sizes.
        edge: tile edge of the chip that it is made for.

    """

    program: Program
    text: str
    stream: bytes
    shares: tuple[StreamShare, ...]
    tensors: tuple[TensorRef, ...]
    sram_bytes: int
    arena: int
    input_offset: int
    output_offset: int
    input_bytes: int
    output_bytes: int
    edge: int = 16

    def packed(self, info: Mapping[str, Any] | None = None) -> bytes:
        """Return program and stream as one packed file; `info` joins its JSON."""
        sections = {"program": self.program.image()}
        return pack(self.stream, self.shares, edge=self.edge, sections=sections, info=info)


def compile_block(
    model: QuantizedModel,
    layer: int,
    rows: int,
    *,
    fused: bool = True,
    limits: Limits | None = None,
) -> CompiledBlock:
    """Compile block `layer` of a model for `rows` positions from position 0.

    Raises CompileError if an argument makes no sense, or if the block does not fit the chip; it
    says what was given and what is allowed or how much is needed.
    """
    chip = limits or Limits()
    shape = _check_request(model, layer, rows, chip)
    network = compile_network(block_graph(model, layer, rows, fused=fused), chip)
    segment = _only_segment(network, shape, rows)
    size = 2 * shape.hidden
    return CompiledBlock(
        segment.program,
        segment.text,
        network.stream,
        tuple(_renamed(share, layer, fused) for share in network.shares),
        tuple(_tensors(segment, shape, layer, chip)),
        segment.sram_bytes,
        network.arena,
        network.offsets[INPUT],
        network.offsets[OUTPUT],
        rows * size,
        rows * size,
        chip.edge,
    )


def _only_segment(network: CompiledNetwork, shape: Shape, rows: int) -> Segment:
    if len(network.steps) == 1:
        return network.segments[0]
    raise CompileError(
        f"a block of {rows} rows, hidden {shape.hidden}, ffn {shape.ffn}: its heads do not fit "
        f"{network.limits.sram_bytes} bytes of SRAM"
    )


def _renamed(share: StreamShare, layer: int, fused: bool) -> StreamShare:
    """Return a share under the name of its layer in the model."""
    name = share.name.rpartition(".")[0].removesuffix("_rows")
    name = "gelu" if name == "act" and not fused else SHARES.get(name, name)
    return replace(share, name=f"h.{layer}.{name}")


def _tensors(segment: Segment, shape: Shape, layer: int, chip: Limits) -> Iterator[TensorRef]:
    """Yield where the tensors of a block appear, in the order of the program."""
    found = [replace(_without_padding(ref, shape), layer=layer) for ref in segment.tensors]
    for name, pieces in _pieces(segment, chip).items():
        row = 0
        for instr, piece in pieces:
            found += _refs(name, layer, instr, piece, row, shape)
            row += piece.rows
    yield from sorted(found, key=lambda ref: ref.instr)


def _without_padding(ref: TensorRef, shape: Shape) -> TensorRef:
    """Return the piece of a head's context without the lanes that fill its words."""
    if ref.name != "ctx":
        return ref
    head = ref.column // lane(shape)
    size = ref.shape[0], shape.head_dim
    return replace(ref, shape=size, column=head * shape.head_dim)


def _pieces(segment: Segment, chip: Limits) -> dict[str, list[tuple[int, Operand]]]:
    """Return what instructions write for each operation but attention, in the order of rows."""
    starts = [*segment.first_word.items(), ("", len(segment.program.instructions))]
    found: dict[str, list[tuple[int, Operand]]] = {}
    for (name, first), (_, end) in itertools.pairwise(starts):
        if name != "ctx":
            found[name] = list(_written(segment.program.instructions, first, end, chip))
    return found


def _written(
    words: list[Instruction], first: int, end: int, chip: Limits
) -> Iterator[tuple[int, Operand]]:
    for index in range(first, end):
        if words[index].opcode not in MAKERS:
            continue
        before = words[index - 1]
        prefix = Prefix.of(before if before.opcode == Opcode.PFX else None)
        for operand in sram_operands(words[index], prefix, chip.edge):
            if operand.writes:
                yield index, operand


def _refs(
    name: str, layer: int, instr: int, piece: Operand, row: int, shape: Shape
) -> Iterator[TensorRef]:
    """Yield the tensors of which an instruction writes some rows."""
    if name == "qkv" or name.endswith("_rows"):
        names = "qkv" if name == "qkv" else name[0]
        for part, each in enumerate(names):
            for head in range(shape.heads):
                yield TensorRef(
                    each,
                    layer,
                    instr,
                    piece.address + part * ctx_pitch(shape) + head * lane(shape),
                    (piece.rows, shape.head_dim),
                    "int8",
                    piece.pitch,
                    row=row,
                    column=head * shape.head_dim,
                )
        return
    wide = name in ("resid1", "resid2", "proj", "down")
    size = piece.rows, piece.row_bytes // 2 if wide else piece.row_bytes
    element = "int16" if wide else "int8"
    yield TensorRef(name, layer, instr, piece.address, size, element, piece.pitch, row=row)


def _check_request(model: QuantizedModel, layer: int, rows: int, chip: Limits) -> Shape:
    """Return the shape; CompileError unless the arguments make sense and the chip can exist."""
    check_model(model)
    decoder = model.shape
    check_limits(chip)
    for name, value in (("layer", layer), ("rows", rows)):
        if isinstance(value, bool) or not isinstance(value, int):
            raise CompileError(f"{name}: given {value!r}, allowed int")
    if not 0 <= layer < model.shape.layers:
        raise CompileError(f"layer {layer}: allowed are 0 to {model.shape.layers - 1}")
    for name, plain in (
        ("norm", decoder.norm == "layernorm"),
        ("rope", not decoder.rope),
        ("window", not decoder.window and not decoder.windows),
        ("gate", not decoder.gated),
        ("kv_heads", decoder.group == 1),
        ("parallel", not decoder.parallel),
        ("head_norms", not decoder.head_norms),
        ("part_norms", decoder.pre_norms and not decoder.part_norms),
    ):
        if not plain:
            raise CompileError(f"{name}: a {decoder.family} has one; a block alone is GPT-2's only")
    _check_sizes(decoder, rows, chip)
    return decoder


def _check_sizes(shape: Shape, rows: int, chip: Limits) -> None:
    most = min(chip.acc_rows, shape.context)
    if not 1 <= rows <= most:
        raise CompileError(
            f"{rows} rows: allowed are 1 to {most} (accumulators {chip.acc_rows} rows, "
            f"context {shape.context})"
        )
    if shape.hidden % WORD:
        raise CompileError(f"hidden {shape.hidden}: allowed are multiples of {WORD}")
    if shape.hidden > chip.norm_max:
        raise CompileError(f"hidden {shape.hidden}: the norm takes at most {chip.norm_max}")
    for name, value in (("3 * hidden", qkv_pitch(shape)), ("ffn", shape.ffn)):
        if value >= DYNAMIC:
            raise CompileError(f"{name} = {value}: a GEMM has at most {DYNAMIC - 1} columns")
