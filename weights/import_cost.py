# SPDX-License-Identifier: Apache-2.0
"""What the import of a model takes of this computer, foretold from its dimensions.

Memory is that of the worst step: a layer or table while it is rewritten, and the scores of a batch
beside it; the integers, and a matrix while it is quantised or the logits that are compared; or the
integers twice, as a model and as the stream. Time is that of calibration mostly. The constants fit
imports in int8: memory those of models with 20 million to 1.1 billion parameters, time that of
SmolLM2-135M in one thread of a server with nothing else to do; others differ by a factor.
"""

from __future__ import annotations

from dataclasses import dataclass

from weights.calibrate import BATCH, LONGEST, SCORES, TOKENS
from weights.loss import AT_ONCE, LEAST, MOST, MULTIPLICATIONS
from weights.quantize import AT_ONCE as COLUMNS
from weights.reference import LOGITS
from weights.shape import Shape

PROGRAM_BYTES = 120_000_000
GROUP_BYTES = 8
"""Of a weight of the largest layer or table: in float32, as it is read and rewritten."""
SCORE_BYTES, LOGIT_BYTES, WEIGHT_BYTES = 13, 40, 40
"""At the worst moment: of a score, of a logit, and of a weight of the largest matrix."""
SCORE_S, VALUE_S, WEIGHT_S = 15e-9, 4e-9, 33e-9
"""Of a score, of another activation while it is measured, and of a weight that is quantised."""
FLOAT_S, INTEGER_S = 1 / 38e9, 1 / 4e9
"""Of a multiplication in float32 and in the integer network."""


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


def import_cost(shape: Shape, *, tied: bool) -> ImportCost:
    """Return what the import of a model takes."""
    weights = shape.layers * shape.layer_weights + shape.hidden * shape.vocab
    tables = shape.vocab * (not tied) + shape.context * shape.positions
    parameters = weights + shape.hidden * tables
    integers = weights + 2 * shape.hidden * (shape.vocab + shape.context * shape.positions)
    length = min(shape.context, LONGEST)
    squares = shape.heads * length**2
    batch = max(1, min(BATCH, SCORES // squares, TOKENS // length))
    layer, table = (GROUP_BYTES * n for n in (shape.layer_weights, shape.hidden * shape.vocab))
    stream = 4 * TOKENS * shape.hidden
    worst = (
        layer + stream + SCORE_BYTES * batch * squares,
        table + stream,
        max(layer, table) + integers + WEIGHT_BYTES * shape.hidden * max(shape.ffn, COLUMNS),
        table + integers + LOGIT_BYTES * min(AT_ONCE * shape.vocab, LOGITS),
        2 * integers,
    )
    values = 3 * shape.q_columns + 3 * shape.kv_columns + (2 + 2 * shape.gated) * shape.ffn
    calibrated = weights * FLOAT_S + shape.layers * (
        values * VALUE_S + shape.heads * length * SCORE_S
    )
    compared = max(LEAST, min(MOST, MULTIPLICATIONS // parameters))
    seconds = TOKENS * calibrated + compared * weights * (FLOAT_S + INTEGER_S)
    return ImportCost(
        parameters,
        PROGRAM_BYTES + max(worst),
        seconds + parameters * WEIGHT_S,
    )
