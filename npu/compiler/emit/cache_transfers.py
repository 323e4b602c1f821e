# SPDX-License-Identifier: Apache-2.0
"""Rows of K and V into the cache, and tiles of them out of it."""

from dataclasses import dataclass

from npu.compiler.attention_plan import Keys
from npu.compiler.hazards import Footprint, block_words
from npu.compiler.program_builder import Operand, ProgramBuilder
from spec.isa.operands import up


@dataclass(frozen=True, slots=True)
class CacheHeads:
    """Heads of K or V in the cache.

    Attributes:
        values: of V, and not of K.
        layer: number of the layer.
        first, count: K/V heads from `first` on.
        lanes: of a head.

    """

    values: bool
    layer: int
    first: int
    count: int
    lanes: int

    @property
    def switches(self) -> list[str]:
        """What an instruction says of K and V."""
        return ["v"] if self.values else []

    @property
    def names(self) -> str:
        """The heads as an instruction names them."""
        return f"{self.first}..{self.first + self.count - 1}"


def _landed(builder: ProgramBuilder) -> int:
    """Return the word that stands for the cache: appends write it, reads of their rows read it."""
    return block_words(builder.limits.sram_bytes, 16)


def emit_kv_read_earlier(
    builder: ProgramBuilder, heads: CacheHeads, keys: Keys, slot: int, slot_bytes: int
) -> int:
    """Emit the read of the positions before a pass; return its word index.

    Args:
        builder: of the program.
        heads: whose.
        keys: what the pass looks at.
        slot: where the tiles of the first head go.
        slot_bytes: from there to the next one's.

    """
    edge = builder.limits.edge
    natural = up(keys.earlier, edge) * up(heads.lanes, edge)
    return builder.emit(
        "KV_READ",
        *heads.switches,
        dst=slot,
        layer=heads.layer,
        N=heads.lanes,
        K=f"len-1<={keys.earlier}" if keys.dynamic else keys.earlier,
        heads=heads.names,
        cp=slot_bytes if heads.count > 1 and slot_bytes != natural else None,
    )


def emit_kv_read_piece(
    builder: ProgramBuilder, head: CacheHeads, base: int, count: Operand, slot: int
) -> int:
    """Emit the read of `count` positions from position `base` on, appended ones included.

    It waits for the rows that were appended before. Returns its word index.
    """
    return builder.emit(
        "KV_READ",
        *head.switches,
        dst=slot,
        layer=head.layer,
        N=head.lanes,
        K=count,
        base=base or None,
        heads=head.names,
        also=Footprint(reads=_landed(builder)),
    )


def emit_kv_append(
    builder: ProgramBuilder,
    heads: CacheHeads,
    src: int,
    rows: int,
    pitch: int,
    slot: int | None,
    slot_bytes: int,
) -> int:
    """Emit the append of rows of K or V to the cache; return its word index.

    Args:
        builder: of the program.
        heads: whose.
        src: address of the first head in the first row.
        rows: how many.
        pitch: bytes from one to the next.
        slot: where they are staged too, None for nowhere.
        slot_bytes: from head to head of the staged tiles.

    """
    also = Footprint(writes=_landed(builder))
    if slot is not None:
        also |= Footprint(tiles=block_words(slot, heads.count * slot_bytes))
    return builder.emit(
        "KV_APPEND",
        *heads.switches,
        *([] if slot is None else ["stage"]),
        dst=slot,
        src0=src,
        hp=None if slot is None else slot_bytes,
        layer=heads.layer,
        N=heads.lanes,
        K=rows,
        heads=heads.names,
        ap=pitch if rows > 1 and pitch != up(heads.lanes) * heads.count else None,
        also=also,
    )
