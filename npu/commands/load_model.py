# SPDX-License-Identifier: Apache-2.0
"""From the name of a model to its integers, its tokenizer and its compiled form, with progress."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rich.console import Console

from npu.commands.progress import Progress, step
from npu.compiler import (
    CacheLayout,
    CompiledModel,
    CompileError,
    PackError,
    Shape,
    compile_model,
)
from npu.compiler.model_plan import ModelPlan, Place, plan_model, stream_bytes
from npu.driver.generate import PromptError, check_count
from npu.planner.decoder_file import is_decoder, read_decoder
from npu.planner.placement import check_prompt
from spec.isa.operands import Limits
from weights.calibrate import ScalesError
from weights.chat import Prompt, prompt_ids
from weights.checkpoint import Checkpoint, CheckpointError, CheckpointShape, check_generation
from weights.encoder_importer import is_encoder, load_any_encoder
from weights.formats.recipe import INT8_WEIGHTS, WeightRecipe
from weights.importer import load_checkpoint, load_shape
from weights.kept_loss import kept_loss
from weights.limits import ModelError
from weights.loss import Integers, Loss, LossError, check_loss, import_rows
from weights.model import QuantizedModel
from weights.quantize import quantize_loaded
from weights.sink import behind_sink
from weights.tokenizer import Tokenizer, TokenizerError, end_tokens, load_tokenizer

BAD_MODEL = (
    CheckpointError,
    CompileError,
    LossError,
    ModelError,
    PackError,
    PromptError,
    ScalesError,
    TokenizerError,
)
"""What a model or a prompt that a user names can cause."""


@dataclass(frozen=True)
class Loaded:
    """A model, ready to run.

    Attributes:
        name: as it was asked for.
        model: in integers.
        compiled: for the chip at hand.
        tokenizer: text to ids and back.
        loss: of the integers over float32.
        ends: ids that end a text; the chip stops at the first of them, it has one such register,
            the host cuts the text at any.
        weights: formats of the weights.
        logit_cap: what real logits stay below, 0 for none.
    """

    name: str
    model: QuantizedModel
    compiled: CompiledModel
    tokenizer: Tokenizer
    loss: Loss
    ends: tuple[int, ...]
    weights: WeightRecipe = INT8_WEIGHTS
    logit_cap: float = 0.0

    def ids(self, prompt: Prompt) -> list[int]:
        """Return the ids of a prompt, behind what the model puts before every text.

        Raises:
            TokenizerError: it has none.
        """
        return behind_sink(prompt_ids(self.tokenizer, prompt), self.compiled.sink)

    @property
    def end(self) -> int | None:
        """The token that the chip stops at, None for none."""
        return self.ends[0] if self.ends else None

    def end_text(self) -> str:
        """Say in a few words where a text ends."""
        if not self.ends:
            return "none"
        more = f"; for the host alone: {', '.join(map(str, self.ends[1:]))}"
        return f"{self.end}{more if self.ends[1:] else ''}"


def shape_text(shape: Shape) -> str:
    """Return the dimensions of a decoder in one short line."""
    heads = f"{shape.heads} heads of {shape.head_dim}"
    if shape.kv_heads != shape.heads:
        heads += f" on {shape.kv_heads}"
    return f"{shape.family}, {shape.layers} layers, hidden {shape.hidden}, {heads}, FFN {shape.ffn}"


def text_room(shape: Shape) -> str:
    """Return vocabulary, context and window in one short line."""
    window = window_text(shape)
    seen = f", each sees {window}" if window else ""
    tokens = f"{shape.vocab:,} tokens, " if shape.vocab else ""
    return f"{tokens}{shape.context:,} positions{seen}"


def window_text(shape: Shape) -> str:
    """Return what a position sees in a few words, "" for all before it in every layer."""
    windows = Counter(shape.window_of(layer) for layer in range(shape.layers))
    if set(windows) == {0}:
        return ""
    texts = {window: f"the last {window:,}" if window else "all" for window in windows}
    if len(windows) == 1:
        return next(iter(texts.values()))
    first, *rest = (f"{text} in {windows[window]}" for window, text in texts.items())
    return ", ".join([f"{first} layers", *rest])


def cache_text(cache: CacheLayout) -> str:
    """Return size and place of the K/V cache."""
    return f"{cache.bytes:,} bytes in {'memory' if cache.in_memory else 'the SRAM'}"


@dataclass(frozen=True)
class Texts:
    """What a model shall go on with.

    Attributes:
        prompts: one after the other.
        tokens: that shall come behind each, at most.
        file: that has a prompt a line, None where there is only one prompt.
    """

    prompts: Sequence[Prompt]
    tokens: int
    file: str | None = None

    def check(self, tokenizer: Tokenizer, shape: Shape) -> None:
        """Raise PromptError or TokenizerError unless a model can go on with all of them."""
        for line, prompt in enumerate(self.prompts, 1):
            try:
                ids = prompt_ids(tokenizer, prompt)
                check_prompt(ids, shape.vocab, shape.context)
                check_count(self.tokens, len(ids), shape.context)
            except (PromptError, TokenizerError) as error:
                if self.file is None:
                    raise
                raise type(error)(f"{self.file}: line {line}: {error}") from None


def opened(
    name: str, context: int | None = None
) -> tuple[CheckpointShape, Callable[[], Checkpoint]]:
    """Return the dimensions of a model, of a folder by config.json alone, and what reads the rest.

    `context` is its number of positions, None for all that it has.

    Raises:
        CheckpointError: it is no folder of a checkpoint, as config.json has it, no hub id, no GGUF
            file, and no ONNX file of a decoder with past keys and values.
    """
    if not is_decoder(Path(name)):
        return load_shape(name, context=context), partial(load_checkpoint, name, context=context)
    found = read_decoder(Path(name))
    if context is not None and context != found.shape.context:
        allowed = f"{found.shape.context:,}, the positions of the file"
        raise CheckpointError(f"{name}: --context: given {context:,}, allowed {allowed}")
    return found.shape, lambda: found


def is_encoder_model(name: str) -> bool:
    """Say whether a model is an encoder, which has no program for generation.

    Raises:
        CheckpointError: there is no such model.
    """
    return not is_decoder(Path(name)) and is_encoder(name)


def network_of(name: str, context: int | None = None) -> Checkpoint:
    """Return a model that is to be a network, an encoder too, with a shorter context if asked.

    Raises:
        CheckpointError: there is no such model, or it cannot have this context.
    """
    if not is_encoder_model(name):
        return opened(name, context)[1]()
    if context is not None:
        raise CheckpointError(
            f"{name}: --context: given with an encoder, allowed with a decoder; "
            "--shape tokens=1,N is the length of a text"
        )
    return load_any_encoder(name)


def planned(
    shape: CheckpointShape, limits: Limits, place: Place, weights: WeightRecipe
) -> ModelPlan:
    """Plan a model by its dimensions.

    Raises:
        CheckpointError: it has what generation has no program for.
        CompileError: it does not fit the chip; MemoryFullError: not its memory.
    """
    check_generation(shape)
    return plan_model(shape, limits, place, stream_bytes(shape, limits.edge, weights))


def warn(name: str, warnings: Sequence[str], console: Console) -> None:
    """Print what a user should know of a model."""
    for warning in warnings:
        console.print(f"warning: {name}: {warning}", markup=False, highlight=False, soft_wrap=True)


def load(
    name: str,
    limits: Limits,
    place: Place,
    console: Console,
    texts: Texts | None = None,
    weights: WeightRecipe = INT8_WEIGHTS,
    *,
    integers: Integers,
    accept_loss: bool = False,
    context: int | None = None,
) -> Loaded:
    """Read, quantise and compile a model.

    Args:
        name: a folder, a hub id, a GGUF file, or an ONNX file of a decoder with past keys and
            values.
        limits: the chip.
        place: of the K/V cache.
        console: where the progress is shown.
        texts: what the model shall go on with, None for nothing that is known.
        weights: formats of the weights.
        integers: the integer network, to measure what it loses; the console gets warnings.
        accept_loss: take a model that loses too much.
        context: positions, None for those of the model.

    Raises:
        CheckpointError, ScalesError, TokenizerError, PromptError, CompileError: as the parts raise
            them; what is known without the activations, before they are measured.
        LossError: the integers lose too much.
    """
    with step(f"reading {name}", console=console):
        shape, read = opened(name, context)
        planned(shape, limits, place, weights)
        checkpoint = read()
        vocab = checkpoint.shape.vocab
        tokenizer = load_tokenizer(checkpoint.place, vocab)
        ends = end_tokens(checkpoint.place, tokenizer, vocab)
    warn(name, tokenizer.warnings, console)
    if texts is not None:
        texts.check(tokenizer, checkpoint.shape)
    far = Progress()
    with step("measuring activations and quantising", far.text, console):
        model = quantize_loaded(checkpoint, weights, far.advance)
    far = Progress()
    with step("measuring what the integers lose", far.text, console):
        sink = None if model.sink is None else model.sink.token
        rows = import_rows(checkpoint, tokenizer, sink)
        loss = kept_loss(checkpoint, model, rows, integers, far.counter("rows", len(rows)))
    if not accept_loss:
        check_loss(name, loss)
    warn(name, loss.warnings, console)
    cap = checkpoint.shape.logit_cap
    del checkpoint  # takes twice what is made now
    with step("compiling the model for the chip", console=console):
        compiled = compile_model(model, limits, cache=place)
    return Loaded(name, model, compiled, tokenizer, loss, tuple(ends), weights, cap)
