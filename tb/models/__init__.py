# SPDX-License-Identifier: Apache-2.0
"""Whole models on the simulated chip: what `npu generate` and `npu profile` do."""
