# SPDX-License-Identifier: Apache-2.0
"""The parameter image of a whole model, and the tables that are not streamed.

One image serves all programs: per layer norm1, qkv, proj, norm2, [gate,] up and down, then the
final norm and the head.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from npu.compiler.layers import pad_inputs, pad_outputs
from npu.compiler.stream import Share, Stream, gemm_share, norm_share
from npu.isa.generated import Opcode
from npu.isa.operands import WORD, up
from weights.model import Block, Norm, QuantizedModel


@dataclass(frozen=True)
class Image:
    """A stream with its shares by name: "h.0.norm1", ..., "norm", "head"."""

    stream: bytes
    shares: tuple[Share, ...]


def build_image(model: QuantizedModel, edge: int) -> Image:
    """Return the image of a model for a tile edge."""
    stream = Stream()
    norm = Opcode.RMSNORM if model.norm == "rmsnorm" else Opcode.LAYERNORM
    for index, block in enumerate(model.blocks):
        _append_block(stream, f"h.{index}", block, model.head_dim, norm, edge)
    _append_norm(stream, "norm", model.final_norm, norm)
    stream.append("head", Opcode.GEMM, gemm_share(model.head, edge))
    return Image(stream.image(), tuple(stream.shares))


def _append_norm(stream: Stream, name: str, norm: Norm, opcode: Opcode) -> None:
    stream.append(name, opcode, norm_share(norm))


def _append_block(
    stream: Stream, prefix: str, block: Block, head_dim: int, norm: Opcode, edge: int
) -> None:
    plain = None if block.gate is not None else block.table
    linears = {
        "qkv": (pad_outputs(block.qkv, head_dim), None),
        "proj": (pad_inputs(block.proj, head_dim), None),
        "up": (block.up, plain),
        "down": (block.down, None),
    }
    if block.gate is not None:
        linears["gate"] = (block.gate, block.table)
    _append_norm(stream, f"{prefix}.norm1", block.norm1, norm)
    for name in ("qkv", "proj", "norm2", "gate", "up", "down"):
        if name == "norm2":
            _append_norm(stream, f"{prefix}.norm2", block.norm2, norm)
        elif name in linears:
            layer, table = linears[name]
            stream.append(f"{prefix}.{name}", Opcode.GEMM, gemm_share(layer, edge, table))


def _rows(table: npt.NDArray[np.int16]) -> bytes:
    """Return the rows of a (rows, elements) table, each padded to whole words."""
    raw = np.ascontiguousarray(table.astype("<i2")).view(np.uint8).reshape(table.shape[0], -1)
    return np.pad(raw, ((0, 0), (0, up(raw.shape[1], WORD) - raw.shape[1]))).tobytes()


def build_sections(model: QuantizedModel) -> dict[str, bytes]:
    """Return the tables of a model by name, rows padded to whole words.

    "tokens": (vocab, hidden) int16, read through BASE2. "positions": (context, hidden) int16,
    BASE3. "rope": (context, head_dim / 2, 2) int16 cosine and sine, BASE4.
    """
    sections = {"tokens": _rows(model.wte)}
    if model.wpe is not None:
        sections["positions"] = _rows(model.wpe)
    if model.rope is not None:
        sections["rope"] = _rows(model.rope.reshape(model.rope.shape[0], -1))
    return sections
