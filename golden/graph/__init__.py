# SPDX-License-Identifier: Apache-2.0
"""The integer meaning of quantised and fused graphs: no programs, no tiles, no addresses.

What `npu.graph.operations` says in words for each kind stands here in integers of numpy.
"""

from golden.graph.evaluate import MEANINGS, run
from golden.graph.steps import run_steps

__all__ = ["MEANINGS", "run", "run_steps"]
