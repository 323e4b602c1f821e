# SPDX-License-Identifier: Apache-2.0
"""A whole prompt, chunk by chunk; a chunk of rows goes through all layers before the next one."""

from npu.compiler.attention import Keys
from npu.compiler.builder import ProgramBuilder
from npu.compiler.decoder import Decoder
from npu.compiler.layout import Layout, Pass, find_layout, layouts, make_passes, overlaps
from npu.compiler.shape import Shape
from npu.compiler.stream import Share
from npu.isa.generated import Engine
from npu.isa.operands import Limits

STEP = 16
"""Chunks are multiples of this many rows, if as many fit."""
SMALL = (8, 4, 2, 1)
"""Chunks for decoders whose rows are so wide that fewer fit."""
IDS = 4
"""Ids in a word of memory, where a list begins."""
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
            shape, builder.limits, room, start + done, rows - done, most, logits, done % IDS
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
    logits: bool,
    skip: int = 0,
) -> tuple[Pass, Layout]:
    """Return the next chunk, at position `pos` with `left` rows to go. Raises CompileError.

    `skip` is the number of ids before its first one in the same word.
    """
    first = shape.first_key(pos, limits.edge)
    limit = min(limits.acc_rows, most or limits.acc_rows)
    sizes = [*range(limit // STEP * STEP, 0, -STEP), *(size for size in SMALL if size <= limit)]
    for size in dict.fromkeys(min(size, left) for size in sizes):
        keys = pos + size - first
        works = make_passes(shape, size, keys, listed=True, logits=logits, skip=skip)
        for work, layout in layouts(shape, works, limits):
            good = size <= ENOUGH or overlaps(layout.choice)
            if good and layout.sram_bytes <= room:
                return work, layout
    what = f"a chunk of {size} rows at position {pos}"
    return find_layout(shape, works, limits, room, what)
