# SPDX-License-Identifier: Apache-2.0
"""Random legal instructions with their operands' data, one module per engine."""

from tb.stimulus.random_case import Case, build_program, draw, join, run_cases

__all__ = ["Case", "build_program", "draw", "join", "run_cases"]
