# SPDX-License-Identifier: Apache-2.0
"""A whole prompt, chunk by chunk; a chunk of rows goes through all layers before the next one."""

from npu.compiler.attention import Keys
from npu.compiler.builder import ProgramBuilder
from npu.compiler.decoder import Decoder
from npu.compiler.errors import CompileError
from npu.compiler.layout import Layout, Pass, find_layout, layouts, make_pass, overlaps
from npu.compiler.shape import Shape
from npu.compiler.stream import Share
from npu.isa.generated import Engine
from npu.isa.operands import Limits

STEP = 16
"""Chunks are multiples of this many rows, if as many fit."""
SMALL = (8, 4)
"""Chunks for decoders whose rows are so wide that fewer fit; ids are read from whole words."""
ENOUGH = 32
"""From so many rows on a chunk keeps the array busier than the bus: wider ones must gain more."""


def emit_prefill(
    builder: ProgramBuilder,
    shape: Shape,
    shares: dict[str, Share],
    room: int,
    rows: int,
    start: int,
    *,
    most: int | None,
    logits: bool,
) -> int:
    """Emit the chunks of a prompt at positions start..start+rows-1; return the bytes of SRAM used.

    Args:
        builder: of the program.
        shape: the decoder.
        shares: of its image, by name.
        room: bytes of SRAM.
        rows: of the prompt; the ids lie at BASE0, four bytes each.
        start: position of the first one.
        most: largest number of rows of a chunk, None for what fits.
        logits: the last row's logits go to memory.

    Raises:
        CompileError: no chunk fits in `room` bytes.

    """
    used = done = 0
    while done < rows:
        work, layout = choose_chunk(
            shape, builder.limits, room, start + done, rows - done, most, logits=logits
        )
        used = max(used, layout.sram_bytes)
        builder.comment(f"rows {done} to {done + work.rows - 1}")
        builder.set("POS", start + done)
        first = shape.first_key(start + done, builder.limits.edge)
        keys = Keys(work.keys, start + done - first, dynamic=False, first=first)
        decoder = Decoder(builder, shape, shares, work, layout, keys, first_row=done)
        decoder.embed()
        decoder.layers()
        done += work.rows
        if done < rows:
            builder.fence(Engine.ST)
            builder.rewind()
    decoder.head()
    return used


def choose_chunk(
    shape: Shape,
    limits: Limits,
    room: int,
    pos: int,
    left: int,
    most: int | None,
    *,
    logits: bool,
) -> tuple[Pass, Layout]:
    """Return the next chunk, at position `pos` with `left` rows to go. Raises CompileError."""
    first = shape.first_key(pos, limits.edge)
    limit = min(limits.acc_rows, most or limits.acc_rows)
    sizes = [*range(limit // STEP * STEP, 0, -STEP), *SMALL]
    allowed = [size for size in sizes if size <= limit]
    if not allowed:
        raise CompileError(
            f"chunks of at most {limit} rows: allowed are {SMALL[-1]} and more (accumulators "
            f"{limits.acc_rows} rows)"
        )
    for size in dict.fromkeys(min(size, left) for size in allowed):
        work = make_pass(shape, size, pos + size - first, listed=True, logits=logits)
        for layout in layouts(shape, work, limits):
            good = size <= ENOUGH or overlaps(layout.choice)
            if good and layout.sram_bytes <= room:
                return work, layout
    what = f"a chunk of {work.rows} rows at position {pos}"
    return work, find_layout(shape, work, limits, room, what)
