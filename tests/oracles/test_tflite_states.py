# SPDX-License-Identifier: Apache-2.0
"""Variables of TFLite over many runs, against LiteRT."""

from __future__ import annotations

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter, OpResolverType

import tessera
from tests.python.importers.tflite_variables import frames_of, network

STEPS = 50


@pytest.mark.parametrize("resolver", [OpResolverType.AUTO, OpResolverType.BUILTIN_REF])
def test_fifty_runs_leave_what_litert_leaves(resolver: OpResolverType) -> None:
    """In every element, from the values on that the file begins with."""
    other = Interpreter(model_content=network(), experimental_op_resolver_type=resolver)
    other.allocate_tensors()
    (x,), (y,) = other.get_input_details(), other.get_output_details()
    session = tessera.load(network())
    found = []
    for frame in frames_of(STEPS):
        other.set_tensor(x["index"], frame)
        other.invoke()
        wanted = other.get_tensor(y["index"])
        (made,) = session.run(None, {"x": frame})
        assert np.array_equal(made, wanted)
        found.append(made)
    assert len({one.tobytes() for one in found}) > STEPS / 2
    assert np.mean(np.abs(np.stack(found).astype(int)) < 100) > 0.05
