# SPDX-License-Identifier: Apache-2.0
"""What the import of a model takes of this computer, foretold from its dimensions and formats.

Memory is that of the worst step: a layer or table while it is rewritten, and the scores of a batch
beside it; the products of the inputs of a layer, in narrow formats; the integers, and a matrix
while it is rounded, or the logits that are compared; or the integers, the stream that grows beside
them and copies of its largest matrix. Time is that of calibration and, in narrow formats, of
moments and rounding. The constants fit imports of models with 20 million to 1.1 billion
parameters; time that of a server with nothing else to do, others differ by a factor.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from spec.isa import WeightGroup
from spec.isa.weight_formats import StreamLayout
from weights.calibrate import BATCH, LONGEST, SCORES, TOKENS
from weights.formats.recipe import INT8_WEIGHTS, Encoding, Kind, WeightRecipe
from weights.loss import AT_ONCE, LEAST, MOST, MULTIPLICATIONS
from weights.quantize import AT_ONCE as COLUMNS
from weights.reference import LOGITS
from weights.shape import Shape
from weights.tokenizer import BYTES

PROGRAM_BYTES, TOKENIZER_BYTES = 130_000_000, 235_000_000
"""Of the program, and of the library of a tokenizer that knows more than bytes."""
FLOAT_BYTES, LAYER_BYTES, UNIT_BYTES = 4, 8, 2
"""Of a weight of a table that stays, of a layer that is rewritten, of a number of the stream."""
SCORE_BYTES, LOGIT_BYTES, MATRIX_BYTES = 13, 32, 40
"""At the worst moment: of a score, of a logit, and of a weight of a matrix that is rounded."""
INPUT_BYTES, PRODUCT_BYTES, FEEDBACK_BYTES = 36, 16, 18
"""Of an input whose moments are measured, of one of these while it is added up, and of one while
it is decomposed."""
STREAM_GROWTH, STREAM_COPIES = 1.125, 5
"""Of the stream while it grows, and copies of the matrix that is put into it."""
SCORE_S, VALUE_S, WEIGHT_S = 17e-9, 5e-9, 33e-9
"""Of a score, of another activation while it is measured, and of a weight that is quantised."""
FLOAT_S, DOUBLE_S, INTEGER_S = 1 / 50e9, 1 / 12e9, 1 / 12e9
"""Of a multiplication in float32, in float64, and in the integer network."""
PASSES = 3
"""In which a stream is rotated: to measure, to quantise and to compare."""
SEARCH_S, ERROR_S = 1.5e-6, 1.1e-9
"""Of a weight in the searches for scales, and of a product with which errors are made up for."""


@dataclass(frozen=True, slots=True)
class ImportCost:
    """What `npu compile` takes for a model without measured activations.

    Attributes:
        parameters: of the checkpoint, norms and biases left out.
        bytes: of memory at the worst moment.
        seconds: of processor time.
    """

    parameters: int
    bytes: int
    seconds: float


@dataclass(frozen=True, slots=True)
class _Product:
    """A matrix (inputs, outputs) of a layer or of the head, in a format."""

    kind: Kind
    inputs: int
    outputs: int
    encoding: Encoding

    @property
    def weights(self) -> int:
        return self.inputs * self.outputs

    @property
    def stream(self) -> int:
        """Bytes in the stream."""
        fmt = self.encoding.format
        if fmt is None:
            return self.weights
        group = WeightGroup.named(str(self.encoding.group)) if self.encoding.group else None
        layout = StreamLayout.of(fmt, group or WeightGroup.G32, 16)
        return self.outputs * layout.bits(self.inputs) // 8

    @property
    def integers(self) -> int:
        """Bytes in the model: of narrow weights the codes, and what they stand for."""
        return self.weights * (1 if self.encoding.format is None else 2)


def _layer(shape: Shape, recipe: WeightRecipe) -> Iterator[_Product]:
    """Yield the products of a layer."""
    sizes: dict[Kind, tuple[int, int]] = {
        "qkv": (shape.hidden, shape.q_columns + 2 * shape.kv_columns),
        "o": (shape.q_columns, shape.hidden),
        "up": (shape.hidden, shape.ffn),
        "down": (shape.ffn, shape.hidden),
    }
    if shape.gated:
        sizes["gate"] = sizes["up"]
    for kind, (inputs, outputs) in sizes.items():
        yield _Product(kind, inputs, outputs, recipe[kind])


def import_cost(shape: Shape, *, tied: bool, weights: WeightRecipe = INT8_WEIGHTS) -> ImportCost:
    """Return what the import of a model takes.

    Args:
        shape: the dimensions.
        tied: whether the head is the table of tokens.
        weights: their formats.
    """
    layer = list(_layer(shape, weights))
    head = _Product("head", shape.hidden, shape.vocab, weights["head"])
    products = [*layer * shape.layers, head]
    multiplied = sum(one.weights for one in products)
    tables = shape.hidden * (shape.vocab + shape.context * shape.positions)
    parameters = multiplied + tables - tied * head.weights
    return ImportCost(
        parameters,
        _bytes(shape, layer, head, tables, tied=tied, narrow=weights.narrow),
        _seconds(shape, layer, head, parameters, narrow=weights.narrow),
    )


def _bytes(
    shape: Shape, layer: list[_Product], head: _Product, tables: int, *, tied: bool, narrow: bool
) -> int:
    """Return the memory of the worst step."""
    length = min(shape.context, LONGEST)
    squares = shape.heads * length**2
    batch = max(1, min(BATCH, SCORES // squares, TOKENS // length))
    floats = LAYER_BYTES * shape.layer_weights
    table = FLOAT_BYTES * head.weights
    kept = tied * table  # the group of tensors that was read last
    stream = FLOAT_BYTES * TOKENS * shape.hidden
    before = shape.layers * sum(one.integers for one in layer) + UNIT_BYTES * tables
    integers = before + head.integers
    inputs = [one.inputs for one in (*layer, head)]
    widest = max(inputs) ** 2 * narrow
    image = shape.layers * sum(one.stream for one in layer) + head.stream
    worst = (
        floats + kept + stream + SCORE_BYTES * batch * squares,
        2 * table + stream,
        narrow * (floats + kept + stream + INPUT_BYTES * BATCH * length * max(inputs))
        + PRODUCT_BYTES * widest
        + narrow * LAYER_BYTES * sum(one.inputs**2 for one in layer if one.kind != "gate"),
        before
        + floats
        + kept
        + max(
            MATRIX_BYTES * max(one.weights for one in layer) + LAYER_BYTES * widest,
            FEEDBACK_BYTES * widest,
        ),
        integers + table + kept + MATRIX_BYTES * shape.hidden * min(COLUMNS, shape.vocab),
        integers + table + LOGIT_BYTES * min(AT_ONCE * shape.vocab, LOGITS),
        integers
        + STREAM_GROWTH * image
        + STREAM_COPIES * max(one.stream for one in (*layer, head)),
    )
    program = PROGRAM_BYTES + TOKENIZER_BYTES * (shape.vocab != BYTES)
    return program + int(max(worst))


def _seconds(
    shape: Shape, layer: list[_Product], head: _Product, parameters: int, *, narrow: bool
) -> float:
    """Return the processor time."""
    multiplied = shape.layers * shape.layer_weights + head.weights
    values = 3 * shape.q_columns + 3 * shape.kv_columns + (2 + 2 * shape.gated) * shape.ffn
    scores = shape.heads * min(shape.context, LONGEST)
    measured = TOKENS * (
        multiplied * FLOAT_S + shape.layers * (values * VALUE_S + scores * SCORE_S)
    )
    compared = max(LEAST, min(MOST, MULTIPLICATIONS // parameters))
    seconds = measured + compared * multiplied * (FLOAT_S + INTEGER_S) + parameters * WEIGHT_S
    if shape.gated and shape.pre_norms and not shape.part_norms:  # nearly all are loud
        seconds += PASSES * multiplied * shape.hidden * DOUBLE_S
    if narrow:
        apart = [one for one in layer if one.kind != "gate"]  # which reads what `up` reads
        squares = sum(one.inputs**2 for one in apart)
        errors = sum(one.inputs**3 for one in apart) / 3
        errors += sum(one.inputs * one.weights for one in layer) / 2
        searched = sum(one.weights for one in layer if one.encoding.format is not None)
        seconds += measured + shape.layers * (
            TOKENS * squares / 2 * DOUBLE_S + errors * ERROR_S + searched * SEARCH_S
        )
    return seconds
