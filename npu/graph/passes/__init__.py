# SPDX-License-Identifier: Apache-2.0
"""Pure functions from graph to graph; `npu.graph.prepare` applies them in their order."""
