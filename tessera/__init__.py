# SPDX-License-Identifier: Apache-2.0
"""Networks on the chip, as a user of Python sees them.

import tessera

session = tessera.load("model.onnx", calibrate={"x": samples})
(y,) = session.run(["y"], {"x": x})
print(session.report())
"""

from tessera.dialects import operator
from tessera.session import Session, from_jax, load

__all__ = ["Session", "from_jax", "load", "operator"]
