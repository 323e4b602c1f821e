# SPDX-License-Identifier: Apache-2.0
"""One decode step for every position: the token TOKEN at position POS, again while LOOP turns."""

from npu.compiler.attention import Keys
from npu.compiler.builder import ProgramBuilder
from npu.compiler.decoder import Decoder
from npu.compiler.layout import find_layout, make_passes
from npu.compiler.shape import Shape
from npu.compiler.stream import Share


def emit_decode(
    builder: ProgramBuilder, shape: Shape, shares: dict[str, Share], room: int, *, logits: bool
) -> int:
    """Emit a step; return the bytes of SRAM that it uses. It can be the target of a LOOP.

    Raises CompileError if it does not fit in `room` bytes.
    """
    most = shape.keys(builder.limits.edge)
    works = make_passes(shape, 1, most, logits=logits)
    work, layout = find_layout(shape, works, builder.limits, room, "a decode step")
    decoder = Decoder(builder, shape, shares, work, layout, Keys(most, most, dynamic=True))
    decoder.embed()
    decoder.layers()
    decoder.head()
    return layout.sram_bytes
