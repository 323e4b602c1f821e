# SPDX-License-Identifier: Apache-2.0
"""What the programs of firmware/examples compute, operation by operation, from their definition.

A recipe is a sequence of coprocessor instructions; its reference here does the same operations with
the same roundings in the same order, so its results are equal bit for bit. `operations` has the
instructions on arrays, `layers` the recipes, and a module is each model.
"""
