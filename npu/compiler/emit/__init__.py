# SPDX-License-Identifier: Apache-2.0
"""One emitter for every operation; each takes matrices in SRAM and knows no model.

A plan says where matrices lie and in which order the operations come; the emitters write the
instructions, and nothing else does.
"""

from npu.compiler.emit.attention_steps import Scale, emit_attention
from npu.compiler.emit.cache_transfers import (
    CacheHeads,
    emit_kv_append,
    emit_kv_read_earlier,
    emit_kv_read_piece,
)
from npu.compiler.emit.linear_layers import emit_best_columns, emit_linear
from npu.compiler.emit.matrix_products import Epilogue, emit_product
from npu.compiler.emit.memory_transfers import (
    MemoryRows,
    emit_embed,
    emit_load,
    emit_load_rows,
    emit_store,
    emit_store_rows,
)
from npu.compiler.emit.row_operations import (
    emit_add,
    emit_elementwise,
    emit_norm,
    emit_rope,
    emit_rope_rows,
    emit_softmax,
    emit_table,
)
from npu.compiler.emit.sram_matrix import ELEMENTS, Element, SramMatrix, note, note_heads

__all__ = [
    "ELEMENTS",
    "CacheHeads",
    "Element",
    "Epilogue",
    "MemoryRows",
    "Scale",
    "SramMatrix",
    "emit_add",
    "emit_attention",
    "emit_best_columns",
    "emit_elementwise",
    "emit_embed",
    "emit_kv_append",
    "emit_kv_read_earlier",
    "emit_kv_read_piece",
    "emit_linear",
    "emit_load",
    "emit_load_rows",
    "emit_norm",
    "emit_product",
    "emit_rope",
    "emit_rope_rows",
    "emit_softmax",
    "emit_store",
    "emit_store_rows",
    "emit_table",
    "note",
    "note_heads",
]
