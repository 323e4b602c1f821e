# SPDX-License-Identifier: Apache-2.0
"""`npu embed`: sentences become vectors of length 1, and each two of them a cosine."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
from rich.markup import escape

from npu.commands import files
from npu.commands.arguments import AddCommand, UsageError
from npu.commands.consoles import printed, watched
from npu.commands.load_model import BAD_MODEL
from npu.commands.progress import step
from npu.graph.evaluate import evaluate
from npu.graph.form import Array, GraphError
from npu.graph.importers.checkpoint import TOKENS
from npu.graph.importers.encoder_checkpoint import EMBEDDING, MASK, encoder_graph, padded
from npu.planner.build_plan import CompileOptions, build_plan
from npu.runtime.report_table import WIDTH
from npu.tables import FitTable
from tb.models.simulate_generation import SimulationError
from tb.run import build
from tb.run.verilator import VerilatorError
from tessera.rtl_chip import ChipMismatchError
from tessera.session import Session
from weights.encoder import EncoderCheckpoint, Pooling
from weights.encoder_importer import load_encoder
from weights.tokenizer import TokenizerError, load_tokenizer

BAD_INPUT = (
    *BAD_MODEL,
    ChipMismatchError,
    GraphError,
    SimulationError,
    UsageError,
    VerilatorError,
    build.BuildError,
    files.FileError,
)
"""What a user can cause, or a tool; the text is what to print."""
FLOAT = "float"
CHIPS = ("golden", "rtl", FLOAT)
STEP = 16
"""Places of a program are a multiple of it, so that attention with a mask is the chip's."""


@dataclass(frozen=True)
class Embedded:
    """Sentences and their vectors.

    Attributes:
        texts: the sentences.
        tokens: of each.
        vectors: (N, H) float32, each of length 1.
    """

    texts: tuple[str, ...]
    tokens: tuple[int, ...]
    vectors: npt.NDArray[np.float32]

    @property
    def cosines(self) -> npt.NDArray[np.float32]:
        """The cosine of each two, (N, N)."""
        return self.vectors @ self.vectors.T


def add_commands(command: AddCommand) -> None:
    """Add the command to the parser of `npu`."""
    parser = command("embed", _embed)
    parser.description = (
        "Make a vector of length 1 of each sentence with an encoder, and of two or more the table "
        "of their cosines. All sentences run in one program, padded to the longest."
    )
    parser.add_argument(
        "model",
        metavar="MODEL",
        help="a folder of an encoder as sentence-transformers or transformers has it, or a hub id",
    )
    parser.add_argument("sentences", nargs="*", metavar="SENTENCE", help="a text")
    parser.add_argument(
        "--file", type=Path, metavar="FILE", help="of UTF-8 with a sentence in each line instead"
    )
    parser.add_argument(
        "--on",
        choices=CHIPS,
        default=CHIPS[0],
        help="the instruction model, the RTL, which is compared with it, or real numbers (golden)",
    )
    parser.add_argument("--json", action="store_true", help="print all numbers as JSON")


def _embed(arguments: argparse.Namespace) -> int:
    """Make vectors of sentences."""
    texts = _texts(arguments.sentences, arguments.file)
    found = embed(load_encoder(arguments.model), texts, arguments.on)
    if arguments.json:
        record = {
            "model": arguments.model,
            "on": arguments.on,
            "sentences": [
                {"text": text, "tokens": count, "vector": [float(x) for x in vector]}
                for text, count, vector in zip(
                    found.texts, found.tokens, found.vectors, strict=True
                )
            ],
            "cosines": [[float(x) for x in row] for row in found.cosines],
        }
        print(json.dumps(record))
        return 0
    console = printed(WIDTH)
    console.print(_table(found))
    if len(texts) > 1:
        console.print(_cosines(found))
    return 0


