# SPDX-License-Identifier: Apache-2.0
"""Writes checkpoints as GGUF files, as llama.cpp's converter does, and tokenizers into them.

Names and the order of rows are written down here a second time, from the files that people have.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import numpy as np
import numpy.typing as npt

from weights.checkpoint import Checkpoint
from weights.shape import Shape

NAMES = {
    "embed": "token_embd.weight",
    "positions": "position_embd.weight",
    "head": "output.weight",
    "norm": "output_norm",
    "norm1": "attn_norm",
    "norm2": "ffn_norm",
    "q": "attn_q",
    "k": "attn_k",
    "v": "attn_v",
    "o": "attn_output",
    "gate": "ffn_gate",
    "up": "ffn_up",
    "down": "ffn_down",
    "q_norm": "attn_q_norm",
    "k_norm": "attn_k_norm",
}
FACTORS = {"Q2_K": (80, 82), "Q3_K": (108,), "Q4_K": (0, 2), "Q5_K": (0, 2), "Q6_K": (208,)}
"""Where blocks of 256 numbers have their factors, of half precision."""
SMALL = {"Q2_K": 2e-3, "Q3_K": 3e-4, "Q4_K": 1e-4, "Q5_K": 5e-5, "Q6_K": 2e-5}
"""Sizes of factors with which numbers are about as large as weights are."""
F32 = gguf.GGMLQuantizationType.F32
WORDS = ["<|end|>", "<|turn|>", *"abcdefghijklmnopqrstuvwxyz0123456789 .,ĠĊ", "th", "the", "Ġthe"]
"""Of the tokenizer that files get: special tokens, letters, and what merges make of them."""
MERGES = ["t h", "th e", "Ġ the"]


def stored_name(name: str) -> str:
    """Return what a GGUF file calls a tensor of a checkpoint."""
    if name in NAMES:
        return NAMES[name]
    *block, part, kind = name.split(".")
    return ".".join([*(("blk", block[1]) if block else ()), NAMES[part], kind])


def random_blocks(
    kind: gguf.GGMLQuantizationType, shape: tuple[int, ...], seed: int
) -> npt.NDArray[np.uint8]:
    """Return random rows of a type of 256 numbers a block, as bytes; factors are small."""
    random = np.random.default_rng(seed)
    size = gguf.GGML_QUANT_SIZES[kind][1]
    blocks = random.integers(0, 256, (*shape[:-1], shape[-1] // 256, size), np.uint8)
    for at in FACTORS[kind.name]:
        factors = random.uniform(0.5, 1.5, blocks.shape[:-1]) * SMALL[kind.name]
        blocks[..., at : at + 2] = factors.astype("<f2")[..., None].view(np.uint8)
    return blocks.reshape(*shape[:-1], -1)


def permuted(rows: npt.NDArray[Any], heads: int) -> npt.NDArray[Any]:
    """Return rows of q or k with the lanes of every rotary pair side by side."""
    halves = rows.reshape(heads, 2, rows.shape[0] // heads // 2, *rows.shape[1:])
    return np.ascontiguousarray(halves.swapaxes(1, 2)).reshape(rows.shape)


def tensors_of(checkpoint: Checkpoint) -> dict[str, npt.NDArray[np.float32]]:
    """Return the tensors of a file by its names, matrices (out, in)."""
    shape, found = checkpoint.shape, {}
    for name, tensor in checkpoint.tensors.items():
        one = tensor.T if name == "head" or (name.startswith("h.") and tensor.ndim == 2) else tensor
        part = name.split(".")[-2] if "." in name else name
        if shape.family == "llama" and part in ("q", "k"):
            one = permuted(one, shape.heads if part == "q" else shape.kv_heads)
        found[stored_name(name)] = np.ascontiguousarray(one)
    if shape.family == "gpt2":
        for name in [one for one in found if ".attn_q." in one]:
            parts = [found.pop(name.replace("attn_q", f"attn_{part}")) for part in "qkv"]
            found[name.replace("attn_q", "attn_qkv")] = np.concatenate(parts)
    return found


def metadata_of(shape: Shape, epsilon: float, theta: float) -> dict[str, Any]:
    """Return the metadata of a model, by key."""
    norm = "layer_norm_rms_epsilon" if shape.norm == "rmsnorm" else "layer_norm_epsilon"
    keys: dict[str, Any] = {
        "block_count": shape.layers,
        "context_length": shape.context,
        "embedding_length": shape.hidden,
        "feed_forward_length": shape.ffn,
        "attention.head_count": shape.heads,
        f"attention.{norm}": epsilon,
    }
    if shape.rope:
        keys |= {
            "attention.head_count_kv": shape.kv_heads,
            "attention.key_length": shape.head_dim,
            "attention.value_length": shape.head_dim,
            "rope.dimension_count": shape.head_dim,
            "rope.freq_base": theta,
            "vocab_size": shape.vocab,
        }
    return {f"{shape.family}.{key}": value for key, value in keys.items()}


def tokenizer_metadata(**changes: object) -> dict[str, Any]:
    """Return the metadata of a small tokenizer of letters; None takes an entry away."""
    usual: dict[str, Any] = {
        "model": "gpt2",
        "pre": "smollm",
        "tokens": WORDS,
        "token_type": [3, 3, *[1] * (len(WORDS) - 2)],
        "merges": MERGES,
        "bos_token_id": 1,
        "eos_token_id": 0,
        "add_bos_token": False,
    }
    entries = {key: value for key, value in (usual | changes).items() if value is not None}
    return {f"tokenizer.ggml.{key}": value for key, value in entries.items()}


def write_gguf(
    checkpoint: Checkpoint,
    path: Path,
    kind: gguf.GGMLQuantizationType = F32,
    *,
    metadata: dict[str, Any] | None = None,
    tensors: dict[str, npt.NDArray[Any]] | None = None,
    endianess: gguf.GGUFEndian = gguf.GGUFEndian.LITTLE,
) -> Path:
    """Write a checkpoint; matrices whose rows are whole blocks are of a type, the rest float32.

    Types of 256 numbers a block, to which the package does not quantise, get random blocks.

    Args:
        checkpoint: the model.
        path: of the file.
        kind: type of the matrices.
        metadata: entries besides, or instead: None takes one away.
        tensors: instead of those of the checkpoint.
        endianess: of the numbers.
    """
    shape = checkpoint.shape
    writer = gguf.GGUFWriter(path, shape.family, endianess=endianess)
    entries = metadata_of(shape, shape.epsilon, shape.rope_theta) | (metadata or {})
    for key, value in entries.items():
        add_entry(writer, key, value)
    block = gguf.GGML_QUANT_SIZES[kind][0]
    given = tensors_of(checkpoint) if tensors is None else tensors
    for seed, (name, tensor) in enumerate(given.items()):
        if kind == F32 or tensor.ndim < 2 or tensor.shape[-1] % block:
            writer.add_tensor(name, tensor)
        elif kind.name in FACTORS:
            writer.add_tensor(name, random_blocks(kind, tensor.shape, seed), raw_dtype=kind)
        else:
            writer.add_tensor(name, gguf.quantize(tensor, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def add_entry(writer: gguf.GGUFWriter, key: str, value: object) -> None:
    """Add an entry of the type that converters use."""
    if value is None:
        return
    if isinstance(value, bool):
        writer.add_bool(key, value)
    elif isinstance(value, int):
        writer.add_uint32(key, value)
    elif isinstance(value, float):
        writer.add_float32(key, value)
    elif isinstance(value, str):
        writer.add_string(key, value)
    else:
        assert isinstance(value, list)
        writer.add_array(key, value)
