# SPDX-License-Identifier: Apache-2.0
"""The parameter image of a whole model or a block, and the tables that are not streamed.

One image serves all programs of a model: per layer norm1, qkv, proj, norm2, [gate,] up and down,
then the final norm and the head. Of q and k that are normalised norm1, q, k, v, q_norm and k_norm;
norm2 goes before proj where it reads what norm1 reads; o_norm behind proj and down_norm behind down
where these are normalised. What only changes a unit has no share. The table of a wide block is
apart from its gate, in front of what follows attention: biases of a norm.
"""

import itertools
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from npu.compiler.linear_padding import columns, pad_inputs, pad_outputs
from npu.compiler.shape import lane
from npu.compiler.stream import StreamWriter, form_of, gemm_share, norm_share
from npu.image import StreamShare
from spec.isa.generated import Opcode
from spec.isa.operands import WORD, up
from weights.model import AnyLinear, Block, Norm, QuantizedModel, Rescale
from weights.shape import Shape


@dataclass(frozen=True)
class Image:
    """A stream with its shares by name: "h.0.norm1", ..., "norm", "head"."""

    stream: bytes
    shares: tuple[StreamShare, ...]


def build_image(model: QuantizedModel, edge: int) -> Image:
    """Return the image of a model for a tile edge."""
    stream = StreamWriter()
    norm = _norm_opcode(model)
    for index, block in enumerate(model.blocks):
        _append(stream, f"h.{index}.", _fused_layers(block, model.shape), norm, edge)
    last: Parameters = {"norm": model.final_norm, "head": (model.head, None)}
    _append(stream, "", last, norm, edge)
    return Image(stream.image(), tuple(stream.shares))


Table = npt.NDArray[np.int8]
Parameters = dict[str, "Norm | tuple[AnyLinear, Table | None]"]
"""By name, in the order of their use: a norm, or a linear layer with or without a table."""


def _norm_opcode(model: QuantizedModel) -> Opcode:
    return Opcode.RMSNORM if model.shape.norm == "rmsnorm" else Opcode.LAYERNORM


def _fused_layers(block: Block, shape: Shape) -> Parameters:
    """Return a block's parameters where GEMM applies the activation."""
    gate, plain = block.gate, None if block.gate is not None else block.table
    proj: Parameters = {"proj": (pad_inputs("proj", block.proj, shape.head_dim), None)}
    proj |= _norm("o_norm", block.o_norm)
    ratio: Parameters = {"ratio": _biases(block.table)} if block.wide else {}
    norm2 = _norm("norm2", block.norm2)
    return {
        **_norm("norm1", block.norm1),
        **_attention(block, shape),
        **ratio,
        **(norm2 | proj if shape.parallel else proj | norm2),
        **({} if gate is None else {"gate": (gate, None if block.wide else block.table)}),
        "up": (block.up, plain),
        "down": (block.down, None),
        **_norm("down_norm", block.down_norm),
    }


def _biases(table: Table) -> Norm:
    """Return the norm whose result is a table, whatever it reads."""
    gain, shift = np.zeros(table.shape, np.uint16), np.zeros(table.shape, np.uint8)
    return Norm(0, gain, shift, table)


def _norm(name: str, norm: Norm | Rescale | None) -> Parameters:
    """Return the parameters of a norm, of nothing for what is none."""
    return {name: norm} if isinstance(norm, Norm) else {}


def _attention(block: Block, shape: Shape) -> Parameters:
    """Return what makes q, k and v."""
    if not shape.head_norms:
        return {"qkv": (pad_outputs(block.qkv, shape.head_dim), None)}
    ends = itertools.accumulate((shape.q_columns, shape.kv_columns, shape.kv_columns), initial=0)
    parts: Parameters = {
        name: (pad_outputs(columns(block.qkv, first, last), shape.head_dim), None)
        for name, (first, last) in zip("qkv", itertools.pairwise(ends), strict=True)
    }
    return parts | _norm("q_norm", block.q_norm) | _norm("k_norm", block.k_norm)


def _append(
    stream: StreamWriter, prefix: str, parameters: Parameters, norm: Opcode, edge: int
) -> None:
    """Add parameters to a stream, names behind a prefix."""
    for name, one in parameters.items():
        if isinstance(one, Norm):
            stream.append(prefix + name, norm, norm_share(one))
        else:
            layer, table = one
            data = gemm_share(layer, edge, table)
            stream.append(prefix + name, Opcode.GEMM, data, form_of(layer))


def _rows(table: npt.NDArray[np.int16]) -> bytes:
    """Return the rows of a (rows, elements) table, each padded to whole words."""
    raw = np.ascontiguousarray(table.astype("<i2")).view(np.uint8).reshape(table.shape[0], -1)
    return np.pad(raw, ((0, 0), (0, up(raw.shape[1], WORD) - raw.shape[1]))).tobytes()


def build_sections(model: QuantizedModel) -> dict[str, bytes]:
    """Return the tables of a model by name, rows padded to whole words.

    "tokens": (vocab, hidden) int16, read through BASE2. "positions": (context, hidden) int16,
    BASE3. "rope": (tables, context, head_dim / 2, 2) int16 cosine and sine, BASE4. "sink":
    (layers, 2, kv_heads, head_dim) int8 keys and values of position 0, each head padded, BASE6.
    """
    sections = {"tokens": _rows(model.wte)}
    if model.wpe is not None:
        sections["positions"] = _rows(model.wpe)
    if model.rope is not None:
        sections["rope"] = _rows(model.rope.reshape(-1, model.shape.head_dim))
    if model.sink is not None:
        shape = model.shape
        heads = np.stack([model.sink.k, model.sink.v], axis=1).reshape(-1, shape.head_dim)
        padding = ((0, 0), (0, lane(shape) - shape.head_dim))
        sections["sink"] = np.pad(heads, padding).tobytes()
    return sections
