# SPDX-License-Identifier: Apache-2.0
"""Networks of any shape as programs: where tensors lie, which instructions become of operations."""

from npu.compiler.network.kernel import MisfitError
from npu.compiler.network.network import CompiledNetwork, Segment, compile_network

__all__ = ["CompiledNetwork", "MisfitError", "Segment", "compile_network"]
