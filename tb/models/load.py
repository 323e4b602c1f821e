# SPDX-License-Identifier: Apache-2.0
"""From the name of a model to its integers, its tokenizer and its compiled form, with progress."""

from __future__ import annotations

from dataclasses import dataclass

from rich.console import Console

from npu.compiler import CompiledModel, compile_model
from npu.compiler.model import Place
from npu.isa.operands import Limits
from weights.calibrate import scales_for
from weights.importer import load_checkpoint
from weights.model import QuantizedModel
from weights.quantize import quantize
from weights.tokenizer import Tokenizer, load_tokenizer


@dataclass(frozen=True)
class Loaded:
    """A model, ready to run.

    Attributes:
        name: as it was asked for.
        model: in integers.
        compiled: for the chip at hand.
        tokenizer: text to ids and back.
    """

    name: str
    model: QuantizedModel
    compiled: CompiledModel
    tokenizer: Tokenizer

    def summary(self) -> str:
        """Say in one line what it is."""
        shape, cache = self.compiled.shape, self.compiled.cache
        where = "memory" if cache.in_memory else "SRAM"
        window = f", window {shape.window}" if shape.window else ""
        return (
            f"{shape.family}: {shape.layers} layers, hidden {shape.hidden}, {shape.heads} heads of "
            f"{shape.head_dim} on {shape.kv_heads}, FFN {shape.ffn}, {shape.vocab} tokens, context "
            f"{shape.context}{window}; stream {len(self.compiled.stream):,} bytes, K/V cache "
            f"{cache.bytes:,} bytes in {where}"
        )


def load(name: str, limits: Limits, place: Place, console: Console) -> Loaded:
    """Read, quantise and compile a model.

    Args:
        name: a folder or a hub id.
        limits: the chip.
        place: of the K/V cache.
        console: where the progress is shown.

    Raises:
        CheckpointError, ScalesError, TokenizerError, CompileError: as the parts raise them.
    """
    with console.status(f"reading {name}"):
        checkpoint = load_checkpoint(name)
        tokenizer = load_tokenizer(checkpoint.folder, checkpoint.shape.vocab)
    with console.status("measuring activations and quantising"):
        model = quantize(checkpoint, scales_for(checkpoint))
    with console.status("compiling"):
        compiled = compile_model(model, limits, cache=place)
    return Loaded(name, model, compiled, tokenizer)