def _texts(given: Sequence[str], file: Path | None) -> list[str]:
    """Return the sentences. Raises UsageError or FileError where there are none."""
    if bool(given) == (file is not None):
        what = "sentences and --file" if given else "neither sentences nor --file"
        raise UsageError(f"embed: given {what}, allowed one of them")
    if file is None:
        texts = list(given)
    else:
        texts = [line for line in files.lines_of(files.read_text(file)) if line.strip()]
    for number, one in enumerate(texts, 1):
        if not one.strip():
            raise UsageError(f"sentence {number}: given an empty text, allowed at least a letter")
    return texts


def embed(checkpoint: EncoderCheckpoint, texts: Sequence[str], on: str) -> Embedded:
    """Return the vectors of sentences.

    Args:
        checkpoint: the encoder. Without modules.json its rows are averaged, as
            sentence-transformers does it.
        texts: one or more.
        on: one of CHIPS.

    Raises:
        UsageError: a sentence has too many tokens.
        TokenizerError, GraphError, ChipMismatchError: as the parts raise them.
    """
    checkpoint = _pooled(checkpoint)
    tokenizer = load_tokenizer(checkpoint.place, checkpoint.shape.vocab)
    ids = []
    for number, text in enumerate(texts, 1):
        try:
            ids.append(tokenizer.ids(checkpoint.text.of(text)))
        except TokenizerError as error:
            raise TokenizerError(f"sentence {number}: given {text!r}: {error}") from error
    longest = max(map(len, ids))
    for number, one in enumerate(ids, 1):
        if len(one) > checkpoint.longest:
            raise UsageError(
                f"sentence {number}: given {len(one)} tokens, allowed at most "
                f"{checkpoint.longest}, special ones included: what is longer is not cut off"
            )
    rows = min(-(-longest // STEP) * STEP, checkpoint.shape.context)
    run = _runner(checkpoint, rows, on)
    vectors = []
    for number, one in enumerate(ids, 1):
        with step(f"sentence {number} of {len(ids)}", console=watched()):
            vectors.append(run(dict(zip((TOKENS, MASK), padded(one, rows), strict=True)))[0])
    return Embedded(tuple(texts), tuple(map(len, ids)), np.stack(vectors))


def _pooled(checkpoint: EncoderCheckpoint) -> EncoderCheckpoint:
    """Return an encoder whose result is one vector of length 1."""
    pooling = checkpoint.pooling or Pooling("mean", True, checkpoint.shape.context)
    return replace(checkpoint, pooling=replace(pooling, unit=True))


def _runner(
    checkpoint: EncoderCheckpoint, rows: int, on: str
) -> Callable[[Mapping[str, Array]], npt.NDArray[np.float32]]:
    """Return what makes the vector, (1, H), of a sentence of so many places."""
    shapes = {TOKENS: (1, rows)}
    if on == FLOAT:
        graph = encoder_graph(checkpoint, shapes)
        return lambda inputs: evaluate(graph, inputs)[EMBEDDING]
    with step("measuring activations and compiling", console=watched()):
        plan = build_plan(checkpoint, CompileOptions(shapes=shapes)).plan
    session = Session(plan, "rtl" if on == "rtl" else "golden")
    return lambda inputs: session.run(inputs)[EMBEDDING]


def _table(found: Embedded) -> FitTable:
    """Return a line for each sentence."""
    table = FitTable(title=f"{found.vectors.shape[1]} numbers of each sentence")
    for name in ("", "sentence", "tokens", "begins with"):
        table.add_column(name)
    for number, text in enumerate(found.texts):
        first = ", ".join(f"{x:.4f}" for x in found.vectors[number, :4])
        table.add_row(str(number + 1), escape(text), str(found.tokens[number]), first)
    return table


def _cosines(found: Embedded) -> FitTable:
    """Return the cosine of each two."""
    table = FitTable(title="Cosines")
    table.add_column("")
    for number in range(len(found.texts)):
        table.add_column(str(number + 1))
    for number, row in enumerate(found.cosines):
        table.add_row(str(number + 1), *(f"{x:.3f}" for x in row))
    return table
