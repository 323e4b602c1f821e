# SPDX-License-Identifier: Apache-2.0
"""Narrow weight formats: elements, layers in them, rounding to them, recipes, import.

Every format is an integer expansion of its elements into the int8 weights that the array takes,
w = rs(v * f, 8 + t): see `element`.
"""

from spec.isa import WeightFormat
from weights.formats.linear import NarrowLinear

__all__ = ["NarrowLinear", "WeightFormat"]
