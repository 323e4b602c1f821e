# SPDX-License-Identifier: Apache-2.0
"""Tests of single blocks: each `test_<block>.py` runs on the wrapper `unit_<block>.sv`."""
